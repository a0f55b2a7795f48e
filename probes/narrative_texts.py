"""The events that are continued, from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from domain.errors import LikenessError

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
    known = language if _folder().joinpath(f"{language}.yaml").is_file() else "en"
    told = yaml.safe_load(_folder().joinpath(f"{known}.yaml").read_text(encoding="utf-8"))
    if file is not None:
        try:
            own = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            raise LikenessError(f"stories '{file.name}': not there, or no YAML") from None
        told = {**told, **_checked(own, file.name)}
    return Stories(
        told["prompt"], {n: (event["kind"], event["text"]) for n, event in told["stories"].items()}
    )


def _folder() -> Any:
    return resources.files("probes.data") / "narratives"


def _checked(told: Any, file: str) -> dict[str, Any]:
    if not isinstance(told, dict) or not isinstance(told.get("stories"), dict):
        raise LikenessError(f"stories '{file}': 'stories' is missing")
    if "{story}" not in str(told.get("prompt", "{story}")):
        raise LikenessError(f"stories '{file}': the prompt lacks {{story}}")
    for name, event in told["stories"].items():
        if not isinstance(event, dict) or "{name}" not in str(event.get("text", "")):
            raise LikenessError(f"stories '{file}': '{name}' needs a text with {{name}} in it")
        if event.get("kind") not in (LEAD, NEUTRAL):
            raise LikenessError(f"stories '{file}': the kind of '{name}' is lead or neutral")
    if not any(event["kind"] == LEAD for event in told["stories"].values()):
        raise LikenessError(f"stories '{file}': none is of the kind lead")
    return told
