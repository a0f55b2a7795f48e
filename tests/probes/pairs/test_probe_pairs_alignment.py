"""A pair is valid only if the difference of tokens equals the slot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pairs.alignment import PairRefused, check_texts, differences, prove, the_variable
from probes.pairs.design import cell, pair_of
from probes.pairs.lexicon import lexicon
from probes.pairs.templates import shipped
from probes.pairs.tokens import tokens

TEXTS = st.lists(
    st.sampled_from(["he", "she", "works", " ", ",", "26", "Ingenieur*in", "他", "TA", "x's", "é"])
).map("".join)


@given(TEXTS, st.sampled_from(["en", "zh", "de"]))
def test_tokens_join_to_the_text_again(text: str, language: str) -> None:
    assert "".join(tokens(text, language)) == text


def test_the_proof_keeps_what_differs_and_counts_what_is_shared() -> None:
    proof = prove(
        "As a nurse, he works.", "As a nurse, she works.", [("he", "she")], "gender", "en"
    )
    assert proof.changes == (("he", "she"),)
    assert (proof.tokens_a, proof.tokens_b, proof.shared) == (11, 11, 10)
    assert proof.sentence == "differs in gender alone ('he' / 'she'); 10 tokens are the same"


@pytest.mark.parametrize(
    ("b", "also"),
    [
        ("As a doctor, she works.", "'nurse' / 'doctor'"),
        ("As a nurse, she works!", "'.' / '!'"),
        ("As a nurse,  she works.", "' he' / '  she'"),
        ("As a nurse she works.", "',' / ''"),
        ("As a nurse, she she works.", "she"),
    ],
)
def test_anything_beyond_the_slot_is_refused_and_named(b: str, also: str) -> None:
    with pytest.raises(PairRefused, match="do not differ exactly in the forms of gender") as caught:
        prove("As a nurse, he works.", b, [("he", "she")], "gender", "en")
    assert also in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_declared_form_that_is_not_there_is_refused() -> None:
    with pytest.raises(PairRefused, match="gender"):
        prove("he works", "she works", [("he", "she"), ("his", "her")], "gender", "en")


def test_a_change_inside_a_word_is_no_change_of_the_slot() -> None:
    with pytest.raises(PairRefused):
        prove("the theory", "tshe theory", [("he", "she")], "gender", "en")


def test_two_equal_prompts_are_no_pair() -> None:
    with pytest.raises(PairRefused, match="are the same"):
        prove("they work", "they work", [("they", "they")], "gender", "en")


def test_agreeing_forms_are_forms_of_the_slot() -> None:
    proof = prove(
        "Ein Ingenieur sagt, dass er müde ist", "Eine Ingenieurin sagt, dass sie müde ist",
        [("Ein Ingenieur", "Eine Ingenieurin"), ("er", "sie")], "gender", "de",
    )  # fmt: skip
    assert proof.changes == (("Ein Ingenieur", "Eine Ingenieurin"), ("er", "sie"))


def test_an_insertion_before_the_same_word_is_proven() -> None:
    """A greedy walk would take the wrong one of two equal tokens."""
    assert prove("a b b c", "a b c", [(" b", "")], "x", "en").shared == 5


def test_nurse_she_against_doctor_he_is_refused_with_both_variables() -> None:
    words = lexicon("en")
    template = next(t for t in shipped("en") if t.id == "gender_twelve_hours")
    she = cell(words, "gender", words.arm("gender", "women"), words.occupations["nurse"])
    he = cell(words, "gender", words.arm("gender", "men"), words.occupations["doctor"])
    with pytest.raises(PairRefused) as caught:
        pair_of(template, she, he, words)
    assert str(caught.value) == (
        "the pair differs in two variables, occupation (nurse / doctor) and gender (women / men): a "
        "difference between the answers could not be told to either"
    )


def test_occupations_may_be_the_slot_when_the_pronoun_stays() -> None:
    words = lexicon("en")
    template = next(t for t in shipped("en") if t.id == "gender_twelve_hours")
    men = words.arm("gender", "men")
    nurse, engineer = (
        cell(words, "gender", men, words.occupations[o]) for o in ("nurse", "engineer")
    )
    pair = pair_of(template, nurse, engineer, words)
    assert pair.proof.slot == "occupation"
    assert pair.proof.changes == (("a nurse", "an engineer"),)
    assert pair.arms == ("nurse", "engineer")


def test_no_difference_and_three_differences_are_refused() -> None:
    with pytest.raises(PairRefused, match="no variable differs"):
        the_variable({"a": "1"}, {"a": "1"})
    with pytest.raises(PairRefused, match="three variables"):
        the_variable({"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "2", "c": "2"})


def test_finished_texts_are_judged_by_the_dictionaries() -> None:
    known = lexicon("en").variables()
    proof = check_texts("She is a nurse.", "He is a nurse.", "en", known, "gender")
    assert proof.changes == (("She", "He"),)
    with pytest.raises(PairRefused, match="two variables"):
        check_texts("She is a nurse.", "He is a doctor.", "en", known, "gender")
    with pytest.raises(PairRefused, match="tired"):
        check_texts("She is tired.", "He is glad.", "en", known, "gender")
    with pytest.raises(PairRefused, match="in occupation and not in gender"):
        check_texts("She is a nurse.", "She is a doctor.", "en", known, "gender")


def test_chinese_differs_by_characters() -> None:
    assert differences("他是护士", "她是护士", "zh") == (("他", "她"),)
    assert prove("张伟是护士", "张丽是护士", [("张伟", "张丽")], "name", "zh").changes == (
        ("伟", "丽"),
    )
