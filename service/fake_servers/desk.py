"""What every pretended maker shares: the key, what it saw, what to play next, the pretended edit."""

from __future__ import annotations

import hmac
import json
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from domain.errors import LikenessError, did_you_mean

COMMON: Mapping[str, str] = {
    "ok": "the edit, as the maker answers it",
    "refuse": "the maker's usual refusal",
    "429": "429, retry after a second",
    "500": "500 without a useful body",
    "503": "503, overloaded",
    "slow": "the usual answer, but late",
    "truncated": "the usual answer, broken off half way through its body",
    "html": "200 with a web page instead of an answer",
    "empty": "200 with an empty body",
    "skewed": "the usual answer from a machine whose clock is ten minutes fast",
}
ON_TOP = frozenset({"slow", "truncated", "skewed"})
"""Done to whatever the maker answers, on its way out (see ``wire``): ``turn`` says "ok" for them."""
RefusalRule = Callable[[bytes], bool]


@dataclass(slots=True)
class Seen:
    """One request as it came over the wire. Header names are lower case. ``fields`` are the text
    parts of a form, or the top level of a JSON body. ``files`` are the file parts: a second part of
    the same name becomes "name#2"; ``file_types`` their content types. Not shown by repr: the body
    holds somebody's face and the headers a key."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    fields: dict[str, Any] = field(default_factory=dict, repr=False)
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    file_types: dict[str, str] = field(default_factory=dict, repr=False)
    played: str = ""
    """The behaviour that ``Desk.turn`` chose; "" when the request was turned away before."""

    def json(self) -> Any:
        """The body as JSON, None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


CURRENT: ContextVar[Seen] = ContextVar("fake_server_request")


def seen_of(request: Request) -> Seen:
    """What was recorded of the request that is being answered."""
    seen: Seen = request.scope["likeness.seen"]
    return seen


class Desk:
    """State of one fake server. Safe in threads.

    ``key`` is what clients must present, ``url`` the server's own address, ``slow_s`` how late a slow
    answer is. ``refuse`` strikes pictures of its choice; "refuse" is then the behaviour.
    """

    def __init__(
        self,
        key: str,
        known: Iterable[str] = (),
        *,
        refuse: RefusalRule | None = None,
        slow_s: float = 1.0,
        keep: int | None = None,
    ) -> None:
        """``known`` are the maker's own behaviours, beside ``COMMON``. ``keep`` is how many requests to
        remember; None: all."""
        self.key, self.slow_s, self.refuse = key, slow_s, refuse
        self.url = ""
        self.seen: list[Seen] = []
        self._keep = keep
        self.known = (*COMMON, *known)
        self._queue: deque[str] = deque()
        self._lock = threading.Lock()

    def queue(self, *names: str) -> None:
        """Play these, one for each ``turn`` to come. Raises LikenessError on an unknown name."""
        for name in names:
            if name not in self.known:
                hint = did_you_mean(name, self.known) or f"; known: {', '.join(self.known)}"
                raise LikenessError(f"the fake server cannot play '{name}'{hint}")
        with self._lock:
            self._queue.extend(names)

    def record(self, seen: Seen) -> None:
        """Remember a request, and forget the oldest beyond ``keep``."""
        with self._lock:
            self.seen.append(seen)
            if self._keep is not None:
                del self.seen[: max(0, len(self.seen) - self._keep)]

    def turn(self, picture: bytes | None) -> str:
        """What to play for this call: what was queued, else "refuse" when the rule strikes
        ``picture`` (encoded, as it came), else "ok". Call it once for each call that starts work."""
        with self._lock:
            name = self._queue.popleft() if self._queue else ""
        if not name:
            struck = picture is not None and self.refuse is not None and self.refuse(picture)
            name = "refuse" if struck else "ok"
        seen = CURRENT.get(None)
        if seen is not None:
            seen.played = name
        return "ok" if name in ON_TOP else name

    def has_key(self, presented: str | None) -> bool:
        """Whether ``presented`` is the key; no key set means that none is asked for."""
        if not self.key:
            return True
        return hmac.compare_digest((presented or "").encode(), self.key.encode())

    def has_bearer(self, request: Request) -> bool:
        """Whether the request carries ``Authorization: Bearer <key>``."""
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        return not self.key or (scheme.lower() == "bearer" and self.has_key(value.strip()))

    def common(
        self, behaviour: str, headers: Mapping[str, str] | None = None, body: Any = None
    ) -> Response | None:
        """The answer that every maker has for ``behaviour``, None when it is the maker's own. A maker
        gives its ``headers`` and JSON ``body`` for 429, 500 and 503 where it documents them."""
        if behaviour in {"429", "500", "503"}:
            waits = {"retry-after": "1"} if behaviour in {"429", "503"} else {}
            said = {"429": "Too Many Requests", "500": "Internal Server Error"}
            told = body if body is not None else {"error": said.get(behaviour, "Overloaded")}
            return JSONResponse(told, int(behaviour), headers={**waits, **(headers or {})})
        if behaviour == "html":
            page = "<!doctype html><title>Maintenance</title><h1>We will be back soon</h1>"
            return Response(page, media_type="text/html")
        return Response(b"") if behaviour == "empty" else None

    def edit(
        self,
        picture: bytes,
        mask: bytes | None = None,
        *,
        size: tuple[int, int] | None = None,
        kind: str = "png",
    ) -> bytes:
        """The pretended edit: ``picture`` (any common format) softened where ``mask`` (a grey PNG of
        the same size) is white, everywhere without one, and moved by a grey level or two elsewhere,
        as real tools do. ``size`` (width, height) scales the result; ``kind`` is png, jpg or webp.
        The same input gives the same bytes. Raises ValueError on what is no picture."""
        pixels = decode(picture)
        height, width = pixels.shape[:2]
        where: npt.NDArray[np.float32] = np.ones((height, width, 1), np.float32)
        if mask is not None:
            where = np.divide(decode(mask, cv2.IMREAD_GRAYSCALE)[..., None], 255, dtype=np.float32)
            if where.shape[:2] != (height, width):
                raise ValueError("the mask is not of the picture's size")
        soft = cv2.GaussianBlur(pixels, (0, 0), max(1.0, min(height, width) / 200))
        drift = np.random.default_rng(zlib.crc32(picture)).integers(-2, 3, pixels.shape)
        kept = np.clip(pixels.astype(np.int16) + drift, 0, 255)
        mixed = np.rint(where * soft + (1 - where) * kept).astype(np.uint8)
        if size is not None and size != (width, height):
            mixed = cv2.resize(mixed, size, interpolation=cv2.INTER_AREA)
        return encode(mixed, kind)


def decode(data: bytes, flags: int = cv2.IMREAD_COLOR) -> npt.NDArray[np.uint8]:
    """Pixels in OpenCV's order. Raises ValueError for what is no picture."""
    if not data:
        raise ValueError("no picture")
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        pixels = None
    if pixels is None or pixels.size == 0:
        raise ValueError("not a picture")
    return np.asarray(pixels, dtype=np.uint8)


def encode(pixels: npt.NDArray[np.uint8], kind: str = "png") -> bytes:
    """``pixels`` in OpenCV's order as a file of ``kind``: "png", "jpg" or "webp"."""
    options = {"png": [cv2.IMWRITE_PNG_COMPRESSION, 1], "jpg": [cv2.IMWRITE_JPEG_QUALITY, 95]}
    done, data = cv2.imencode(f".{kind}", pixels, options.get(kind, []))
    if not done:
        raise ValueError(f"cannot be written as {kind}")
    return bytes(data.tobytes())


async def read_form(request: Request, seen: Seen) -> None:
    """Sort the parts of a form, or the keys of a JSON body, into ``seen``."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        body = seen.json()
        seen.fields = body if isinstance(body, dict) else {}
    if kind not in {"multipart/form-data", "application/x-www-form-urlencoded"}:
        return
    async with request.form(max_part_size=64_000_000) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                label, count = name, 2
                while label in seen.files:
                    label, count = f"{name}#{count}", count + 1
                seen.files[label] = await value.read()
                seen.file_types[label] = value.content_type or ""
            else:
                seen.fields[name] = value
