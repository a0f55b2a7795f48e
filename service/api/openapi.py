"""The description of the service in OpenAPI 3.1, as the framework draws it from the code, mended
where that would say what is not so: failures are problems, and every operation may have some."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.api.problems import MEDIA_TYPE, described
from service.limits import Limits

DESCRIPTION = """\
Audits AI image tools for uneven harm to faces.

Upload a batch of portraits, start a run over it, follow its events, read measurements, verdicts and
the report; or ask the gate about one edited picture.

* Keys: `Authorization: Bearer lk_...`, made with `likeness keys add`. Scopes: submit, read, review,
  admin. A key sees only what it made; an administrator's sees everything.
* Failures are `application/problem+json` (RFC 9457); every `type` is explained under `/problems/`.
* Every POST takes `Idempotency-Key`: sent again within 24 hours, the same request gets the same
  answer and does its work once.
* Lists come in pages: pass `next` of one as `cursor` of the next.
"""
TAGS = [
    {"name": "gate", "description": "One edited picture, one decision."},
    {"name": "batches", "description": "Portraits to be audited with."},
    {"name": "runs", "description": "Audits: started, followed, read."},
    {"name": "probes", "description": "Text probes of language models."},
    {"name": "tools", "description": "What can be audited here."},
    {"name": "access", "description": "Who did what, for administrators."},
    {"name": "health", "description": "For those who run the service."},
    {"name": "problems", "description": "What went wrong, explained."},
]
ANYWHERE = (400, 403, 500, 503)
"""Statuses that any operation may answer with: an address or headers that cannot be read, a refused
host, a fault, a busy or storeless service."""
WITH_BODY = (408, 413, 415, 422)
WITH_KEY = (401, 429)
REPEATABLE = (409, 422)
_METHODS = {"get", "post", "put", "patch", "delete"}
PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "A failure (RFC 9457). `type` is stable; members beside these belong to it.",
    "required": ["type", "title", "status", "detail", "instance"],
    "properties": {
        "type": {"type": "string", "examples": ["/problems/not-found"]},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "One line for people."},
        "instance": {"type": "string", "description": "Names the request; quote it in a report."},
        "errors": {
            "type": "array",
            "description": "Each mistake of a 422: where it is and what is wrong.",
            "items": {
                "type": "object",
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer into the body."},
                    "parameter": {"type": "string"},
                    "in": {"type": "string"},
                    "detail": {"type": "string"},
                    "code": {"type": "string"},
                },
            },
        },
    },
}
IDEMPOTENCY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Any text that is new for each piece of work: sent again, it is done once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    "example": "0f8c4c1e-batch-of-tuesday",
}


def install(app: FastAPI, limits: Limits) -> None:
    """Let ``app.openapi()`` give the mended description, drawn once."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _mended(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _mended(app: FastAPI) -> dict[str, Any]:
    drawn: dict[str, Any] = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
        servers=app.servers,
    )
    for path, methods in drawn.get("paths", {}).items():
        for method, operation in methods.items():
            if method in _METHODS:
                _mend(path, method, operation)
    schemas = drawn.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = PROBLEM_SCHEMA
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    drawn["components"].setdefault("headers", {})["X-Request-Id"] = {
        "description": "The request's id; send one to choose it.",
        "schema": {"type": "string"},
    }
    return drawn


def _mend(path: str, method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    if not _is_problem(responses.get("422")):
        responses.pop("422", None)
    statuses = set(ANYWHERE)
    if operation.get("parameters"):
        statuses.add(422)
    if "requestBody" in operation:
        statuses |= set(WITH_BODY)
    if operation.get("security"):
        statuses |= set(WITH_KEY)
    if method == "post":
        statuses |= set(REPEATABLE)
        operation.setdefault("parameters", []).append(IDEMPOTENCY)
    for status in sorted(statuses):
        responses.setdefault(str(status), described(status))
    for status, response in responses.items():
        response.setdefault("headers", {})["X-Request-Id"] = {
            "$ref": "#/components/headers/X-Request-Id"
        }
        if status in ("429", "503"):
            response["headers"]["Retry-After"] = {
                "description": "Seconds to wait.",
                "schema": {"type": "integer"},
            }


def _is_problem(response: dict[str, Any] | None) -> bool:
    return response is not None and MEDIA_TYPE in response.get("content", {})
