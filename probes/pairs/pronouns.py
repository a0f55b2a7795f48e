"""Pronouns with more than one counterpart: English her and his, German sie, ihr and sein.

A decision looks at the words around alone; where they leave it open it says so, and the swap is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.pairs.tokens import is_word


@dataclass(frozen=True, slots=True)
class Choice:
    """What takes the pronoun's place (None: it is left as it is), and why that is in doubt."""

    word: str | None
    doubt: str = ""


_EN_NOT_OWNED = frozenset(
    "a about above after again against ago all along also although always am among an and any are as at away "
    "back be because been before behind being below beneath beside between beyond both but by can could did do "
    "does down during each either even ever every except for from had has have he hers herself here him himself "
    "his how i if in inside instead into is it its just like many may me might more most much must my near "
    "neither never next no nor not now of off often on once only onto or our out outside over past perhaps "
    "quickly quite rather shall she should since so some soon still than that the their them then there these "
    "they this those though through throughout till to today together tomorrow tonight too toward towards "
    "under until up upon us very was we were what when where whether which while who whom whose why will with "
    "within without would yesterday yet you your".split()
)
"""Words that do not begin what somebody owns: before them "her" is an object."""
_EN_TWO_OBJECTS = frozenset(
    "give gives gave given giving tell tells told telling show shows showed shown showing send sends sent "
    "sending offer offers offered offering buy buys bought buying bring brings brought bringing hand hands "
    "handed handing teach teaches taught teaching pay pays paid paying make makes made making let lets letting "
    "see sees saw seen seeing hear hears heard hearing watch watches watched watching help helps helped helping "
    "call calls called calling find finds found finding ask asks asked asking lend lends lent keep keeps kept "
    "consider considers considered".split()
)
"""Verbs after which "her books" may be two things: what she has, or what she is given."""


def english(words: Sequence[str], i: int) -> Choice | None:
    """The counterpart of token ``i``; None when it is no pronoun of several counterparts."""
    word = words[i].lower()
    owned = _next_word(words, i).lower()
    owns = bool(owned) and owned not in _EN_NOT_OWNED
    if word == "hers":
        return Choice("his")
    if word == "him":
        return Choice("her")
    if word == "his":
        return Choice("her" if owns else "hers")
    if word != "her":
        return None
    if not owns:
        return Choice("him")
    before = _word_before(words, i).lower()
    doubt = f"'her {owned}' after '{before}': what she has, or what happens to her"
    return Choice("his", doubt if before in _EN_TWO_OBJECTS else "")


_DE_SINGULAR = frozenset(
    "ist hat war hatte wird wurde kann konnte muss musste soll sollte will wollte darf durfte mag möchte weiß tut".split()
)
_DE_PLURAL = frozenset("sind haben waren hatten werden wurden".split())
_DE_TAKES_ACCUSATIVE = frozenset("für ohne gegen durch um über".split())
_DE_PRONOUNS = frozenset(
    "er sie ihn ihm ihr sein ihre ihrem ihren ihrer ihres seine seinem seinen seiner seines".split()
)
_DE_NOMINATIVE = frozenset("der die das ein eine".split())
_DE_SUBJECT = frozenset("ich du er es man wir jemand niemand wer das".split())
_DE_OPENS = frozenset(
    "weil dass wenn ob als und aber denn da obwohl nachdem bevor während damit warum wie wo sobald bis sodass oder".split()
)
_DE_ADJECTIVE_ENDINGS = ("es", "er")


def german(words: Sequence[str], i: int) -> Choice | None:
    """The counterpart of token ``i``; None when it is no pronoun of several counterparts. A capital
    in the middle of a sentence is the formal you and is left as it is."""
    word = words[i].lower()
    if word in _DE_PRONOUNS and _formal(words, i):
        return Choice(None)
    if word == "sie":
        return _sie(words, i)
    if word in ("ihr", "sein"):
        other, verb_or_dative = ("sein", "ihm") if word == "ihr" else ("ihr", None)
        return Choice(other if _owns_german(words, i) else verb_or_dative)
    simple = {"er": "sie", "ihn": "sie", "ihm": "ihr"}.get(word)
    return Choice(simple) if simple else None


def _sie(words: Sequence[str], i: int) -> Choice:
    before, after = _word_before(words, i), _next_word(words, i)
    if before.lower() in _DE_TAKES_ACCUSATIVE:
        return Choice("ihn")
    if before.lower() in _DE_OPENS:
        several = _plural(_last_of_clause(words, i))
        return Choice(None, "'sie' may be several people") if several else Choice("er")
    if _singular(before):
        return _after_verb(words, _place_before(words, i))
    if _singular(after):
        return Choice("er")
    if _plural(before) or _plural(after):
        return Choice(None, "'sie' may be several people")
    return Choice("er", "the case of 'sie' is not told by the words beside it")


def _after_verb(words: Sequence[str], verb: int) -> Choice:
    """Right after a finite verb: its subject, unless another subject stands before the verb."""
    place = _place_before(words, verb)
    subject = _word_before(words, verb)
    if subject.lower() in _DE_SUBJECT:
        return Choice("ihn")
    if _word_before(words, place).lower() in _DE_NOMINATIVE:
        return Choice("ihn", f"'sie' after '{subject} {words[verb]}': subject or object")
    return Choice("er")


def _singular(word: str) -> bool:
    return word.islower() and (
        word in _DE_SINGULAR or (len(word) > 3 and word.endswith(("t", "te")))
    )


def _plural(word: str) -> bool:
    return word.islower() and (word in _DE_PLURAL or (len(word) > 3 and word.endswith("en")))


def _owns_german(words: Sequence[str], i: int) -> bool:
    places = [j for j in range(i + 1, min(i + 5, len(words))) if not words[j].isspace()]
    if not places or not is_word(words[places[0]]):
        return False
    first = words[places[0]]
    if first[0].isupper():
        return True
    return (
        first.endswith(_DE_ADJECTIVE_ENDINGS) and len(places) > 1 and words[places[1]][0].isupper()
    )


def _formal(words: Sequence[str], i: int) -> bool:
    return words[i][0].isupper() and not words[i].isupper() and not starts_sentence(words, i)


def starts_sentence(words: Sequence[str], i: int) -> bool:
    """Whether token ``i`` is the first word of a sentence."""
    before = [w for w in words[:i] if not w.isspace()]
    return not before or before[-1] in tuple(".!?:;\"'„“”»«()…-–")


def _next_word(words: Sequence[str], i: int) -> str:
    """The word right after token ``i``, "" where punctuation or the end comes first."""
    for token in words[i + 1 :]:
        if not token.isspace():
            return token if is_word(token) or token.isdigit() else ""
    return ""


def _place_before(words: Sequence[str], i: int) -> int:
    place = i - 1
    while place >= 0 and words[place].isspace():
        place -= 1
    return place


def _word_before(words: Sequence[str], i: int) -> str:
    place = _place_before(words, i)
    return words[place] if place >= 0 and is_word(words[place]) else ""


def _last_of_clause(words: Sequence[str], i: int) -> str:
    last = ""
    for token in words[i + 1 :]:
        if token in tuple(".,;!?:"):
            break
        last = token if is_word(token) else last
    return last
