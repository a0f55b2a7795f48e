"""What a probe is: it builds calls that differ in the slot alone, reads replies, and scores them.

Adding a probe is one file in this package (plus its test): define ``SPEC`` and ``build``
(docs/adding_a_probe.md). Third parties offer the same module under the entry-point group ``likeness.probes``. A probe never talks to
a model: whoever runs it hands the replies in, so that a probe is a pure function of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import domain.settings
from domain.discovery import offered
from domain.errors import LikenessError, did_you_mean
from domain.settings import Settings
from probes.calls import Call, Reading, Reply
from probes.results import ProbeResult

__all__ = [
    "BROKEN", "Probe", "ProbeModule", "ProbeSpec", "Settings", "build", "discover", "read_settings",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """Facts about a probe that do not depend on settings. ``reference`` is the paper or standard."""

    id: str
    title: str
    question: str
    languages: tuple[str, ...]
    reference: str
    needs: tuple[str, ...] = ()
    """What the endpoint must be able to do: "logprobs", "completion"; empty: chat alone."""
    in_composite: bool = True
    path_settings: tuple[str, ...] = ()
    """Settings that name files, relative to the plan's folder; a plan from elsewhere has none."""


class Probe(Protocol):
    """A probe with its settings, ready to build calls. All its methods are pure and repeat."""

    spec: ProbeSpec

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        """Every call of the plain condition, each place once, in no special order."""
        ...

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        """A second question because of how the first ended; None for none. Never after a fallback."""
        ...

    def read(self, call: Call, reply: Reply) -> Reading:
        """What the reply says. Never raises on any text. ``statuses.status_of`` has the first word."""
        ...

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        """Figures and tests over the readings of one language and one condition: one reading for
        each call that was made, however it ended. Their order changes nothing (``calls.in_order``)."""
        ...


class ProbeModule(Protocol):
    """What a module (or object) must offer to be found as a probe.

    It may offer ``EXAMPLES`` too, a sequence of settings, one for each way of the probe that is
    unlike the others, and cheap: tests build it with each of them (its defaults without any).
    """

    SPEC: ProbeSpec

    def build(self, settings: Mapping[str, Any], folder: Path) -> Probe:
        """Make the probe. ``folder`` is the plan's: files in settings are relative to it. Raises
        LikenessError with one clear line on a wrong setting."""
        ...


BROKEN: dict[str, str] = {}
"""Third parties' probes that could not be loaded, with the reason."""


def discover() -> dict[str, tuple[ProbeSpec, ProbeModule]]:
    """Every probe by id: this package's modules, then installed entry points."""
    found: dict[str, tuple[ProbeSpec, ProbeModule]] = {}
    offered("probes", "likeness.probes", lambda module: _register(module, found), BROKEN)
    return found


def _register(module: Any, found: dict[str, tuple[ProbeSpec, ProbeModule]]) -> None:
    if hasattr(module, "SPEC") and hasattr(module, "build"):
        found[module.SPEC.id] = (module.SPEC, module)


def build(probe_id: str, settings: Mapping[str, Any], folder: Path) -> Probe:
    """Make the probe ``probe_id``; one clear line when it is unknown or a setting is wrong."""
    known = discover()
    if probe_id not in known:
        hint = did_you_mean(probe_id, known)
        raise LikenessError(f"unknown probe '{probe_id}'{hint} (known: {', '.join(sorted(known))})")
    return known[probe_id][1].build(settings, folder)


S = TypeVar("S", bound=Settings)


def read_settings(model: type[S], settings: Mapping[str, Any], probe: str) -> S:
    """The settings as ``model``; LikenessError with one line naming probe, key and cause."""
    return domain.settings.read_settings(model, settings, f"probe '{probe}'")
