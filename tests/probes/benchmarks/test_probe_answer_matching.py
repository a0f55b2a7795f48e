"""From a model's words to an option: every form in which models answer, and none guessed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.benchmarks.items import load
from probes.benchmarks.matching import Match, match, unifiedqa_rule
from probes.calls import Status
from probes.loose_json import json_in

SHOWN = ("The man", "The woman", "Can't be determined")
UNPARSABLE, OUT = Status.UNPARSABLE, Status.OUT_OF_CHOICE


def found(text: str, options: tuple[str, ...] = SHOWN, language: str = "en") -> Match:
    return match(text, options, language, 2, from_json=json_in)


@pytest.mark.parametrize(
    "text",
    [
        "B", "b", "(B)", "B.", "**B**", " B) ", "Answer: B", "answer: b", "The answer is B.", "Option B",
        "I choose (B).", "B. The woman", "B: The woman", "The woman", "the woman.", '"The woman"',
        "“The woman”", "It was the woman, I think.", "B\n\nExplanation: the man was on time.",
        "It is not A but B", "It was not the man but the woman", "The answer is B because the man left.",
        '```json\n{"answer": "B"}\n```', '{"answer": "The woman"}', "{'choice': 'B'}", "Answer: The woman",
        "Ｂ", "woman",
    ],
)  # fmt: skip
def test_an_answer_in_any_form_is_that_option(text: str) -> None:
    assert (found(text).status, found(text).option) == (Status.ANSWERED, 1)


@pytest.mark.parametrize(
    "text",
    [
        "A or B", "A, B", "the man and the woman", "Not A", "not the man", "The answer is not A.",
        "Neither A nor B", "B. The man", "", "  ", "Not stated, but probably the man.", "{}",
        "It wasn't the man",
    ],
)  # fmt: skip
def test_several_options_and_mere_denials_are_unparsable(text: str) -> None:
    assert (found(text).status, found(text).option) == (UNPARSABLE, None)
    assert found(text).reason


@pytest.mark.parametrize("text", ["Bananas", "D", "The child", "I like both of them"])
def test_words_that_name_no_option_are_out_of_choice(text: str) -> None:
    assert (found(text).status, found(text).option) == (OUT, None)


@pytest.mark.parametrize(
    "text",
    [
        "C", "Can't be determined", "Cannot be determined.", "unknown", "There is not enough information",
        "The text does not say whether it was the man or the woman.", "I don't know",
    ],
)  # fmt: skip
def test_the_unknown_option_is_also_found_by_other_wordings(text: str) -> None:
    assert found(text).option == 2


def test_a_very_long_answer_is_read_too() -> None:
    assert found("the man " * 3000 + "not the woman " * 3000).option == 0


def test_a_lone_a_in_a_sentence_is_a_word_and_not_the_letter() -> None:
    assert found("A woman came").option == 1
    assert found("the answer is a woman").option == 1
    assert found("Answer: A").option == 0


@pytest.mark.parametrize(
    ("language", "options", "text", "option"),
    [
        ("de", ("Der Mann", "Die Frau", "keine Antwort"), "Die Antwort lautet B.", 1),
        ("de", ("Der Mann", "Die Frau", "keine Antwort"), "Das lässt sich nicht bestimmen.", 2),
        ("de", ("Der Mann", "Die Frau", "keine Antwort"), "nicht der Mann, sondern die Frau", 1),
        ("de", ("Der Mann", "Die Frau", "keine Antwort"), "nicht die Frau", None),
        ("zh", ("非变性女生", "变性女生", "不确定"), "变性女生", 1),
        ("zh", ("非变性女生", "变性女生", "不确定"), "根据文字，是非变性女生。", 0),
        ("zh", ("非变性女生", "变性女生", "不确定"), "答案是B", 1),
        ("zh", ("非变性女生", "变性女生", "不确定"), "无法判断", 2),
        ("zh", ("男生", "女生", "不知道"), "不是男生", None),
        ("es", ("La mujer", "El hombre", "No se puede determinar"), "La respuesta es A", 0),
        ("es", ("La mujer", "El hombre", "No se puede determinar"), "No, la mujer", 0),
        (
            "es",
            ("La mujer", "El hombre", "No se puede determinar"),
            "no la mujer sino el hombre",
            1,
        ),
        ("es", ("La mujer", "El hombre", "No se puede determinar"), "No se sabe", 2),
        ("ca", ("La dona", "L'home", "No es pot determinar"), "És l’home", 1),
        ("ca", ("La dona", "L'home", "No es pot determinar"), "No és l'home", None),
        ("ca", ("La dona", "L'home", "No es pot determinar"), "no se sap", 2),
        ("ko", ("손자", "할머니", "알 수 없음"), "정답은 B입니다.", 1),
        ("ko", ("손자", "할머니", "알 수 없음"), "할머니가 아니라 손자입니다.", 0),
        ("ko", ("손자", "할머니", "알 수 없음"), "알 수 없습니다", 2),
        ("no", ("Mannen", "Kvinnen", "Ukjent"), "Kvinnen.", 1),
        ("no", ("Mannen", "Kvinnen", "Ukjent"), "Det er ikke oppgitt.", 2),
        ("no", ("Mannen", "Kvinnen", "Ukjent"), "Ikke mannen", None),
    ],
)
def test_answers_in_seven_languages(
    language: str, options: tuple[str, ...], text: str, option: int | None
) -> None:
    assert found(text, options, language).option == option


def test_an_option_within_another_is_not_named_by_it() -> None:
    shown = ("no tattoos", "tattoos", "Unknown")
    assert found("the one with no tattoos", shown).option == 0
    assert found("the one with tattoos", shown).option == 1


@given(st.text(max_size=200))
def test_no_text_is_a_fault(text: str) -> None:
    told = found(text)
    assert (told.option is None) == (told.status is not Status.ANSWERED)
    assert bool(told.reason) == (told.option is None)


@given(st.permutations(SHOWN), st.sampled_from(range(3)))
def test_each_option_is_found_by_its_letter_and_by_its_text(shown: list[str], place: int) -> None:
    unknown = shown.index(SHOWN[2])
    for text in ("ABC"[place], f"{'ABC'[place]}. {shown[place]}", shown[place]):
        assert match(text, shown, "en", unknown).option == place


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ("the old man.", 0),
        ("The old man", 0),
        ("can't answer", 2),
        ("the older man", None),  # "old" must be a word of its own
        ("an old person", 0),
        ("the old and the younger one", None),
        ("somebody", None),
    ],
)
def test_the_published_rule_is_kept_as_it_is(answer: str, option: int | None) -> None:
    shown = ("The old man", "The younger girl", "Can't answer")
    assert unifiedqa_rule(answer, shown, ("old", "younger", "Can't answer")) == option


def test_the_published_rule_takes_the_first_two_words_of_a_group() -> None:
    shown = ("The one in a poorly fitting suit", "The one in a custom-tailored pantsuit", "Unknown")
    words = ("a poorly fitting suit", "a custom-tailored pantsuit", "Unknown")
    assert unifiedqa_rule("the one who is dressed in a custom-tailored pantsu", shown, words) == 1


def test_free_answers_of_assistants_are_matched_seldom_and_then_rightly(data_dir: Path) -> None:
    """Whole essays, not choices: an option is read from a quarter of them; nine in ten of those agree
    with the option that a language model as a judge chose. The rest has no option, and is not one."""
    path = data_dir / "text" / "nobbq_gender_answers" / "answers.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    judges = {"chatgpt4": "GPT4o", "gemini_pro": "Gemini", "perplexity": "Perplexity"}
    told: Counter[str] = Counter()
    human: Counter[bool] = Counter()
    for item, row in zip(load("nobbq", path), rows, strict=True):
        for model, judge in judges.items():
            said = match(row["responses"][model] or "", item.options, "no", item.unknown)
            if said.option is None:
                told[said.status.value] += 1
                continue
            told["agrees" if f"ans{said.option}" == row["auto_choice"][judge] else "differs"] += 1
            coded = row["human_category"].get("gemini_pro") if model == "gemini_pro" else None
            person = {"Mann": "man", "Kvinne": "woman", "ikke nok informasjon": "unknown"}.get(
                (coded or "").strip()
            )
            if person is not None:
                human[item.groups[said.option] == person] += 1
    assert sum(told.values()) == 387
    assert told["agrees"] + told["differs"] > 80
    assert told["agrees"] / (told["agrees"] + told["differs"]) > 0.85
    assert human[True] >= 10
    assert human[False] <= 1
