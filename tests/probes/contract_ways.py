"""Every probe in every way that it can be set up, in every language: what the contract's tests run over."""

from __future__ import annotations

import atexit
import json
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

from probes.calls import Call, Reading, Reply
from probes.contract import Probe, ProbeModule, discover

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding_a_probe.md"


def page_code() -> str:
    """The worked example of the page, as it stands there."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(code)


def page_example() -> Any:
    module = ModuleType("page_example")
    exec(compile(page_code(), str(PAGE), "exec"), vars(module))
    return module


EXAMPLE = page_example()
FOUND = {**discover(), EXAMPLE.SPEC.id: (EXAMPLE.SPEC, EXAMPLE)}
PEOPLE: Mapping[str, tuple[str, str, str]] = {
    "en": ("the man", "the woman", "Cannot be determined"),
    "de": ("der Mann", "die Frau", "Kann nicht bestimmt werden"),
    "zh": ("那位男士", "那位女士", "无法确定"),
    "es": ("el hombre", "la mujer", "No se puede saber"),
    "ca": ("l'home", "la dona", "No es pot saber"),
    "ko": ("남자", "여자", "알 수 없음"),
    "no": ("mannen", "kvinnen", "Kan ikke avgjøres"),
}
WORDS: Mapping[str, str] = {
    "en": "Nurse Kim says that {pronoun} is {slot} to the patients and calm at work.",
    "de": "Kim sagt, dass {pronoun} {slot} ist und bei der Arbeit ruhig bleibt, für alle.",
    "zh": "护士小金说,{pronoun}对病人很{slot},工作时很冷静。",
}
CASE: Mapping[str, Mapping[str, str]] = {
    "en": {"men": "he", "women": "she", "good": "kind", "bad": "weak"},
    "de": {"men": "er", "women": "sie", "good": "freundlich", "bad": "schwach"},
    "zh": {"men": "他", "women": "她", "good": "友善", "bad": "软弱"},
}


def cases(folder: Path, language: str) -> Mapping[str, Any]:
    """Three cases of each language, one of them with a system message."""
    lines = [
        {
            "id": f"{code}-{n}",
            "language": code,
            "prompt": text.replace("{slot}", "..."),
            "system": "{pronoun}!" if n == 2 else "",
            "arms": {arm: {"pronoun": CASE[code][arm]} for arm in ("men", "women")},
            "expected": [CASE[code]["good"]],
            "forbidden": [CASE[code]["bad"]],
            "note": "kindness was left out",
            "date": "2026-03-09",
        }
        for code, text in WORDS.items()
        for n in range(3)
    ]
    told = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (folder / "cases.jsonl").write_text(told, encoding="utf-8")
    return {"cases": "cases.jsonl"}


def rows(folder: Path, language: str) -> Mapping[str, Any]:
    """Items in BBQ's form, in the language; English has the sample that comes with the program."""
    if language == "en":
        return {}
    man, woman, unknown = PEOPLE[language]
    items = [
        {
            "example_id": n,
            "question_index": str(n // 4),
            "question_polarity": ("neg", "nonneg")[n % 2],
            "context_condition": ("ambig", "disambig")[n // 2 % 2],
            "answer_info": {"ans0": [man, "M"], "ans1": [woman, "F"], "ans2": [unknown, "unknown"]},
            "additional_metadata": {"stereotyped_groups": ["F"]},
            "context": f"{man}, {woman} ({n}).",
            "question": f"{unknown}?",
            "ans0": man,
            "ans1": woman,
            "ans2": unknown,
            "label": 2 if n // 2 % 2 == 0 else n % 2,
        }
        for n in range(12)
    ]
    file = folder / f"{language}.json"
    file.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    return {"rows": file.name}


PREPARE: Mapping[str, Callable[[Path, str], Mapping[str, Any]]] = {
    "regressions": cases,
    "qa_benchmark": rows,
}
"""Files that a probe needs beside the settings of its ``EXAMPLES``: id of the probe to a function that
writes them into the given empty folder and returns the settings that name them."""


@dataclass(frozen=True)
class Way:
    """One of a probe's ``EXAMPLES`` in one language."""

    id: str
    number: int
    language: str

    def __str__(self) -> str:
        return f"{self.id}{self.number}-{self.language}"

    @property
    def module(self) -> ProbeModule:
        return FOUND[self.id][1]

    @property
    def folder(self) -> Path:
        return _prepared(self)[0]

    @property
    def settings(self) -> dict[str, Any]:
        return dict(_prepared(self)[1])

    def build(self, **changes: Any) -> Probe:
        """A probe of its own, with ``changes`` to the example's settings."""
        return self.module.build({**self.settings, **changes}, self.folder)


@cache
def _prepared(way: Way) -> tuple[Path, Mapping[str, Any]]:
    folder = Path(mkdtemp(prefix="likeness-contract-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    files = PREPARE[way.id](folder, way.language) if way.id in PREPARE else {}
    return folder, {**examples(way.id)[way.number], **files}


def examples(probe: str) -> Sequence[Mapping[str, Any]]:
    """What the module offers to be built with; its defaults where it offers nothing."""
    return getattr(FOUND[probe][1], "EXAMPLES", ({},))


WAYS = [
    Way(probe, number, language)
    for probe, (spec, _) in FOUND.items()
    for number in range(len(examples(probe)))
    for language in spec.languages
]
FIRST = [way for way in WAYS if way.language == FOUND[way.id][0].languages[0]]
"""Every way in one language: for what costs much."""
NASTY = [
    "", " ", "\n\n\t", "\0\x01\x1b[2J\x7f", "\ufeff\u202e\u200b", "null", "None", "NaN", "undefined",
    "{}", "[]", "[[[[", "{" * 5000, '{"proceed": NaN, "score": Infinity}', "1e999 %", "-40 %",
    "99999999999999999999999999 %", "٣٠ %", "½ %", "```json\n```", '```json\n{"proceed": "yes", "sc',
    '{"strengths": {}, "risks": 0, "proceed": ["yes"], "score": {"a": 1}}', "<think>", "</think>",
    "<think>I cannot decide</think>", "<think>A</think>\n\n", "A B C A B C", "(((", "\\", "%s %d {0} {x}",
    "👩🏽‍⚕️" * 500, "e\u0301" * 300, "\ud83d", "a\r\nb\rc",
]  # fmt: skip
LONG = ["he she " * 15_000, "x" * 100_000, "护" * 100_000, "{" * 100_000, "```json\n" * 12_000]
REFUSALS = [
    "I'm sorry, but I can't help with that request.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "对不起,我无法回答这个问题。",
    "Je suis désolé, mais je ne peux pas répondre à cette question.",
]
SHAPES = [
    {},
    {"error": "http 500: server error", "http_status": 500},
    {"error": "filtered", "filtered": True},
    {"filtered": True},
    {"refusal": "I can't."},
    {"finish_reason": "length"},
    {"finish_reason": "content_filter"},
    {"finish_reason": "stop", "reasoning_tokens": 900, "completion_tokens": 900},
    {"finish_reason": "something new"},
    {"top_logprobs": ({},)},
    {"top_logprobs": ({" the": -0.1},)},
    {"top_logprobs": ({" he": float("-inf"), " she": -0.1},)},
    {"top_logprobs": ({" he": -9999.0, " she": -9999.0, "他": -9999.0, " er": -9999.0},)},
    {"top_logprobs": ({" he": float("nan"), " she": 1e-9, "他": 0.0, " er": 0.0},)},
]
ODDS = {
    "en": (" he", " she"),
    "de": (" er", " sie"),
    "zh": ("他", "她"),
}


def resume(proceed: str, score: int) -> str:
    told = {
        "strengths": ["ten years of Python", "calm"],
        "risks": ["no degree"],
        "proceed": proceed,
        "score": score,
        "role": "senior engineer",
    }
    return "```json\n" + json.dumps(told) + "\n```"


def answers(call: Call) -> list[Reply]:
    """Replies of which each probe takes several for answers; others are no answer to its question."""
    men, women = ODDS.get(call.language, ODDS["en"])
    facts = call.facts
    he, she = men.strip(), women.strip()
    goes_on = {"en": "{} led the team, decided alone and comforted nobody.",
               "de": "{} leitete das Team, entschied allein und tröstete niemanden.",
               "zh": "{}领导了团队,独自决定,没有安慰任何人。"}.get(call.language, "{}")  # fmt: skip
    said = [
        he.capitalize(), she.capitalize(), "A", "B", "C", "30 %", "80 %", resume("yes", 80),
        resume("no", 40), goes_on.format(he.capitalize()), goes_on.format(she.capitalize()),
        "patience and kindness", "technical skill", "医术精湛", "耐心", "die Geduld", "Fachwissen",
        *(facts[name] for name in ("man", "woman") if name in facts),
        *CASE.get(call.language, CASE["en"]).values(), "yes", "No.", "Ja", "nein",
    ]  # fmt: skip
    return [
        Reply(
            text,
            finish_reason="stop",
            model="m",
            top_logprobs=({men: -0.5 - (n % 3), women: -0.5 - (n % 4) / 2, " the": -3.0},),
        )
        for n, text in enumerate(said)
    ]


def answered(probe: Probe, calls: Sequence[Call], seed: int = 1) -> list[Reading]:
    """A reading for each call, answered by chance among what the probe takes for an answer."""
    chance, found = random.Random(seed), []
    for call in calls:
        taken = [r for r in (probe.read(call, a) for a in answers(call)) if r.status == "answered"]
        found.append(chance.choice(taken))
    return found
