"""What a metric is: a frozen spec and a pure function of a registered pair, in one file.

Adding a metric is one file in this package (plus its test): define ``SPECS`` and ``measure``.
``discover`` finds it; the conformance suite in tests/metrics/test_contract.py picks it up.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Protocol

from domain.measurements import Measurement

if TYPE_CHECKING:
    from metrics.pair import FacePair


class Direction(StrEnum):
    """Which end of a metric is good."""

    HIGHER_IS_BETTER = "higher_is_better"
    LOWER_IS_BETTER = "lower_is_better"
    SIGNED = "signed"
    """0 is best; the sign tells which way."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """``perfect`` is the value of an identical pair. ``threshold`` is the alarm, None where no
    source gives one; ``threshold_source`` says where it comes from. ``margin`` is the default
    equivalence margin for group differences, in the metric's unit."""

    id: str
    name: str
    unit: str
    low: float | None
    high: float | None
    direction: Direction
    perfect: float
    reference: str
    threshold: float | None = None
    threshold_source: str = ""
    margin: float | None = None
    harm: str = ""
    """Words for a sentence: "fine facial detail lost"."""


class MetricModule(Protocol):
    """What a module of this package must offer to be found as a metric."""

    SPECS: tuple[MetricSpec, ...]

    def measure(self, pair: FacePair) -> list[Measurement]:
        """Every figure of ``SPECS`` for one pair; one that cannot be had is a missing one."""
        ...


@cache
def discover() -> tuple[MetricModule, ...]:
    """Every module of this package that defines ``SPECS`` and ``measure``, by name."""
    package = importlib.import_module("metrics")
    found = []
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        module = importlib.import_module(f"metrics.{info.name}")
        if hasattr(module, "SPECS") and hasattr(module, "measure"):
            found.append(module)
    return tuple(found)


@cache
def specs() -> dict[str, MetricSpec]:
    """Every metric's spec by id."""
    return {s.id: s for m in discover() for s in m.SPECS}
