"""Swaps in free text: only listed words, a way back or a flag, case and word boundaries kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import LikenessError
from probes.pairs.lexicon import LANGUAGES, lexicon
from probes.pairs.swapping import swap
from probes.pairs.tokens import tokens

PLAIN = {
    "en": [
        "there",
        "theory",
        "shelf",
        "human",
        "and",
        "works",
        "Monday",
        "Manchester",
        "hers-like",
    ],
    "zh": ["其他", "他人", "吉他", "工作", "子女", "维他命", "的", "医院"],
    "de": ["dort", "Arbeit", "verdient", "heute", "Berlin", "gern"],
}
DOUBTFUL = {"her", "his", "hers", "him", "sie", "ihr", "er", "ihn", "ihm", "sein"}


def _words(language: str) -> list[str]:
    listed = [w for pair in lexicon(language).dimension("gender").swaps for w in pair]
    return [w for w in listed if w.lower() not in DOUBTFUL] + PLAIN[language]


@st.composite
def _texts(draw: st.DrawFn) -> tuple[str, str]:
    language = draw(st.sampled_from(LANGUAGES))
    words = draw(st.lists(st.sampled_from(_words(language)), max_size=12))
    cases = draw(st.lists(st.integers(0, 2), min_size=len(words), max_size=len(words)))
    shaped = [(w, w.upper(), w[:1].upper() + w[1:])[c] for w, c in zip(words, cases, strict=True)]
    return language, ("，" if language == "zh" else " ").join(shaped)


@given(_texts())
def test_swapping_twice_gives_the_text_back(case: tuple[str, str]) -> None:
    language, text = case
    once = swap(text, "gender", language)
    assert swap(once.text, "gender", language).text == text
    assert not any("no way back" in flag for flag in once.flags)


@given(_texts())
def test_a_swap_changes_listed_words_only(case: tuple[str, str]) -> None:
    language, text = case
    listed = {w.lower() for w in _words(language)} - {w.lower() for w in PLAIN[language]}
    once = swap(text, "gender", language)
    before, after = tokens(text, language), tokens(once.text, language)
    changed = [b for b, a in zip(before, after, strict=True) if b != a] if len(before) == len(after) else []  # fmt: skip
    if language != "zh":
        assert {c.lower() for c in changed} <= listed | {"a", "an"}
    assert {b.lower() for b, _ in once.changes} <= listed | {"a", "an"}


@given(st.sampled_from(LANGUAGES), st.text(max_size=40))
def test_any_text_is_swapped_back_or_flagged(language: str, text: str) -> None:
    for dimension in lexicon(language).dimensions:
        once = swap(text, dimension, language)
        assert swap(once.text, dimension, language).text == text or once.flags


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Her manager praised her.", "His manager praised him."),
        ("I saw her yesterday.", "I saw him yesterday."),
        ("The book is hers.", "The book is his."),
        ("The book is his.", "The book is hers."),
        ("His own idea", "Her own idea"),
        ("We spoke with her about it", "We spoke with him about it"),
        ("HE said he's late; She'd gone.", "SHE said she's late; He'd gone."),
        ("the men's room, a waiter", "the women's room, a waitress"),
        ("Other people there", "Other people there"),
        ("a he-wolf", "a she-wolf"),
    ],
)
def test_english_pronouns_are_told_apart(before: str, after: str) -> None:
    swapped = swap(before, "gender", "en")
    assert swapped.text == after
    assert not swapped.flags


def test_her_books_after_gave_is_in_doubt() -> None:
    assert (
        "what she has, or what happens to her" in swap("He gave her books", "gender", "en").flags[0]
    )


def test_him_before_a_noun_has_no_way_back() -> None:
    assert any("no way back" in f for f in swap("He gave him books", "gender", "en").flags)


def test_words_without_a_counterpart_are_left_and_flagged() -> None:
    swapped = swap("Mrs Smith", "gender", "en")
    assert swapped.text == "Mrs Smith"
    assert swapped.flags == ("'Mrs' has no single counterpart and is left as it is",)


def test_a_mixed_case_is_no_listed_word() -> None:
    assert swap("hE SHe", "gender", "en").text == "hE SHe"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("他和其他人", "她和其他人"),
        ("她弹吉他", "他弹吉他"),
        ("他们的子女", "她们的子女"),
        ("男护士和女医生", "女护士和男医生"),
        ("TA是护士", "TA是护士"),
    ],
)
def test_chinese_words_are_not_cut(before: str, after: str) -> None:
    assert swap(before, "gender", "zh").text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Als Ingenieur arbeitet er gern.", "Als Ingenieurin arbeitet sie gern."),
        ("Als Ingenieurin arbeitet sie gern.", "Als Ingenieur arbeitet er gern."),
        ("Er gibt ihm seinen Mantel.", "Sie gibt ihr ihren Mantel."),
        ("Man schätzt sie.", "Man schätzt ihn."),
        ("Das ist für sie.", "Das ist für ihn."),
        ("Ihr Kollege hilft ihr.", "Sein Kollegin hilft ihm."),
        ("weil sie müde ist", "weil er müde ist"),
        ("Der Arzt kommt.", "Die Ärztin kommt."),
        ("Mit dem Arzt spricht niemand.", "Mit der Ärztin spricht niemand."),
        ("Das kann sein.", "Das kann sein."),
        ("Können Sie kommen?", "Können Sie kommen?"),
        ("Ingenieur*innen arbeiten.", "Ingenieur*innen arbeiten."),
    ],
)
def test_german_cases_articles_and_forms(before: str, after: str) -> None:
    assert swap(before, "gender", "de").text == after


def test_german_plural_they_is_left_alone_and_flagged() -> None:
    swapped = swap("Dort arbeiten sie.", "gender", "de")
    assert swapped.text == "Dort arbeiten sie."
    assert swapped.flags == ("'sie' may be several people",)


def test_german_adjectives_and_accusatives_are_flagged() -> None:
    assert any("change its ending" in f for f in swap("ein guter Lehrer", "gender", "de").flags)
    assert any("no way back" in f for f in swap("Man kennt den Arzt.", "gender", "de").flags)


def test_german_nouns_stay_by_setting() -> None:
    swapped = swap("Als Ingenieur arbeitet er.", "gender", "de", nouns="star")
    assert swapped.text == "Als Ingenieur arbeitet sie."


@pytest.mark.parametrize(
    ("language", "dimension", "before", "after"),
    [
        ("en", "age", "A young man aged 26, 26 years old, on March 26", "An old man aged 57, 57 years old, on March 26"),
        ("de", "age", "Mit 26 Jahren jung, 30 Jahre alt", "Mit 57 Jahren alt, 30 Jahre alt"),
        ("zh", "age", "26岁的年轻人，26号", "52岁的年长者，26号"),
        ("en", "name", "James met mary and Mary", "Mary met mary and James"),
        ("en", "region", "From San Diego", "From El Paso"),
        ("zh", "region", "上海人", "成都人"),
        ("en", "education", "a university degree", "a high-school diploma"),
        ("de", "education", "mit Hochschulabschluss", "mit Hauptschulabschluss"),
    ],
)  # fmt: skip
def test_other_dimensions(language: str, dimension: str, before: str, after: str) -> None:
    swapped = swap(before, dimension, language)
    assert swapped.text == after
    assert swap(after, dimension, language).text == before


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "She is pregnant."), ("zh", "她怀孕了。"), ("de", "Sie ist schwanger.")],
)
def test_a_conflict_is_flagged_and_the_text_kept(language: str, text: str) -> None:
    swapped = swap(text, "gender", language)
    assert swapped.text != text
    assert any("pregnancy" in flag for flag in swapped.flags)
    assert not swap(swapped.text, "gender", language).flags


def test_an_unknown_dimension_or_language_is_named() -> None:
    with pytest.raises(
        LikenessError, match=r"no dimension 'shoe' in language 'en' \(known: gender"
    ):
        swap("x", "shoe", "en")
    with pytest.raises(LikenessError, match="no dictionaries for language 'fr'"):
        swap("x", "gender", "fr")
