"""CSI, chrominance shift index, and the lightness and skin-angle figures that must stand beside it.

CSI = sqrt(da*^2 + db*^2) of the mean Lab (float, D65) over the original's skin. It cannot see
bleaching: +10 L* at constant a*, b* leaves it at 0. So CIEDE2000, signed lightness, the individual
typology angle and the hue angle of the same means are always given with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec
from metrics.lab import LabColour, angle_change, ciede2000, mean_lab
from metrics.per_pair import once_per_pair
from metrics.skin import colour_reason, pixels_under, skin_region

if TYPE_CHECKING:
    from metrics.pair import FacePair

UNITS = "CIE Lab units"
DEGREES = "degrees"
_LAB = "CIE 15:2018; sRGB by IEC 61966-2-1; float Lab, D65"
_SHARMA = "Sharma, Wu and Dalal, Color Research and Application 30, 2005"

SPECS = (
    MetricSpec(
        id="csi",
        name="chrominance shift index",
        unit=UNITS,
        low=0.0,
        high=None,
        direction=Direction.LOWER_IS_BETTER,
        perfect=0.0,
        reference=_LAB,
        threshold=8.5,
        threshold_source="source document: skin looks visibly off",
        margin=1.0,
        harm="skin colour shifted",
    ),
    MetricSpec(
        id="delta_l",
        name="change of skin lightness L*",
        unit=UNITS,
        low=-100.0,
        high=100.0,
        direction=Direction.SIGNED,
        perfect=0.0,
        reference=_LAB,
        margin=2.0,
        harm="skin made lighter (plus) or darker (minus)",
    ),
    MetricSpec(
        id="delta_e00",
        name="CIEDE2000 difference of mean skin colour",
        unit="CIEDE2000",
        low=0.0,
        high=None,
        direction=Direction.LOWER_IS_BETTER,
        perfect=0.0,
        reference=_SHARMA,
        margin=1.0,
        harm="skin colour or lightness changed",
    ),
    MetricSpec(
        id="delta_ita",
        name="change of the individual typology angle",
        unit=DEGREES,
        low=-180.0,
        high=180.0,
        direction=Direction.SIGNED,
        perfect=0.0,
        reference="Chardon, Cretois and Hourseau, International Journal of Cosmetic Science 13, 1991",
        margin=3.0,
        harm="skin tone moved along the light-to-dark angle",
    ),
    MetricSpec(
        id="delta_hue",
        name="change of skin hue angle",
        unit=DEGREES,
        low=-180.0,
        high=180.0,
        direction=Direction.SIGNED,
        perfect=0.0,
        reference=_LAB,
        margin=3.0,
        harm="skin hue turned towards red or yellow",
    ),
)
_UNIT = {spec.id: spec.unit for spec in SPECS}


@once_per_pair
def skin_colours(pair: FacePair) -> tuple[LabColour, LabColour] | str:
    """Mean skin colour of original and edit over the original's skin, or why there is none."""
    skin = skin_region(pair)
    if skin.reason is not None:
        return skin.reason
    before, after = pixels_under(skin, (pair.original_crop, pair.edited_crop))
    return mean_lab(before), mean_lab(after)


def measure(pair: FacePair) -> list[Measurement]:
    """The five colour figures of the face; angles only where both pictures hold skin colour."""
    colours = skin_colours(pair)
    if isinstance(colours, str):
        return [Measurement.missing(spec.id, spec.unit, colours) for spec in SPECS]
    before, after = colours
    original_grey = pair.original.picture.facts.monochrome
    edited_grey = pair.edited.picture.facts.monochrome
    evidence: dict[str, object] = {
        "original_lab": [before.lightness, before.a, before.b],
        "edited_lab": [after.lightness, after.a, after.b],
    }
    first = colour_reason(before, original_grey, "original")
    second = colour_reason(after, edited_grey, "edit")
    if first == "original is monochrome":
        found = _only_lightness(before, after, f"{first}: skin colour is not measurable")
    else:
        if second == "edit is monochrome":
            evidence["note"] = "edit is monochrome; colour shift given as chroma loss"
        shift = float(np.hypot(after.a - before.a, after.b - before.b))
        difference = float(ciede2000(before.as_array(), after.as_array()))
        found = [
            Measurement("csi", shift, UNITS, evidence=evidence),
            Measurement("delta_l", after.lightness - before.lightness, UNITS, evidence=evidence),
            Measurement("delta_e00", difference, _UNIT["delta_e00"], evidence=evidence),
        ]
        found.extend(_angles(before, after, first or second))
    return found


def _only_lightness(before: LabColour, after: LabColour, reason: str) -> list[Measurement]:
    lightness = Measurement("delta_l", after.lightness - before.lightness, UNITS)
    missing = [Measurement.missing(s.id, s.unit, reason) for s in SPECS if s.id != "delta_l"]
    return [lightness, *missing]


def _angles(before: LabColour, after: LabColour, reason: str | None) -> list[Measurement]:
    """A skin angle means nothing on a grey, tinted or near-black face."""
    if reason is not None:
        return [Measurement.missing(name, DEGREES, reason) for name in ("delta_ita", "delta_hue")]
    return [
        Measurement("delta_ita", after.ita - before.ita, DEGREES),
        Measurement("delta_hue", angle_change(before.hue, after.hue), DEGREES),
    ]
