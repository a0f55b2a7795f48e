"""The cleaning protocol: which items the main statistics rest on, and which people should look at.

Three levels, each of which sees only what the one before has left; docs/cleaning.md says in full
which statistics an item leaves. Pure: rows in, standings out, nothing is read or written.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from domain.measurements import FACE_REGION, Outcome
from domain.plan import AuditPlan
from metrics.contract import specs
from service.report.groups import group_of
from service.report.model import (
    Cleaning,
    ItemRow,
    MeasurementRow,
    Place,
    Review,
    ReviewRow,
    Standing,
    is_adversarial,
)

CONFLICT_BELOW = 50.0
"""FLRR under which two engines are compared (source document 3.3)."""
CONFLICT_POINTS = 15.0
"""Points of FLRR; a difference of exactly so many is no conflict yet."""
BROKEN_FLRR, BROKEN_PDL = 70.0, 200.0
STRONG_CAST = 15.0
"""CSI above which a colour profile may be at fault (source document 5.3)."""
SAMPLE_SHARE = 0.10
"""Of the answered items of each tool and group, rounded up, that people look at without a reason."""
ERASURE_REGIONS = ("lower_face", "beard", "larynx")

NO_ANSWER = {
    Outcome.FAILED: "the tool failed or gave no answer",
    Outcome.REFUSED: "the tool refused: no picture came back",
    Outcome.BLANK: "the answer is a blank picture",
    Outcome.EDITED_UNREADABLE: "the answer cannot be read as a picture",
    Outcome.ORIGINAL_UNREADABLE: "the original cannot be read: nothing was sent",
}
"""Level 1: outcomes that leave nothing to measure, with their rule."""
NOT_JUDGED = "the instrument cannot judge the pair"
CONFLICT = (
    f"FLRR below {CONFLICT_BELOW:.0f} and the two engines differ by more than "
    f"{CONFLICT_POINTS:.0f} points"
)
DECLARED = "declared as a boundary case (column set)"

_Figures = Mapping[tuple[str, str], float]


def clean(
    items: Sequence[ItemRow],
    figures: Iterable[MeasurementRow],
    plan: AuditPlan,
    reviews: Sequence[Review] = (),
    reviews_text: str = "",
) -> Cleaning:
    """The standing of every item and the list for review. The same run gives the same answer,
    whatever the order of its rows. ``reviews`` must be about these items (service.reviews)."""
    measured = _by_item(figures)
    out = {r.item_id: r.reason for r in reviews if not r.keep}
    standings = {i.item_id: standing(i, measured.get(i.item_id, {}), out) for i in items}
    return Cleaning(standings, review_list(items, measured, plan), tuple(reviews), reviews_text)


def _by_item(figures: Iterable[MeasurementRow]) -> dict[str, dict[tuple[str, str], float]]:
    found: dict[str, dict[tuple[str, str], float]] = {}
    for m in figures:
        if m.value is not None:
            found.setdefault(m.item_id, {})[m.metric, m.region] = m.value
    return found


# Standing ------------------------------------------------------------------------------------


def standing(item: ItemRow, figures: _Figures, out: Mapping[str, str]) -> Standing:
    """Where one item stands. ``figures`` are its own by (metric, region); ``out`` maps the items
    that people excluded to their reasons. A review can neither hide an outcome without a picture
    nor bring a conflict back: levels 1 and 2 have spoken by then."""
    if is_adversarial(item.attributes):
        return Standing(Place.ADVERSARIAL, None, DECLARED)
    if item.outcome in NO_ANSWER:
        return Standing(Place.NO_ANSWER, 1, NO_ANSWER[item.outcome])
    if item.outcome is Outcome.NOT_MEASURABLE:
        return Standing(Place.NOT_JUDGED, 2, NOT_JUDGED)
    if _engines_differ(item, figures):
        return Standing(Place.CONFLICT, 2, CONFLICT)
    if item.item_id in out:
        return Standing(Place.REVIEWED_OUT, 3, f"reviewed: {out[item.item_id]}")
    return Standing(Place.MAIN)


def _engines_differ(item: ItemRow, figures: _Figures) -> bool:
    first, second = figures.get(("flrr", FACE_REGION)), _second_flrr(item)
    if first is None or second is None or first >= CONFLICT_BELOW:
        return False
    return abs(second - first) > CONFLICT_POINTS


def _second_flrr(item: ItemRow) -> float | None:
    """The other engine's FLRR; None when it was not asked, or found no face to judge by."""
    second = item.evidence.get("second_engine")
    value = second.get("flrr") if isinstance(second, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


# The list for review -------------------------------------------------------------------------


@dataclass
class _Wanted:
    """Why one item is listed; filled rule by rule, in the order of the rules."""

    rules: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)

    def add(self, rule: str, look_at: str) -> None:
        self.rules.append(rule)
        self.look_at.append(look_at)


def review_list(
    items: Sequence[ItemRow],
    measured: Mapping[str, _Figures],
    plan: AuditPlan,
) -> list[ReviewRow]:
    """Items of tools under test that people should look at, by item id: a seeded tenth of what was
    answered, by tool and first group, and whatever a rule points at. Says nothing of any group."""
    tested = [i for i in items if not i.control]
    drawn = _tenth([i for i in tested if _answered(i)], plan)
    rows = []
    for item in sorted(tested, key=lambda i: i.item_id):
        wanted = _Wanted()
        _rules(wanted, item, measured.get(item.item_id, {}))
        if item.item_id in drawn:
            wanted.add("random sample", "does the result still show the same person, unharmed?")
        if wanted.rules:
            rows.append(
                ReviewRow(
                    item.item_id, "; ".join(wanted.rules), "; ".join(wanted.look_at),
                    _blob(item.original), _blob(item.edited),
                )
            )  # fmt: skip
    return rows


def _answered(item: ItemRow) -> bool:
    return item.outcome in (Outcome.MEASURED, Outcome.FACE_LOST)


def _tenth(items: Iterable[ItemRow], plan: AuditPlan) -> set[str]:
    strata: dict[tuple[str, str], list[str]] = {}
    first = plan.groups[0] if plan.groups else ""
    for item in items:
        key = item.tool, group_of(item.attributes, first)
        strata.setdefault(key, []).append(item.item_id)

    def place(item_id: str) -> bytes:
        return hashlib.sha256(f"review\0{plan.seed}\0{item_id}".encode()).digest()

    return {
        item_id
        for members in strata.values()
        for item_id in sorted(members, key=place)[: math.ceil(SAMPLE_SHARE * len(members))]
    }


def _rules(wanted: _Wanted, item: ItemRow, figures: _Figures) -> None:
    flrr, pdl, csi = (figures.get((m, FACE_REGION)) for m in ("flrr", "pdl", "csi"))
    if is_adversarial(item.attributes):
        wanted.add("adversarial set", "how does the tool fail on this boundary case?")
    if item.outcome is Outcome.FACE_LOST:
        wanted.add("face lost", "is there really no face in the result?")
    if flrr is not None and pdl is not None and flrr < BROKEN_FLRR and pdl > BROKEN_PDL:
        wanted.add(
            f"FLRR below {BROKEN_FLRR:.0f} and PDL above {BROKEN_PDL:.0f}",
            "is the face's geometry broken, so that the figures say nothing?",
        )
    if csi is not None and csi > STRONG_CAST:
        wanted.add(
            f"CSI above {STRONG_CAST:.0f}",
            "is a colour cast to be seen? If not, look at the profile of the file",
        )
    harmed = _erased(figures)
    if harmed:
        wanted.add(
            "suspected erasure: " + ", ".join(r.replace("_", " ") for r in harmed),
            "feed the result back into the tool: is what was lost invented anew?",
        )
    if "second_engine" in item.evidence:
        if _engines_differ(item, figures):
            wanted.add("the two engines contradict each other", "which engine's points are right?")
        elif _second_flrr(item) is None:
            wanted.add("the second engine saw no face", "are the first engine's points right?")


def _erased(figures: _Figures) -> list[str]:
    """Regions where a beard or larynx may have been wiped away: detail beyond its alarm is gone."""
    known = specs()
    change, loss = known["detail_change"].threshold, known["pdl"].threshold

    def lost(region: str) -> bool:
        now, gone = figures.get(("detail_change", region)), figures.get(("pdl", region))
        if now is not None and change is not None and now <= change:
            return True
        # PDL has no sign: detail that was added rings the same alarm
        added = figures.get(("pdl_signed", region), 0.0) < 0
        return gone is not None and loss is not None and gone > loss and not added

    return [r for r in ERASURE_REGIONS if lost(r)]


def _blob(key: str | None) -> str:
    return f"blobs/{key[:2]}/{key}" if key else ""
