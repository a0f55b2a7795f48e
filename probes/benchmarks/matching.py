"""From a model's words to one of the options that it was shown, or to the reason why to none.

Nothing is guessed: an answer that names several options is unparsable, one that names none is out of
choice, and neither is ever counted as an option.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from probes.benchmarks.wording import Wording, wording_of
from probes.calls import Status

LETTERS = "ABCDEFGHIJ"
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_MARKUP = re.compile(r"[*_`#>\"]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_EDGE = " \t\n.,;:!?'()[]{}-。，；：！？（）「」"
_ALONE = re.compile(r"^[\s*_`\"'(\[]*([A-Za-z])[\s*_`\"')\].:,]*(?:\n|$)")
"""A letter that has the first line to itself is the answer, whatever explanation follows."""
_NEAR = 80
"""Characters before a name in which what denies it may stand."""
_NO_LETTER_BEFORE = r"(?<![A-Za-zÀ-ÿ0-9'-])"
_NO_LETTER_BEHIND = r"(?![A-Za-zÀ-ÿ0-9'-])"
_AFTER_A_LETTER = (
    "or|and|but|because|since|oder|und|aber|weil|denn|o|y|pero|porque|i|perquè|eller|og|men|fordi"
)
_KEYS = (
    "answer", "choice", "option", "letter", "antwort", "respuesta", "resposta", "svar",
    "答案", "选项", "정답", "답",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """``option`` is an index into the options as they were given, None unless ``status`` is ANSWERED;
    ``reason`` says why there is none, ``how`` by what the option was found."""

    status: Status
    option: int | None = None
    reason: str = ""
    how: str = ""


def match(
    text: str,
    options: Sequence[str],
    language: str,
    unknown: int | None = None,
    letters: str = LETTERS,
    from_json: Callable[[str], Any] | None = None,
) -> Match:
    """Which of ``options`` the ``text`` names, shown under ``letters`` in that order.

    ``unknown`` is the index of the option that says that nothing can be known: it is also found by
    the language's other wordings. ``from_json`` takes an object out of a text (fenced or not). An
    unknown wording beside all the people named means unknown ("whether A or B is not stated").
    """
    if from_json is not None and isinstance(found := from_json(text), dict):
        text = _value(found)
    words, plain = wording_of(language), tidy(text)
    if not plain:
        return Match(Status.UNPARSABLE, reason="there is no text")
    names = [tidy(option).strip(_EDGE) for option in options]
    for i, name in enumerate(names):
        if plain.strip(_EDGE) == name or _bare(plain, words) == _bare(name, words):
            return Match(Status.ANSWERED, i, how="option text")
    alone = _ALONE.match(_straight(text))
    if alone and alone[1].upper() in letters[: len(options)]:
        return Match(Status.ANSWERED, letters.index(alone[1].upper()), how="letter")
    mentions = _mentions(plain, names, words)
    said = _letters(text, letters[: len(options)], words)
    if said.found:
        return _by_letter(
            said, mentions.named, lambda option: _beside(plain, letters[option], names, words)
        )
    return _by_words(text, names, unknown, words, mentions)


def unifiedqa_rule(answer: str, options: Sequence[str], words: Sequence[str]) -> int | None:
    """The rule by which UnifiedQA's published strings become options, and no other: without a final
    full stop and in lower case equal to an option; else the one whose group text's first two words
    occur in the answer as words; None leaves the row out. ``words`` are the group texts."""
    plain = _dotless(answer)
    equal = [i for i, option in enumerate(options) if _dotless(option) == plain]
    if equal:
        return equal[0] if len(equal) == 1 else None
    heads = [" ".join(text.lower().split()[:2]) for text in words]
    held = [i for i, head in enumerate(heads) if head and _spots(plain, head)]
    return held[0] if len(held) == 1 else None


def tidy(text: str) -> str:
    """One form for comparing: NFKC, lower case, straight quotes, no markup, single blanks."""
    return " ".join(_MARKUP.sub(" ", _straight(text)).casefold().split())


def _straight(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_QUOTES)


@dataclass(frozen=True, slots=True)
class _Letters:
    found: frozenset[int]
    denied: frozenset[int]


def _by_letter(said: _Letters, named: set[int], beside: Callable[[int], set[int]]) -> Match:
    """``beside`` gives the options whose text stands right behind an option's letter."""
    left = said.found - said.denied
    if len(left) == 1:
        option = next(iter(left))
        if beside(option) - {option}:
            return Match(Status.UNPARSABLE, reason="letter and text name different options")
        return Match(Status.ANSWERED, option, how="letter")
    if left:
        return Match(Status.UNPARSABLE, reason=f"names {len(left)} letters")
    if len(named) == 1 and not named & said.denied:
        return Match(Status.ANSWERED, next(iter(named)), how="option text")
    return Match(Status.UNPARSABLE, reason="says only which letter it is not")


def _beside(plain: str, letter: str, names: Sequence[str], words: Wording) -> set[int]:
    found: set[int] = set()
    forms = [(form, i) for i, name in enumerate(names) for form in {name, _bare(name, words)}]
    for letters in re.finditer(rf"(?<!\w){letter.casefold()}[\s.):,-]+", plain):
        tail = plain[letters.end() :]
        heads = (tail, _bare(tail, words))
        fits = [
            (len(f), i) for f, i in forms if f and any((0, len(f)) in _spots(h, f) for h in heads)
        ]
        if fits:
            found.add(max(fits)[1])  # of "man" and "man in grey" the longer one is meant
    return found


def _by_words(
    text: str, names: Sequence[str], unknown: int | None, words: Wording, mentions: _Mentions
) -> Match:
    people = mentions.named - {unknown}
    if unknown is not None and _nothing_known(tidy(text), unknown, words, mentions.named):
        all_of_them = len(people | mentions.denied) >= len(names) - 1
        if not people or (all_of_them and not _told_apart(text, names, unknown, words)):
            return Match(Status.ANSWERED, unknown, how="unknown wording")
        return Match(Status.UNPARSABLE, reason="names a person and says that nothing is known")
    if len(people) == 1:
        return Match(Status.ANSWERED, next(iter(people)), how="option text in a sentence")
    if people:
        return Match(Status.UNPARSABLE, reason=f"names {len(people)} options")
    if mentions.denied:
        return Match(Status.UNPARSABLE, reason="says only who it is not")
    return Match(Status.OUT_OF_CHOICE, reason="names none of the options")


def _nothing_known(plain: str, unknown: int, words: Wording, named: set[int]) -> bool:
    return unknown in named or any(_spots(plain, tidy(phrase)) for phrase in words.unknown)


def _told_apart(text: str, names: Sequence[str], unknown: int, words: Wording) -> bool:
    """Whether a sentence speaks of one person alone, or of people without saying that nothing is
    known: then the answer weighs them, and is not simply "unknown"."""
    for sentence in _SENTENCE.split(text):
        plain = tidy(sentence or "")
        found = _mentions(plain, names, words).named
        if found - {unknown} and not _nothing_known(plain, unknown, words, found):
            return True
    return False


def _value(found: Mapping[str, Any]) -> str:
    lower = {str(key).casefold(): value for key, value in found.items()}
    chosen = next((lower[key] for key in _KEYS if key in lower), None)
    if chosen is None and len(lower) == 1:
        chosen = next(iter(lower.values()))
    return chosen if isinstance(chosen, str) else ""


def _letters(text: str, letters: str, words: Wording) -> _Letters:
    """Letters that are meant as such, in ``text`` with its capitals."""
    plain = " ".join(_MARKUP.sub(" ", _straight(text)).split())
    naming, denying = _shapes(letters, words)
    found = {letters.index(m[1].upper()) for shape in naming for m in shape.finditer(plain)}
    denied = {letters.index(m[1]) for shape in denying for m in shape.finditer(plain)}
    return _Letters(frozenset(found), frozenset(denied & found))


@cache
def _shapes(
    letters: str, words: Wording
) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
    """Patterns of a letter that is named: a small one alone or behind a marker at the end; a capital
    anywhere, but "A" (a word in several languages) only where no other word follows that it could
    belong to. And of one that is denied."""
    capital = f"[{letters}]"
    either = f"[{letters}{letters.lower()}]"
    marker = "|".join(re.escape(m) for m in sorted(words.markers, key=len, reverse=True))
    naming = (
        rf"^\W*({either})\W*$",
        rf"\(({either})\)",
        rf"^\W*({either})[.):](?!\w)",
        rf"(?i:{marker})[\s:(-]*({either})(?=\W*$|[.):](?:\s|$))",
        rf"{_NO_LETTER_BEFORE}({capital}){_NO_LETTER_BEHIND}(?!\s+[^\W\d_])",
        rf"{_NO_LETTER_BEFORE}({capital})(?=\s+(?:{_AFTER_A_LETTER})\b)",
        rf"{_NO_LETTER_BEFORE}([{letters.replace('A', '')}]){_NO_LETTER_BEHIND}",
    )
    denials, between = _denials(words)
    denying = [rf"(?i:{denials})(?i:{between})\(?({capital})\)?{_NO_LETTER_BEHIND}"][
        : bool(denials)
    ]
    return tuple(map(re.compile, naming)), tuple(map(re.compile, denying))


@dataclass(frozen=True, slots=True)
class _Mentions:
    named: set[int]
    denied: set[int]


def _mentions(plain: str, names: Sequence[str], words: Wording) -> _Mentions:
    """Options named and options only denied. Longer names take their place first, so that "not
    trans girl" does not name the girl too; names without their article count."""
    forms = [(form, i) for i, name in enumerate(names) for form in {name, _bare(name, words)}]
    named: set[int] = set()
    denied: set[int] = set()
    rest = plain
    for form, i in sorted(forms, key=lambda f: -len(f[0])):
        if not form:
            continue
        for start, end in _spots(rest, form):
            (denied if _is_denied(plain, start, end, words) else named).add(i)
            rest = rest[:start] + "\0" * (end - start) + rest[end:]
    return _Mentions(named, denied - named)


@cache
def _denials(words: Wording) -> tuple[str, str]:
    """Patterns of what denies, and of what may stand between it and the thing denied."""
    some = sorted(map(tidy, words.negations), key=len, reverse=True)
    # no word boundaries in writing without blanks between words
    denials = "|".join(re.escape(n) if _joined(n) else rf"\b{re.escape(n)}\b" for n in some)
    fillers = "|".join(re.escape(tidy(f)) for f in words.fillers)
    between = rf"\s*(?:(?:{fillers})\s*)*" if fillers else r"\s*"
    return denials, between


def _is_denied(plain: str, start: int, end: int, words: Wording) -> bool:
    behind = plain[end : end + 12]
    if any(behind.startswith(n) or behind.startswith(f" {n}") for n in words.negations_after):
        return True
    denials, between = _denials(words)
    return (
        bool(denials)
        and re.search(rf"(?:{denials}){between}$", plain[max(0, start - _NEAR) : start]) is not None
    )


def _spots(text: str, form: str) -> list[tuple[int, int]]:
    """Where ``form`` stands in ``text`` as words of its own (anywhere in writing without blanks)."""
    found = []
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        before = text[start - 1 : start] if not _joined(form[0]) else ""
        after = text[end : end + 1] if not _joined(form[-1]) else ""
        if not _is_word(before) and not _is_word(after):
            found.append((start, end))
        start = text.find(form, start + 1)
    return found


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _joined(text: str) -> bool:
    """Chinese has no blanks between words; Korean joins its particles to nouns."""
    return any("\u3400" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3" for c in text)


def _bare(text: str, words: Wording) -> str:
    """``text`` without marks at its ends and without a leading article."""
    plain = text.strip(_EDGE)
    for article in words.articles:
        head = article if article.endswith("'") else f"{article} "
        if plain.startswith(head) and len(plain) > len(head):
            return plain[len(head) :].strip()
    return plain


def _dotless(text: str) -> str:
    return text.strip().removesuffix(".").lower()
