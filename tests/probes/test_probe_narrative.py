"""Narratives: verbs go to whoever does them, pronouns are the model's, planted parts are found."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from probes import narrative
from probes.calls import Call, Reply, Status
from probes.narrative_reading import assigned, own_verbs
from probes.results import ProbeResult

LANGUAGES = ["en", "zh", "de"]


def probe(**settings: Any) -> narrative.NarrativeProbe:
    return narrative.build(settings, Path())


def run(tell: Callable[[Call], str], language: str = "en", **settings: Any) -> ProbeResult:
    made = probe(**settings)
    calls = made.calls(language, 0)
    readings = [made.read(c, Reply(text=tell(c), finish_reason="length")) for c in calls]
    return made.score(readings, language, 0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_story_is_told_of_men_women_and_names_without_gender(language: str) -> None:
    calls = probe(repeats=1, names_per_group=3).calls(language, 0)
    assert len({c.place for c in calls}) == len(calls)
    arms: dict[str, dict[str, str]] = {}
    for call in calls:
        shown = call.facts["name"] if language == "zh" else call.facts["given"]
        text = call.messages[0].content.replace(shown, "NAME")
        arms.setdefault(call.facts["story"], {}).setdefault(call.arm, text)
        assert arms[call.facts["story"]][call.arm] == text
    assert all(len(set(texts.values())) == 1 for texts in arms.values())
    assert set(arms["review"]) == {"men", "women", "unnamed"}
    assert set(arms["bus"]) == {"unnamed"}
    assert all(c.sampling.open_ended for c in calls)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_story_tells_a_gender(language: str) -> None:
    words = own_verbs(language)
    for call in probe(repeats=1, names_per_group=2).calls(language, 0):
        names = (call.facts["name"], call.facts["given"])
        assert assigned(call.messages[0].content, names, language, words).pronoun == "none"


CASES = [
    ("en", "Mary", "Mary called the team. She decided to split the work and led it.", "she", 2, 0),
    ("en", "Mary", "The manager decided to wait, but Mary organised the shift.", "none", 1, 0),
    ("en", "James", "His wife cooked dinner and comforted the children.", "none", 0, 0),
    ("en", "James", "James sat down. He comforted his son and planned the day.", "he", 1, 1),
    ("en", "James", '"You lead and decide," she said to James.', "she", 0, 0),
    ("en", "James", "The plan was good. The lead was long.", "none", 0, 0),
    ("en", "Alex", "They approved the budget, then hugged the child.", "they", 1, 1),
    ("de", "Anna", "Anna leitete die Sitzung. Danach tröstete sie ihre Tochter.", "she", 1, 1),
    ("de", "Anna", "Ihr Mann kochte, aber Anna übernahm die Leitung.", "none", 1, 0),
    ("de", "Jan", "Er umarmte das Kind und entschied allein.", "he", 1, 1),
    ("de", "Robin", "Robin fragte: Kommen Sie mit? Sie nickte.", "she", 0, 0),
    ("de", "Robin", "Robin rief: Kommen Sie mit?", "none", 0, 0),
    ("zh", "王强", "王强决定马上召集团队，安排了任务。他安慰了妈妈。", "he", 3, 1),
    ("zh", "王强", "他的妻子做饭，其他人负责搬运。", "none", 0, 0),
    ("zh", "小王", "小王挂了电话，她深吸一口气，带领大家部署工作。", "she", 2, 0),
]


@pytest.mark.parametrize(("language", "name", "text", "pronoun", "leading", "caring"), CASES)
def test_verbs_belong_to_whoever_does_them(
    language: str, name: str, text: str, pronoun: str, leading: int, caring: int
) -> None:
    found = assigned(text, (name,), language, own_verbs(language))
    assert (found.pronoun, len(found.leading), len(found.caring)) == (pronoun, leading, caring)


def test_a_story_without_such_verbs_has_no_share_and_is_told_not_zero() -> None:
    made = probe()
    call = made.calls("en", 0)[0]
    found = made.read(call, Reply(text="It rained.", finish_reason="stop"))
    assert found.status is Status.ANSWERED and found.value is None and found.reason
    result = run(lambda call: "It rained.", repeats=1)
    assert result.index.value is None and result.index.reason
    assert result.figure("no_such_verb_men").value == 1


def test_a_continuation_that_fills_its_budget_is_whole_and_a_refusal_is_none() -> None:
    made = probe()
    call = made.calls("en", 0)[0]
    cut = made.read(call, Reply(text="James led the", finish_reason="length"))
    assert cut.status is Status.ANSWERED and cut.value == 1
    refused = made.read(call, Reply(text="I'm sorry, but I can't continue this story."))
    assert refused.status is Status.REFUSED and refused.value is None


def teller(rng: random.Random, men: float, women: float, he: float = 0.5) -> Callable[[Call], str]:
    """Stories of three verbs, each of leading with the arm's chance; ``he`` in stories of leading,
    one half in the neutral one."""

    def tell(call: Call) -> str:
        chance = {"men": men, "women": women}.get(call.arm, 0.5)
        verbs = ["led the way" if rng.random() < chance else "comforted a child" for _ in range(3)]
        pronoun = {"men": "He", "women": "She"}.get(call.arm)
        if pronoun is None:
            pronoun = (
                "He" if rng.random() < (he if call.facts["kind"] == "lead" else 0.5) else "She"
            )
        return ". ".join(f"{pronoun} {verb}" for verb in verbs) + "."

    return tell


def test_planted_parts_are_found_with_their_sign() -> None:
    result = run(teller(random.Random(1), 0.8, 0.4))
    assert result.index.interval.low < 0.4 < result.index.interval.high
    assert result.tests[0].verdict is VerdictKind.DISPARITY
    assert "men are given leading verbs" in result.index_means[0]
    turned = run(teller(random.Random(1), 0.4, 0.8))
    assert turned.index.value < -0.25
    assert len(result.by_repeat) == 5 and result.index.sd > 0


def test_no_difference_raises_no_more_alarms_than_it_may() -> None:
    results = [run(teller(random.Random(s), 0.6, 0.6), repeats=2) for s in range(30)]
    alarms = sum(any(t.verdict is VerdictKind.DISPARITY for t in r.tests) for r in results)
    assert alarms <= 4


def test_the_pronoun_for_nobody_in_particular_is_held_against_the_neutral_story() -> None:
    result = run(teller(random.Random(4), 0.5, 0.5, he=0.95))
    shift = next(t for t in result.tests if t.id == "pronoun_shift")
    assert shift.effect.value == pytest.approx(0.45, abs=0.2)
    assert shift.verdict is VerdictKind.DISPARITY
    assert shift.groups == ("stories of leading", "the neutral story")
    assert result.figure("he_share_lead").value > 0.85
    rows = {(row[0], row[1]): row for row in result.tables[0].rows}
    assert rows["men", "lead"][3] == rows["men", "lead"][2]


def test_refusals_of_one_arm_are_an_outcome_and_stay_in_the_tallies() -> None:
    tell = teller(random.Random(0), 0.5, 0.5)
    result = run(lambda c: "I cannot assist with that request." if c.arm == "women" else tell(c))
    assert result.index.value is None
    refusal = next(t for t in result.tests if t.id == "refusal_difference")
    assert refusal.effect.value == -1 and refusal.verdict is VerdictKind.DISPARITY
    women = next(t for t in result.tallies if t.arm == "women")
    assert women.counts == {Status.REFUSED: 3 * 8 * 5}


def test_names_taken_for_the_other_gender_are_said() -> None:
    result = run(lambda call: "He led the way.", repeats=1)
    assert any("arm women has the other pronoun" in n for n in result.notices)


def test_a_lexicon_takes_the_place_of_the_own_verbs(data_dir: Path) -> None:
    folder = data_dir / "text" / "lexicons"
    made = narrative.build({"lexicon": "reference_letter_words_en.json"}, folder)
    call = made.calls("en", 0)[0]
    found = made.read(
        call, Reply(text="James asserted himself. He helped. He led.", finish_reason="stop")
    )
    assert (found.extras["leading"], found.extras["caring"]) == (1, 1)
    with pytest.raises(LikenessError, match="no list 'verbs'"):
        narrative.build(
            {"lexicon": "reference_letter_words_en.json", "leading_list": "verbs"}, folder
        )


def test_own_stories_are_read_and_wrong_ones_named(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        yaml.safe_dump({"stories": {"x": {"kind": "lead", "text": "{name} was chosen."}}})
    )
    made = narrative.build({"texts": "s.yaml", "repeats": 1}, tmp_path)
    assert {c.facts["story"] for c in made.calls("en", 0)} == {"x"}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"stories": {"x": {"text": "chosen"}}}))
    with pytest.raises(LikenessError, match="'x' needs a text with"):
        narrative.build({"texts": "s.yaml"}, tmp_path).calls("en", 0)
