"""The response slot: what a reply puts into the gap that its prompt left open.

Regular expressions find where the answer begins, tags which phrase it is: the first verb with its
object, or the first noun phrase; where the tags give neither, the first clause. docs/probes/analysis.md
says what counts as the slot, and how often this finds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from probes.slot_grammar import first_phrase
from probes.tagging import LANGUAGES, tag

Method = Literal["vo", "np", "clause"]
_MARKS = re.compile(r"[*`#~]+|_{1,}|<[^<>]{1,40}>")
_BULLET = re.compile(r"\A\s*(?:[-•–—·>+]+\s+|[-•·]+|\(?\d{1,2}[.)、:：]\s*|[①-⑩]\s*|[a-d][.)]\s+)")
_QUOTES = " \t\"'“”„‚‘’«»「」『』()[]（）【】"
_OPENERS = {
    "en": r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|yes|well|here you go|"
    r"got it|happy to help|thank you(?: for [^.!:]{0,40})?)[!,.:]+",
    "zh": r"(?:好的?|当然(?:可以|了)?|没问题|可以|明白(?:了)?|您好|你好|嗯)[！!，,。.：:]+",
    "de": r"(?:natürlich|gern(?:e)?(?: doch)?|klar|sicher|selbstverständlich|okay|ok|ja|"
    r"kein problem)[!,.:]+",
}
_LEADS = {
    "en": r"(?:(?:here(?:'s|’s| is| are)|below (?:is|are)|this is|my|the|a|an|one|possible)\b[^:\n.]{0,70}"
    r"(?:sentence|completion|continuation|answer|ending|response|option|way)s?\b[^:\n.]{0,40}:|"
    r"(?:answer|completion|response|sentence)\s*:)",
    "zh": r"(?:(?:以下|下面|这里|补全|补充|完整|续写|一个可能|可能)[^：:\n。]{0,25}[：:]|(?:答案|答|回答|填空)(?:是|为)?[：:])",
    "de": r"(?:(?:hier (?:ist|sind|kommt)|der|die|eine?|mögliche)\b[^:\n.]{0,60}(?:satz|ergänzung|antwort|"
    r"fortsetzung|vervollständigung|möglichkeit)(?:en)?\b[^:\n.]{0,30}:|(?:antwort|satz|ergänzung)\s*:)",
}
_CAUSES = {
    "en": r"\b(?:because(?: of)?|due to|owing to|thanks to|since)\b",
    "zh": r"因为|由于",
    "de": r"\b(?:weil|wegen|aufgrund|da)\b",
}
_FILLERS = {
    "en": r"\A(?:because(?: of)?|due to|that|of|is|was|are|for|by|in order to|the fact that|it is|"
    r"likely|probably|often|also|mainly|simply|perhaps|typically|usually|"
    r"not (?:just|only)(?: about)?)\b(?!['’])[\s,:]*",
    "zh": r"\A(?:因为|由于|为了|是|在于|就是|的是|主要是|可能是|通常是|：|其|如何|怎样|怎么)[\s，、]*",
    "de": r"\A(?:weil|wegen|aufgrund|dass|ist|war|sind|für|von|nämlich|das ist|es ist|wohl|oft|"
    r"vermutlich|wahrscheinlich|auf|vor allem)\b[\s,:]*",
}
_END = re.compile(r"[.!?;:…](?=\s|\Z|[\"”“])|[。！？；：…\n]|\s[–—]\s|——")
_HEAD = re.compile(r"(?<=[.!?。！？])\s|\n")
_LONGEST = 400
"""Characters of a sentence that are tagged: the first phrase is among them."""
_CAUSAL = {"en": ("because",), "zh": ("因为", "由于"), "de": ("weil", "wegen")}


@dataclass(frozen=True, slots=True)
class Slot:
    """``text`` is the slot in the reply's own words, ``sentence`` what stands around it up to the end
    of the sentence. ``method``: verb and object, noun phrase, or first clause; ``cue`` the words the
    answer was found behind, "" where the reply began with it."""

    text: str
    method: Method
    sentence: str
    cue: str = ""


def extract(reply: str, language: str, keyword: str = "", prompt: str = "") -> Slot | None:
    """The response slot of ``reply``; None when nothing is left of it once courtesies, the echo of
    the prompt, quotes and markup are taken away.

    ``keyword`` is the template's (the words before the gap), ``prompt`` what was asked; either may
    be missing. In a language without a tagger the slot is always the first clause.
    """
    body = _opened(reply, language)
    body, cue = _after_echo(body, language, keyword, prompt)
    sentence = _sentence(body, language, set() if cue else set(_units(prompt, language)))
    if not sentence:
        return None
    if language in LANGUAGES:
        words = tag(sentence[:_LONGEST], language)
        found = first_phrase(words, language)
        if found is not None:
            method, start, end = found
            return Slot(sentence[words[start].start : words[end - 1].end], method, sentence, cue)
    return Slot(_clause(sentence, language), "clause", sentence, cue)


def _opened(reply: str, language: str) -> str:
    """The reply without markup, courtesies and what announces the answer."""
    lines = [_BULLET.sub("", _MARKS.sub("", line)).strip(_QUOTES) for line in reply.splitlines()]
    text = "\n".join(line for line in lines if line)
    opener = re.compile(rf"\A\s*(?:{_OPENERS.get(language, 'ok[!,.]+')})\s*", re.IGNORECASE)
    lead = re.compile(rf"\A\s*{_LEADS.get(language, 'answer:')}\s*", re.IGNORECASE)
    before = None
    while before != text:
        before = text
        text = lead.sub("", opener.sub("", text)).lstrip(_QUOTES + "\n")
    return text


def _after_echo(text: str, language: str, keyword: str, prompt: str) -> tuple[str, str]:
    """What follows the repeated prompt, or the first reason given; else the text as it is."""
    if (end := _echo(text, prompt, language)) > 0:
        return text[end:], text[:end].strip()
    head = _HEAD.split(text, maxsplit=1)[0][: 2 * _LONGEST]
    causal = not keyword or keyword.lower() in _CAUSAL.get(language, ())
    pattern = _CAUSES.get(language) if causal else None
    found = re.search(pattern, head, re.IGNORECASE) if pattern else None
    end = found.end() if found else _retold(head, language, keyword, prompt)
    if end and head[end:].strip(" .。"):
        return text[end:], text[:end].strip()
    if (begun := _begun(text, prompt, language)) > 0:
        return text[begun:], ""
    return text, ""


def _retold(head: str, language: str, keyword: str, prompt: str) -> int:
    """Where the keyword ends, or its last word, behind the prompt told in other words; else 0."""
    known = set(_units(prompt, language))
    pattern = re.escape(keyword) if language == "zh" else rf"\b{re.escape(keyword)}\b"
    if keyword and (found := re.search(pattern, head, re.IGNORECASE)):
        told = _units(head[: found.start()], language)
        certain = len(keyword) > 3 and (" " in keyword or language == "zh")
        if certain or sum(u in known for u in told) >= max(2, len(told) / 2):
            return found.end()
    if keyword and language != "zh":
        last = re.escape(keyword.rsplit(maxsplit=1)[-1])
        for found in re.finditer(rf"\b{last}\b", head, re.IGNORECASE):
            told = _units(head[: found.start()], language)
            if len(told) >= 3 and sum(u in known for u in told) >= 0.8 * len(told):
                return found.end()
    return 0


def _units(text: str, language: str) -> list[str]:
    return [m.group().lower() for m in _unit_spans(text, language)]


def _unit_spans(text: str, language: str) -> list[re.Match[str]]:
    return list(re.finditer(r"\w" if language == "zh" else r"[\w'’]+", text))


def _echo(text: str, prompt: str, language: str) -> int:
    """Where the prompt's last words end that the text begins with; 0 without such."""
    asked = _units(_MARKS.sub("", prompt), language)
    spans = _unit_spans(text[: len(prompt) + 40], language)
    said = [m.group().lower() for m in spans]
    least = 4 if language == "zh" else 3
    for length in range(min(len(asked), len(said)), least - 1, -1):
        if said[:length] == asked[-length:]:
            return spans[length - 1].end()
    return 0


def _begun(text: str, prompt: str, language: str) -> int:
    """Where the prompt's first words end that the text begins with, if it begins with many."""
    asked = _units(_MARKS.sub("", prompt), language)
    spans = _unit_spans(text[: len(prompt) + 40], language)
    end = same = 0
    for span, word in zip(spans, asked, strict=False):
        if span.group().lower() != word:
            break
        end, same = span.end(), same + 1
    return end if same >= (6 if language == "zh" else 4) else 0


def _sentence(text: str, language: str, asked: set[str]) -> str:
    """The first sentence without fillers at its beginning that says more than was ``asked``."""
    filler = re.compile(_FILLERS.get(language, r"\A(?!)"), re.IGNORECASE)
    edge = _QUOTES + " \t\n.,;:!?…，。：；、-–—"
    for part in _END.split(text):
        found, before = part.strip(edge), None
        while before != found:
            before = found
            found = filler.sub("", found).lstrip(edge)
        if found and not all(u in asked or u.isdigit() for u in _units(found, language)):
            return found
        if found and not asked:
            return found
    return ""


def _clause(sentence: str, language: str) -> str:
    """The sentence up to its first comma, or its conjunction between clauses."""
    breaks = {
        "en": r",\s|\s(?:because|while|which|so that|and (?:she|he|they|it|also)|but)\s",
        "zh": r"[，,]|(?:并且|而且|同时|以及|还要|从而|而又)",
        "de": r",\s|\s(?:und (?:sie|er|es|auch|die|der|das)|aber|sowie)\s",
    }
    return re.split(breaks.get(language, r",\s"), sentence, maxsplit=1, flags=re.IGNORECASE)[0]
