"""OpenAI's picture models: which sizes and parameters each takes, and what one result costs.

Sources: openai-python ``types/image_edit_params.py`` and the image generation guide, read in stored
copies of 2026. OpenAI shut dall-e-2 down on 2026-05-12 and gpt-image-1 on 2026-10-23, and will shut
gpt-image-1.5, gpt-image-1-mini and chatgpt-image-latest on 2026-12-01; servers that speak the same
protocol may go on offering them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.sizing import SizeRule
from domain.tools import Price


@dataclass(frozen=True, slots=True)
class Family:
    """What a group of models takes. Empty: the parameter does not exist for it."""

    size: SizeRule
    qualities: tuple[str, ...] = ("auto", "low", "medium", "high")
    fidelities: tuple[str, ...] = ()
    """Of input_fidelity, best last. The gpt-image-2 models are always faithful and refuse the word."""
    backgrounds: tuple[str, ...] = ("auto", "opaque", "transparent")
    prompt_limit: int = 32_000


# Sides of a multiple of 16, 655,360 to 8,294,400 pixels, 1:3 to 3:1, "experimental" above 2560x1440:
# a square of 816 is the first above the least, one of 1920 the last below the experimental ones
ANY_SIZE = SizeRule(multiple=16, min_side=816, max_side=1920)
THREE_SIZES = SizeRule(sizes=((1024, 1024), (1536, 1024), (1024, 1536)))
SQUARES = SizeRule(sizes=((1024, 1024), (512, 512), (256, 256)))
_NEWEST = Family(ANY_SIZE, ("auto", "low", "medium", "high", "xhigh", "max"))
_FAMILIES: tuple[tuple[str, Family], ...] = (
    ("dall-e-2", Family(SQUARES, qualities=(), backgrounds=(), prompt_limit=1000)),
    ("chatgpt-image-latest", Family(THREE_SIZES)),
    ("gpt-image-1-mini", Family(THREE_SIZES, fidelities=("low",))),
    ("gpt-image-1", Family(THREE_SIZES, fidelities=("low", "high"))),
    ("gpt-image-2.", _NEWEST),
    ("gpt-image-2", Family(ANY_SIZE, backgrounds=("auto", "opaque"))),
    ("gpt-image-", _NEWEST),
)
"""By the beginning of the model's name, first match: dated snapshots are like their model, and a
model younger than this list is taken to be like the newest."""
KNOWN = ("gpt-image-2.6-...", "gpt-image-2.5-...", "gpt-image-2", "gpt-image-1...", "dall-e-2")
_PRICES: Mapping[str, tuple[float, float, float]] = {
    "gpt-image-2": (0.006, 0.053, 0.211),
    "gpt-image-1.5": (0.009, 0.034, 0.133),
    "gpt-image-1-mini": (0.005, 0.011, 0.036),
    "gpt-image-1": (0.011, 0.042, 0.167),
}
"""US dollars for one 1024x1024 result at low, medium and high quality. None is published for 2.5."""
_LEVELS = ("low", "medium", "high")
PRICE_SOURCE = "OpenAI's image generation guide, 2026-09; input pictures are billed on top"


def family_of(model: str) -> Family | None:
    """The family of ``model``; None for one that makes no edits (dall-e-3, a text model)."""
    return next((family for name, family in _FAMILIES if model.startswith(name)), None)


def price_of(model: str, quality: str) -> Price | None:
    """The published price of a 1024x1024 result; None where there is none for this quality."""
    row = _PRICES.get(model)
    if row is None or quality not in _LEVELS:
        return None
    return Price(row[_LEVELS.index(quality)], source=PRICE_SOURCE)
