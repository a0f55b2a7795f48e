"""What came back over HTTP, or why nothing whole did."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from adapters.guard import one_line
from domain.edits import Failed

TEXT_BYTES = 20_000
"""Of an error's body, looked at for words."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status. ``skew_s`` is the server's clock minus ours, in seconds (its
    Date header is whole seconds, so +-1 means nothing); None without a Date."""

    status: int
    headers: httpx.Headers
    body: bytes
    seconds: float
    skew_s: float | None
    host: str

    @property
    def media_type(self) -> str:
        """Of the header, lower case, without parameters."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def request_id(self) -> str:
        """Whatever name the maker gave it; "" where there is none."""
        for name in (
            "x-request-id",
            "request-id",
            "x-amzn-requestid",
            "x-goog-request-id",
            "cf-ray",
        ):
            if self.headers.get(name):
                return one_line(str(self.headers[name]), 100)
        return ""

    def json(self) -> Any:
        """The body as JSON. Raises ValueError in one clear line."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise ValueError(
                f"HTTP {self.status}: the answer is not JSON ({self.media_type or 'no type given'})"
            ) from None

    def json_or_none(self) -> Any:
        """The body as JSON, None where it is none: for looking into error answers."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def words(self) -> str:
        """The beginning of the body for people: of a web page its title, of anything that is no
        text its length and type. It may hold the key: redact it."""
        head = self.body[:TEXT_BYTES]
        if self.media_type.partition("/")[0] in ("image", "audio", "video") or b"\0" in head:
            return f"{len(self.body)} bytes of {self.media_type or 'no text'}"
        text = head.decode("utf-8", "replace")
        if text.count("\ufffd") > len(text) // 20:
            return f"{len(self.body)} bytes of {self.media_type or 'no text'}"
        title = re.search(r"<title[^>]*>(.{1,200}?)</title>", text, re.IGNORECASE | re.DOTALL)
        return title[1] if title else text

    def meta(self) -> dict[str, Any]:
        """The facts of this call for the outcome's ``meta``."""
        found: dict[str, Any] = {"http_status": self.status}
        if self.request_id:
            found["request_id"] = self.request_id
        if self.skew_s is not None:
            found["clock_skew_s"] = round(self.skew_s, 1)
        return found


def clock_skew(headers: httpx.Headers, began: float, came: float) -> float | None:
    """The least difference, server's clock minus ours in seconds, that the Date header proves.

    A server may date an answer at any moment between our sending (``began``) and the headers'
    coming (``came``, both epoch seconds), and cuts the date to the second: a date within that time
    says that the clocks may agree, 0. None without a date."""
    try:
        date = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    if date > came:
        return date - came
    return min(0.0, date + 1.0 - began)


def broken(error: httpx.HTTPError, said: str, host: str) -> Failed:
    """No whole answer came. What may have reached the tool may be billed."""
    if isinstance(error, httpx.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in said:
        return Failed(f"{host} shows a certificate that nobody here vouches for (ca_file?): {said}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return Failed(f"{host} cannot be reached: {said or 'no answer'}", retryable=True)
    if isinstance(error, httpx.TimeoutException):
        return Failed(f"{host} gave no answer in time", retryable=True, meta={"maybe_billed": True})
    if isinstance(error, httpx.RemoteProtocolError):
        return Failed(
            f"{host} broke off its answer: {said}", retryable=True, meta={"maybe_billed": True}
        )
    return Failed(
        f"{host}: {type(error).__name__}: {said}",
        retryable=isinstance(error, httpx.NetworkError),
        meta={"maybe_billed": isinstance(error, httpx.NetworkError)},
    )
