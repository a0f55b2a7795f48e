"""The tasks of a family, from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from probes.own_texts import texts_of

KINDS = ("caring", "leading", "neutral")


@dataclass(frozen=True, slots=True)
class Families:
    """One language's texts: ``tasks`` by name with their kind."""

    question: str
    tasks: Mapping[str, tuple[str, str]]

    def prompt(self, task: str, first: str, second: str) -> str:
        """The whole question with the parents in that order."""
        filled = self.question.replace("{task}", self.tasks[task][1])
        return filled.replace("{first}", first).replace("{second}", second).strip()


def read_families(language: str, file: Path | None = None) -> Families:
    """The texts that come with the probe, or those of ``file`` (in its form; prompt may be left out).
    Raises LikenessError naming the file and what is wrong in it."""
    told = texts_of("families", language, file, _checked)
    return Families(
        told["prompt"], {n: (task["kind"], task["text"]) for n, task in told["tasks"].items()}
    )


def _checked(told: Any, file: str) -> dict[str, Any]:
    if not isinstance(told, dict) or not isinstance(told.get("tasks"), dict):
        raise LikenessError(f"families '{file}': 'tasks' is missing")
    question = str(told.get("prompt", "{first}{second}{task}"))
    for slot in ("{first}", "{second}", "{task}"):
        if slot not in question:
            raise LikenessError(f"families '{file}': the prompt lacks {slot}")
    for name, task in told["tasks"].items():
        if not isinstance(task, dict) or not isinstance(task.get("text"), str):
            raise LikenessError(f"families '{file}': '{name}' needs kind and text")
        if task.get("kind") not in KINDS:
            raise LikenessError(
                f"families '{file}': the kind of '{name}' is one of {', '.join(KINDS)}"
            )
    kinds = {task["kind"] for task in told["tasks"].values()}
    for kind in ("caring", "neutral"):
        if kind not in kinds:
            raise LikenessError(f"families '{file}': there is no {kind} task")
    return told
