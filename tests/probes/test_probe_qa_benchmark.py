"""The probe: prompts in every order, readings, scores, and a model that picks places."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from probes.benchmarks.items import Item
from probes.calls import Call, Reading, Reply, Status
from probes.contract import build
from probes.qa_benchmark import SPEC, QaBenchmark
from probes.results import ProbeResult

Model = Callable[[Call, Item, tuple[int, ...]], str]


@pytest.fixture
def probe() -> QaBenchmark:
    made = build("qa_benchmark", {}, Path())
    assert isinstance(made, QaBenchmark)
    return made


def bbq(data_dir: Path, limit: int, **settings: object) -> QaBenchmark:
    folder = data_dir / "text" / "bbq"
    made = build("qa_benchmark", {"rows": "Age.jsonl.gz", "limit": limit, **settings}, folder)
    assert isinstance(made, QaBenchmark)
    return made


def asked(probe: QaBenchmark, model: Model, seed: int = 1) -> ProbeResult:
    return probe.score(answers(probe, model, seed), "en", seed)


def answers(probe: QaBenchmark, model: Model, seed: int = 1) -> list[Reading]:
    readings = []
    for call in probe.calls("en", seed):
        order = tuple(int(option) for option in call.facts["order"].split(","))
        item = probe.items("en")[int(call.item.split(":")[0]) - 1]
        readings.append(probe.read(call, Reply(text=model(call, item, order))))
    return readings


def first_place(call: Call, item: Item, order: tuple[int, ...]) -> str:
    return "A"


def stereotype(call: Call, item: Item, order: tuple[int, ...]) -> str:
    return "ABC"[order.index(item.towards or 0)]


def careful(call: Call, item: Item, order: tuple[int, ...]) -> str:
    return f"({'ABC'[order.index(item.label)]}) {item.options[item.label]}"


def test_the_sample_has_every_kind_of_item(probe: QaBenchmark) -> None:
    items = probe.items("en")
    assert len(items) == 20
    assert all(item.target is not None and len(set(item.options)) == 3 for item in items)
    assert Counter(i.condition for i in items) == {"ambiguous": 10, "disambiguated": 10}
    told = [i for i in items if i.condition == "disambiguated"]
    assert sum(i.label == i.towards for i in told) == 5
    assert Counter(i.polarity for i in told) == {"negative": 5, "non_negative": 5}
    assert {i.unknown for i in items} == {0, 1, 2}
    assert all(
        option.removeprefix("The ") in item.context
        for item in items
        for n, option in enumerate(item.options)
        if n != item.unknown
    )


def test_each_item_is_asked_in_every_order_and_nothing_else_changes(probe: QaBenchmark) -> None:
    calls = probe.calls("en", 7)
    assert len(calls) == 60 and len({call.place for call in calls}) == 60
    assert {call.arm for call in calls} == {"order 1", "order 2", "order 3"}
    by_item = [call for call in calls if call.item == calls[0].item]
    lines = [sorted(call.messages[0].content.splitlines()) for call in by_item]
    texts = [[line.split(". ", 1)[-1] for line in some] for some in lines]
    assert sorted(texts[0]) == sorted(texts[1]) == sorted(texts[2])
    assert len({call.messages[0].content for call in by_item}) == 3
    assert probe.calls("en", 7) == calls != probe.calls("en", 8)
    assert all(call.sampling.temperature == 0 for call in calls)


def test_a_model_that_picks_a_place_is_unusable_and_has_no_verdict(probe: QaBenchmark) -> None:
    found = asked(probe, first_place)
    assert not found.usable
    assert found.why_not.startswith("unusable for multiple choice: the answer changed on 20 of 20")
    assert found.tests == ()
    assert found.index.value is None and found.index.reason == found.why_not
    accuracy = found.figure("acc_amb")
    assert accuracy is not None and accuracy.value is not None
    assert accuracy.note.startswith("not to be read")
    assert found.axis == "stereotype" and not SPEC.in_composite


def test_a_model_that_follows_the_stereotype_is_found_out(data_dir: Path) -> None:
    found = asked(bbq(data_dir, 120), stereotype)
    assert found.usable
    assert found.index.value == 1.0
    assert [t.verdict for t in found.tests][:2] == [VerdictKind.DISPARITY] * 2
    assert found.tests[2].verdict is not VerdictKind.DISPARITY
    assert found.index_means[0] == "towards the stereotype"
    assert found.tests[0].sentence.startswith("Where the text does not say who it was")
    changed = found.figure("order_changed")
    assert changed is not None and changed.value == 0.0


def test_a_careful_model_is_right_and_leans_nowhere(data_dir: Path) -> None:
    found = asked(bbq(data_dir, 120), careful)
    figures = {f.id: f.value for f in found.figures}
    assert (figures["acc_amb"], figures["acc_disamb"], figures["diff_bias_amb"]) == (1.0, 1.0, 0.0)
    assert figures["bias_max_amb"] == 0.0
    assert found.tests[0].verdict is not VerdictKind.DISPARITY
    assert not found.notices


def test_refusals_of_one_kind_of_question_are_a_result_of_their_own(data_dir: Path) -> None:
    def shy(call: Call, item: Item, order: tuple[int, ...]) -> str:
        if item.polarity == "negative" and item.condition == "ambiguous":
            return "I'm sorry, but I can't help with that."
        return careful(call, item, order)

    found = asked(bbq(data_dir, 120), shy)
    tallies = {t.arm: t for t in found.tallies}
    assert tallies["ambiguous"].counts[Status.REFUSED] == 90
    assert sum(t.total for t in found.tallies) == 360
    declined = next(t for t in found.tests if t.id == "declined")
    assert declined.verdict is VerdictKind.DISPARITY
    assert declined.effect.value == pytest.approx(0.5)
    counts = next(t for t in found.tables if t.id == "counts")
    assert sum(int(row[2] or 0) for row in counts.rows) == 360


def test_nothing_but_refusals_cannot_be_told_and_is_no_score(probe: QaBenchmark) -> None:
    found = asked(probe, lambda *_: "I'm sorry, but I can't help with that.")
    assert not found.usable
    assert "has an answer in every order" in found.why_not
    assert all(f.value is None for f in found.figures)
    assert probe.score([], "en", 1).index.value is None


def test_a_reading_says_what_the_option_says(probe: QaBenchmark) -> None:
    call = probe.calls("en", 1)[0]
    order = [int(option) for option in call.facts["order"].split(",")]
    letter = "ABC"[order.index(int(call.facts["towards"]))]
    read = probe.read(call, Reply(text=f"Answer: {letter}"))
    assert (read.status, read.label, read.value) == (Status.ANSWERED, "towards", 1.0)
    assert read.extras["option"] == float(call.facts["towards"])
    assert probe.follow_up(read, 1) is None
    empty = probe.read(call, Reply(text=""))
    assert (empty.status, empty.label, empty.value) == (Status.UNPARSABLE, None, None)
    failed = probe.read(call, Reply(error="connection refused"))
    assert failed.status is Status.ERRORED
    assert probe.read(call, Reply(text="Bananas")).status is Status.OUT_OF_CHOICE


def test_a_letter_whose_explanation_was_cut_is_whole(probe: QaBenchmark) -> None:
    call = probe.calls("en", 1)[0]
    cut = probe.read(call, Reply(text="B\n\nBecause the", finish_reason="length"))
    assert (cut.status, cut.extras["place"]) == (Status.ANSWERED, 1.0)
    lost = probe.read(call, Reply(text="Let me think about who it", finish_reason="length"))
    assert lost.status is Status.TRUNCATED


def test_rows_of_another_language_are_asked_in_it(data_dir: Path) -> None:
    folder = data_dir / "text" / "ggbbq" / "paper_75a5cd0"
    made = build(
        "qa_benchmark", {"benchmark": "ggbbq", "rows": "subset2_amb.jsonl", "limit": 8}, folder
    )
    calls = made.calls("de", 1)
    assert len(calls) == 24
    assert "Antworte nur mit einem Buchstaben: A, B, C." in calls[0].messages[0].content
    places = Counter(call.facts["order"].split(",").index(call.facts["unknown"]) for call in calls)
    assert places == {0: 8, 1: 8, 2: 8}
    with pytest.raises(LikenessError, match="is in 'de', not in 'en'"):
        made.calls("en", 1)
    found = made.score([made.read(call, Reply(text="keine Antwort")) for call in calls], "de", 1)
    assert any("36 items were not asked" in notice for notice in found.notices)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"permutations": 1}, "permutations"),
        ({"letters": "AAB"}, "each letter once"),
        ({"rows": "absent.csv"}, "cannot be read"),
        ({"benchmark": "bqb", "rows": "x.csv"}, "did you mean 'bbq'"),
        ({"margins": 0.1}, "unknown setting 'margins'; did you mean 'margin'"),
    ],
)
def test_wrong_settings_are_told_in_one_line(
    tmp_path: Path, settings: dict[str, object], told: str
) -> None:
    with pytest.raises(LikenessError, match=told) as caught:
        build("qa_benchmark", settings, tmp_path).calls("en", 1)
    assert "\n" not in str(caught.value)


def test_a_language_without_a_sample_is_told(probe: QaBenchmark) -> None:
    with pytest.raises(LikenessError, match="no sample in 'de'; name a file with 'rows'"):
        probe.calls("de", 1)


def test_repeats_are_places_of_their_own(tmp_path: Path) -> None:
    made = build("qa_benchmark", {"repeats": 2, "limit": 4}, tmp_path)
    calls = made.calls("en", 1)
    assert len({call.place for call in calls}) == len(calls) == 24
    found = made.score([made.read(call, Reply(text="A")) for call in calls], "en", 1)
    assert len(found.by_repeat) == 2
    assert json.dumps(found.versions)
