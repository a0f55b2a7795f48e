"""The kinds of problems the service answers with: a stable slug, a title, what it means and what to do.

A resource adds its own with ``kind(...)`` at the head of its module. The slug is the last part of a
problem's ``type`` and never changes; the words may.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

PREFIX = "/problems/"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: ``about`` says in a sentence or two what happened and what helps."""

    slug: str
    status: int
    title: str
    about: str


KINDS: dict[str, Kind] = {}


def kind(slug: str, status: int, title: str, about: str) -> Kind:
    """Enter a kind of problem. A slug means one thing only."""
    made = Kind(slug, status, title, about)
    if KINDS.setdefault(slug, made) != made:
        raise ValueError(f"problem '{slug}' is described twice")
    return made


def title_of(slug: str, status: int) -> str:
    """A kind's title, else the status's own phrase."""
    known = KINDS.get(slug)
    return known.title if known else HTTPStatus(status).phrase


def slug_of(status: int) -> str:
    """The general kind of a status."""
    return GENERAL.get(status) or HTTPStatus(status).phrase.lower().replace(" ", "-")


kind(
    "bad-request", 400, "Bad request", "The request could not be read as what this operation takes."
)
kind(
    "rejected",
    400,
    "Not accepted",
    "What was sent was read, and cannot be worked on; the detail names the item and the cause.",
)
kind(
    "body-incomplete", 400, "Body incomplete", "The body ended early or is damaged; send it again."
)
kind(
    "key-missing",
    401,
    "API key missing",
    "This operation needs a key: send it as 'Authorization: Bearer lk_...'. Whoever runs the"
    " service makes one with 'likeness keys add'.",
)
kind(
    "key-refused",
    401,
    "API key refused",
    "The key is unknown, revoked or expired. Ask for a new one.",
)
kind(
    "scope-missing",
    403,
    "Key without this right",
    "The key is good, but was made without the scope that the detail names.",
)
kind(
    "host-refused",
    403,
    "Host name refused",
    "The request names a host that this service does not answer to, as happens when a web page"
    " turns a browser against it. Whoever runs the service lists its names in LIKENESS_HOSTS.",
)
kind(
    "origin-refused",
    403,
    "Origin refused",
    "A web page of another origin may not call this service.",
)
kind(
    "not-found",
    404,
    "Not found",
    "There is no such thing, or it belongs to another key.",
)
kind(
    "method-not-allowed",
    405,
    "Method not allowed",
    "See the header Allow for what this address takes.",
)
kind("not-acceptable", 406, "Not acceptable", "The answer does not exist in the form asked for.")
kind(
    "too-slow",
    408,
    "Body too slow",
    "The body came slower than the service waits for; send it again.",
)
kind("conflict", 409, "Conflict", "The thing is in a state in which this cannot be done.")
kind(
    "repeat-in-flight",
    409,
    "Same request under way",
    "A request with this Idempotency-Key is still being worked on. Ask again after Retry-After.",
)
kind(
    "answer-not-kept",
    409,
    "Done, answer not kept",
    "The request with this Idempotency-Key was done; its answer was too large to keep for repeats.",
)
kind("gone", 410, "Gone", "The thing was there, and was deleted or has expired.")
kind("length-required", 411, "Length required", "Send the body with a Content-Length.")
kind(
    "too-large",
    413,
    "Too large",
    "The body is larger than the service takes; the detail names the limit.",
)
kind("uri-too-long", 414, "Address too long", "Shorten the address or its query.")
kind(
    "media-type",
    415,
    "Media type not taken",
    "The operation takes another kind of body; the detail names which.",
)
kind("range", 416, "Range not satisfiable", "The part asked for lies outside.")
kind(
    "invalid",
    422,
    "Invalid input",
    "'errors' lists each mistake: 'pointer' is a JSON pointer into the body, or 'parameter' the name"
    " of a parameter, and 'detail' says what is wrong. Values sent are not repeated.",
)
kind(
    "bad-cursor",
    400,
    "Cursor not of this list",
    "Pass 'next' of a page of the same list with the same filters, or leave the cursor out.",
)
kind("picture-rejected", 422, "Picture not accepted", "The file cannot be used; 'code' says why.")
kind(
    "repeat-differs",
    422,
    "Idempotency-Key used for something else",
    "This Idempotency-Key came before with another body or for another operation. Use a new one.",
)
kind(
    "too-many-attempts",
    429,
    "Too many wrong keys",
    "Too many requests with wrong keys came from this address. Wait as long as Retry-After says.",
)
kind("too-many", 429, "Too many", "Wait as long as Retry-After says.")
kind("headers-too-large", 431, "Headers too large", "Send fewer or shorter headers.")
kind(
    "internal",
    500,
    "Fault of the service",
    "Something broke that should not. Nothing of the request is shown; quote 'instance' when you"
    " report it.",
)
kind(
    "busy",
    503,
    "Busy",
    "The service has as much work as it can hold. Ask again after Retry-After.",
)
kind(
    "store-unavailable",
    503,
    "Store unavailable",
    "The database or the place for pictures cannot be reached or is full. Nothing was lost; ask"
    " again after Retry-After.",
)
kind(
    "not-ready",
    503,
    "Not ready",
    "Something that the service needs is missing; 'missing' names it.",
)

GENERAL = {
    400: "bad-request",
    401: "key-missing",
    403: "scope-missing",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    408: "too-slow",
    409: "conflict",
    410: "gone",
    411: "length-required",
    413: "too-large",
    414: "uri-too-long",
    415: "media-type",
    416: "range",
    422: "invalid",
    429: "too-many",
    431: "headers-too-large",
    500: "internal",
    503: "store-unavailable",
}
