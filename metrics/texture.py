"""Texture coherence: how much of the detail that is there now was there before.

cov(L_o, L_e) / var(L_o) of the Laplacian pictures of the registered faces, clamped to 0..1. Grain
laid over a blurred face brings the detail energy back but not the coherence; added sensor noise
leaves the coherence near 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec
from metrics.laplacian import ROUNDING, RegionDetail, pair_detail

if TYPE_CHECKING:
    from metrics.pair import FacePair

SHARE = "share"

SPECS = (
    MetricSpec(
        id="texture_coherence",
        name="texture coherence",
        unit=SHARE,
        low=0.0,
        high=1.0,
        direction=Direction.HIGHER_IS_BETTER,
        perfect=1.0,
        reference="regression slope of the edit's Laplacian on the original's, clamped",
        margin=0.05,
        harm="facial texture replaced by texture that was not there",
    ),
)


def measure(pair: FacePair) -> list[Measurement]:
    """The coherence of the face and of every region of metrics.regions.NAMES."""
    return [_coherence(name, detail) for name, detail in pair_detail(pair).regions.items()]


def _coherence(name: str, detail: RegionDetail) -> Measurement:
    if detail.reason is not None:
        return Measurement.missing("texture_coherence", SHARE, detail.reason, name)
    if detail.original < 2 * ROUNDING:
        reason = "the original holds no detail here beyond the rounding to eight bits"
        return Measurement.missing("texture_coherence", SHARE, reason, name)
    share = max(0.0, min(1.0, detail.covariance / detail.original))
    return Measurement("texture_coherence", share, SHARE, region=name)
