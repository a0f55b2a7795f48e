import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.tagging import LANGUAGES, tag


def kinds(sentence: str, language: str) -> list[str]:
    return [w.kind for w in tag(sentence, language)]


def test_english_words_get_their_classes() -> None:
    assert kinds("the patient's family cannot wait for help", "en") == [
        "determiner", "determiner", "noun", "auxiliary", "verb", "preposition", "noun",
    ]  # fmt: skip
    assert kinds("she's tired and they don't care", "en")[:1] == ["pronoun"]
    assert "auxiliary" in kinds("they don't care", "en")


def test_chinese_words_get_their_classes() -> None:
    assert kinds("她要照顾病人", "zh") == ["pronoun", "auxiliary", "verb", "noun"]


def test_german_words_get_their_classes_and_an_infinitive_in_capitals_is_a_noun() -> None:
    assert kinds("sie ihre Familie ernähren muss", "de") == [
        "pronoun", "determiner", "noun", "verb", "auxiliary",
    ]  # fmt: skip
    assert kinds("das lange Stehen", "de")[-1] == "noun"


def test_a_language_without_a_tagger_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="'fr'"):
        tag("bonjour", "fr")


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_every_word_stands_where_it_says(text: str, language: str) -> None:
    at = 0
    for word in tag(text, language):
        assert text[word.start : word.end] == word.text
        assert word.start >= at
        at = word.end
