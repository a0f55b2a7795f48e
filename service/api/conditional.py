"""Answers that a caller may have already: entity tags and If-None-Match (RFC 9110)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response


def has_already(request: Request, tag: str) -> bool:
    """Whether ``If-None-Match`` names ``tag``, or anything at all. Compared weakly, as RFC 9110
    wants it for this header."""
    sent = request.headers.get("if-none-match")
    if sent is None:
        return False
    tags = [part.strip().removeprefix("W/") for part in sent.split(",")]
    return "*" in tags or tag.removeprefix("W/") in tags


def strong_tag(sha256: str) -> str:
    """The tag of bytes by their hash."""
    return f'"{sha256}"'


def weak_tag(text: str) -> str:
    """The tag of what ``text`` describes: another text, another tag."""
    return f'W/"{hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]}"'


def not_modified(tag: str, headers: Mapping[str, str] | None = None) -> Response:
    """304 with the headers that the whole answer would have had."""
    return Response(status_code=304, headers={"ETag": tag, **(headers or {})})
