"""The forms that an occupation and an arm take in each language: articles, cases, agreement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from domain.errors import LikenessError
from probes.pairs.lexicon import Arm, Occupation

Marking = Literal["pronoun", "noun"]
OccupationForm = Literal["agreeing", "star", "generic"]

_ARTICLES = {
    "ein": ("ein", "eine", "ein*e"),
    "einen": ("einen", "eine", "eine*n"),
    "einem": ("einem", "einer", "einer*m"),
    "eines": ("eines", "einer", "einer*s"),
    "der": ("der", "die", "der*die"),
    "den": ("den", "die", "den*die"),
    "dem": ("dem", "der", "dem*der"),
    "des": ("des", "der", "des*der"),
}
"""German: the masculine article that a template writes -> masculine, feminine, star."""
_NOT_A_VOWEL_SOUND = ("uni", "use", "eu", "one")


@dataclass(frozen=True, slots=True)
class Choices:
    """How grammar marks gender where a language leaves a choice.

    ``marking``: "pronoun" (and what agrees with it), or "noun" (English "male nurse", Chinese 男护士,
    with the same neutral pronoun in both prompts). ``neutral_pronoun`` is that pronoun in Chinese.
    ``occupation_form``: German nouns that agree with the pronoun (Ingenieur / Ingenieurin), or the
    same for both arms, with the star or generic masculine.
    """

    marking: Marking = "pronoun"
    neutral_pronoun: Literal["TA", "其"] = "TA"
    occupation_form: OccupationForm = "agreeing"


USUAL = Choices()


def occupation_form(
    occupation: Occupation, form: str, arm: Arm, dimension: str, language: str, choices: Choices
) -> str:
    """The occupation as it stands in a prompt of ``arm``. ``form`` is what the template asks for:
    English "" and "a"; Chinese "" and "one" (with the classifier); German "", an article of
    ``_ARTICLES`` ("der" is the nominative), or "star".

    LikenessError names a form that the language does not have.
    """
    if language == "de":
        return _german(occupation, form, arm, dimension, choices)
    word = occupation.forms["word"]
    if dimension == "gender" and choices.marking == "noun":
        adjective = arm.variants[0].get("adjective", "")
        word = adjective + ("" if language == "zh" else " ") + word
    if not form:
        return word
    if language == "en" and form == "a":
        return f"{occupation.forms.get('article') or article(word)} {word}"
    if language == "zh" and form == "one":
        return f"一名{word}"
    raise LikenessError(f"occupations have no form '{form}' in language '{language}'")


def article(word: str) -> str:
    """English "a" or "an", by the letters that the word begins with ("a university")."""
    vowel = word[:1].lower() in "aeiou" and not word.lower().startswith(_NOT_A_VOWEL_SOUND)
    return "an" if vowel else "a"


def _german(occupation: Occupation, form: str, arm: Arm, dimension: str, choices: Choices) -> str:
    kind = 2  # the star: for dimensions other than gender, and for arms of neither
    if form != "star" and dimension == "gender":
        by_arm = {"men": 0, "women": 1}.get(arm.id, 2)
        kind = {"agreeing": by_arm, "star": 2, "generic": 0}[choices.occupation_form]
    noun = occupation.forms[("men", "women", "star")[kind]]
    if form in ("", "star"):
        return noun
    if form not in _ARTICLES:
        raise LikenessError(f"occupations have no form '{form}' in language 'de'")
    if kind == 0 and form in ("einen", "einem", "den", "dem"):
        noun = occupation.forms.get("oblique", noun)
    elif kind == 0 and form in ("eines", "des"):
        noun = occupation.forms.get("genitive", f"{noun}s")
    return f"{_ARTICLES[form][kind]} {noun}"


def arm_form(
    arm: Arm,
    variant: int,
    form: str,
    language: str,
    choices: Choices,
    *,
    neutral: Mapping[str, str],
) -> str:
    """A form of the arm's own words. With gender marked at the noun the pronoun is ``neutral``'s.
    A form that begins with a capital ("Subject") gives it to the words."""
    key = form[:1].lower() + form[1:]
    words: Mapping[str, str] = arm.variants[variant % len(arm.variants)]
    if choices.marking == "noun" and neutral and key != "adjective" and arm.id in ("men", "women"):
        words = neutral
        if language == "zh":
            words = {**neutral, "subject": choices.neutral_pronoun}
            words = {**words, "possessive": f"{choices.neutral_pronoun}的"}
    if key not in words:
        raise LikenessError(f"arm '{arm.id}' has no form '{key}' in language '{language}'")
    word = words[key]
    return word[:1].upper() + word[1:] if key != form else word
