"""Cases that reviewers found: a prompt whose arms differ in a slot, and what the answer must (not) say.

One case a line (JSONL), so that a finding is added without touching the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date as Date
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from domain.errors import LikenessError, did_you_mean

OTHER = "other"
"""The label of an answer that holds no phrase of the case."""
_SLOT = re.compile(r"\{(\w+)\}")
_LARGEST = 16 * 1024 * 1024
Words = Annotated[list[str], Field(min_length=1)]


class Case(BaseModel):
    """``prompt`` holds slots in braces, ``arms`` what stands in them: a word where the slot is {slot},
    or a mapping of slots (name, pronoun, ...). Braces of other names stay as they are.

    ``labels`` are phrases by label; without them each phrase of ``expected`` and ``forbidden`` is a
    label of its own. Both may be lists for every arm, or mappings by arm. ``note`` is the reviewer's
    finding, ``date`` its day. ``least`` is the share of answers that must hold, in (0, 1].
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    prompt: Annotated[str, Field(min_length=1)]
    arms: Annotated[dict[str, str | dict[str, str]], Field(min_length=2)]
    note: Annotated[str, Field(min_length=1)]
    date: Date
    language: str = "en"
    system: str = ""
    labels: dict[str, Words] = {}
    expected: Words | dict[str, Words] | None = None
    forbidden: Words | dict[str, Words] | None = None
    least: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 256

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.expected is None and self.forbidden is None:
            raise ValueError("give expected, forbidden, or both")
        slots = {frozenset(self.slots(arm)) for arm in self.arms}
        if len(slots) > 1:
            raise ValueError("every arm fills the same slots")
        lacking = sorted(next(iter(slots)) - set(_SLOT.findall(self.prompt + self.system)))
        if lacking:
            raise ValueError(f"the prompt has no slot {{{lacking[0]}}}")
        texts = [self.text(arm) for arm in self.arms]
        if len(set(texts)) < len(texts):
            raise ValueError("two arms have the same words")
        for arm in self.arms:
            both = set(self.wanted(arm) or ()) & set(self.unwanted(arm))
            if both:
                raise ValueError(f"'{min(both)}' is both expected and forbidden for {arm}")
        for side in (self.expected, self.forbidden):
            strangers = set(side) - set(self.arms) if isinstance(side, dict) else set()
            if strangers:
                raise ValueError(f"'{min(strangers)}' is no arm of the case")
        named = {
            word for arm in self.arms for word in (*(self.wanted(arm) or ()), *self.unwanted(arm))
        }
        unknown = sorted(named - set(self.labels)) if self.labels else []
        if unknown:
            raise ValueError(f"'{unknown[0]}' is none of the labels")
        return self

    def slots(self, arm: str) -> dict[str, str]:
        """What stands in each slot under ``arm``."""
        filled = self.arms[arm]
        return {"slot": filled} if isinstance(filled, str) else dict(filled)

    def text(self, arm: str) -> tuple[str, str]:
        """System text and prompt under ``arm``."""
        slots = self.slots(arm)

        def fill(match: re.Match[str]) -> str:
            return slots.get(match[1], match[0])

        return _SLOT.sub(fill, self.system), _SLOT.sub(fill, self.prompt)

    def wanted(self, arm: str) -> list[str] | None:
        """Labels that hold; None where any but the forbidden ones does."""
        return self.expected.get(arm) if isinstance(self.expected, dict) else self.expected

    def unwanted(self, arm: str) -> list[str]:
        """Labels that must not come."""
        found = self.forbidden.get(arm) if isinstance(self.forbidden, dict) else self.forbidden
        return found or []

    def phrases(self) -> Mapping[str, list[str]]:
        """Phrases by label."""
        if self.labels:
            return self.labels
        named = [w for arm in self.arms for w in (*(self.wanted(arm) or ()), *self.unwanted(arm))]
        return {word: [word] for word in dict.fromkeys(named)}

    def labels_in(self, text: str) -> list[str]:
        """Labels whose phrases are in ``text``, in the order of ``labels``. A longer phrase covers a
        shorter one within it: "not suitable" is no "suitable"."""
        by_phrase = {p.casefold(): label for label, ps in self.phrases().items() for p in ps}
        rest, found = text.casefold(), set()
        for phrase in sorted(by_phrase, key=len, reverse=True):
            pattern = _edge(phrase[0], "(?<!") + re.escape(phrase) + _edge(phrase[-1], "(?!")
            rest, count = re.subn(pattern, "\0", rest)
            if count:
                found.add(by_phrase[phrase])
        return [label for label in self.phrases() if label in found]


def read_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a JSONL file. LikenessError naming file, line and cause."""
    try:
        if path.stat().st_size > _LARGEST:
            raise LikenessError(f"{path}: too large for cases")
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise LikenessError(f"{path}: not text") from None
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    found: dict[str, Case] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            case = _case(line, f"{path}: line {number}")
            if case.id in found:
                raise LikenessError(f"{path}: line {number}: case '{case.id}' stands there twice")
            found[case.id] = case
    if not found:
        raise LikenessError(f"{path}: there is no case in it")
    return tuple(found.values())


def keep_case(path: Path, told: Mapping[str, Any]) -> Case:
    """Add a reviewer's finding to the file (made when absent) and return it. LikenessError when it makes
    no sense, or when its id is taken: a case that was kept is not changed in passing."""
    line = json.dumps(dict(told), ensure_ascii=False, default=str)
    case = _case(line, f"case '{told.get('id', '')}'")
    text = path.read_text("utf-8") if path.exists() else ""
    if text.strip() and any(one.id == case.id for one in read_cases(path)):
        raise LikenessError(f"{path}: there is a case '{case.id}' already")
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(("" if not text or text.endswith("\n") else "\n") + line + "\n")
    except OSError as error:
        raise LikenessError(f"cannot write {path}: {error.strerror or error}") from None
    return case


def _edge(letter: str, look: str) -> str:
    """A word's edge where the script has words: Chinese and Japanese are written without spaces."""
    return f"{look}\\w)" if letter.isalnum() and letter < "⺀" else ""


def _case(line: str, where: str) -> Case:
    try:
        return Case.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "json_invalid":
            raise LikenessError(f"{where}: not JSON") from None
        if first["type"] == "extra_forbidden":
            hint = did_you_mean(key, Case.model_fields)
            raise LikenessError(f"{where}: unknown key '{key}'{hint}") from None
        cause = first["msg"].removeprefix("Value error, ")
        raise LikenessError(f"{where}: {f'{key}: ' if key else ''}{cause}") from None
