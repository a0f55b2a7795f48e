"""What a request asks for, as one hash: method, address and body.

A form's boundary is drawn anew each time it is sent, so a form is hashed part by part: the same parts
in the same order are the same request, whatever stands between them.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any, Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Scope


class _Hash(Protocol):
    def update(self, data: bytes, /) -> object: ...
    def digest(self) -> bytes: ...


class Fingerprint:
    """Fed with the body while it is read."""

    def __init__(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        self._asked = b"\0".join(
            (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""))
        )
        media_type, options = parse_options_header(headers.get(b"content-type", b""))
        boundary = options.get(b"boundary") if media_type == b"multipart/form-data" else None
        self._raw: _Hash = hashlib.sha256()
        self._parts = _Parts(boundary) if boundary else None
        self._media_type = media_type

    def feed(self, data: bytes) -> None:
        """The next piece of the body."""
        self._raw.update(data)
        if self._parts is not None and not self._parts.feed(data):
            self._parts = None  # not a form after all: the bytes themselves count

    def hexdigest(self) -> str:
        """64 hexadecimal digits, once the body has ended."""
        body = self._parts.digest() if self._parts is not None else self._raw.digest()
        whole = hashlib.sha256(self._asked + b"\0" + self._media_type + b"\0")
        whole.update(body)
        return whole.hexdigest()


class _Parts:
    """A hash over the parts of a form: of each the headers and the bytes."""

    def __init__(self, boundary: bytes) -> None:
        self._all, self._part = hashlib.sha256(), hashlib.sha256()
        self._parser: Any = None
        with contextlib.suppress(FormParserError, ValueError):
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._header,
                    "on_header_value": self._header,
                    "on_header_end": self._header_end,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                },
            )

    def feed(self, data: bytes) -> bool:
        """Whether this still is a form."""
        try:
            self._parser.write(data)
        except (FormParserError, AttributeError):
            return False
        return True

    def digest(self) -> bytes:
        return self._all.digest()

    def _begin(self) -> None:
        self._part, self._head = hashlib.sha256(), hashlib.sha256()

    def _header(self, data: bytes, start: int, end: int) -> None:
        self._head.update(data[start:end])

    def _header_end(self) -> None:
        self._head.update(b"\n")

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._part.update(data[start:end])

    def _end(self) -> None:
        self._all.update(self._head.digest() + self._part.digest())
