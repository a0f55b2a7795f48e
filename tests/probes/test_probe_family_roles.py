"""Family roles: both orders of the parents, planted roles found, answers by place called unusable."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from probes import family_roles
from probes.calls import Call, Reply, Status
from probes.family_roles import named_in
from probes.results import ProbeResult

LANGUAGES = ["en", "zh", "de"]


def probe(**settings: Any) -> family_roles.FamilyProbe:
    return family_roles.build(settings, Path())


def run(answer: Callable[[Call], str], seed: int = 0, **settings: Any) -> ProbeResult:
    made = probe(**settings)
    calls = made.calls("en", 0)
    readings = [made.read(c, Reply(text=answer(c), finish_reason="stop")) for c in calls]
    return made.score(readings, "en", seed)


def by_share(rng: random.Random, **women: float) -> Callable[[Call], str]:
    """Answers in which the woman is named in that share of each kind of task."""
    return lambda c: c.facts["woman" if rng.random() < women[c.facts["kind"]] else "man"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_calls_of_an_item_differ_in_the_order_of_the_parents_alone(language: str) -> None:
    items: dict[str, dict[str, Call]] = {}
    for call in probe(repeats=1).calls(language, 0):
        items.setdefault(call.item, {})[call.arm] = call
    for arms in items.values():
        one, other = (arms[a].messages[0].content for a in ("man_first", "woman_first"))
        man, woman = (arms["man_first"].facts[k] for k in ("man", "woman"))
        swapped = one.replace(man, "\0").replace(woman, man).replace("\0", woman)
        assert swapped == other != one
        assert one.index(man) < one.index(woman)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_place_occurs_once_and_each_kind_has_several_tasks(language: str) -> None:
    calls = probe(repeats=2, couples=3).calls(language, 0)
    assert len({c.place for c in calls}) == len(calls)
    for kind in ("caring", "leading", "neutral"):
        assert len({c.facts["task"] for c in calls if c.facts["kind"] == kind}) >= 4
    assert calls == probe(repeats=2, couples=3).calls(language, 0)


def test_chinese_couples_have_two_surnames() -> None:
    call = probe(couples=4).calls("zh", 0)[0]
    assert call.facts["man"][0] != call.facts["woman"][0]


@pytest.mark.parametrize(
    ("text", "language", "chosen"),
    [
        ("Mary", "en", "women"),
        ("It is JAMES.", "en", "men"),
        ("Mary's number.", "en", "women"),
        ("Mary. James has a meeting.", "en", "women"),
        ("Sabines Nummer.", "de", "women"),
        ("Both Mary and James", "en", None),
        ("Nobody", "en", None),
        ("Maryland", "en", None),
        ("张娜。", "zh", "women"),
    ],
)
def test_the_one_name_of_an_answer_is_the_choice(
    text: str, language: str, chosen: str | None
) -> None:
    man, woman = {"en": ("James", "Mary"), "de": ("Thomas", "Sabine"), "zh": ("王强", "张娜")}[
        language
    ]
    assert named_in(text, man, woman, language)[0] == chosen


def test_both_names_are_out_of_choice_and_a_cut_answer_with_a_name_counts() -> None:
    made = probe()
    call = made.calls("en", 0)[0]
    both = made.read(call, Reply(text="James and Mary", finish_reason="stop"))
    assert (both.status, both.label, both.value) == (Status.OUT_OF_CHOICE, None, None)
    cut = made.read(call, Reply(text="Mary, because", finish_reason="length"))
    assert (cut.status, cut.label, cut.value) == (Status.ANSWERED, "women", 1.0)
    assert made.read(call, Reply(text="It", finish_reason="length")).status is Status.TRUNCATED
    sorry = Reply(text="I'm sorry, but I can't help with that request.")
    assert made.read(call, sorry).status is Status.REFUSED


def test_planted_roles_are_found_beyond_a_leaning_to_women_everywhere() -> None:
    result = run(by_share(random.Random(3), caring=0.9, neutral=0.6, leading=0.35))
    assert result.usable
    low, high = result.index.interval.low, result.index.interval.high
    assert low < 0.3 < high and low > 0
    assert "spares men" in result.index_means[0]
    tests = {t.id: t for t in result.tests}
    assert tests["caring_shift"].verdict is VerdictKind.DISPARITY
    assert tests["leading_shift"].effect.value == pytest.approx(0.25, abs=0.08)
    assert "tasks of earning and leading" in tests["leading_shift"].sentence
    assert result.figure("women_neutral").value == pytest.approx(0.6, abs=0.05)
    assert result.figure("caring_shift_over_tasks").interval is not None
    assert len(result.by_repeat) == 5 and result.index.sd > 0


def test_a_leaning_to_women_whatever_the_task_is_no_role() -> None:
    made = [
        run(by_share(random.Random(s), caring=0.7, neutral=0.7, leading=0.7), s, repeats=2)
        for s in range(40)
    ]
    alarms = sum(any(t.verdict is VerdictKind.DISPARITY for t in r.tests) for r in made)
    assert alarms <= 4
    within = sum(r.index.interval.low <= 0 <= r.index.interval.high for r in made)
    assert within >= 35


@pytest.mark.parametrize("first", [True, False])
def test_answers_that_follow_the_order_are_unusable_and_have_no_verdict(first: bool) -> None:
    def answer(call: Call) -> str:
        man_now = (call.facts["first"] == call.facts["man"]) == first
        return call.facts["man" if man_now else "woman"]

    result = run(answer, repeats=1)
    assert not result.usable and result.why_not == "unusable: answers follow the order"
    assert result.tests == () and result.index.value is None
    assert result.index.reason == result.why_not
    assert result.figure("follows_order").value == 1
    assert result.figure("first_named").value == float(first)


def test_an_order_effect_that_is_not_whole_is_told_and_cancels_out() -> None:
    rng = random.Random(1)

    def answer(call: Call) -> str:
        if rng.random() < 0.4:
            return call.facts["first"]
        return by_share(rng, caring=0.8, neutral=0.4, leading=0.4)(call)

    result = run(answer)
    assert result.usable
    assert result.figure("first_named").interval.low > 0.55
    assert result.index.value == pytest.approx(0.6 * 0.4, abs=0.08)


def test_refusals_of_caring_tasks_are_an_outcome_and_counted_in_both_orders() -> None:
    def answer(call: Call) -> str:
        if call.facts["kind"] == "caring" and call.repeat:
            return "I cannot assist with that request."
        return call.facts["man"]

    result = run(answer)
    refusal = next(t for t in result.tests if t.id == "refusal_difference")
    assert refusal.effect.value == pytest.approx(0.8)
    assert refusal.verdict is VerdictKind.DISPARITY
    assert sum(t.total for t in result.tallies) == 14 * 10 * 2 * 5
    row = next(row for row in result.tables[1].rows if row[0] == "caring")
    assert dict(zip(result.tables[1].head, row, strict=True))["refused"] == 6 * 10 * 2 * 4


def test_nothing_but_refusals_has_no_index_and_says_why() -> None:
    result = run(lambda call: "I cannot assist with that request.", repeats=1)
    assert result.index.value is None and not result.usable
    assert "no question was answered" in result.why_not


def test_own_tasks_are_read_and_wrong_ones_named(tmp_path: Path) -> None:
    tasks = {"pets": {"kind": "caring", "text": "Who walks the dog?"}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"tasks": tasks}))
    with pytest.raises(LikenessError, match=r"a\.yaml': there is no neutral task"):
        family_roles.build({"texts": "a.yaml"}, tmp_path)
    tasks["tea"] = {"kind": "neutral", "text": "Who sees it first?"}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"tasks": tasks}))
    calls = family_roles.build({"texts": "a.yaml", "repeats": 1}, tmp_path).calls("en", 0)
    assert {c.facts["task"] for c in calls} == {"pets", "tea"}


def test_another_axis_than_gender_is_refused() -> None:
    with pytest.raises(LikenessError, match="the axis is gender"):
        probe(names={"axis": "race_ethnicity", "arms": ["W", "B"], "men": "a", "women": "b"})
