"""The instrument: two pictures in, every figure, the outcome and the health score out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import metrics.contract
from domain.errors import PictureRejected
from domain.faces import Face
from domain.masks import Mask
from domain.measurements import Decision, Health, Measurement, Outcome, PairResult, Status
from domain.pictures import Picture
from metrics import conditions, health
from metrics.pair import FacePair
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder, FaceSearch
from preprocess.limits import DEFAULT_LIMITS, Limits
from service import pair_checks

SECOND_LOOK = 50.0
"""FLRR below which the other engine is asked too (the source document's rule)."""
CONFLICT = 15.0
"""Points of FLRR by which two engines may differ before they are said to be in conflict."""
LOST = frozenset({"no_face", "not_upright", "not_human"})
"""Words of a search that mean the face is gone, not that the instrument cannot judge."""
REMEMBERED = 4
"""Original faces kept: an audit measures one original against several tools in a row."""
PROFILES = ("document", "even")


class Instrument:
    """Measures pairs with one engine, models loaded once. Not for use by two threads at a time."""

    def __init__(
        self,
        engine: str = "mediapipe",
        profile: str = "document",
        min_score: float = 85.0,
        extra_metrics: Sequence[str] = (),
    ) -> None:
        """``extra_metrics`` are ids of metrics that are off unless asked for."""
        self._metrics = active_metrics(extra_metrics)
        self.engine = engine
        self.profile = profile
        self.min_score = min_score
        self._finders: dict[str, FaceFinder] = {}
        self._seen: OrderedDict[str, FaceSearch] = OrderedDict()

    def look(self, picture: Picture) -> FaceSearch:
        """The face of an untouched portrait, with small faces beside it counted too."""
        return self._finder(self.engine).find(picture, thorough=True)

    def measure_files(
        self,
        original: Path | bytes,
        edited: Path | bytes,
        mask: Mask | None = None,
        cut: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> PairResult:
        """Decode both and measure. An unreadable file is an outcome with its reason."""
        try:
            first = open_picture(original, limits)
        except PictureRejected as error:
            return self.without(Outcome.ORIGINAL_UNREADABLE, f"original: {error.reason}")
        try:
            second = open_picture(edited, limits)
        except PictureRejected as error:
            reason = f"the tool returned a damaged image: {error.reason}"
            return self.without(Outcome.EDITED_UNREADABLE, reason)
        return self.measure(first, second, mask, cut)

    def measure(
        self, original: Picture, edited: Picture, mask: Mask | None = None, cut: bool = False
    ) -> PairResult:
        """Every figure of the pair; ``mask`` is what the tool was told to edit, if it was; ``cut``
        says that the portrait was cut on purpose, so that half a face will do."""
        search = self._original_face(original, cut)
        if search.face is None:
            return self.without(Outcome.NOT_MEASURABLE, f"fta_original: {search.reason}")
        reason = pair_checks.blank(edited)
        if reason:
            return self.without(Outcome.BLANK, reason, hard=True)
        reason = pair_checks.too_small(original, edited)
        if reason:
            return self.without(Outcome.NOT_MEASURABLE, reason)
        found = self._finder(self.engine).find(edited, near=search.face, cut=cut)
        if found.face is None and found.code in LOST:
            return self._lost(search.face, str(found.reason))
        if found.face is None:
            return self.without(Outcome.NOT_MEASURABLE, f"edit: {found.reason}")
        return self._figures(FacePair(search.face, found.face, mask), search.count, found.count)

    def close(self) -> None:
        """Give the models back. The instrument can be used again; it loads them anew."""
        for finder in self._finders.values():
            finder.close()
        self._finders.clear()
        self._seen.clear()

    # -- faces -------------------------------------------------------------------------------

    def _finder(self, engine: str) -> FaceFinder:
        if engine not in self._finders:
            self._finders[engine] = FaceFinder(engine)
        return self._finders[engine]

    def _original_face(self, picture: Picture, cut: bool) -> FaceSearch:
        key = picture.sha256
        if key and key in self._seen:
            self._seen.move_to_end(key)
            return self._seen[key]
        search = self._finder(self.engine).find(picture, cut=cut)
        if key:
            self._seen[key] = search
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return search

    # -- results -----------------------------------------------------------------------------

    def _figures(self, pair: FacePair, count_o: int, count_e: int) -> PairResult:
        figures = [m for module in self._metrics for m in module.measure(pair)]
        warnings = list(pair.notes)
        warnings += [f"original: {n}" for n in pair.original.notes]
        warnings += [f"edit: {n}" for n in pair.edited.notes]
        warnings += conditions.original_warnings(pair) + conditions.edit_warnings(pair)
        warnings += [str(m.evidence["note"]) for m in figures if "note" in m.evidence]
        evidence = _evidence(pair, figures)
        flrr = next((m for m in figures if m.metric == "flrr" and m.value is not None), None)
        if flrr is not None and flrr.value is not None and flrr.value < SECOND_LOOK:
            warnings.append("the face is heavily changed or another person's: see the pictures")
            evidence["second_engine"] = self._second_look(pair, flrr.value, warnings)
        scores = {p: health.score(figures, p, self.min_score) for p in PROFILES}
        if count_e > max(count_o, 1):
            rule = f"{count_e} faces in the edit where the original has {count_o}"
            warnings.append(rule)
            scores = {p: _hard_fail(h, rule) for p, h in scores.items()}
        return PairResult(
            Outcome.MEASURED,
            None,
            self.engine,
            tuple(figures),
            scores,
            self.profile,
            tuple(dict.fromkeys(warnings)),
            evidence,
        )

    def _second_look(self, pair: FacePair, flrr: float, warnings: list[str]) -> dict[str, Any]:
        """Ask the other engine about a pair the first one found badly damaged."""
        other = "dlib" if self.engine == "mediapipe" else "mediapipe"
        first = self._finder(other).find(pair.original.picture)
        second = self._finder(other).find(pair.edited.picture)
        if first.face is None or second.face is None:
            who = "original" if first.face is None else "edit"
            return {"engine": other, "flrr": None, "reason": f"no face found in the {who}"}
        module = next(m for m in self._metrics if any(s.id == "flrr" for s in m.SPECS))
        again = module.measure(FacePair(first.face, second.face))
        value = next((m.value for m in again if m.metric == "flrr"), None)
        if value is not None and abs(value - flrr) > CONFLICT:
            warnings.append(
                f"the engines disagree on FLRR: {self.engine} {flrr:.0f} %, {other} {value:.0f} %"
            )
        return {"engine": other, "flrr": value, "reason": None}

    def _lost(self, original: Face, why: str) -> PairResult:
        reason = f"no face in the edit: {why}"
        figures = _missing(self._metrics, "face lost")
        figures = [
            replace(m, value=0.0, status=Status.MEASURED, reason="face_lost")
            if m.metric == "flrr"
            else m
            for m in figures
        ]
        result = self.without(Outcome.FACE_LOST, reason, hard=True)
        evidence = {"original_points": _points(original), "ied": round(original.ied, 2)}
        return replace(result, measurements=tuple(figures), evidence=evidence)

    def without(self, outcome: Outcome, reason: str, hard: bool = False) -> PairResult:
        """A pair without figures. ``hard``: the tool destroyed the picture, so the gate fails."""
        decision = Decision.FAIL if hard else Decision.INCONCLUSIVE
        score = 0.0 if hard else None
        scores = {p: Health(p, score, decision, self.min_score, (reason,)) for p in PROFILES}
        return PairResult(
            outcome,
            reason,
            self.engine,
            tuple(_missing(self._metrics, reason)),
            scores,
            self.profile,
        )


def active_metrics(extra: Sequence[str] = ()) -> list[metrics.contract.MetricModule]:
    """The metric modules that run by default, and those that hold one of the ``extra`` ids."""
    return [
        m
        for m in metrics.contract.discover()
        if not getattr(m, "DEFAULT_OFF", False) or any(s.id in extra for s in m.SPECS)
    ]


def _missing(modules: Sequence[metrics.contract.MetricModule], reason: str) -> list[Measurement]:
    return [Measurement.missing(s.id, s.unit, reason) for m in modules for s in m.SPECS]


def _hard_fail(h: Health, rule: str) -> Health:
    return replace(h, decision=Decision.FAIL, reasons=(rule, *h.reasons))


def _points(face: Face) -> list[list[float]]:
    rounded: list[list[float]] = np.round(face.points, 1).tolist()
    return rounded


def _evidence(pair: FacePair, figures: Iterable[Measurement]) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "original_points": _points(pair.original),
        "edited_points": _points(pair.edited),
        "ied": round(pair.original.ied, 2),
        "face_box": [round(v, 1) for v in pair.original.box],
        "original_size": [pair.original.picture.width, pair.original.picture.height],
        "edited_size": [pair.edited.picture.width, pair.edited.picture.height],
    }
    if np.array_equal(pair.original.picture.pixels, pair.edited.picture.pixels):
        evidence["unchanged"] = True
    for m in figures:
        if m.metric == "flrr":
            evidence.update(m.evidence)
    return evidence
