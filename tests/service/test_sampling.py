"""Samples: seeded, balanced, growing with n, people before pictures, nothing left out unsaid."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ManifestError
from service.sampling import UNKNOWN, Sample, draw_sample, strata_values

STRATA = ("gender", "tone")


def row(
    k: int, person: int, gender: str, tone: str, base: str = "", where: str = ""
) -> dict[str, str]:
    return {
        "file": f"p{k}.png", "subject_id": f"s{person}", "gender": gender, "tone": tone,
        "pair_base_file": base, "set": where,
    }  # fmt: skip


@st.composite
def manifests(draw: st.DrawFn) -> list[dict[str, str]]:
    size = draw(st.integers(1, 40))
    return [
        row(
            k,
            draw(st.integers(0, 25)),
            draw(st.sampled_from(["woman", "man", ""])),
            draw(st.sampled_from(["I", "III", "VI"])),
            draw(st.sampled_from(["", "", "", "p0.png"])) if k else "",
            draw(st.sampled_from(["", "", "", "adversarial"])),
        )
        for k in range(size)
    ]


ALLOCATION = st.sampled_from(["equal", "proportional"])


@given(manifests(), st.integers(1, 60), st.integers(0, 5), ALLOCATION, st.randoms())
def test_the_same_seed_gives_the_same_sample_whatever_the_order_of_the_rows(
    rows: list[dict[str, str]], n: int, seed: int, how: str, shuffle: random.Random
) -> None:
    one = draw_sample(rows, STRATA, n, seed=seed, allocation=how, adversarial=3)
    mixed = list(rows)
    shuffle.shuffle(mixed)
    two = draw_sample(mixed, STRATA, n, seed=seed, allocation=how, adversarial=3)
    assert {rows[i]["file"] for i in one.rows} == {mixed[i]["file"] for i in two.rows}
    assert one.cells == two.cells


@given(manifests(), st.integers(1, 60), st.integers(1, 20), ALLOCATION, st.booleans())
def test_a_larger_sample_contains_the_smaller_one(
    rows: list[dict[str, str]], n: int, more: int, how: str, unknown: bool
) -> None:
    def drawn(size: int) -> set[int]:
        found = draw_sample(rows, STRATA, size, allocation=how, with_unknown=unknown)
        return set(found.rows)

    assert drawn(n) <= drawn(n + more)


@given(manifests(), st.integers(1, 60), ALLOCATION, st.booleans())
def test_what_was_sampled_and_what_is_short_add_up_to_n(
    rows: list[dict[str, str]], n: int, how: str, unknown: bool
) -> None:
    found = draw_sample(rows, STRATA, n, allocation=how, with_unknown=unknown)
    assert len(found.rows) == len(set(found.rows)) == found.main <= n
    if any(c.people for c in found.cells):
        assert found.main + sum(c.short for c in found.cells) == n
    drawn = [rows[i] for i in found.rows]
    assert not any(r["pair_base_file"] or r["set"] for r in drawn)
    undeclared = sum(not r["gender"] and not r["pair_base_file"] and not r["set"] for r in rows)
    assert sum(found.unknown.values()) == (0 if unknown else undeclared)


@given(manifests(), st.integers(1, 60))
def test_equal_allocation_wants_the_same_of_every_cell_and_only_short_cells_stay_behind(
    rows: list[dict[str, str]], n: int
) -> None:
    found = draw_sample(rows, STRATA, n)
    wanted = [c.wanted for c in found.cells]
    assert not wanted or max(wanted) - min(wanted) <= 1
    full = [c.sampled for c in found.cells if not c.short]
    assert not full or max(full) - min(full) <= 1


@given(manifests(), st.integers(1, 60), ALLOCATION)
def test_nobody_is_sampled_twice_where_the_cell_has_somebody_else(
    rows: list[dict[str, str]], n: int, how: str
) -> None:
    found = draw_sample(rows, STRATA, n, allocation=how)
    times = Counter(rows[i]["subject_id"] for i in found.rows)
    assert sum(k - 1 for k in times.values()) <= sum(c.repeats for c in found.cells)
    taken = set(found.rows)
    for cell in (c for c in found.cells if c.repeats):
        mine = [i for i, r in enumerate(rows) if free(r) and (r["gender"], r["tone"]) == cell.cell]
        unseen = {rows[i]["subject_id"] for i in mine} - set(times)
        assert not unseen or all(i in taken for i in mine if rows[i]["subject_id"] in unseen)


def free(r: dict[str, str]) -> bool:
    return not r["pair_base_file"] and not r["set"]


def people(spec: Sequence[tuple[str, str, int]]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for gender, tone, count in spec:
        rows += [row(len(rows) + k, len(rows) + k, gender, tone) for k in range(count)]
    return rows


def by_cell(found: Sample) -> dict[tuple[str, ...], tuple[int, int]]:
    return {c.cell: (c.sampled, c.short) for c in found.cells}


def test_a_cell_that_is_short_is_told_by_how_many_and_an_empty_one_too() -> None:
    rows = people([("woman", "I", 30), ("woman", "VI", 4), ("man", "I", 30)])
    found = draw_sample(rows, STRATA, 40)
    assert by_cell(found) == {
        ("man", "I"): (10, 0), ("man", "VI"): (0, 10),
        ("woman", "I"): (10, 0), ("woman", "VI"): (4, 6),
    }  # fmt: skip


def test_proportional_allocation_follows_the_people() -> None:
    rows = people([("woman", "I", 60), ("woman", "VI", 10), ("man", "I", 30)])
    found = draw_sample(rows, STRATA, 20, allocation="proportional")
    assert {c.cell: c.sampled for c in found.cells} == {
        ("man", "I"): 6, ("man", "VI"): 0, ("woman", "I"): 12, ("woman", "VI"): 2,
    }  # fmt: skip


def test_second_pictures_fill_a_cell_only_when_its_people_are_used_up() -> None:
    rows = [row(k, k // 3, "woman", "I") for k in range(9)]
    assert len({rows[i]["subject_id"] for i in draw_sample(rows, STRATA, 3).rows}) == 3
    (cell,) = draw_sample(rows, STRATA, 5).cells
    assert (cell.people, cell.sampled, cell.repeats, cell.short) == (3, 5, 2, 0)


def test_undeclared_values_are_a_cell_of_their_own_sampled_only_when_asked() -> None:
    rows = people([("woman", "I", 5), ("", "I", 3)])
    plain = draw_sample(rows, STRATA, 4)
    assert plain.unknown == {(UNKNOWN, "I"): 3}
    assert by_cell(plain) == {("woman", "I"): (4, 0)}
    asked = draw_sample(rows, STRATA, 4, with_unknown=True)
    assert by_cell(asked) == {(UNKNOWN, "I"): (2, 0), ("woman", "I"): (2, 0)}


def test_counterfactual_partners_come_only_with_their_base() -> None:
    rows = [row(0, 0, "woman", "I"), row(1, 1, "woman", "I"), row(2, 0, "woman", "VI", "p0.png")]
    for seed in range(8):
        alone = draw_sample(rows, STRATA, 1, seed=seed)
        along = draw_sample(rows, STRATA, 1, seed=seed, partners=True)
        base_is_in = 0 in alone.rows
        assert 2 not in alone.rows
        assert (2 in along.rows) is base_is_in
        assert (alone.partners_left, along.partners) == (base_is_in, base_is_in)


def test_the_adversarial_set_is_never_drawn_into_the_main_sample() -> None:
    rows = people([("woman", "I", 3)]) + [
        row(10 + k, 10 + k, "woman", "I", where="Adversarial ") for k in range(4)
    ]
    plain = draw_sample(rows, STRATA, 9)
    assert (plain.main, plain.adversarial, plain.adversarial_left) == (3, 0, 4)
    asked = draw_sample(rows, STRATA, 2, adversarial=6)
    assert (asked.main, asked.adversarial, asked.adversarial_short) == (2, 4, 2)


def test_ages_become_the_bands_of_the_statistics_where_no_age_group_is_declared() -> None:
    ages = ["17", "18", "29.5", "30", "44", "45", "60", "102", "50-59", "", "-1", "900"]
    bands = ["under 18", "18-29", "18-29", "30-44", "30-44", "45-59", "60 and over", "60 and over",
             "50-59", UNKNOWN, UNKNOWN, UNKNOWN]  # fmt: skip
    assert strata_values([{"age": a} for a in ages], "age_group") == bands
    assert strata_values([{"age": "33", "age_group": "7"}], "age_group") == ["7"]
    assert strata_values([{"age": "33"}, {"age": "34"}], "age") == ["33", "34"]
    assert set(strata_values([{"age": str(a)} for a in range(20, 40)], "age")) == {"18-29", "30-44"}


def test_too_many_cells_are_refused_with_their_number() -> None:
    rows = [row(k, k, f"g{k}", f"t{k}") for k in range(101)]
    with pytest.raises(ManifestError, match=r"10,201 cells .*at most 10,000"):
        draw_sample(rows, STRATA, 5)
