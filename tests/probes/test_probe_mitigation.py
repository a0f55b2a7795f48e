"""Guards in three languages and the conditions of a plan."""

from __future__ import annotations

import re

import pytest

from domain.errors import LikenessError
from probes.calls import Call, Message
from probes.mitigation import (
    LANGUAGES,
    SCENARIOS,
    condition_of,
    guard,
    guard_version,
)

FORBIDDEN_WORDS = re.compile(r"\b(un)?bias|\bfair|stereotyp|Vorurteil|偏见|歧视|刻板", re.I)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_has_a_text_of_its_own_in_every_language(
    scenario: str, language: str
) -> None:
    text = guard(scenario, language)
    others = {guard(s, language) for s in SCENARIOS if s != scenario}
    assert text not in others
    assert len(text) > (90 if language == "zh" else 250)
    assert text[-1] in ".。"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_guard_names_evidence_and_attributes_and_never_what_is_measured(language: str) -> None:
    # a guard that names the thing that is measured would teach the model to spot the test
    named = {
        "en": ("name", "gender", "age", "region", "duties"),
        "de": ("Name", "Geschlecht", "Alter", "Region", "Aufgaben"),
        "zh": ("姓名", "性别", "年龄", "地区", "职责"),
    }[language]
    assert all(word in guard("general", language) for word in named)
    for scenario in SCENARIOS:
        assert not FORBIDDEN_WORDS.search(guard(scenario, language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_two_arms_get_the_same_words(language: str) -> None:
    condition = condition_of({"id": "guarded", "guard": "hiring"}, language)
    one, other = (
        condition.put(Call("resume", "r1", arm, messages=(Message("user", arm),)))
        for arm in ("men", "women")
    )
    assert one.messages[0] == other.messages[0] == Message("system", guard("hiring", language))
    assert (one.condition, one.key("e") == other.key("e")) == ("guarded", False)


def test_plain_leaves_a_call_as_it_is() -> None:
    call = Call("resume", "r1", "men", messages=(Message("user", "?"),))
    assert condition_of("plain", "en").put(call) is call


def test_a_low_temperature_changes_only_the_temperature_and_says_how_to_read_it() -> None:
    call = Call("resume", "r1", "men", messages=(Message("user", "?"),))
    condition = condition_of("low_temperature", "en")
    cold = condition.put(call)
    assert (cold.sampling.temperature, cold.sampling.top_p) == (0.3, 0.9)
    assert cold.messages == call.messages
    assert "diagnosis" in condition.notice
    told = {"id": "low_temperature", "temperature": 0.1, "guard": None}
    assert condition_of(told, "en").put(call).sampling.temperature == 0.1


def test_unaligned_carries_the_notice_that_something_else_is_measured() -> None:
    condition = condition_of({"id": "unaligned"}, "de")
    assert "Textmodell" in condition.system
    assert "changes what is measured" in condition.notice


def test_own_words_are_a_condition_too_and_its_digest_tells_them_apart() -> None:
    one = condition_of({"id": "mine", "system": "Judge by the work."}, "en")
    other = condition_of({"id": "mine", "system": "Judge by the work alone."}, "en")
    assert one.system == "Judge by the work."
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("gaurded", "condition 'gaurded' changes nothing; did you mean 'guarded'?"),
        ({"id": "guarded", "guard": "hirring"}, "no guard for scenario 'hirring'; did you mean"),
        ({"id": "plain", "temperature": 0.1}, "condition 'plain' is the one in which nothing"),
        ({"id": "x", "guards": "hiring"}, "condition 'x': unknown key 'guards'"),
        ({"id": "unaligned", "guard": "hiring"}, "condition 'unaligned': give one of"),
    ],
)
def test_a_wrong_condition_is_one_clear_line(choice: str | dict[str, object], said: str) -> None:
    with pytest.raises(LikenessError, match=re.escape(said)):
        condition_of(choice, "en")


def test_a_language_without_texts_is_said() -> None:
    with pytest.raises(LikenessError, match=r"no guards in language 'fr' \(known: en, zh, de\)"):
        guard("hiring", "fr")


def test_the_version_of_the_texts_is_told_with_their_hash() -> None:
    assert re.fullmatch(r"1 \([0-9a-f]{12}\)", guard_version("zh"))
