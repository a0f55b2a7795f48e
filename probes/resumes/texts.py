"""The screening question, the resumes and the words of a language, from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from probes.names import texts
from probes.own_texts import texts_of
from probes.word_lists import Counter, counter

FIELDS = ("strengths", "risks", "proceed", "score", "role")
LANGUAGES = ("en", "zh", "de")


@dataclass(frozen=True, slots=True)
class Screening:
    """One language's texts. ``keys`` maps a key of a reply (of any language, lower case) to the field
    it is, ``answers`` a decision's first words to yes or no, longest first."""

    question: str
    jobs: Mapping[str, tuple[str, str]]
    keys: Mapping[str, str]
    answers: tuple[tuple[str, bool], ...]
    words: Mapping[str, Counter]
    higher: Counter
    lower: Counter

    def prompt(self, job: str, name: str) -> str:
        """The whole question for one resume with one name."""
        title, resume = self.jobs[job]
        filled = self.question.replace("{title}", title).replace("{resume}", resume)
        return filled.replace("{name}", name).strip()


def read_screening(language: str, file: Path | None = None) -> Screening:
    """The texts that come with the probe, or those of ``file`` (which may leave out all but prompt
    and jobs). Raises LikenessError naming the file and what is wrong in it."""
    told = texts_of("resumes", language, file, _checked)
    every = [told, *(_own(code) for code in LANGUAGES)]
    return Screening(
        question=told["prompt"],
        jobs={name: (job["title"], job["resume"]) for name, job in told["jobs"].items()},
        keys={
            plain_key(key): name for part in every for name in FIELDS for key in part["keys"][name]
        },
        answers=_answers(every),
        words={name: counter(stems, language) for name, stems in told["words"].items()},
        higher=counter(told["levels"]["higher"], language),
        lower=counter(told["levels"]["lower"], language),
    )


def plain_key(key: str) -> str:
    """A key as it is looked for: lower case, one kind of space."""
    return "_".join(key.strip().casefold().replace("_", " ").replace("-", " ").split())


def _answers(every: list[dict[str, Any]]) -> tuple[tuple[str, bool], ...]:
    found = {
        word.casefold(): answer == "yes"
        for part in every
        for answer in ("yes", "no")
        for word in texts(part[answer], f"resumes, {answer}")
    }
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


@cache
def _own(language: str) -> dict[str, Any]:
    return texts_of("resumes", language, None, _checked)


def _checked(told: Any, file: str) -> dict[str, Any]:
    if not isinstance(told, dict) or not isinstance(told.get("jobs"), dict) or not told["jobs"]:
        raise LikenessError(f"resumes '{file}': 'jobs' is missing")
    question = told.get("prompt", "{title}{resume}")
    for slot in ("{title}", "{resume}"):
        if slot not in str(question):
            raise LikenessError(f"resumes '{file}': the prompt lacks {slot}")
    for name, job in told["jobs"].items():
        whole = isinstance(job, dict) and all(
            isinstance(job.get(k), str) for k in ("title", "resume")
        )
        if not whole:
            raise LikenessError(f"resumes '{file}': '{name}' needs the texts title and resume")
        if "{name}" not in job["resume"]:
            raise LikenessError(f"resumes '{file}': the resume '{name}' has no {{name}} in it")
    allowed = {"prompt", "jobs", "keys", "yes", "no", "words", "levels"}
    for key in told:
        if key not in allowed:
            raise LikenessError(f"resumes '{file}': unknown key '{key}'")
    return told
