"""Every failure as ``application/problem+json`` (RFC 9457): one shape, a stable ``type``, no secrets.

``type`` is a relative address under /problems/, where the kind is explained; ``instance`` is the
request's id. No value that was sent is ever repeated: it may be a key or somebody's face.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from domain.errors import LedgerError, LikenessError, PictureRejected, StoreUnavailable
from service import secrets
from service.api.problem_kinds import PREFIX, slug_of, title_of

MEDIA_TYPE = "application/problem+json"
INSTANCE = "urn:likeness:request:"
SCHEMA = "#/components/schemas/Problem"
MOST_ERRORS = 50
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)


class Problem(HTTPException):
    """An expected failure of a request. ``detail`` is one line for people; ``more`` are members of
    the answer's object, ``headers`` its headers.

    An HTTPException, so that one raised while a body is being read passes through the framework.
    """

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status_code=status, detail=detail, headers=dict(headers or {}))
        self.slug, self.more = slug, more

    def __str__(self) -> str:
        return f"{self.status_code} {self.slug}: {self.detail}"


class Busy(Problem):
    """No room now: 503 with Retry-After."""

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(503, "busy", detail, headers={"Retry-After": str(retry_after_s)})


def answer(problem: Problem, instance: str) -> Response:
    """``problem`` as a response; ``instance`` is the request's id."""
    body = {
        "type": f"{PREFIX}{problem.slug}",
        "title": title_of(problem.slug, problem.status_code),
        "status": problem.status_code,
        "detail": secrets.hide_keys(str(problem.detail)),
        "instance": INSTANCE + instance,
        **problem.more,
    }
    return Response(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status_code=problem.status_code,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def as_problem(error: Exception, store_retry_s: int = 5) -> Problem:  # noqa: PLR0911 - a table
    """What a failure is to a caller. Whatever is not expected is a 500 that tells nothing."""
    if _no_room(error):
        retry = {"Retry-After": str(store_retry_s)}
        return Problem(503, "store-unavailable", "the service's disk has no room", headers=retry)
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return Problem(422, "invalid", _summary(error.errors()), errors=_listed(error.errors()))
        case StarletteHTTPException():
            return _of_framework(error)
        case StoreUnavailable():
            retry = {"Retry-After": str(store_retry_s)}
            return Problem(503, "store-unavailable", "the store cannot be reached", headers=retry)
        case PictureRejected():
            return Problem(422, "picture-rejected", str(error), code=error.code)
        case LedgerError():  # damaged, or not ours: nothing that a caller could mend
            return Problem(500, "internal", "the service failed at this request")
        case LikenessError():
            return Problem(400, "rejected", str(error))
        case ClientDisconnect():
            return Problem(400, "body-incomplete", "the body ended early")
    return Problem(500, "internal", "the service failed at this request")


def _no_room(error: Exception) -> bool:
    """Whether our disk is full, or we hold all the files that we may. The framework takes that, met
    while it puts a body aside, for a fault of the body."""
    cause = error.__cause__ if isinstance(error, StarletteHTTPException) else error
    return isinstance(cause, OSError) and cause.errno in _FULL


def _of_framework(error: StarletteHTTPException) -> Problem:
    status = error.status_code
    detail = {
        400: "the body could not be read",
        404: "there is nothing at this address",
        405: "this address does not take this method",
    }.get(status, str(error.detail))
    # what the multipart reader says names the fault and repeats nothing that was sent
    if status == 400 and isinstance(error.detail, str) and error.detail.endswith("."):
        detail = error.detail.rstrip(".")
    return Problem(status, slug_of(status), detail, headers=error.headers)


def _summary(errors: Sequence[Any]) -> str:
    count = len(errors)
    return "1 mistake in what was sent" if count == 1 else f"{count} mistakes in what was sent"


def _listed(errors: Sequence[Any]) -> list[dict[str, str]]:
    return [_one(e) for e in errors[:MOST_ERRORS]]


def _one(error: Mapping[str, Any]) -> dict[str, str]:
    place, *rest = error.get("loc") or ("body",)
    kind = str(error.get("type", "invalid"))
    said = _said(error)
    if place == "body":
        # where JSON breaks off, the place is a position in the text, and not a part of the value
        parts: list[Any] = [] if kind == "json_invalid" else rest
        return {
            "pointer": "#" + "".join(f"/{_escaped(p)}" for p in parts),
            "detail": said,
            "code": kind,
        }
    return {"parameter": str(rest[0]) if rest else str(place), "in": str(place), "detail": said, "code": kind}  # fmt: skip


_WITH_VALUES = {"value_error", "assertion_error"}
"""Kinds whose message is written by a validator of ours: no value in it by rule, keys hidden by force."""


def _said(error: Mapping[str, Any]) -> str:
    kind, said = str(error.get("type")), str(error.get("msg", "invalid"))
    if kind == "json_invalid":
        return "not valid JSON"
    if kind in _WITH_VALUES:
        said = secrets.hide_keys(said.removeprefix("Value error, "))
    return said[:300]


def _escaped(part: Any) -> str:
    """One step of a JSON pointer (RFC 6901). A long one is a key that was sent: it is cut."""
    return str(part)[:64].replace("~", "~0").replace("/", "~1")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses=`` of an operation that may answer with these statuses."""
    return {status: described(status) for status in statuses}


def described(status: int, slug: str | None = None) -> dict[str, Any]:
    """One response of OpenAPI, with an example."""
    slug = slug or slug_of(status)
    example = {
        "type": f"{PREFIX}{slug}",
        "title": title_of(slug, status),
        "status": status,
        "detail": "what happened, in one line",
        "instance": f"{INSTANCE}6f1c0d1e",
    }
    content = {"schema": {"$ref": SCHEMA}, "example": example}
    return {"description": title_of(slug, status), "content": {MEDIA_TYPE: content}}


def install(app: FastAPI) -> None:
    """Let ``app`` answer every failure as a problem."""

    async def handle(request: Request, error: Exception) -> Response:
        retry = request.app.state.context.limits.store_retry_s
        problem = wrong_media_type(request, error) or as_problem(error, retry)
        return answer(problem, request_id(request.scope))

    for kind in (
        Problem, StarletteHTTPException, RequestValidationError, LikenessError, ClientDisconnect
    ):  # fmt: skip
        app.add_exception_handler(kind, handle)


def request_id(scope: Mapping[str, Any]) -> str:
    """The id that the outermost layer gave the request."""
    return str(scope.get("state", {}).get("request_id", "none"))


def wrong_media_type(request: Request, error: Exception) -> Problem | None:
    """415 in place of 422 where the body is not of the kind that the operation reads."""
    if not isinstance(error, RequestValidationError):
        return None
    if not any((e.get("loc") or ("",))[0] == "body" for e in error.errors()):
        return None
    field = getattr(request.scope.get("route"), "body_field", None)
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if field is None or (not sent and request.headers.get("content-length", "0") == "0"):
        return None
    takes = str(getattr(field.field_info, "media_type", "application/json"))
    if takes == sent or (takes == "application/json" and sent.endswith("+json")):
        return None
    if takes == "application/x-www-form-urlencoded" and sent == "multipart/form-data":
        return None
    return Problem(415, "media-type", f"this operation takes {takes}")
