"""The events that are continued, from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from probes.own_texts import texts_of

LEAD, NEUTRAL = "lead", "neutral"


@dataclass(frozen=True, slots=True)
class Stories:
    """One language's texts: ``events`` by name with their kind."""

    question: str
    events: Mapping[str, tuple[str, str]]

    def prompt(self, story: str, name: str) -> str:
        """The whole question for one event with one name."""
        filled = self.question.replace("{story}", self.events[story][1])
        return filled.replace("{name}", name).strip()


def read_stories(language: str, file: Path | None = None) -> Stories:
    """The texts that come with the probe, or those of ``file`` (in its form; prompt may be left out).
    Raises LikenessError naming the file and what is wrong in it."""
    told = texts_of("narratives", language, file, _checked)
    return Stories(
        told["prompt"], {n: (event["kind"], event["text"]) for n, event in told["stories"].items()}
    )


def _checked(told: Any, file: str) -> dict[str, Any]:
    if not isinstance(told, dict) or not isinstance(told.get("stories"), dict):
        raise LikenessError(f"narratives '{file}': 'stories' is missing")
    if "{story}" not in str(told.get("prompt", "{story}")):
        raise LikenessError(f"narratives '{file}': the prompt lacks {{story}}")
    for name, event in told["stories"].items():
        if not isinstance(event, dict) or "{name}" not in str(event.get("text", "")):
            raise LikenessError(f"narratives '{file}': '{name}' needs a text with {{name}} in it")
        if event.get("kind") not in (LEAD, NEUTRAL):
            raise LikenessError(f"narratives '{file}': the kind of '{name}' is lead or neutral")
    if not any(event["kind"] == LEAD for event in told["stories"].values()):
        raise LikenessError(f"narratives '{file}': none is of the kind lead")
    return told
