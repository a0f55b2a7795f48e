"""Health score 0-100 of one edited face, in two profiles, with the reasons for every point lost.

``document`` is the source document's sum: 40 points for landmark retention, 30 for detail and 30
for skin colour, linear in FLRR, PDL and CSI. Raw PDL and CSI ring louder on light skin than on dark
skin, so ``even`` reads figures that do not: relative detail, texture coherence and CIEDE2000. Its
curves are named below, each a monotone piecewise map from a figure to the points it costs (raw value,
named curve, clamped score, as ISO/IEC 29794-5 and OFIQ do it). They are calibrated on the rendered
skin-tone sweeps I-VI: the same harm costs every tone the same within 3 points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from domain.errors import LikenessError
from domain.measurements import FACE_REGION, Decision, Health, Measurement

PROFILES = ("document", "even")
MIN_SCORE = 85.0

FLRR_POINTS, DETAIL_POINTS, COLOUR_POINTS = 40.0, 30.0, 30.0
PDL_ZERO, CSI_ZERO = 150.0, 10.0
"""PDL and CSI at which the document's detail and colour terms reach zero."""

DETAIL_CURVE = ((-1.5, 10.0), (-0.4, 3.5), (-0.1, 0.0), (0.8, 0.0), (2.0, 10.0))
"""(detail_change in log2, points lost). Dead zone from -0.1 to +0.8: a mere re-save moves it so."""
COHERENCE_CURVE = ((0.6, 20.0), (0.9, 0.0))
"""(texture_coherence, points lost)."""
COLOUR_UNSEEN, COLOUR_SLOPE = 0.6, 8.0
"""delta_e00 costs slope * ln(delta_e00 / unseen), at most 30: like the eye, it counts ratios."""

BEARD_PDL_ALARM, BEARD_PDL_FAIL = 150.0, 200.0
BEARD_DETAIL_ALARM = -1.0
BEARD_ALONE = 0.75
"""By how much more (log2) than the upper face the beard area must lose for a hard fail in even."""


@dataclass(frozen=True, slots=True)
class _Term:
    """Points lost by one part of a score, and the sentence that says why; None where missing."""

    lost: float | None
    sentence: str


class _Figures:
    """Measurements by metric and region."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._by: Mapping[tuple[str, str], Measurement] = {
            (m.metric, m.region): m for m in measurements
        }

    def value(self, metric: str, region: str = FACE_REGION) -> float | None:
        found = self._by.get((metric, region))
        return None if found is None else found.value

    def why_missing(self, metric: str) -> str:
        found = self._by.get((metric, FACE_REGION))
        return "it was not measured" if found is None else str(found.reason)

    def skin_and_face(self, metric: str) -> float | None:
        """Half the whole face, half the plain skin of forehead and cheeks where they are seen.

        Brows and lashes carry most of the face's edge energy, the more so the darker the skin;
        plain skin alone would miss a harm to the features. Together they move alike on all tones.
        """
        whole = self.value(metric)
        plain = [self.value(metric, region) for region in ("forehead", "cheeks")]
        seen = [value for value in plain if value is not None]
        if whole is None or not seen:
            return whole
        return (whole + sum(seen) / len(seen)) / 2.0


def score(
    measurements: Sequence[Measurement], profile: str, min_score: float = MIN_SCORE
) -> Health:
    """The health of one pair by ``profile`` ("document" or "even").

    pass at ``min_score`` or above, fail below, inconclusive (score None) when a part of the sum is
    missing. Hard rules (face lost or collapsed, beard area wiped) fail whatever the sum says.
    Raises LikenessError on an unknown profile.
    """
    if profile not in PROFILES:
        raise LikenessError(f"unknown health profile '{profile}'; known: {', '.join(PROFILES)}")
    figures = _Figures(measurements)
    terms = _document_terms(figures) if profile == "document" else _even_terms(figures)
    hard, remarks = _hard_rules(figures, profile)
    missing = [term.sentence for term in terms if term.lost is None]
    costs = sorted((t for t in terms if (t.lost or 0.0) >= 0.05), key=lambda t: -(t.lost or 0.0))
    reasons = (*hard, *missing, *(term.sentence for term in costs), *remarks)
    if missing:
        decision = Decision.FAIL if hard else Decision.INCONCLUSIVE
        return Health(profile, None, decision, min_score, reasons)
    total = 100.0 - sum(term.lost or 0.0 for term in terms)
    passed = not hard and total >= min_score
    decision = Decision.PASS if passed else Decision.FAIL
    return Health(profile, total, decision, min_score, reasons)


def profiles_disagree(first: Health, second: Health) -> str | None:
    """A sentence when two profiles decide differently about the same pair, else None."""
    if first.decision is second.decision:
        return None
    sides = [
        f"'{h.profile}' says {h.decision.value}"
        + ("" if h.score is None else f" ({h.score:.1f} of 100, {h.threshold:g} needed)")
        for h in (first, second)
    ]
    return f"The two profiles disagree: {sides[0]}, {sides[1]}."


def _document_terms(figures: _Figures) -> list[_Term]:
    return [
        _retention(figures),
        _linear(figures, "pdl", PDL_ZERO, DETAIL_POINTS, "fine detail changed (PDL {:.0f})"),
        _linear(figures, "csi", CSI_ZERO, COLOUR_POINTS, "skin colour shifted (CSI {:.1f})"),
    ]


def _even_terms(figures: _Figures) -> list[_Term]:
    return [_retention(figures), _relative_detail(figures), _coherence(figures), _colour(figures)]


def _term(lost: float, what: str) -> _Term:
    return _Term(lost, f"{what[:1].upper()}{what[1:]}: costs {lost:.1f} points.")


def _lacking(figures: _Figures, metric: str) -> _Term:
    return _Term(
        None, f"The score needs {metric}, which is missing: {figures.why_missing(metric)}."
    )


def _retention(figures: _Figures) -> _Term:
    flrr = figures.value("flrr")
    if flrr is None:
        return _lacking(figures, "flrr")
    lost = FLRR_POINTS * (1.0 - flrr / 100.0)
    return _term(lost, f"landmarks lost (FLRR {flrr:.0f} %)")


def _linear(figures: _Figures, metric: str, zero: float, points: float, words: str) -> _Term:
    value = figures.value(metric)
    if value is None:
        return _lacking(figures, metric)
    return _term(points * min(max(value / zero, 0.0), 1.0), words.format(value))


def _relative_detail(figures: _Figures) -> _Term:
    change = figures.skin_and_face("detail_change")
    if change is None:
        return _lacking(figures, "detail_change")
    words = "lost" if change < 0 else "added"
    return _term(_curve(change, DETAIL_CURVE), f"relative detail {words} ({change:+.2f} log2)")


def _coherence(figures: _Figures) -> _Term:
    share = figures.skin_and_face("texture_coherence")
    if share is None:
        return _lacking(figures, "texture_coherence")
    lost = _curve(share, COHERENCE_CURVE)
    return _term(lost, f"texture no longer that of the original (coherence {share:.2f})")


def _colour(figures: _Figures) -> _Term:
    difference = figures.value("delta_e00")
    if difference is None:
        return _lacking(figures, "delta_e00")
    lost = 0.0
    if difference > COLOUR_UNSEEN:
        lost = min(COLOUR_SLOPE * log(difference / COLOUR_UNSEEN), COLOUR_POINTS)
    return _term(lost, f"skin colour or lightness changed (CIEDE2000 {difference:.1f})")


def _curve(value: float, knots: tuple[tuple[float, float], ...]) -> float:
    at, points = zip(*knots, strict=True)
    return float(np.interp(value, at, points))


def _hard_rules(figures: _Figures, profile: str) -> tuple[list[str], list[str]]:
    """Sentences of the rules that fail a pair whatever its sum, and of those that only remark."""
    hard: list[str] = []
    if figures.value("flrr") == 0.0:
        hard.append("The face is lost: not one landmark of the original is left.")
    loss = figures.value("pdl_signed", "beard")
    change = figures.value("detail_change", "beard")
    upper = figures.value("detail_change", "upper_face")
    if loss is None or change is None:
        return hard, []
    sentence = (
        f"The beard area lost detail (PDL {loss:.0f}, {change:+.2f} log2 against "
        f"{'?' if upper is None else f'{upper:+.2f}'} in the upper face); send the picture back."
    )
    wiped = change <= BEARD_DETAIL_ALARM
    alone = upper is not None and change <= upper - BEARD_ALONE
    if (profile == "document" and loss > BEARD_PDL_FAIL) or (profile == "even" and wiped and alone):
        return [*hard, sentence], []
    return hard, [sentence] if wiped or loss > BEARD_PDL_ALARM else []
