"""Words of a sentence with a coarse class, the same classes for English, Chinese and German.

Chinese is cut and tagged by rjieba, English and German by HanTa (Wartena 2019); their models come with
the installed packages and nothing is fetched. They are loaded when first needed (HanTa 0.2 s a
language) and shared between threads under a lock, since HanTa keeps a cache inside.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

Kind = Literal[
    "noun", "pronoun", "determiner", "adjective", "adverb", "verb", "auxiliary", "preposition",
    "particle", "conjunction", "subordinator", "to", "punctuation", "other",
]  # fmt: skip
LANGUAGES = ("en", "zh", "de")
_MODELS = {"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz"}
_WORD = re.compile(r"\w+(?:['’\-]\w+)*(?:(?<=s)['’](?=\s\w))?|[^\w\s]")
_LOCK = threading.Lock()

_EN: dict[str, Kind] = {
    "NN": "noun", "NP": "noun", "PN": "pronoun", "EX": "pronoun", "AT": "determiner",
    "DP": "determiner", "DT": "determiner", "CR": "determiner", "OR": "adjective",
    "AJ": "adjective", "AV": "adverb", "XX": "adverb", "VB": "auxiliary", "VH": "auxiliary",
    "VD": "auxiliary", "VM": "auxiliary", "VV": "verb", "PR": "preposition", "TO": "to",
    "CJ": "subordinator", "CJC": "conjunction", "PO": "particle", "PU": "punctuation",
}  # fmt: skip
_DE: dict[str, Kind] = {
    "NN": "noun", "NE": "noun", "NNA": "noun", "NNI": "noun", "ART": "determiner",
    "PPOSAT": "determiner", "PIAT": "determiner", "PDAT": "determiner", "PWAT": "determiner",
    "PIDAT": "determiner", "CARD": "determiner", "ADJ(A)": "adjective", "ADJ(D)": "adverb",
    "PPER": "pronoun", "PRF": "pronoun", "PIS": "pronoun", "PDS": "pronoun", "PPOSS": "pronoun",
    "PWS": "pronoun", "ADV": "adverb", "PTKNEG": "adverb", "PAV": "adverb", "PTKVZ": "particle",
    "PTKZU": "to", "APPR": "preposition", "APPRART": "preposition", "KON": "conjunction",
    "KOKOM": "conjunction", "KOUS": "subordinator", "KOUI": "subordinator",
    "PRELS": "subordinator", "PWAV": "subordinator",
}  # fmt: skip
_EN_WORDS: dict[str, Kind] = {"cannot": "auxiliary", "long": "adjective"}
"""Words that HanTa takes for something else."""
_ZH: dict[str, Kind] = {
    "n": "noun", "vn": "noun", "an": "noun", "t": "noun", "s": "noun", "f": "noun", "i": "noun",
    "l": "noun", "j": "noun", "r": "pronoun", "m": "determiner", "q": "determiner",
    "a": "adjective", "z": "adjective", "b": "adjective", "d": "adverb", "v": "verb",
    "p": "preposition", "u": "particle", "uz": "adverb", "ul": "adverb", "ug": "adverb", "y": "particle", "c": "conjunction",
    "eng": "noun", "x": "punctuation", "w": "punctuation",
}  # fmt: skip
_ZH_AUXILIARY = frozenset(
    "要 需 能 能够 可以 必须 必需 应该 应 会 想 想要 希望 得 可能 是 有 没有 愿意 不得不 既要 又要 还要".split()
)
_CONTRACTED = frozenset("she's he's it's that's there's who's what's".split())


@dataclass(frozen=True, slots=True)
class Word:
    """``text`` stands at ``start`` .. ``end`` of the sentence; ``tag`` is the tagger's own, ``lemma``
    the base form ("" in Chinese, which has none)."""

    text: str
    start: int
    end: int
    tag: str
    kind: Kind
    lemma: str = ""


def tag(sentence: str, language: str) -> tuple[Word, ...]:
    """The words of ``sentence`` in order. Raises ValueError for a language not in ``LANGUAGES``."""
    if language not in LANGUAGES:
        raise ValueError(f"no tagger for language '{language}' (there are {', '.join(LANGUAGES)})")
    return _tagged(sentence, language)


LONGEST = 40
"""Letters of a word that are tagged, its last ones: time grows with the square of its length, and a
reply of five thousand letters without a space must not stop a run."""


@lru_cache(maxsize=4096)
def _tagged(sentence: str, language: str) -> tuple[Word, ...]:
    return _chinese(sentence) if language == "zh" else _hanta(sentence, language)


@lru_cache(maxsize=4)
def _model(language: str) -> Any:
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger(_MODELS[language])


def _hanta(sentence: str, language: str) -> tuple[Word, ...]:
    spans = [(m.group(), m.start(), m.end()) for m in _WORD.finditer(sentence)]
    with _LOCK:
        tagged = _model(language).tag_sent([t.replace("’", "'")[-LONGEST:] for t, _, _ in spans])
    found = []
    for (text, start, end), (_, lemma, mark) in zip(spans, tagged, strict=True):
        kind = (
            _english_kind(text, mark) if language == "en" else _german_kind(text, mark, start == 0)
        )
        found.append(Word(text, start, end, mark, kind, lemma))
    return tuple(found)


def _english_kind(text: str, mark: str) -> Kind:
    if not text[0].isalnum():
        return "punctuation"
    small = text.lower().replace("’", "'")
    if small.endswith("n't"):
        return "auxiliary"
    if small in _CONTRACTED or small.endswith(("'re", "'ve", "'ll", "'d", "'m")):
        return "pronoun"
    if small.endswith(("'s", "s'")) and len(text) > 3:
        return "determiner"
    return _EN_WORDS.get(small) or _EN.get(mark) or _EN.get(mark[:2], "other")


def _german_kind(text: str, mark: str, first: bool) -> Kind:
    if not text[0].isalnum():
        return "punctuation"
    if mark.startswith("VV"):
        return "verb" if first or text[0].islower() else "noun"
    if mark.startswith(("VA", "VM")):
        return "auxiliary"
    return _DE.get(mark, "other")


def _chinese(sentence: str) -> tuple[Word, ...]:
    import rjieba

    found, at = [], 0
    for text, mark in rjieba.tag(sentence):
        start = sentence.index(text, at)
        at = start + len(text)
        found.append(Word(text, start, at, mark, _chinese_kind(text, mark)))
    return tuple(found)


def _chinese_kind(text: str, mark: str) -> Kind:
    if not any(c.isalnum() for c in text):
        return "punctuation"
    if text in _ZH_AUXILIARY:
        return "auxiliary"
    if text.startswith("每"):
        return "noun"
    return _ZH.get(mark) or _ZH.get(mark[:1], "other")
