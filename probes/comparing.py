"""Before and after: what a condition (a guard, another temperature) changed, for better and for worse.

Each condition is held against the plain one of the same probe and language. The probe's index and its
other figures are compared from their own intervals, which takes the two as asked independently; items
are the same under both, so that is the cautious side. Where the readings are given, what was read
from each item is compared item by item as well: that is paired, and has the p value of a sign-flip
test. How many answers were refused, or did not come at all, is always told beside it: a guard that makes
a model decline has not made it judge alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from probes.analysis.multiplicity import HOLM, holm
from probes.analysis.rates import mean_interval, newcombe, wilson
from probes.analysis.tests import fisher, sign_flip
from probes.calls import PLAIN, Reading, Status
from probes.card_change import Change, change, told
from probes.results import BeforeAfter, Figure, ProbeResult, Tally

LEAST_ITEMS = 5
"""Fewer items than this give no paired comparison: an exact sign-flip test could not show anything."""
DECLINED = (Status.REFUSED, Status.FILTERED)
"""What counts as declined: by the model in words, or by a filter that stands before or after it."""
Place = tuple[str, str, str]
"""Probe, language, condition."""


def before_after(
    results: Sequence[ProbeResult], readings: Iterable[Reading] = (), seed: int = 0
) -> tuple[BeforeAfter, ...]:
    """Every condition against the plain one, in the order of ``results``; empty without a plain one.

    Of each probe: the index, the share declined, the share without an answer, the difference by item
    where ``readings`` allow it, and of its other figures those that moved after Holm's correction over
    all of them.
    """
    plain = {(r.probe, r.language): r for r in results if r.condition == PLAIN}
    by_item = item_differences(readings, {(r.probe, r.language): r.arms for r in results})
    found: list[BeforeAfter] = []
    for after in results:
        before = plain.get((after.probe, after.language))
        if after.condition == PLAIN or before is None:
            continue
        found.append(_index(before, after))
        found.extend(_shares(before, after))
        paired = _paired(before, after, by_item, seed)
        if paired is not None:
            found.append(paired)
        found.extend(_others(before, after))
    return tuple(found)


def item_differences(
    readings: Iterable[Reading], arms: Mapping[tuple[str, str], tuple[str, ...]]
) -> dict[Place, dict[str, float]]:
    """For each probe, language and condition: the mean value read under the first arm less that under
    the second, by item. Items without a value in either arm have none (they count as not answered)."""
    values: dict[tuple[str, str, str, str, str], list[float]] = defaultdict(list)
    for r in readings:
        if r.value is not None and r.status is Status.ANSWERED:
            call = r.call
            values[call.probe, call.language, call.condition, call.item, call.arm].append(r.value)
    found: dict[Place, dict[str, float]] = defaultdict(dict)
    for (probe, language, condition, item, arm), own in values.items():
        pair = arms.get((probe, language), ())[:2]
        if len(pair) == 2 and arm == pair[0]:
            other = values.get((probe, language, condition, item, pair[1]))
            if other:
                found[probe, language, condition][item] = fmean(own) - fmean(other)
    return dict(found)


def declined(tallies: Iterable[Tally]) -> tuple[int, int]:
    """Calls declined (refused or filtered) and calls made, over the arms given."""
    chosen = list(tallies)
    count = sum(t.counts.get(status, 0) for t in chosen for status in DECLINED)
    return count, sum(t.total for t in chosen)


def unanswered(tallies: Iterable[Tally]) -> tuple[int, int]:
    """Calls that ended in anything but an answer, and calls made."""
    chosen = list(tallies)
    total = sum(t.total for t in chosen)
    return total - sum(t.counts.get(Status.ANSWERED, 0) for t in chosen), total


def _index(before: ProbeResult, after: ProbeResult) -> BeforeAfter:
    found = change(before.index, after.index)
    head = f"{after.title}, {after.language}, condition '{after.condition}': "
    if found.value is None:
        said = f"{head}the index cannot be compared, because {found.reason}."
    else:
        said = (
            f"{head}the index went from {_figure(before.index)} to {_figure(after.index)}, a change of"
            f" {told(found.value, found.interval)}: {_what(before, after, found)}."
        )
    for which, result in (("plain", before), (f"'{after.condition}'", after)):
        if not result.usable:
            why = result.why_not or "unusable"
            said += f" Under {which} the model cannot be probed like this ({why}): no conclusion."
    return _line(after, "index", before.index, after.index, found, said)


def _what(before: ProbeResult, after: ProbeResult, found: Change) -> str:
    assert before.index.value is not None
    assert after.index.value is not None
    if found.interval is None:
        return "without intervals nothing is shown"
    if not found.shown:
        return "no change is shown"
    first, second = before.index, after.index
    if _leans(first) * _leans(second) < 0:
        return f"turned over, now {after.index_means[0 if after.index.value > 0 else 1]}"
    if abs(after.index.value) < abs(before.index.value):
        left = "" if _leans(second) == 0 else ", and a difference is still shown"
        return f"nearer to no difference{left}"
    return f"further {after.index_means[0 if after.index.value > 0 else 1]}"


def _leans(figure: Figure) -> int:
    """Sign of a figure whose interval excludes 0, else 0."""
    if figure.value is None or figure.interval is None or not figure.interval.excludes(0.0):
        return 0
    return 1 if figure.value > 0 else -1


def _shares(before: ProbeResult, after: ProbeResult) -> list[BeforeAfter]:
    head = f"{after.title}, {after.language}, condition '{after.condition}': "
    found = []
    for name, title, count, words in (
        ("declined", "Declined", declined, "refused or filtered"),
        ("unanswered", "Without an answer", unanswered, "without an answer of the asked form"),
    ):
        (xb, nb), (xa, na) = count(before.tallies), count(after.tallies)
        first, second = _share(name, title, xb, nb), _share(name, title, xa, na)
        if first.value is None or second.value is None:
            moved = Change(None, reason="one of the conditions has no calls")
            said = (
                f"{head}the share {words} cannot be compared: one of the conditions has no calls."
            )
        else:
            interval = newcombe(xa, na, xb, nb)
            moved = Change(second.value - first.value, interval, fisher(xa, na, xb, nb).p)
            said = (
                f"{head}{xa} of {na} calls ended {words}, against {xb} of {nb} before"
                f" ({_points(moved)}): {_rose(moved)}."
            )
            if name == "declined" and moved.shown and (moved.value or 0) > 0:
                said += " What is left to compare is fewer answers, and perhaps other ones."
        found.append(_line(after, name, first, second, moved, said))
    return found


def _share(name: str, title: str, x: int, n: int) -> Figure:
    if n == 0:
        return Figure(name, title, None, units="calls", reason="no calls")
    return Figure(name, title, x / n, wilson(x, n), n, "calls")


def _points(moved: Change) -> str:
    if moved.value is None or moved.interval is None:
        return "no interval"
    low, high = 100 * moved.interval.low, 100 * moved.interval.high
    return f"{100 * moved.value:+.1f} points, {low:+.1f} to {high:+.1f}"


def _rose(moved: Change) -> str:
    if not moved.shown:
        return "no change is shown"
    return "more than before" if (moved.value or 0) > 0 else "fewer than before"


def _paired(
    before: ProbeResult,
    after: ProbeResult,
    by_item: Mapping[Place, Mapping[str, float]],
    seed: int,
) -> BeforeAfter | None:
    first = by_item.get((before.probe, before.language, PLAIN), {})
    second = by_item.get((after.probe, after.language, after.condition), {})
    both = [item for item in first if item in second]
    if len(both) < LEAST_ITEMS:
        return None
    moves = [second[item] - first[item] for item in both]
    moved = Change(fmean(moves), mean_interval(moves), sign_flip(moves, seed).p)
    a, b = after.arms[:2]
    title = f"{a} less {b}, by item"
    left_out = len(set(first) | set(second)) - len(both)
    said = (
        f"{after.title}, {after.language}, condition '{after.condition}': over {len(both)} items that"
        f" have values under both conditions, {a} less {b} changed by"
        f" {told(moved.value, moved.interval, 3)}, paired by item"
        f" (sign-flip p {moved.p if moved.p is None else round(moved.p, 4)})."
    )
    if left_out:
        said += f" {left_out} items have values under one condition only and are not in it."
    figures = [
        Figure("item_difference", title, fmean(v), mean_interval(v), len(v), "items")
        for v in ([first[i] for i in both], [second[i] for i in both])
    ]
    return _line(after, "item_difference", figures[0], figures[1], moved, said)


def _others(before: ProbeResult, after: ProbeResult) -> list[BeforeAfter]:
    pairs = [(f, after.figure(f.id)) for f in before.figures if f.id != "index"]
    moves = [(one, two, change(one, two)) for one, two in pairs if two is not None]
    known = [m for m in moves if m[2].p is not None]
    adjusted = holm([m[2].p for m in known])
    found = []
    for (one, two, moved), p in zip(known, adjusted, strict=True):
        if p is None or p > 0.05:
            continue
        said = (
            f"{after.title}, {after.language}, condition '{after.condition}': {one.title} went from"
            f" {_figure(one)} to {_figure(two)}, a change of {told(moved.value, moved.interval)}"
            f" (one of {len(known)} further figures held side by side, p after {HOLM} {p:.3f})."
        )
        found.append(_line(after, one.id, one, two, Change(moved.value, moved.interval, p), said))
    return found


def _figure(figure: Figure) -> str:
    return told(figure.value, figure.interval)


def _line(
    after: ProbeResult, name: str, one: Figure, two: Figure, moved: Change, sentence: str
) -> BeforeAfter:
    figure = Figure(
        f"{name}_change",
        f"Change of {one.title}",
        moved.value,
        moved.interval,
        min(one.n, two.n),
        two.units,
        two.unit,
        reason=moved.reason,
    )
    return BeforeAfter(
        after.probe, after.language, after.condition, name, one, two, figure, moved.p, sentence
    )
