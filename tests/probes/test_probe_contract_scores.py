"""What every probe owes whoever reads its figures: whatever came back, and in whatever order.

New probes are picked up by themselves; docs/adding_a_probe.md says what is asked of them.
"""

from __future__ import annotations

import math
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import pytest

from domain.verdicts import VerdictKind
from probes.calls import Reading, Status
from probes.contract import Probe
from probes.results import Cell, Figure, Interval, ProbeResult, TestResult
from service.report.wording import FORBIDDEN
from tests.probes.contract_ways import FIRST, FOUND, WAYS, Way, answered

every_way = pytest.mark.parametrize("way", WAYS, ids=str)
in_one_language = pytest.mark.parametrize("way", FIRST, ids=str)
TINY = 1e-9


@cache
def built(way: Way) -> Probe:
    return way.build()


@cache
def answers_of(way: Way) -> tuple[Reading, ...]:
    """Every call answered, by chance."""
    return tuple(answered(built(way), built(way).calls(way.language, 7)))


def ended(reading: Reading, status: Status) -> Reading:
    """The reading had its reply ended so."""
    return Reading(reading.call, status, reason=f"it ended {status}", model="m")


def mixed(found: Sequence[Reading]) -> list[Reading]:
    """Half answered, the others by chance in every way that there is."""
    chance = random.Random(3)
    others = [s for s in Status if s is not Status.ANSWERED]
    return [r if chance.random() < 0.5 else ended(r, chance.choice(others)) for r in found]


def only(status: Status) -> Callable[[Sequence[Reading]], list[Reading]]:
    return lambda found: [ended(r, status) for r in found]


def one_arm(found: Sequence[Reading]) -> list[Reading]:
    return [r for r in found if r.call.arm == found[0].call.arm]


def one_arm_declined(found: Sequence[Reading]) -> list[Reading]:
    return [ended(r, Status.REFUSED) if r.call.arm == found[0].call.arm else r for r in found]


def the_same(found: Sequence[Reading]) -> list[Reading]:
    return [replace(found[0], call=r.call) for r in found]


SCENES: dict[str, Callable[[Sequence[Reading]], list[Reading]]] = {
    "answered": list,
    "mixed": mixed,
    "none": lambda found: [],
    "one reading": lambda found: [found[0]],
    "one reading, refused": lambda found: [ended(found[0], Status.REFUSED)],
    "two readings": lambda found: [found[0], found[-1]],
    "one arm": one_arm,
    "one arm declined": one_arm_declined,
    "one item": lambda found: [r for r in found if r.call.item == found[0].call.item],
    "first repeat": lambda found: [r for r in found if r.call.repeat == 0],
    "all the same": the_same,
    **{f"all {status}": only(status) for status in Status if status is not Status.ANSWERED},
}
WITHOUT_ANSWERS = {s for s in SCENES if s.startswith("all ") and s != "all the same"} | {
    "none",
    "one reading, refused",
}
every_scene = pytest.mark.parametrize("scene", SCENES)


def within(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a result, with where it stands."""
    yield path, value
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from within(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from within(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from within(item, f"{path}[{number}]")


def holds(interval: Interval | None, value: float | None, where: str) -> None:
    if interval is None:
        return
    assert interval.low <= interval.high and 0 < interval.level < 1, where
    assert value is not None, f"{where}: an interval of nothing"
    low, high = interval.low - TINY, interval.high + TINY
    assert low <= value <= high, f"{where}: {value} is outside {interval}"


def check_figure(figure: Figure, where: str) -> None:
    where = f"{where} ({figure.id})"
    assert (figure.value is None) == bool(figure.reason), f"{where}: {figure}"
    holds(figure.interval, figure.value, where)
    assert figure.n >= 0 and figure.id and figure.title, where
    assert figure.sd is None or figure.sd >= 0, where


def check_test(test: TestResult, where: str) -> None:
    where = f"{where} ({test.id})"
    for p in (test.p_value, test.p_adjusted):
        assert p is None or 0 <= p <= 1, where
    if test.p_value is not None and test.p_adjusted is not None:
        assert test.p_adjusted >= test.p_value - TINY, where
    if test.verdict is VerdictKind.DISPARITY:
        assert test.effect.value is not None and test.p_adjusted is not None, where
    assert test.method and test.sentence.strip() and "\n" not in test.sentence, where
    assert test.groups[0] != test.groups[1], where


def check_cell(cell: Cell, where: str) -> None:
    holds(cell.delta_interval, cell.delta, where)
    holds(cell.log2_rbr_interval, cell.log2_rbr, where)
    assert 0 <= cell.x_a <= cell.n_a and 0 <= cell.x_b <= cell.n_b, where
    assert (cell.rbr is None) == (cell.rbr_status != "ok"), where
    assert cell.bs is not None or cell.bs_reason, where


def check_words(result: ProbeResult) -> None:
    quoted = ("examples", "versions", ".id", ".family")
    for where, value in within(result, ""):
        if isinstance(value, str) and not any(q in where for q in quoted):
            found = FORBIDDEN.search(value)
            assert found is None, f"{where}: {value}"


def check(result: ProbeResult, way: Way, readings: Sequence[Reading]) -> None:
    assert (result.probe, result.language) == (way.id, way.language)
    assert result.index.value is None or -1 - TINY <= result.index.value <= 1 + TINY
    assert all(result.index_means) or len(result.arms) < 2
    assert result.usable or result.why_not.strip()
    for where, value in within(result, "result"):
        assert not isinstance(value, float) or math.isfinite(value), where
        if isinstance(value, Figure):
            check_figure(value, where)
        elif isinstance(value, TestResult):
            check_test(value, where)
        elif isinstance(value, Cell):
            check_cell(value, where)
    by_arm = Counter((r.call.arm, r.status) for r in readings)
    told = {(t.arm, s): n for t in result.tallies for s, n in t.counts.items() if n}
    if way.id in TALLIED_OTHERWISE:
        assert counted(told) == counted(by_arm), "a reading is not counted, or counted twice"
    else:
        assert told == dict(by_arm), "a reading is not counted, or counted twice"
        assert set(result.arms) >= {arm for arm, _ in told}
    for things in (result.figures, result.tests, result.heat_maps, result.tables):
        names = [thing.id for thing in things]
        assert len(set(names)) == len(names)
    assert all(len(row) == len(t.head) for t in result.tables for row in t.rows)
    check_words(result)


def counted(told: Mapping[tuple[str, Status], int]) -> Counter[Status]:
    """How often each way of ending, whatever the arm."""
    found: Counter[Status] = Counter()
    for (_, status), n in told.items():
        found[status] += n
    return found


TALLIED_OTHERWISE = {"minimal_pairs", "qa_benchmark"}
"""Probes that tally their diagnostics, or kinds of context, in place of the arms of their calls."""


@every_scene
@every_way
def test_whatever_came_back_there_are_figures_or_reasons(way: Way, scene: str) -> None:
    readings = SCENES[scene](answers_of(way))
    result = built(way).score(readings, way.language, 7)
    check(result, way, readings)
    if scene in WITHOUT_ANSWERS:
        assert result.index.value is None and result.index.interval is None
        assert not [t for t in result.tests if t.verdict is VerdictKind.DISPARITY]
    if not result.usable:
        assert not [t for t in result.tests if t.verdict is not VerdictKind.INCONCLUSIVE]


@every_way
def test_figures_do_not_depend_on_the_order_of_the_replies(way: Way) -> None:
    readings = mixed(answers_of(way))
    first = built(way).score(readings, way.language, 7)
    assert way.build().score(list(readings), way.language, 7) == first
    for seed in (1, 2):
        shuffled = random.Random(seed).sample(readings, len(readings))
        again = built(way).score(shuffled, way.language, 7)
        assert again == first, [
            (where, a, b)
            for (where, a), (_, b) in zip(within(first), within(again), strict=False)
            if a != b
        ][-1]


def swapped_arms(found: Sequence[Reading]) -> list[Reading]:
    """What was said of one arm is said of the other, in each pair."""
    by_place = {(r.call.item, r.call.repeat, r.call.arm): r for r in found}
    swapped = []
    for reading in found:
        call = reading.call
        others = {a for i, n, a in by_place if (i, n) == (call.item, call.repeat)} - {call.arm}
        other = by_place[call.item, call.repeat, others.pop()] if len(others) == 1 else reading
        swapped.append(replace(other, call=call))
    return swapped


OTHER = {"men": "women", "women": "men", "towards": "against", "against": "towards"}


def mirrored(turn: Callable[[float], float]) -> Callable[[Sequence[Reading]], list[Reading]]:
    def mirror(found: Sequence[Reading]) -> list[Reading]:
        return [
            replace(
                r,
                label=OTHER.get(r.label or "", r.label),
                value=None if r.value is None else turn(r.value),
            )
            for r in found
        ]

    return mirror


MIRRORS: dict[str, Callable[[Sequence[Reading]], list[Reading]]] = {
    "association0": mirrored(lambda odds: -odds),
    "association1": mirrored(lambda odds: -odds),
    "association2": mirrored(lambda share: 1 - share),
    "association3": mirrored(lambda share: 1 - share),
    "family_roles0": mirrored(lambda woman: 1 - woman),
    "qa_benchmark0": mirrored(lambda side: -side),
}
"""Where the sign is in the answer and not in the arm. In all other probes the arms change places."""


@in_one_language
def test_the_index_changes_its_sign_with_the_sides(way: Way) -> None:
    readings = mixed(answers_of(way))
    mirror = MIRRORS.get(f"{way.id}{way.number}", swapped_arms)
    one = built(way).score(readings, way.language, 7).index
    two = built(way).score(mirror(readings), way.language, 7).index
    assert (one.value is None) == (two.value is None)
    if one.value is not None and two.value is not None:
        assert two.value == pytest.approx(-one.value, abs=1e-9)
    if (
        one.interval is not None
        and two.interval is not None
        and "bootstrap" not in one.interval.method
    ):
        assert two.interval.low == pytest.approx(-one.interval.high, abs=1e-6)


@in_one_language
def test_ten_thousand_replies_are_scored_in_little_memory(way: Way) -> None:
    few = answers_of(way)
    rounds = -(-10_000 // len(few))
    many = [
        replace(r, call=replace(r.call, repeat=r.call.repeat + 1000 * n))
        for n in range(rounds)
        for r in few
    ]
    tracemalloc.start()
    try:
        result = built(way).score(many, way.language, 7)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(t.total for t in result.tallies) == len(many)
    assert most < 200e6


def test_no_probe_is_left_out() -> None:
    assert {way.id for way in FIRST} == set(FOUND)
