"""The controls' verdict on the instrument: was what was planted found, and nothing else?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics.statistics.columns import Column
from metrics.statistics.facts import OUTCOME, OUTCOME_MARGIN, badness, facts, is_known
from metrics.statistics.findings import PAIRED, Finding
from metrics.statistics.groups import with_age_bands
from metrics.statistics.intervals import mean_interval, summarise
from metrics.statistics.multiplicity import holm
from metrics.statistics.permutation import smallest_p
from metrics.statistics.samples import build_block
from metrics.statistics.sentences import number
from metrics.statistics.table import Coded, Table, read
from metrics.statistics.verdicts import compare

PLANTED_METRIC = "detail_change"
_WATCHED = ("flrr", PLANTED_METRIC, "delta_e00")
_TOLERANCE = 1e-6
_EXPECTED = {
    "identity": "every figure perfect, nothing lost",
    "reencode": "no difference between groups beyond the margin",
    "uniform_harm": "the harm found in everybody, no difference between groups beyond the margin",
    "group_harm": "the harm found in the planted group",
}
_JUDGED = ("face_lost", "blank", "edited_unreadable", "failed", "refused")


@dataclass(frozen=True, slots=True)
class ControlCheck:
    """What one control had to show and what it showed. ``ok`` is None where too few subjects were
    there to show anything: that is no fault of the instrument, and no proof of it either."""

    control: str
    expected: str
    found: str
    ok: bool | None


def check_controls(
    rows: Any,
    *,
    attributes: Sequence[str],
    kinds: Mapping[str, str] | None = None,
    planted: tuple[str, str] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[ControlCheck]:
    """Judge the controls' own rows.

    ``kinds`` maps a tool label to identity, reencode, uniform_harm or group_harm (default: labels
    are those words); other tools are passed over. ``planted`` is (attribute, group) of group_harm.
    A difference counts here when its corrected p is below alpha and its size at least the
    margin: the controls look for faults of the instrument that could make a finding, not for dust.
    """
    wanted = [*dict.fromkeys([*attributes, *([planted[0]] if planted else [])])]
    table = read(rows, wanted)
    checks = []
    for label in dict.fromkeys(tool for tool, _ in table.arms):
        kind = (kinds or {}).get(label, label)
        arms = [i for i, (tool, _) in enumerate(table.arms) if tool == label]
        ok: bool | None
        if kind == "identity":
            ok, found = _identity(table, arms)
        elif kind == "reencode":
            ok, found = _even(table, arms, attributes, alpha, seed)
        elif kind == "uniform_harm":
            ok, found = _uniform(table, arms, attributes, alpha, seed)
        elif kind == "group_harm":
            ok, found = _group(table, arms, planted, alpha, seed)
        else:
            continue
        checks.append(ControlCheck(label, _EXPECTED[kind], found, ok))
    return checks


def _identity(table: Table, arms: Sequence[int]) -> tuple[bool, str]:
    at = np.isin(table.arm, arms) & np.isfinite(table.value) & (table.figure >= 0)
    if not at.any():
        return False, "no figure was measured"
    perfect = np.array([facts(metric).perfect for metric, _ in table.figures])
    known = np.array([is_known(metric) for metric, _ in table.figures])
    off = at & known[table.figure] & (np.abs(table.value - perfect[table.figure]) > _TOLERANCE)
    items = np.unique(table.item[np.isin(table.arm, arms)])
    bad = [o for o in _JUDGED if (table.item_outcome[items] == table.outcomes.index(o)).any()]
    if bad:
        return False, f"items ended as {', '.join(bad)}"
    if off.any():
        first = int(np.flatnonzero(off)[0])
        metric, region = table.figures[table.figure[first]]
        return False, (
            f"{int(off.sum())} of {int(at.sum())} figures are not perfect; first: {metric} "
            f"({region}) {number(float(table.value[first]))} of subject {table.subject.names[table.subject.codes[first]]}"
        )
    return True, f"all {int(at.sum())} figures perfect"


def _beyond_doubt(f: Finding, alpha: float) -> bool:
    """Too few subjects for any test to reach alpha: the interval beyond the margin decides."""
    n = [*f.n.values()]
    if smallest_p(n[0], n[1], f.details.get("design") == PAIRED) < alpha:
        return False
    return min(abs(end) for end in f.interval) > (f.column.margin or 0.0) and (
        f.interval[0] * f.interval[1] > 0
    )


def _watched(table: Table) -> list[Column]:
    columns = [
        Column(m, margin=facts(m).margin, named=True)
        for m in _WATCHED
        if (m, "face") in table.figures
    ]
    return [*columns, Column(f"{OUTCOME}face_lost", margin=OUTCOME_MARGIN, named=True)]


def _even(
    table: Table, arms: Sequence[int], attributes: Sequence[str], alpha: float, seed: int
) -> tuple[bool | None, str]:
    found: list[Finding] = []
    for attribute in attributes:
        by = with_age_bands(attribute, table.attributes[attribute])
        found += list(compare(table, attribute, by, _watched(table), alpha, seed, 1, arms))
    tested = [f for f in found if np.isfinite(f.p)]
    beyond = [
        (f, p)
        for f, p in zip(tested, holm(np.array([f.p for f in tested])), strict=True)
        if p < alpha and abs(f.effect) >= (f.column.margin or 0.0)
    ]
    if beyond:
        f, p = max(beyond, key=lambda b: abs(b[0].effect) / (b[0].column.margin or 1.0))
        return False, (
            f"{len(beyond)} of {len(tested)} comparisons differ beyond the margin; most: "
            f"{f.column.metric}, {f.groups[0]} minus {f.groups[1]} {number(f.effect)} (p {p:.3g})"
        )
    if not tested:
        return None, "no two groups could be compared"
    return True, f"none of {len(tested)} comparisons differs beyond the margin"


def _uniform(
    table: Table, arms: Sequence[int], attributes: Sequence[str], alpha: float, seed: int
) -> tuple[bool | None, str]:
    harmed, how = _harmed(table, arms)
    even, what = _even(table, arms, attributes, alpha, seed)
    ok = False if False in (harmed, even) else None if harmed is None else even
    return ok, f"{how}; {what}"


def _harmed(table: Table, arms: Sequence[int]) -> tuple[bool | None, str]:
    """Whether the mean harm over all subjects is beyond the metric's margin for certain."""
    everybody = Coded(np.zeros(len(table.arm), dtype=np.int64), ["everybody"])
    for arm in arms:
        block = build_block(table, arm, "", everybody, [Column(PLANTED_METRIC)])
        summary = summarise(block.units.means)
        if summary.n[0] < 2:
            return None, "too few subjects were measured"
        low, high = mean_interval(summary, None)
        margin = facts(PLANTED_METRIC).margin or 0.0
        worst = min(badness(PLANTED_METRIC, float(low[0])), badness(PLANTED_METRIC, float(high[0])))
        if low[0] * high[0] <= 0 or worst < margin:
            return (
                False,
                f"the planted harm was not found ({PLANTED_METRIC} {number(float(summary.mean[0]))})",
            )
    return True, f"the planted harm was found ({PLANTED_METRIC} {number(float(summary.mean[0]))})"


def _group(
    table: Table, arms: Sequence[int], planted: tuple[str, str] | None, alpha: float, seed: int
) -> tuple[bool | None, str]:
    if planted is None:
        return None, "no group was named as the planted one"
    attribute, value = planted
    declared = table.attributes[attribute]
    if value not in declared.names:
        return None, f"no subject has {attribute} '{value}'"
    place = declared.names.index(value)
    codes = np.where(declared.codes < 0, -1, (declared.codes != place).astype(np.int64))
    by = Coded(codes, [value, "all others"])
    column = Column(PLANTED_METRIC, margin=facts(PLANTED_METRIC).margin, named=True)
    findings = list(compare(table, attribute, by, [column], alpha, seed, 1, arms))
    p = holm(np.array([f.p for f in findings]))
    for f, value_p in zip(findings, p, strict=True):
        if f.reason is not None:
            return (None if min(f.n.values(), default=0) < 2 else False), f.reason
        sizes = ", ".join(f"{g} n {n}" for g, n in f.n.items())
        said = f"{PLANTED_METRIC}: {value} minus all others {number(f.effect)} (p {value_p:.3g}; {sizes})"
        estimates = [e.estimate for e in f.estimates]
        if estimates[0] is None or estimates[1] is None:
            return False, said
        worse = badness(PLANTED_METRIC, estimates[0]) > badness(PLANTED_METRIC, estimates[1])
        if not (worse and (value_p < alpha or _beyond_doubt(f, alpha))):
            return False, f"the planted difference was not found: {said}"
    return True, said
