"""From rows of measurements to verdicts: the order of work, readable top to bottom."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from domain.verdicts import Verdict, VerdictKind
from metrics.statistics import groups as grouping
from metrics.statistics.columns import ClaimSpec, Column, column_of, default_claims, exploratory
from metrics.statistics.comparing import Comparer
from metrics.statistics.facts import OUTCOME
from metrics.statistics.findings import PAIRED, Finding, finding, unanswered
from metrics.statistics.multiplicity import benjamini_hochberg, holm
from metrics.statistics.permutation import smallest_p
from metrics.statistics.power import needed_n_means, needed_n_rates, power_means
from metrics.statistics.samples import Block, build_block
from metrics.statistics.sentences import sentence, worse_group
from metrics.statistics.table import Coded, StatisticsError, Table, read

EQUIVALENCE_SUBJECTS = 5
"""Fewer subjects in a group never show equality."""


def analyse(
    rows: Any,
    *,
    attributes: Sequence[str],
    claims: Sequence[ClaimSpec] = (),
    margins: Mapping[str, float] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    explore: bool = True,
    outcomes: Sequence[str] = (),
) -> list[Verdict]:
    """Verdicts of every claim about every tool and task, then of what nobody named.

    ``rows``: a data frame, mappings or row objects with subject_id, metric, value and, where
    there are any, tool, task, perturbation, region, status, outcome, item_id or portrait_id, and the
    attribute columns. ``claims`` empty: a default set, with the rates of ``outcomes`` ("refused") in
    it even where they never occurred. ``margins``: by "metric", "metric/region",
    "rate" (any event), "metric:below 95". ``details["family"]`` is "named" (Holm over all of them)
    or "exploratory" (Benjamini-Hochberg), "intersection" among the latter in ``attribute`` "a x b".
    Named verdicts come first; inside a claim the largest difference first. Same rows and seed, same
    verdicts. Raises StatisticsError (one line) on rows that cannot be analysed.
    """
    table = read(rows, [*dict.fromkeys([*attributes, *(c.attribute for c in claims)])])
    return analyse_table(table, attributes, claims, margins, alpha, seed, explore, outcomes)


def analyse_table(
    table: Table, attributes: Sequence[str], claims: Sequence[ClaimSpec],
    margins: Mapping[str, float] | None, alpha: float, seed: int, explore: bool,
    outcomes: Sequence[str] = (),
) -> list[Verdict]:  # fmt: skip
    """``analyse`` on rows that are already checked and coded."""
    _check(table, claims, alpha)
    coded = {a: grouping.with_age_bands(a, c) for a, c in table.attributes.items()}
    ended, margins = happened(table), margins or {}
    asked = list(claims) or default_claims(attributes, occurring(table), [*ended, *outcomes])
    named, rest = [], []
    for attribute, by in coded.items():
        columns = [column_of(c, margins, not claims) for c in asked if c.attribute == attribute]
        named += list(compare(table, attribute, by, _unique(columns), alpha, seed, 1))
        if explore and attribute in attributes:
            more = _unexplored(table, columns, ended, margins)
            rest += list(compare(table, attribute, by, more, alpha, seed, 1))
    if explore:
        every = _unexplored(table, [], ended, margins)
        least = grouping.INTERSECTION_SUBJECTS
        chosen = {a: c for a, c in coded.items() if a in attributes}
        for attribute, by in grouping.intersections(chosen).items():
            rest += list(compare(table, attribute, by, every, alpha, seed, least))
    rest = [f for f in rest if f.reason is None]
    return [*judged(named, "named", alpha), *judged(rest, "exploratory", alpha)]


def _check(table: Table, claims: Sequence[ClaimSpec], alpha: float) -> None:
    if not 0 < alpha < 0.5:
        raise StatisticsError(f"alpha is {alpha:g}; it lies between 0 and 0.5")
    metrics = {m for m, _ in table.figures}
    for claim in claims:
        if (claim.event is None) != (claim.threshold is None):
            raise StatisticsError(f"claim on '{claim.metric}': 'event' and 'threshold' go together")
        if claim.metric not in metrics and not claim.metric.startswith(OUTCOME):
            close = difflib.get_close_matches(claim.metric, sorted(metrics), n=1, cutoff=0.6)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise StatisticsError(f"claim on '{claim.metric}': no row has this metric{hint}")


def occurring(table: Table) -> list[tuple[str, str]]:
    """The (metric, region) pairs of the rows."""
    return [key for key in table.figures if key[0]]


def happened(table: Table) -> list[str]:
    """Outcomes other than "measured" that occur at all."""
    return [
        name
        for i, name in enumerate(table.outcomes)
        if name != "measured" and (table.item_outcome == i).any()
    ]


def _unique(columns: Iterable[Column]) -> list[Column]:
    return list(dict.fromkeys(columns))


def _unexplored(
    table: Table, columns: Sequence[Column], happened: Sequence[str], margins: Mapping[str, float]
) -> list[Column]:
    """Every figure and outcome, asked of the tools of which no claim asks it."""
    everyone = [*dict.fromkeys(tool for tool, _ in table.arms)]
    left = []
    for metric, region in [*occurring(table), *((OUTCOME + o, "face") for o in happened)]:
        asked = [c for c in columns if c.event is None and (c.metric, c.region) == (metric, region)]
        if not asked:
            left.append(exploratory(metric, region, margins))
        elif others := tuple(t for t in everyone if not any(c.asks(t) for c in asked)):
            left.append(exploratory(metric, region, margins, others))
    return left


def _put_to(tool: str, columns: Sequence[Column]) -> list[Column]:
    """The questions for one tool, none of them twice."""
    asked = {c.question: c for c in reversed(columns) if c.asks(tool)}
    return [c for c in columns if asked.get(c.question) is c]


def compare(
    table: Table, attribute: str, by: Coded, columns: Sequence[Column],
    alpha: float, seed: int, least: int, arms: Sequence[int] | None = None,
) -> Iterable[Finding]:  # fmt: skip
    """Every comparison of an attribute's groups, for every tool and task (or those in ``arms``).

    ``by``: the rows' group codes; groups with fewer than ``least`` subjects are passed over.
    """
    for arm in range(len(table.arms)) if arms is None else arms:
        asked = _put_to(table.arms[arm][0], columns)
        if not asked:
            continue
        block = build_block(table, arm, attribute, by, asked)
        pairs = grouping.comparisons(block, least)
        if not pairs:
            yield from _no_comparison(block)
            continue
        comparer = Comparer(block, alpha, seed)
        for pair in pairs:
            contrast = comparer.contrast(pair)
            names = pair.names(block.groups)
            for index in range(len(asked)):
                yield finding(block, contrast, index, names, alpha)


def _no_comparison(block: Block) -> Iterable[Finding]:
    sizes = block.sizes()
    present = [g for g, n in enumerate(sizes) if n > 0]
    largest = sorted(present, key=lambda g: (-sizes[g], g))[:2]
    names = [block.groups[g] for g in largest] + ["", ""]
    if not present:
        reason = f"no subject has a value of '{block.attribute}'"
    elif len(present) == 1:
        reason = f"there is one group only ('{names[0]}'): nothing to compare it with"
    else:
        reason = (
            f"'{block.attribute}' has {len(present):,} groups, more than {grouping.MOST_GROUPS}: "
            "name bands first"
        )
    counts = {block.groups[g]: int(sizes[g]) for g in largest}
    for column in block.columns:
        yield unanswered(block, column, (names[0], names[1]), reason, counts)


def judged(findings: Sequence[Finding], family: str, alpha: float) -> list[Verdict]:
    """Correct within the family, decide, and put in order: BH for "exploratory", else Holm."""
    # A question that no outcome could have answered cannot be a false finding (Tarone 1990): it
    # takes no part in the correction.
    p = np.array([math.nan if _hopeless(f, alpha) else f.p for f in findings], dtype=np.float64)
    adjusted = benjamini_hochberg(p) if family == "exploratory" else holm(p)
    asked = max(int(np.isfinite(p).sum()), 1)
    order: dict[tuple[Any, ...], int] = {}
    ranked = []
    for found, value in zip(findings, adjusted, strict=True):
        found.p_adjusted = float(value)
        place = order.setdefault(
            (found.attribute, found.column, found.tool, found.task), len(order)
        )
        verdict = verdict_of(found, alpha, family, asked)
        ranked.append((place, -abs(found.effect) if math.isfinite(found.effect) else 0.0, verdict))
    return [v for _, _, v in sorted(ranked, key=lambda r: r[:2])]


def verdict_of(found: Finding, alpha: float, family: str, asked: int) -> Verdict:
    """Decide one finding.

    Equivalent: TOST inside the margin, even where the difference is certainly not zero (the
    sentence tells its size). Disparity: adjusted p below alpha, the interval away from 0, and the
    size at or above the triviality line. Else inconclusive, with the n that would settle it.
    """
    column, reason, needed = found.column, found.reason, None
    low, high = found.interval
    apart = math.isfinite(low) and (low > 0 or high < 0)
    enough = min(found.n.values(), default=0) >= EQUIVALENCE_SUBJECTS
    if reason is None and enough and found.p_equivalence < alpha:
        kind = VerdictKind.EQUIVALENT
    elif (
        reason is None
        and found.p_adjusted < alpha
        and apart
        and abs(found.effect) >= column.triviality
    ):
        kind = VerdictKind.DISPARITY
    else:
        kind = VerdictKind.INCONCLUSIVE
        needed = _needed(found, alpha, asked)
        reason = reason or _why(found, alpha, apart)
    details = dict(found.details)
    details["family"] = family
    details["region"] = column.region
    details["p_equivalence"] = _finite(found.p_equivalence)
    details["triviality"] = column.triviality
    details["worse_group"] = worse_group(found.estimates, column)
    details["threshold"] = column.threshold
    details["power_at_margin"] = _power(found, alpha)
    verdict = Verdict(
        found.tool, column.metric, found.attribute, found.groups, kind, _finite(found.effect),
        (low, high) if math.isfinite(low) and math.isfinite(high) else None,
        _finite(found.p), _finite(found.p_adjusted), dict(found.n), needed, column.margin,
        column.unit, "", reason, found.estimates, column.event_text, found.task, details,
    )  # fmt: skip
    return _with_sentence(verdict, column)


def _with_sentence(verdict: Verdict, column: Column) -> Verdict:
    return dataclasses.replace(verdict, sentence=sentence(verdict, column))


def _why(found: Finding, alpha: float, apart: bool) -> str | None:
    if not math.isfinite(found.p):
        return "too few subjects for a test"
    if found.p_adjusted < alpha and apart:
        return "the difference is there but below the size that is called a disparity"
    if found.column.margin is None:
        return "no difference was shown, and no margin is named to show equality within"
    if _hopeless(found, alpha):
        return "with so few subjects no test can tell chance from a real difference"
    if found.p < alpha <= found.p_adjusted:
        return "the difference does not survive the correction for the number of claims"
    few = min(found.n.values()) < EQUIVALENCE_SUBJECTS
    if few and all(abs(end) < found.column.margin for end in found.interval):
        why = "the interval lies inside the margin, but there are too few subjects to rely on it"
    else:
        why = "the data allow both no difference and one beyond the margin"
    return why


def _needed(found: Finding, alpha: float, asked: int) -> int | None:
    """Subjects a group for 80 % power at the margin; where so many were there already, first at
    the alpha that the correction leaves, then for the distance that is left to settle."""
    margin = found.column.margin
    if margin is None or not math.isfinite(found.effect):
        return None
    there = min(found.n.values(), default=0)
    paired = _is_paired(found)
    least = EQUIVALENCE_SUBJECTS
    while smallest_p(least, least, paired) > alpha / asked:
        least += 1
    closest = max(abs(found.effect), abs(margin - abs(found.effect)))
    answer = None
    for level, gap in (
        (alpha, margin),
        (alpha / asked, margin),
        (alpha / asked, min(closest, margin)),
    ):
        answer = _subjects(found, gap, level)
        if answer is None or answer > there:
            break
    return None if answer is None else max(answer, least)


def _hopeless(found: Finding, alpha: float) -> bool:
    """Whether no outcome whatever could have had a p below alpha with so few subjects."""
    n, paired = [*found.n.values(), 0, 0], _is_paired(found)
    least = smallest_p(n[0], n[1], paired)
    return (least / 2 if found.column.is_rate and not paired else least) >= alpha


def _is_paired(found: Finding) -> bool:
    return found.details.get("design") == PAIRED


def _subjects(found: Finding, gap: float, alpha: float) -> int | None:
    var_a, var_b = found.spread
    if not found.column.is_rate:
        return needed_n_means(var_a, var_b, gap, alpha)
    rates = []
    for e in found.estimates:
        if e.estimate is None:
            return None
        rates.append((e.estimate * e.n + 0.5) / (e.n + 1))
    clustered = needed_n_means(var_a, var_b, gap, alpha) if var_a + var_b > 0 else None
    plain = needed_n_rates(rates[0], rates[1], alpha, gap)
    return plain if clustered is None else min(plain, max(clustered, 2))


def _power(found: Finding, alpha: float) -> float | None:
    margin, n = found.column.margin, list(found.n.values())
    if margin is None or len(n) < 2 or min(n) < 2:
        return None
    se = math.sqrt(found.spread[0] / n[0] + found.spread[1] / n[1])
    return _finite(power_means(margin, se, alpha))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
