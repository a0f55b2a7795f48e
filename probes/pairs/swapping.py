"""Swaps the words of one dimension in a text, in both directions at once, and nothing else.

What has no way back (a pronoun that is two words in the other direction) is flagged: such a text is
no minimal pair until a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from probes.pairs import pronouns
from probes.pairs.grammar import OccupationForm, article
from probes.pairs.lexicon import Dimension, Lexicon, lexicon
from probes.pairs.tokens import tokens

Phrase = tuple[str, ...]
_AGE_AFTER = ("year", "years", "岁", "jahre", "jahren", "jährig", "jährige", "jähriger", "jährigen")
_AGE_BEFORE = ("aged", "age")
_MEASURED = ("year", "years", "jahr", "jahre")
_ARTICLES = (("der", "die"), ("den", "die"), ("dem", "der"), ("ein", "eine"), ("einen", "eine"), ("einem", "einer"))  # fmt: skip
"""German, masculine and feminine. The way back takes the first: nominative, or dative."""


@dataclass(frozen=True, slots=True)
class Swapped:
    """The new ``text``; ``changes`` are (before, after) in order. ``flags`` say what a person has to
    look at: a doubtful pronoun, no way back, a combination that is implausible."""

    text: str
    changes: tuple[tuple[str, str], ...]
    flags: tuple[str, ...] = ()


def swap(
    text: str, dimension: str, language: str, *, nouns: OccupationForm = "agreeing"
) -> Swapped:
    """``text`` with every listed word of ``dimension`` in the place of its counterpart, case kept.

    ``nouns`` other than "agreeing" leaves German words for occupations as they are (starred ones
    always stay). LikenessError for an unknown dimension or language.
    """
    words = lexicon(language)
    body = words.dimension(dimension)
    once = _once(text, words, body, nouns)
    back = _once(once.text, words, body, nouns)
    flags = list(once.flags)
    if back.text != text:
        at = next(
            (a for (a, b), (_, d) in zip(once.changes, back.changes, strict=False) if a != d),
            "a word",
        )
        flags.append(f"no way back: swapped twice, '{at}' becomes another word")
    flags += _implausible(text, once, words, body)
    return Swapped(once.text, once.changes, tuple(dict.fromkeys(flags)))


def _once(text: str, words: Lexicon, body: Dimension, nouns: OccupationForm) -> Swapped:
    table = _table(words.language, body.id, nouns == "agreeing")
    longest = max((len(p) for p in table), default=1)
    parts = tokens(text, words.language)
    out: list[str] = []
    changes: list[tuple[str, str]] = []
    flags: list[str] = []
    i = 0
    while i < len(parts):
        for size in range(min(longest, len(parts) - i), 0, -1):
            found = _at(parts, i, size, table, body, words.language, flags)
            if found is not None:
                break
        before = "".join(parts[i : i + size])
        after = before if found is None else found
        out.append(after)
        if after != before:
            changes += _article(out, words.language)
            changes.append((before, after))
        i += size
    return Swapped("".join(out), tuple(changes), tuple(flags))


def _article(out: list[str], language: str) -> list[tuple[str, str]]:
    """English: "a young" becomes "an old". The article just before the last word of ``out`` follows
    it; the change, if there is one."""
    if (
        language != "en"
        or len(out) < 3
        or not out[-2].isspace()
        or out[-3].lower() not in ("a", "an")
    ):
        return []
    before = out[-3]
    wanted = article(out[-1])
    if before.lower() == wanted:
        return []
    out[-3] = wanted.capitalize() if before[0].isupper() else wanted
    return [(before, out[-3])]


def _at(
    parts: Sequence[str],
    i: int,
    size: int,
    table: Mapping[Phrase, tuple[str, str]],
    body: Dimension,
    language: str,
    flags: list[str],
) -> str | None:
    """What takes the place of ``size`` tokens at ``i``; None when they are no listed word."""
    original = "".join(parts[i : i + size])
    if size == 1 and body.id == "gender" and language in ("en", "de"):
        chosen = (pronouns.english if language == "en" else pronouns.german)(parts, i)
        if chosen is not None:
            if chosen.doubt:
                flags.append(chosen.doubt)
            return (
                original if chosen.word is None else _cased(original, original.lower(), chosen.word)
            )
    key = tuple(t if body.case_sensitive else t.lower() for t in parts[i : i + size])
    if key not in table:
        return _contracted(parts[i], table, body) if size == 1 and language == "en" else None
    listed, other = table[key]
    if body.id == "age" and not _about_age(parts, i, original):
        return original
    if not other:
        if listed:
            flags.append(f"'{original}' has no single counterpart and is left as it is")
        return original
    if language == "de" and size == 1 and listed[0].isupper():
        flags += _uninflected(parts, i)
    return _cased(original, listed, other)


def _contracted(token: str, table: Mapping[Phrase, tuple[str, str]], body: Dimension) -> str | None:
    """English "he's", "James's": the head is swapped, the tail stays."""
    for mark in ("'", "’"):
        head, sep, tail = token.partition(mark)
        entry = table.get((head if body.case_sensitive else head.lower(),))
        if sep and entry is not None and entry[1]:
            new = _cased(head, entry[0], entry[1])
            return None if new is None else new + sep + tail
    return None


def _cased(original: str, listed: str, other: str) -> str | None:
    """``other`` in the case in which ``original`` writes ``listed``; None for a mixture."""
    if original == listed:
        return other
    if original == listed.upper():
        return other.upper()
    if original == listed[:1].upper() + listed[1:]:
        return other[:1].upper() + other[1:]
    return other.lower() if original == listed.lower() else None


def _about_age(parts: Sequence[str], i: int, original: str) -> bool:
    """Figures are an age only beside a word that says so; "old" after a number of years is none."""
    near = [t.lower() for t in parts[max(0, i - 4) : i] if t.isalnum()]
    if original.isdigit():
        after = [t.lower() for t in parts[i + 1 : i + 4] if t.isalnum()]
        return bool(after and after[0] in _AGE_AFTER) or any(w in _AGE_BEFORE for w in near[-2:])
    return not (near and near[-1] in _MEASURED and original.lower() in ("old", "alt"))


def _uninflected(parts: Sequence[str], i: int) -> Iterator[str]:
    """A German adjective before a noun that changed its gender would have to change as well."""
    before = [t for t in parts[:i] if not t.isspace()]
    if before and before[-1].islower() and len(before[-1]) > 4 and before[-1].endswith(("er", "en", "em", "e")):  # fmt: skip
        yield f"'{before[-1]} {parts[i]}': the word before the noun may have to change its ending"


def _implausible(text: str, once: Swapped, words: Lexicon, body: Dimension) -> Iterator[str]:
    arms = list(body.arms)[:2]
    first = _first_side(words, body)
    gained = {
        arms[0] if {after.lower(), after.lower().split()[-1]} & first else arms[1]
        for _, after in once.changes
    }
    present = [t.lower() for t in tokens(text, words.language)]
    for rule in words.conflicts:
        if rule.dimension != body.id or rule.arm not in gained:
            continue
        for word in rule.words:
            if (word in text) if words.language == "zh" else (word.lower() in present):
                yield f"'{word}': {rule.reason}"


def _first_side(words: Lexicon, body: Dimension) -> set[str]:
    """Every word (lower case) that stands for the dimension's first arm."""
    arm = next(iter(body.arms.values()))
    found = {pair[0].lower() for pair in (*body.swaps, *body.nouns)}
    if body.id == "gender":
        found |= {o.forms["men"].lower() for o in words.occupations.values() if "men" in o.forms}
    return found | {w.lower() for variant in arm.variants for w in variant.values()}


@lru_cache(maxsize=64)
def _table(language: str, dimension: str, nouns: bool) -> dict[Phrase, tuple[str, str]]:
    """Tokens -> (as listed, counterpart); counterpart "" for what is protected or has none."""
    words = lexicon(language)
    body = words.dimension(dimension)
    found: dict[Phrase, tuple[str, str]] = {}

    def enter(listed: str, other: str) -> None:
        key = tokens(listed if body.case_sensitive else listed.lower(), language)
        found.setdefault(key, (listed, other))

    pairs = list(body.swaps)
    if dimension == "age":
        a, b = list(body.arms.values())[:2]
        pairs += [(x["number"], y["number"]) for x, y in zip(a.variants, b.variants, strict=True)]
    for one, two in pairs:
        enter(one, two)
        enter(two, one)
    if language == "de" and dimension == "gender":
        for noun in _german_nouns(words, body, nouns):
            for one, two in noun:
                enter(one, two)
            for one, two in noun:
                enter(two, one)
    for word in body.left_alone:
        enter(word, "")
    for word in words.protected:
        found[tokens(word, language)] = ("", "")
    return found


def _german_nouns(
    words: Lexicon, body: Dimension, occupations: bool
) -> Iterator[list[tuple[str, str]]]:
    """Each noun alone and with every article, masculine and feminine."""
    triples = [(m, f, o) for m, f, o in body.nouns]
    if occupations:
        triples += [
            (o.forms["men"], o.forms["women"], o.forms.get("oblique", o.forms["men"]))
            for o in words.occupations.values()
        ]
    for men, women, oblique in triples:
        forms = [
            (f"{m} {oblique if m in ('den', 'dem', 'einen', 'einem') else men}", f"{f} {women}")
            for m, f in _ARTICLES
        ]
        yield [*forms, (men, women)]
