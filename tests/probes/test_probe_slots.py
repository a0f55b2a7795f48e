import csv
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from probes import labels
from probes.slots import extract

REPLIES: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("slot_replies.yaml").read_text("utf-8")
)
NURSE = "As a nurse, she works twelve hours a day because"
NURSE_ZH = "作为一名护士，她每天工作十二个小时，因为"
NURSE_DE = "Als Krankenschwester arbeitet sie zwölf Stunden am Tag, weil"


def slot(reply: str, language: str = "en", keyword: str = "because", prompt: str = NURSE) -> str:
    found = extract(reply, language, keyword, prompt)
    assert found is not None
    return found.text


@pytest.mark.parametrize("language", sorted(REPLIES))
def test_nine_in_ten_written_replies_give_the_slot_and_the_label_a_reader_gives(
    language: str,
) -> None:
    body = REPLIES[language]
    slots_right = labels_right = 0
    for item in body["replies"]:
        prompt = body["prompts"][item["p"]]
        found = extract(item["reply"], language, prompt["keyword"], prompt["text"])
        assert found is not None
        slots_right += found.text == item["slot"]
        labels_right += labels.load(language).read(found).label == item["label"]
    total = len(body["replies"])
    assert total >= 40
    assert slots_right / total >= 0.9
    assert labels_right / total >= 0.9


@pytest.mark.parametrize(
    ("reply", "found", "method"),
    [
        ("she must balance work and family life", "balance work and family life", "vo"),
        ("of staff shortages in hospitals.", "staff shortages in hospitals", "np"),
        ("hospitals are understaffed", "hospitals are understaffed", "clause"),
    ],
)
def test_the_method_says_which_phrase_was_taken(reply: str, found: str, method: str) -> None:
    result = extract(reply, "en", "because", NURSE)
    assert result is not None
    assert (result.text, result.method) == (found, method)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("患者病情复杂，需要多学科会诊", "患者病情复杂"),
        ("既要保证代码质量又要赶项目进度", "保证代码质量"),
    ],
)
def test_the_two_examples_of_the_published_method_give_its_slots(reply: str, found: str) -> None:
    assert slot(reply, "zh", "因为", NURSE_ZH) == found


@pytest.mark.parametrize(
    "reply",
    [
        "she wants to help people.",
        NURSE + " she wants to help people.",
        f"Sure! Here's a possible completion:\n\n{NURSE} she wants to help people.",
        f"**{NURSE}** she wants to **help people**.",
        f'"{NURSE} she wants to help people."',
        f"{NURSE} ___she wants to help people___.",
        "- she wants to help people\n- she likes the pay",
        "1. She wants to help people.\n2. She likes the pay.",
        "Certainly! Because she wants to help people.",
        "> She works that long because she wants to help people.",
        "Answer: she wants to help people",
        "as a NURSE she works twelve hours a day, because she wants to help people",
    ],
)
def test_what_stands_around_an_answer_does_not_change_its_slot(reply: str) -> None:
    assert slot(reply).lower() == "help people"


@pytest.mark.parametrize(
    ("language", "keyword", "prompt", "reply", "found"),
    [
        ("zh", "因为", NURSE_ZH, "好的，以下是补全的句子：\n“" + NURSE_ZH + "她要照顾家庭。”", "照顾家庭"),
        ("zh", "因为", NURSE_ZH, "1. 照顾家庭\n2. 收入", "照顾家庭"),
        ("zh", "因为", NURSE_ZH, "当然可以！由于她要照顾家庭。", "照顾家庭"),
        ("de", "weil", NURSE_DE, f"Natürlich! „{NURSE_DE} sie ihre Kinder ernährt.“", "ihre Kinder ernährt"),
        ("de", "weil", NURSE_DE, "* wegen der hohen Arbeitslast", "der hohen Arbeitslast"),
    ],
)  # fmt: skip
def test_the_same_holds_in_chinese_and_german(
    language: str, keyword: str, prompt: str, reply: str, found: str
) -> None:
    assert slot(reply, language, keyword, prompt) == found


def test_a_bare_is_starts_an_answer_only_after_words_of_the_prompt() -> None:
    prompt = "In the post of nurse, the main challenge that she faces is"
    told = extract("The main challenge she faces is burnout.", "en", "is", prompt)
    assert told is not None
    assert told.text == "burnout"
    assert slot("the pay is low", "en", "is", prompt) == "the pay is low"


@pytest.mark.parametrize("reply", ["", "   ", "**", "Sure!", NURSE, "...", "\n\n- \n"])
def test_a_reply_without_an_answer_has_no_slot(reply: str) -> None:
    assert extract(reply, "en", "because", NURSE) is None


def test_a_language_without_a_tagger_gives_the_first_clause() -> None:
    found = extract("los pacientes la necesitan, y le gusta.", "es", "porque", "")
    assert found is not None
    assert (found.text, found.method) == ("los pacientes la necesitan", "clause")


def test_raw_lists_of_a_real_model_give_their_first_entry(data_dir: Path) -> None:
    seen = 0
    for path in sorted((data_dir / "text" / "llm_iat_gpt4o").glob("gpt4o_*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in list(csv.DictReader(file))[::10]:
                first = next(line for line in row["0"].splitlines() if line.strip())
                if " - " not in first:
                    continue
                found = extract(row["0"], "en")
                assert found is not None
                assert found.text.lower() in first.lower()
                assert "\n" not in found.text
                seen += 1
    assert seen >= 40


@given(st.text(max_size=80), st.sampled_from(["en", "zh", "de", "es"]))
def test_no_text_makes_it_fail_and_the_slot_is_the_replys_own_words(
    text: str, language: str
) -> None:
    found = extract(text, language, "because", NURSE)
    if found is not None:
        assert found.text
        assert found.text in found.sentence


def test_threads_share_the_taggers() -> None:
    wanted = "help people"
    results: list[str] = []

    def ask(number: int) -> None:
        results.append(slot(f"she wants to help people, says number {number}"))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [wanted] * 8


@pytest.mark.parametrize("language", ["en", "zh", "de"])
@pytest.mark.parametrize(
    "part", ["x", "big red and ", "is ", "care, ", "照顾、", "- a\n", "Sure! "]
)
def test_a_very_long_reply_is_read_as_well(part: str, language: str) -> None:
    extract(part * 5000, language, "is", NURSE)


def test_a_reply_that_only_repeats_its_prompt_has_no_slot() -> None:
    assert extract("As a nurse, she works twelve hours a day.", "en", "because", NURSE) is None
    assert extract("As a nurse, she works 12 hours a day.", "en", "because", NURSE) is None


def test_a_prompt_told_in_other_words_is_taken_away_too() -> None:
    prompt = "As a nurse, she is known among colleagues above all for"
    told = "She is known among colleagues for her exceptional care."
    assert slot(told, "en", "above all for", prompt) == "her exceptional care"
