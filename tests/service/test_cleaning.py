"""The cleaning: every item has one standing, each level sees what the one before left."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import LikenessError
from domain.measurements import Outcome
from domain.plan import AuditPlan, PortraitSource, ToolChoice
from service.cleaning import clean
from service.report.csv_files import review_csv
from service.report.model import Cleaning, ItemRow, MeasurementRow, Place, Review
from service.reviews import check_reviews, read_reviews

PLAN = AuditPlan(
    name="x", portraits=PortraitSource(manifest="m.csv"), tools=[ToolChoice(id="inr")],
    groups=["gender"],
)  # fmt: skip


def item(number: int, outcome: Outcome = Outcome.MEASURED, **more: Any) -> ItemRow:
    base = ItemRow(
        item_id=f"i{number:04d}", portrait_id=f"images/women/{number}.jpg", subject_id=f"s{number}",
        attributes={"gender": "woman" if number % 2 else "man"}, tool="restyler", tool_id="inr",
        control=False, task="restyle", perturbation="none", outcome=outcome, reason=None,
        original="ab" * 32, edited="cd" * 32,
    )  # fmt: skip
    return replace(base, **more)


def figure(
    metric: str, value: float | None, region: str = "face", number: int = 0
) -> MeasurementRow:
    status = "measured" if value is not None else "not_measurable"
    return MeasurementRow(f"i{number:04d}", metric, region, value, "", status, None)


def second(flrr: float | None) -> dict[str, Any]:
    return {"second_engine": {"engine": "dlib", "flrr": flrr, "reason": None}}


def one(row: ItemRow, *figures: MeasurementRow, reviews: tuple[Review, ...] = ()) -> Cleaning:
    return clean([row], figures, PLAN, reviews)


def rules(cleaning: Cleaning) -> set[str]:
    return {rule for r in cleaning.review for rule in r.rule.split("; ")} - {"random sample"}


# Standing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "place", "level"),
    [
        (Outcome.MEASURED, Place.MAIN, None),
        (Outcome.FACE_LOST, Place.MAIN, None),
        (Outcome.FAILED, Place.NO_ANSWER, 1),
        (Outcome.REFUSED, Place.NO_ANSWER, 1),
        (Outcome.BLANK, Place.NO_ANSWER, 1),
        (Outcome.EDITED_UNREADABLE, Place.NO_ANSWER, 1),
        (Outcome.ORIGINAL_UNREADABLE, Place.NO_ANSWER, 1),
        (Outcome.NOT_MEASURABLE, Place.NOT_JUDGED, 2),
    ],
)
def test_every_outcome_has_its_place(outcome: Outcome, place: Place, level: int | None) -> None:
    cleaning = one(item(0, outcome))
    found = cleaning.of("i0000")
    assert (found.place, found.level) == (place, level)
    assert bool(found.rule) is (place is not Place.MAIN)
    assert cleaning.counted("i0000"), "an outcome stays in the rates of outcomes"


@pytest.mark.parametrize(
    ("first", "other", "place"),
    [
        (49.9, 65.0, Place.CONFLICT),
        (49.9, 30.0, Place.CONFLICT),
        (40.0, 55.0, Place.MAIN),  # 15 points are not more than 15
        (40.0, 55.1, Place.CONFLICT),
        (50.0, 90.0, Place.MAIN),  # 50 is not below 50
        (0.0, None, Place.MAIN),  # nothing to compare with
    ],
)
def test_engines_conflict_below_50_and_beyond_15_points(
    first: float, other: float | None, place: Place
) -> None:
    cleaning = one(item(0, evidence=second(other)), figure("flrr", first))
    assert cleaning.of("i0000").place is place
    assert cleaning.counted("i0000") is (place is Place.MAIN)


@pytest.mark.parametrize("other", [float("nan"), "77", True, {}])
def test_strange_evidence_is_no_conflict(other: Any) -> None:
    assert one(item(0, evidence=second(other)), figure("flrr", 10)).of("i0000").place is Place.MAIN
    assert one(item(0, evidence={"second_engine": other})).of("i0000").place is Place.MAIN


def test_what_people_exclude_leaves_with_level_3_and_their_reason() -> None:
    out = Review("i0000", "ann", False, "veins stronger, larynx gone")
    cleaning = one(item(0), reviews=(out,))
    found = cleaning.of("i0000")
    assert (found.place, found.level) == (Place.REVIEWED_OUT, 3)
    assert "veins stronger" in found.rule
    assert not cleaning.counted("i0000")
    assert one(item(0), reviews=(replace(out, keep=True),)).counted("i0000")


def test_a_review_cannot_hide_a_failure_nor_bring_a_conflict_back() -> None:
    out, keep = Review("i0000", "ann", False, "ugly"), Review("i0000", "ann", True, "")
    assert one(item(0, Outcome.FAILED), reviews=(out,)).of("i0000").place is Place.NO_ANSWER
    conflict = item(0, evidence=second(90))
    assert one(conflict, figure("flrr", 10), reviews=(keep,)).of("i0000").place is Place.CONFLICT


def test_the_adversarial_set_stands_apart_and_goes_to_people() -> None:
    for outcome in (Outcome.MEASURED, Outcome.FAILED):
        cleaning = one(item(0, outcome, attributes={"set": "adversarial"}))
        assert cleaning.of("i0000").place is Place.ADVERSARIAL
        assert not cleaning.counted("i0000")
        assert "adversarial set" in rules(cleaning)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[ItemRow], list[MeasurementRow], list[Review]]:
    items, figures, reviews = [], [], []
    for k in range(draw(st.integers(0, 30))):
        evidence = second(draw(st.floats(0, 100))) if draw(st.booleans()) else {}
        attributes = {
            "gender": draw(st.sampled_from("mw")),
            "set": draw(st.sampled_from(["", "", "adversarial"])),
        }
        items.append(
            item(
                k, draw(st.sampled_from(Outcome)), evidence=evidence, attributes=attributes,
                control=draw(st.booleans()), tool=draw(st.sampled_from("ab")),
            )
        )  # fmt: skip
        figures.append(figure("flrr", draw(st.floats(0, 100)), number=k))
        if draw(st.booleans()):
            reviews.append(Review(f"i{k:04d}", "r", draw(st.booleans()), "because"))
    return items, figures, reviews


@given(runs(), st.randoms())
def test_standings_add_up_to_the_items_and_no_order_matters(
    run: tuple[list[ItemRow], list[MeasurementRow], list[Review]], shuffle: random.Random
) -> None:
    items, figures, reviews = run
    cleaning = clean(items, figures, PLAN, reviews)
    places = Counter(cleaning.of(i.item_id).place for i in items)
    assert sum(places.values()) == len(items) == len(cleaning.standings)
    mixed = list(items)
    shuffle.shuffle(mixed)
    assert clean(mixed, figures, PLAN, reviews) == cleaning
    listed = [r.item_id for r in cleaning.review]
    assert listed == sorted(set(listed))
    assert not {i.item_id for i in items if i.control} & set(listed)
    must = {i.item_id for i in items if not i.control and i.outcome is Outcome.FACE_LOST}
    assert must <= set(listed)


# The list for review -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "rule"),
    [
        ([("flrr", 69.9, "face"), ("pdl", 200.1, "face")], "FLRR below 70 and PDL above 200"),
        ([("csi", 15.1, "face")], "CSI above 15"),
        ([("detail_change", -1.0, "beard")], "suspected erasure: beard"),
        ([("detail_change", -1.2, "lower_face")], "suspected erasure: lower face"),
        ([("pdl", 151.0, "lower_face"), ("pdl_signed", 151.0, "lower_face")], "suspected erasure: lower face"),
        ([("detail_change", -3.0, "larynx")], "suspected erasure: larynx"),
    ],
)  # fmt: skip
def test_each_rule_lists_the_item(figures: list[tuple[str, float, str]], rule: str) -> None:
    cleaning = one(item(0), *(figure(m, v, r) for m, v, r in figures))
    assert rules(cleaning) == {rule}


@pytest.mark.parametrize(
    "figures",
    [
        [("flrr", 70.0, "face"), ("pdl", 300.0, "face")],
        [("flrr", 60.0, "face"), ("pdl", 200.0, "face")],
        [("flrr", 60.0, "face"), ("pdl", None, "face")],
        [("csi", 15.0, "face")],
        [("detail_change", -0.99, "beard")],
        [("detail_change", -3.0, "forehead")],
        [("pdl", 300.0, "beard"), ("pdl_signed", -300.0, "beard")],
    ],
)
def test_at_the_threshold_or_elsewhere_no_rule_speaks(
    figures: list[tuple[str, float | None, str]],
) -> None:
    assert rules(one(item(0), *(figure(m, v, r) for m, v, r in figures))) == set()


def test_each_rule_says_what_to_look_at() -> None:
    cast = one(item(0), figure("csi", 20)).review[0].look_at
    assert "look at the profile" in cast
    gone = one(item(0), figure("detail_change", -2, "beard")).review[0].look_at
    assert "feed the result back into the tool" in gone


def test_a_tenth_of_each_tool_and_group_is_drawn_by_the_plans_seed() -> None:
    items = [item(k, tool=t, item_id=f"{t}{k:04d}") for t in "ab" for k in range(60)]
    drawn = [r.item_id for r in clean(items, [], PLAN).review]
    by = {i.item_id: (i.tool, i.attributes["gender"]) for i in items}
    assert set(Counter(by[d] for d in drawn).values()) == {3}
    assert len(drawn) == 12
    other = clean(items, [], PLAN.model_copy(update={"seed": 1})).review
    assert [r.item_id for r in other] != drawn


def test_review_csv_is_blind_to_the_group() -> None:
    text = review_csv(clean([item(k) for k in range(20)], [], PLAN))
    assert text.splitlines()[0] == "item_id,rule,look_at,original,edited"
    assert len(text.splitlines()) == 3
    assert "man" not in text and "women" not in text
    assert f"blobs/cd/{'cd' * 32}" in text


# Reviews that come back ----------------------------------------------------------------------


def wrote(folder: Path, text: str) -> Path:
    path = folder / "reviews.csv"
    path.write_text(text, encoding="utf-8")
    return path


HEAD = "item_id,reviewer,decision,reason\n"


def test_reviews_are_read_with_their_text(tmp_path: Path) -> None:
    text = HEAD + 'i0001,ann,Exclude,"broken, twice"\ni0001,bob,exclude,ears\ni0002,ann,keep,\n'
    reviews, kept = read_reviews(wrote(tmp_path, text))
    assert kept == text
    assert [(r.item_id, r.keep) for r in reviews] == [("i0001", False), ("i0001", False), ("i0002", True)]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,reviewer,decision,reason\n", "line 1: no column 'item_id'; did you mean 'item'?"),
        ("item_id,reviewer,decision,reason,gender\n", "unknown column 'gender'"),
        ("", "no column 'item_id'"),
        (HEAD + "i1,ann,drop,x\n", "line 2: decision 'drop' is neither keep nor exclude"),
        (HEAD + "i1,ann,exclude,\n", "line 2: an exclusion needs its reason"),
        (HEAD + ",ann,keep,\n", "line 2: 'item_id' is empty"),
        (HEAD + "i1,,keep,\n", "line 2: 'reviewer' is empty"),
        (HEAD + "i1,ann,keep,a,b\n", "line 2: more cells than columns"),
        (HEAD + "i1,ann,keep,\ni1,bob,exclude,x\n", "line 3: bob says exclude on item 'i1', ann in line 2 says keep"),
    ],
)  # fmt: skip
def test_reviews_with_a_mistake_are_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(LikenessError) as error:
        read_reviews(wrote(tmp_path, text))
    assert message in str(error.value)
    assert "reviews.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_reviews_of_strange_items_or_controls_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    items = [item(1), item(2, control=True)]
    check_reviews(path, [Review("i0001", "ann", True, "")], items)
    with pytest.raises(LikenessError, match="no item 'i0009'"):
        check_reviews(path, [Review("i0009", "ann", True, "")], items)
    with pytest.raises(LikenessError, match="one of the instrument's controls"):
        check_reviews(path, [Review("i0002", "ann", False, "x")], items)
    with pytest.raises(LikenessError, match="no such file of reviews"):
        read_reviews(path)
