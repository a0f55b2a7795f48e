"""PDL, perceptual detail loss, and the detail change that does not depend on how light skin is.

``pdl`` = |var_o - var_e| of the Laplacian, the figure of the source document with its alarm at
150, set on 1024 px portraits with about 256 px between the eyes. Raw variance falls with the
square of brightness, so it hides harm on dark skin; ``detail_change`` = log2(E_e / E_o) does not:
E is the Laplacian variance less the noise floor, over the squared mean luma.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec
from metrics.laplacian import ROUNDING, RegionDetail, pair_detail

if TYPE_CHECKING:
    from metrics.pair import FacePair

VARIANCE = "levels²"
OCTAVES = "log2"
KEPT_SHARE = 0.02
"""The noise floor may explain at most 98 % of a face's detail: the estimate is only an estimate."""
LIMIT = 8.0
_DOCUMENT = "Laplacian variance as a measure of detail: Pech-Pacheco et al., ICPR 2000"

SPECS = (
    MetricSpec(
        id="pdl",
        name="perceptual detail loss",
        unit=VARIANCE,
        low=0.0,
        high=None,
        direction=Direction.LOWER_IS_BETTER,
        perfect=0.0,
        reference=_DOCUMENT,
        threshold=150.0,
        threshold_source="source document: point where retouchers saw beard and wrinkles go",
        margin=30.0,
        harm="fine facial detail changed",
    ),
    MetricSpec(
        id="pdl_signed",
        name="perceptual detail loss with sign (positive: lost, negative: gained)",
        unit=VARIANCE,
        low=None,
        high=None,
        direction=Direction.SIGNED,
        perfect=0.0,
        reference=_DOCUMENT,
        margin=30.0,
        harm="fine facial detail lost (plus) or added (minus)",
    ),
    MetricSpec(
        id="detail_change",
        name="change of relative detail (-1: half of it is gone)",
        unit=OCTAVES,
        low=-LIMIT,
        high=LIMIT,
        direction=Direction.SIGNED,
        perfect=0.0,
        reference="Laplacian energy over squared mean luma, less the noise floor of Immerkaer 1996",
        threshold=-1.0,
        threshold_source="half of the detail energy is gone",
        margin=0.25,
        harm="fine facial detail lost (minus) or made up (plus)",
    ),
)


def measure(pair: FacePair) -> list[Measurement]:
    """All three figures for the face and for every region of metrics.regions.NAMES."""
    detail = pair_detail(pair)
    found: list[Measurement] = []
    for name, region in detail.regions.items():
        found.extend(_measure_region(name, region))
    return found


def _measure_region(name: str, detail: RegionDetail) -> list[Measurement]:
    if detail.reason is not None:
        return [Measurement.missing(spec.id, spec.unit, detail.reason, name) for spec in SPECS]
    signed = detail.original - detail.edited
    return [
        Measurement("pdl", abs(signed), VARIANCE, region=name),
        Measurement("pdl_signed", signed, VARIANCE, region=name),
        _detail_change(name, detail),
    ]


def _detail_change(name: str, detail: RegionDetail) -> Measurement:
    if detail.original < 2 * ROUNDING:
        reason = "the original holds no detail here beyond the rounding to eight bits"
        return Measurement.missing("detail_change", OCTAVES, reason, name)
    before = relative_energy(detail.original, detail.noise[0], detail.original_luma)
    after = relative_energy(detail.edited, detail.noise[1], detail.edited_luma)
    change = max(-LIMIT, min(LIMIT, log2(after / before)))
    return Measurement("detail_change", change, OCTAVES, region=name)


def relative_energy(variance: float, noise: float, luma: float) -> float:
    """Detail energy relative to brightness: Laplacian variance less noise, over luma squared.

    Floored at a fiftieth of the variance and at what rounding to eight bits leaves, so that it is
    above zero for a blank picture too.
    """
    return max(variance - noise, KEPT_SHARE * variance, ROUNDING) / max(luma, 1.0) ** 2
