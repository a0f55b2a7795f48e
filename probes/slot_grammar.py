"""Which words of a tagged sentence are its first verb with an object, or its first noun phrase.

Each word becomes one letter for its class, and phrases are regular expressions over the letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from probes.tagging import Kind, Word

Found = tuple[Literal["vo", "np"], int, int]
_LETTERS: dict[Kind, str] = {
    "noun": "N", "pronoun": "P", "determiner": "D", "adjective": "A", "adverb": "R", "verb": "V",
    "auxiliary": "X", "preposition": "I", "particle": "G", "conjunction": "C", "subordinator": "S",
    "to": "T", "punctuation": "U", "other": "O",
}  # fmt: skip
_LINKS = {
    "en": frozenset("of for between with to from about on in".split()),
    "de": frozenset("von vom an am mit zwischen für zu zum zur um nach gegenüber in im".split()),
}
"""Prepositions that tie a second noun phrase to the first: letter F."""
_GENITIVE = frozenset("der des eines einer ihrer seiner dieser".split())
"""German articles that may stand between two nouns: letter E."""
_EXISTS = frozenset("geben herrschen bestehen fehlen anfallen entstehen existieren".split())
"""German verbs that say no more than that their subject is there."""
_BARE = r"(?:[DE](?:[DE]|R?[AV]|CA|U[AV])*|R?A(?:R?[AV]|CA|U[AV])*)?N++(?:E(?:R?A)*N++)?+"
_TIED = rf"{_BARE}(?:F(?:V[IF]?)?{_BARE}){{0,2}}+(?:TV[GR]*P?(?:[IF]?{_BARE})?)?"
_PHRASE = rf"{_TIED}(?:(?:U{_BARE})*U?C(?:V[IF]?)?{_TIED}(?![RVX]))?"
_LEAD = re.compile(r"(?:[PXTSCU]|R(?!R*U?[ADVN]*N))*")
_CHAIN = r"(?:V[RG]*(?:[IFT]{1,2}R*)?(?=V))*"
_EN_VO = re.compile(rf"{_CHAIN}(V(?:CV)?[RGP]*(?:A(?=[IF]))?(?:[IF]R*)?{_PHRASE})")
_EN_ADJECTIVE_VO = re.compile(
    rf"R*A[IFT]R*{_CHAIN}(V(?:CV)?[RGP]*(?:A(?=[IF]))?(?:[IF]R*)?{_PHRASE})"
)
_EN_SUBJECT_HAS = re.compile(rf"[RX]*X[R]*({_PHRASE})")
_EN_SUBJECT_VO = re.compile(rf"[RXT]*{_CHAIN}(V(?:CV)?[RGP]*(?:A(?=[IF]))?(?:[IF]R*)?{_PHRASE})")
_NOUNS = re.compile(_PHRASE)
_DE_VERB_SECOND = re.compile(rf"W[RGP]*(?:[IF]R*)?{_PHRASE}")
_DE_VERB_LAST = re.compile(rf"((?:[IF]R*)?{_PHRASE})[RTI]*[VW]")
_DE_NOT_WHERE = re.compile(rf"[IF]R*[DE]*(?:R?A)*N({_PHRASE})")
"""A noun phrase after one that says where: in the hospital, a shortage."""
_ZH_BREAK = frozenset("又 并 并且 而且 同时 还 还要 从而 但 但是 所以 以便 来".split())
_ZH_INSIDE = frozenset("内 中 下 里 上 时 后 前 里面 之内 之间".split())
_ZH_WHERE = re.compile(r"I[^VUQ]*Q(?=R*V)")
_ZH_TAIL = frozenset("等 等等 了 的 吧 呢 上 方面".split())


def first_phrase(words: Sequence[Word], language: str) -> Found | None:
    """Kind of phrase with the numbers of its first word and of the one after its last; None where
    the sentence is a subject with a predicate that has no object, or the tags give no phrase."""
    if language == "zh":
        return _chinese(words)
    letters = "".join(_letter(w, language) for w in words)
    return _english(letters, words) if language == "en" else _german(letters, words)


def _letter(word: Word, language: str) -> str:
    text = word.text.lower()
    if word.kind == "preposition" and text in _LINKS.get(language, ()):
        return "F"
    if language == "de":
        if word.kind == "determiner" and text in _GENITIVE:
            return "E"
        if word.kind == "verb" and word.tag == "VV(FIN)":
            return "W"
    return _LETTERS[word.kind]


def _english(letters: str, words: Sequence[Word]) -> Found | None:
    lead = _end(_LEAD.match(letters))
    for pattern in (_EN_VO, _EN_ADJECTIVE_VO):
        if found := pattern.match(letters, lead):
            return "vo", *found.span(1)
    nouns = _NOUNS.match(letters, lead)
    if nouns is None:
        return None
    if re.match(r"R*[VX]", letters[nouns.end() :]):
        if found := _EN_SUBJECT_VO.match(letters, nouns.end()):
            return "vo", *found.span(1)
        has = _EN_SUBJECT_HAS.match(letters, nouns.end())
        owned = has and "have" in {w.lemma for w in words[nouns.end() : has.start(1)]}
        return ("np", *has.span(1)) if has and owned else None
    return "np", *nouns.span()


def _german(letters: str, words: Sequence[Word]) -> Found | None:
    # a comma ends the clause unless it stands in a list of adjectives or nouns
    clause = re.split(r"U(?=[SPXCR])", letters.rstrip("U"), maxsplit=1)[0]
    lead = _end(_LEAD.match(clause))
    if found := _DE_VERB_SECOND.search(clause, lead):
        if words[found.start()].lemma not in _EXISTS:
            return "vo", *found.span()
        nouns = _NOUNS.search(clause, found.start())
        return ("np", *nouns.span()) if nouns else None
    if found := _DE_VERB_LAST.search(clause, lead):
        passive = any(w.lemma in {"werden", "sein"} for w in words[found.end() : found.end() + 1])
        if words[found.end() - 1].lemma in _EXISTS:
            nouns = _DE_NOT_WHERE.match(clause, found.start(1), found.end(1))
            return ("np", *(nouns or found).span(1))
        return None if passive else ("vo", *found.span())
    nouns = _NOUNS.match(clause, lead)
    if nouns is None:
        return None
    after = re.match(r"[PR]*[VWX]", clause[nouns.end() :])
    owns = after and words[nouns.end() + after.end() - 1].lemma == "haben"
    return None if after and not owns else ("np", *nouns.span())


def _chinese(words: Sequence[Word]) -> Found | None:
    letters = "".join(_LETTERS[w.kind] for w in words)
    start = _zh_start(words, letters)
    end = _zh_end(words, letters, start)
    clause = letters[start:end]
    if not clause or (clause[0] == "V" and end - start == 1):
        return None
    if clause[0] == "V" and "G" not in clause[:2]:
        return "vo", start, end
    # beside 的 a verb describes a noun; of another the subject is left away if something follows it
    if verb := re.search(r"(?<!G)V(?!V*G)", clause[1:]):
        at = start + 1 + verb.start()
        if "把" in (before := [w.text for w in words[start:at]]):
            at = start + before.index("把")
        return ("vo", at, end) if at + 1 < end else None
    if "X" in clause:
        return None
    return ("np", start, end) if clause[-1] == "N" else None


def _zh_start(words: Sequence[Word], letters: str) -> int:
    at = 0
    while at < len(letters):
        needs = words[at].text == "需要" and re.match(r"R*V", letters[at + 1 :])
        following = letters[at + 1 : at + 2]
        skipped = (
            letters[at] in "XCU"
            or (letters[at] == "P" and following != "G")
            or (letters[at] == "R" and following not in {"A", "D"})
        )
        if not (skipped or needs):
            break
        at += 1
    # in limited time, under pressure: what is done follows
    where = _ZH_WHERE.match(
        "".join("Q" if w.text in _ZH_INSIDE else c for w, c in zip(words, letters, strict=True)), at
    )
    return where.end() if where else at


def _zh_end(words: Sequence[Word], letters: str, start: int) -> int:
    end = start
    while end < len(letters) and not (
        letters[end] == "U" and words[end].text not in "、 “”" and end > start
    ):
        if end > start and words[end].text in _ZH_BREAK:
            break
        end += 1
    while end > start and (words[end - 1].text in _ZH_TAIL or letters[end - 1] == "U"):
        end -= 1
    return end


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match else 0
