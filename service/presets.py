"""Ready-made plans, for those who have portraits and no plan yet: each works here, without a key."""

from __future__ import annotations

from collections.abc import Mapping

from domain.errors import LikenessError, did_you_mean

_SELF_TEST = """\
name: Self-test of the instrument
purpose: >
  No tool is under test. The portraits go through copies with known harm and without any, to show
  that the instrument sees what it should on these very portraits.
tools:
  - {id: identity, name: unchanged copy}
  - {id: uniform_harm, name: a fifth of the detail taken, settings: {strength: 0.2}}
controls: true
groups: [gender]
"""

_LOCAL_TOOLS = """\
name: Two tools that work here
purpose: >
  A first audit: style transfer and a neural representation, both without a key, a price or a
  picture that leaves this machine.
tools:
  - id: style_transfer
    name: style transfer (style 0)
    settings: {style: 0, strength: 0.7}
  - id: inr
    name: neural representation
    settings: {steps: 80}
tasks: [restyle, reconstruct]
controls: true
groups: [gender]
"""

_STYLE_TRANSFER = """\
name: Style transfer
purpose: >
  The shortest audit of a real tool: one style on every portrait, with the controls beside it.
tools:
  - id: style_transfer
    settings: {style: 0, strength: 0.7}
controls: true
groups: [gender]
"""

PRESETS: Mapping[str, str] = {
    "self-test": _SELF_TEST,
    "local-tools": _LOCAL_TOOLS,
    "style-transfer": _STYLE_TRANSFER,
}
"""Plans by name, as YAML. Groups and claims are few on purpose: a plan of one's own names those that
the portraits declare."""


def preset(name: str) -> str:
    """The text of a preset. Raises LikenessError with the near miss."""
    if name not in PRESETS:
        hint = did_you_mean(name, PRESETS, 0.5)
        raise LikenessError(f"there is no preset '{name}'{hint} (presets: {', '.join(PRESETS)})")
    return PRESETS[name]
