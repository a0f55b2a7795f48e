"""What a server answers, as values. Members that this version does not know are left aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from domain.errors import LikenessError

Json = Mapping[str, Any]
T = TypeVar("T")
OVER = ("done", "failed", "cancelled")
"""States of a run that has ended."""


class _Answer:
    @classmethod
    def of(cls, said: Any) -> Self:
        """Raises LikenessError where a member is missing: another version, or no such server."""
        return _read(cls, said)


def _read(kind: type[T], said: Any) -> T:
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if not isinstance(said, Mapping) or any(name not in said for name in names):
        raise LikenessError(
            f"the server's answer is not a {kind.__name__} as this version knows it"
        )
    return kind(**{name: said[name] for name in names})


@dataclass(frozen=True, slots=True)
class BatchItem(_Answer):
    """What became of one file. ``code`` and ``reason`` say why it was not ``accepted``."""

    seq: int
    name: str
    state: str
    code: str | None
    reason: str | None
    bytes: int | None
    media_type: str | None


@dataclass(frozen=True, slots=True)
class Batch(_Answer):
    """A batch, without its items."""

    batch_id: str
    name: str
    state: str
    created: str
    expires: str | None
    accepted: int
    rejected: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Submitted(Batch):
    """A batch just sent, with what became of every file."""

    without_row: int
    items: Sequence[BatchItem]

    @classmethod
    def of(cls, said: Any) -> Self:
        """Raises LikenessError for an answer of another shape."""
        if isinstance(said, Mapping) and isinstance(said.get("items"), list):
            said = {**said, "items": [BatchItem.of(item) for item in said["items"]]}
        # not super(): a dataclass with slots is another class than the one that stands here
        return _read(cls, said)

    @property
    def refused(self) -> list[BatchItem]:
        """The items that were not accepted, skipped ones left out."""
        return [item for item in self.items if item.state == "rejected"]


@dataclass(frozen=True, slots=True)
class Run(_Answer):
    """A run and how far it is; ``batch_id`` is None for one of text probes; ``progress`` is {stage: {"done", "total"}}, ``eta_s`` a guess."""

    run_id: str
    batch_id: str | None
    name: str
    state: str
    created: str
    started: str | None
    finished: str | None
    error: str | None
    items: Mapping[str, int]
    outcomes: Mapping[str, int]
    progress: Mapping[str, Json]
    eta_s: float | None

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in OVER


@dataclass(frozen=True, slots=True)
class RunFile(_Answer):
    """One file of a finished run."""

    name: str
    media_type: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture to be fetched by the server. ``attributes`` are what a manifest's row would say."""

    url: str
    name: str = ""
    attributes: Mapping[str, str] | None = None

    def json(self) -> dict[str, Any]:
        """As the server takes it."""
        return {"url": self.url, "name": self.name, "attributes": dict(self.attributes or {})}


@dataclass(frozen=True, slots=True)
class PairOptions:
    """How a pair is decided on. ``mask``: black and white, white where the tool was to edit."""

    engine: str = "mediapipe"
    profile: str = "document"
    min_score: float = 85.0
    mask: Path | None = None


@dataclass(frozen=True, slots=True)
class Listing(_Answer):
    """Rows of a list that has no pages."""

    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Page(_Answer):
    """Rows of a list and the cursor of what follows, None at its end."""

    items: Sequence[Any]
    next: str | None
