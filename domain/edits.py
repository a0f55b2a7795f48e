"""What is asked of a tool, and the three ways it can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from domain.masks import Mask


class Task(StrEnum):
    """The kinds of work a tool can be asked to do."""

    RECONSTRUCT = "reconstruct"
    RESTYLE = "restyle"
    RETOUCH = "retouch"
    ENHANCE = "enhance"
    INPAINT_BACKGROUND = "inpaint_background"
    INPAINT_FACE = "inpaint_face"
    INPAINT_LOWER_FACE = "inpaint_lower_face"


@dataclass(frozen=True, slots=True)
class EditRequest:
    """One call. ``picture`` is the encoded file exactly as the tool gets it (upright sRGB, no
    metadata); None only for tools that generate from text. ``width`` and ``height`` are its size
    and the size the result must come back at. ``mask`` is canonical; the adapter converts it.
    ``attributes`` are the portrait's declared attributes: only the controls may read them.
    ``face_box`` is (x, y, width, height) of the face in pixels of ``picture``, grown by 15 %.
    ``original_name`` is the manifest's file name, for tools whose results already exist.
    """

    item_id: str
    task: Task
    picture: bytes | None = field(repr=False)
    media_type: str = "image/png"
    width: int = 0
    height: int = 0
    seed: int = 0
    prompt: str = ""
    mask: Mask | None = None
    face_box: tuple[int, int, int, int] | None = None
    original_name: str = ""
    perturbation: str = "none"
    attributes: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Edited:
    """The tool answered with a picture. ``picture`` is its bytes, untouched. ``meta`` is JSON-able.

    Keys of ``meta`` with a fixed meaning, for all three ends: ``model`` (string of the model that
    served it), ``request_id``, ``http_status``, ``clock_skew_s`` (server's clock minus ours),
    ``sent`` (parameters as sent), ``returned`` (parameters as the tool echoed them), ``cost``
    ({"amount", "currency"} where the tool says it), ``maybe_billed`` (true when work may have been
    done that was not received), ``note`` (a sentence for people).
    """

    picture: bytes = field(repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """The tool would not do it (moderation, policy). An outcome of its own, never retried.

    ``stage`` is "input", "output" or "policy"; ``code`` the tool's own word; ``text`` its sentence.
    """

    stage: str
    code: str
    text: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool broke. ``retry_after`` is in seconds where the tool named a time.

    ``meta["stop"]`` true: the same would happen to every other item (wrong key, no credit, no such
    model), so nothing more is sent to this tool in this run.
    """

    reason: str
    retryable: bool = False
    retry_after: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


EditOutcome: TypeAlias = Edited | Refused | Failed
