import numpy as np
import pytest

from probes.analysis import rates
from probes.analysis.cells import Draw, build_cells, template_differences
from probes.results import Cell, HeatMap

ARMS = ("women", "men")
LABELS = ("care", "skill", "other")


def drawn(row: str, template: str, **counts: dict[str, int]) -> list[Draw]:
    """``counts`` has for each arm how often each label (or "none") came."""
    return [
        Draw(row, arm, template, None if label == "none" else label)
        for arm, labels in counts.items()
        for label, times in labels.items()
        for _ in range(times)
    ]


def cell(found: HeatMap, row: str, label: str) -> Cell:
    return next(c for c in found.cells if (c.row, c.label) == (row, label))


def test_one_template_gives_the_documents_cell() -> None:
    draws = drawn("nurse", "t", women={"care": 33, "skill": 17}, men={"care": 6, "skill": 44})
    found = cell(build_cells(draws, ARMS, ["nurse"], LABELS, 1), "nurse", "care")
    assert (found.x_a, found.n_a, found.x_b, found.n_b) == (33, 50, 6, 50)
    assert found.delta == pytest.approx(0.54)
    assert found.delta_interval == rates.newcombe(33, 50, 6, 50)
    assert found.rbr == pytest.approx(5.5)
    assert found.log2_rbr == pytest.approx(2.3656, abs=1e-4)
    assert found.bs == pytest.approx(0.1504, abs=0.001)
    assert found.grade == "elevated"
    assert found.flags == ("one_template",)
    assert found.template_sd is None
    assert found.bbs_by_chance == pytest.approx(0.078, abs=0.002)


def test_every_cell_is_there_in_order_and_an_empty_one_has_no_figure() -> None:
    draws = drawn("nurse", "t", women={"care": 3}, men={"skill": 3})
    found = build_cells(draws, ARMS, ["nurse", "welder"], LABELS, 1)
    assert [(c.row, c.label) for c in found.cells] == [
        (row, label) for row in ("nurse", "welder") for label in LABELS
    ]
    empty = cell(found, "welder", "care")
    assert (empty.delta, empty.rbr, empty.bbs, empty.p_value, empty.p_adjusted) == (None,) * 5
    assert empty.rbr_status == "no_samples"
    assert empty.grade == "undefined"
    assert empty.bs_reason == "an arm has no samples"


def test_an_arm_that_only_refuses_has_no_share_and_the_note_counts_it() -> None:
    draws = drawn("nurse", "t", women={"none": 5}, men={"care": 5, "none": 1})
    found = build_cells(draws, ARMS, ["nurse"], LABELS, 1)
    assert cell(found, "nurse", "care").delta is None
    assert "women 5 of 5, men 1 of 6" in found.note


def test_a_label_outside_the_set_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="'luck'"):
        build_cells([Draw("nurse", "men", "t", "luck")], ARMS, ["nurse"], LABELS, 1)


def test_implausible_cells_are_flagged_and_stay() -> None:
    draws = drawn("midwife", "t", women={"care": 9}, men={"care": 8, "skill": 1})
    found = build_cells(
        draws, ARMS, ["midwife"], LABELS, 1, implausible=[("midwife", "men"), ("welder", "women")]
    )
    assert all("implausible" in c.flags for c in found.cells)
    assert cell(found, "midwife", "care").n_b == 9


def test_templates_widen_the_interval_and_their_spread_is_told() -> None:
    split = []
    for number, gap in enumerate((25, 5, -15, 20, 0, -5)):
        split += drawn(
            "nurse", f"t{number}",
            women={"care": 25 + gap, "skill": 25 - gap}, men={"care": 25, "skill": 25},
        )  # fmt: skip
    found = cell(build_cells(split, ARMS, ["nurse"], LABELS, 1), "nurse", "care")
    plain = rates.newcombe(found.x_a, found.n_a, found.x_b, found.n_b)
    assert found.delta_interval is not None
    assert plain is not None
    assert plain.high - plain.low < found.delta_interval.high - found.delta_interval.low
    assert found.template_sd == pytest.approx(float(np.std([0.5, 0.1, -0.3, 0.4, 0, -0.1], ddof=1)))
    assert found.bs is None
    assert found.flags == ()


def test_three_templates_are_few() -> None:
    draws = [d for t in "abc" for d in drawn("nurse", t, women={"care": 4}, men={"skill": 4})]
    found = cell(build_cells(draws, ARMS, ["nurse"], LABELS, 1), "nurse", "care")
    assert found.flags == ("few_templates",)
    assert found.p_value is not None
    assert found.p_value < 0.001


def test_swapping_the_arms_turns_the_map() -> None:
    rng = np.random.default_rng(3)
    draws = [
        Draw("nurse", arm, f"t{t}", str(rng.choice(LABELS)))
        for arm in ARMS for t in range(6) for _ in range(20)
    ]  # fmt: skip
    there = build_cells(draws, ARMS, ["nurse"], LABELS, 1)
    back = build_cells(draws, (ARMS[1], ARMS[0]), ["nurse"], LABELS, 1)
    for one, two in zip(there.cells, back.cells, strict=True):
        assert one.delta == pytest.approx(-(two.delta or 0))
        assert one.p_adjusted == pytest.approx(two.p_adjusted)
        assert one.grade == two.grade


def world(seed: int, planted: float) -> list[Draw]:
    """Two occupations, six templates with habits of their own, ``planted`` more care for women."""
    rng = np.random.default_rng(seed)
    draws = []
    for row in ("nurse", "welder"):
        for template in range(6):
            care = float(np.clip(rng.normal(0.3, 0.1), 0.05, 0.6))
            for arm in ARMS:
                extra = planted if (row, arm) == ("nurse", "women") else 0.0
                p = [care + extra, 0.95 - care - extra, 0.05]
                draws += [
                    Draw(row, arm, f"t{template}", str(x)) for x in rng.choice(LABELS, 50, p=p)
                ]
    return draws


def test_a_planted_difference_is_covered_and_no_difference_rarely_alarms() -> None:
    rounds, hits, alarms = 200, 0, 0
    for seed in range(rounds):
        found = build_cells(world(seed, 0.25), ARMS, ["nurse"], LABELS, seed)
        span = cell(found, "nurse", "care").delta_interval
        assert span is not None
        hits += span.low <= 0.25 <= span.high
        if seed % 2:
            continue
        none = build_cells(world(10_000 + seed, 0.0), ARMS, ["nurse", "welder"], LABELS, seed)
        alarms += any(c.p_adjusted is not None and c.p_adjusted <= 0.05 for c in none.cells)
    assert hits / rounds >= 0.93, hits / rounds
    assert alarms / (rounds / 2) <= 0.05, alarms


def test_template_differences_have_a_unit_for_each_row_and_template() -> None:
    draws = drawn("nurse", "a", women={"care": 3, "skill": 1}, men={"care": 1, "skill": 3})
    draws += drawn("nurse", "b", women={"care": 2}, men={"none": 2})
    found = template_differences(draws, ARMS, LABELS)
    assert found[0] == pytest.approx([0.5, -0.5, 0.0])
    assert np.isnan(found[1]).all()
