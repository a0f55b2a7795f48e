"""Replicate's predictions: created, polled, cancelled; files up and down.

Sources: replicate.com/docs/reference/http, the pages on rate limits, error codes and deadlines; free
words of failed models as public trackers quote them. Results lie on the server's own host, where the
real one asks for the token too; on replicate.delivery it asks for none.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, seen_of
from service.fake_servers.replicate_inputs import InvalidInput, read_inputs

NAME = "replicate"
DOES = "Replicate predictions: Prefer: wait or polling, data URIs and files, refusals in free words"
BEHAVIOURS: Mapping[str, str] = {
    "flagged": "failed: input or output flagged as sensitive, E005 (what 'refuse' plays)",
    "flagged_input": "failed: the prompt or picture was flagged",
    "nsfw": "failed: NSFW content detected",
    "empty_output": "succeeded with an empty list; only the log says NSFW",
    "no_output": "succeeded without output, for no given reason",
    "crash": "failed: CUDA out of memory",
    "not_started": "failed: E6716, a timeout of starting it",
    "canceled": "canceled while it ran",
    "aborted": "aborted before it began",
    "stuck": "processing for ever, until it is cancelled",
    "poll_trouble": "two polls fail (502, 429), then it succeeds",
    "list": "output is a list of two addresses",
    "object": "output is an object of addresses",
    "data_uri": "output is a data URI",
    "text": "output is a sentence",
    "expired": "the output's address answers 404",
    "redirect": "the output's address answers 302",
    "web_page": "the output's address answers a web page",
    "inside": "the output's address is a metadata service's",
    "removed": "succeeded, but the data was removed",
    "throttled": "429 that names its wait in the detail only",
    "no_credit": "402, insufficient credit",
    "strange_state": "a state that is not documented",
}
VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
FAILURES = {
    "flagged": "The input or output was flagged as sensitive. Please try again with different inputs. (E005)",
    "flagged_input": "The prompt was flagged by content moderation.",
    "nsfw": "NSFW content detected. Try running it again, or try a different prompt.",
    "crash": "CUDA out of memory. Tried to allocate 20.00 MiB",
    "not_started": "Timeout starting prediction (E6716)",
}
_DEADLINE = re.compile(r"^(?:\d+h)?(?:\d+m)?(?:\d+s?)?$")

CREATED, EXPIRES = "2026-11-01T12:00:00.000Z", "2026-11-02T12:00:00.000Z"
"""Of an uploaded file; nothing here ages."""


def app(desk: Desk) -> Starlette:
    """The server."""
    jobs = _Jobs(desk)
    routes = [
        Route("/v1/predictions", jobs.create, methods=["POST"]),
        Route("/v1/models/{owner}/{name}/predictions", jobs.create, methods=["POST"]),
        Route("/v1/deployments/{owner}/{name}/predictions", jobs.create, methods=["POST"]),
        Route("/v1/predictions/{id}", jobs.get, methods=["GET"]),
        Route("/v1/predictions/{id}/cancel", jobs.cancel, methods=["POST"]),
        Route("/v1/files", jobs.upload, methods=["POST"]),
        Route("/v1/files/{id}", jobs.delete, methods=["DELETE"]),
        Route("/outputs/{id}/{name}", jobs.output, methods=["GET"]),
    ]
    return Starlette(routes=routes)


class _Jobs:
    """What is kept between requests."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.jobs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.results: dict[str, bytes] = {}

    async def create(self, request: Request) -> Response:
        if not self._desk.has_bearer(request):
            return _problem(401, "Unauthenticated", "You did not pass an authentication token")
        name = "/".join(request.path_params.get(k, "") for k in ("owner", "name")).strip("/")
        body = seen_of(request).json()
        wrong = _wrong_envelope(request, name, body)
        if wrong is not None:
            return wrong
        try:
            picture, mask, echoed = read_inputs(body["input"], self._desk.url, self.files)
        except InvalidInput as error:
            return _invalid(error)
        behaviour = self._desk.turn(picture)
        trouble = self._trouble(behaviour)
        if trouble is not None:
            return trouble
        behaviour = "flagged" if behaviour == "refuse" else behaviour
        job_id = secrets.token_hex(13)
        self.results[job_id] = self._desk.edit(picture, mask)
        self.jobs[job_id] = {
            "id": job_id,
            "model": name or "example/inpainter",
            "version": VERSION,
            "input": echoed,
            "behaviour": behaviour,
            "polls": 0,
        }
        waits = request.headers.get("prefer", "").startswith("wait")
        first = behaviour in ("stuck", "poll_trouble") or not waits
        return JSONResponse(self._view(job_id, "starting" if first else ""), 201)

    async def get(self, request: Request) -> Response:
        if not self._desk.has_bearer(request):
            return _problem(401, "Unauthenticated", "You did not pass an authentication token")
        job = self.jobs.get(request.path_params["id"])
        if job is None:
            return _problem(404, "Not found", "The requested resource could not be found")
        job["polls"] += 1
        if job["behaviour"] == "poll_trouble" and job["polls"] <= 2:
            if job["polls"] == 1:
                return Response("<html><title>502 Bad Gateway</title></html>", 502)
            return _throttled(2)
        return JSONResponse(self._view(job["id"], "processing" if job["polls"] < 2 else ""))

    async def cancel(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        if not self._desk.has_bearer(request) or job is None:
            return _problem(404, "Not found", "The requested resource could not be found")
        job["behaviour"] = "canceled"
        return JSONResponse(self._view(job["id"], ""))

    async def upload(self, request: Request) -> Response:
        seen = seen_of(request)
        content = seen.files.get("content")
        if not self._desk.has_bearer(request):
            return _problem(401, "Unauthenticated", "You did not pass an authentication token")
        if not content:
            return _problem(400, "Bad request", "Missing content")
        name = secrets.token_hex(13)
        self.files[name] = content
        digest = hashlib.sha256(content).hexdigest()
        told = {
            "id": name,
            "name": "content",
            "content_type": seen.file_types["content"],
            "size": len(content),
            "etag": digest[:32],
            "checksums": {"sha256": digest},
            "metadata": {},
            "created_at": CREATED,
            "expires_at": EXPIRES,
            "urls": {"get": f"{self._desk.url}/v1/files/{name}"},
        }
        return JSONResponse(told, 201)

    async def delete(self, request: Request) -> Response:
        if not self._desk.has_bearer(request):
            return _problem(401, "Unauthenticated", "You did not pass an authentication token")
        known = self.files.pop(request.path_params["id"], None)
        return Response(status_code=204 if known is not None else 404)

    async def output(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        if job is None or job["behaviour"] == "expired":
            return Response("Not Found", 404)
        if not self._desk.has_bearer(request):
            return _problem(401, "Unauthenticated", "You did not pass an authentication token")
        if job["behaviour"] == "redirect":
            return Response(status_code=302, headers={"location": "https://example.com/x.png"})
        if job["behaviour"] == "web_page":
            return Response("<title>Sign in</title>", media_type="text/html")
        return Response(self.results[job["id"]], media_type="image/png")

    def _trouble(self, behaviour: str) -> Response | None:
        if behaviour == "throttled":
            return _throttled(10)
        if behaviour == "no_credit":
            return _problem(
                402, "Insufficient credit", "You have insufficient credit to run this model."
            )
        body = {"detail": "Request was throttled. Your rate limit resets in ~1s."}
        return self._desk.common(behaviour, body=body if behaviour == "429" else None)

    def _view(self, job_id: str, status: str) -> dict[str, Any]:
        """The prediction as the API shows it; without ``status`` in its last state."""
        job, ended = self.jobs[job_id], not status
        behaviour = job["behaviour"]
        if ended:
            status = _last_state(behaviour)
        address = f"{self._desk.url}/v1/predictions/{job_id}"
        shown = {name: job[name] for name in ("id", "model", "version", "input")}
        shown |= {"status": status, "error": None, "logs": "", "output": None, "metrics": {}}
        shown |= {"source": "api", "data_removed": False}
        shown["urls"] = {"get": address, "cancel": f"{address}/cancel"}
        if not ended or behaviour == "stuck":
            return shown
        shown["metrics"] = {"predict_time": 1.25, "total_time": 1.5}
        shown["error"] = FAILURES.get(behaviour)
        if behaviour in FAILURES:
            return shown
        shown["output"] = self._output(job_id, behaviour)
        shown["data_removed"] = behaviour == "removed"
        if behaviour == "empty_output":
            shown["logs"] = "step 30/30\nNSFW content detected in image 0\ndone"
        return shown

    def _output(self, job_id: str, behaviour: str) -> Any:
        one = f"{self._desk.url}/outputs/{job_id}/out-0.png"
        encoded = base64.b64encode(self.results[job_id]).decode()
        outputs: dict[str, Any] = {
            "empty_output": [],
            "no_output": None,
            "removed": None,
            "canceled": None,
            "aborted": None,
            "list": [one, one.replace("out-0", "out-1")],
            "object": {"seed": 7, "image": one, "mask": f"{one}?mask"},
            "data_uri": f"data:image/png;base64,{encoded}",
            "text": "a portrait of a person",
            "inside": "http://169.254.169.254/latest/meta-data/out.png",
        }
        return outputs.get(behaviour, one)


def _last_state(behaviour: str) -> str:
    if behaviour in FAILURES:
        return "failed"
    states = {"stuck": "processing", "strange_state": "paused"}
    if behaviour in ("canceled", "aborted"):
        return behaviour
    return states.get(behaviour, "succeeded")


def _wrong_envelope(request: Request, name: str, body: Any) -> Response | None:
    """What the API turns away before it looks at the input."""
    if not isinstance(body, dict) or not isinstance(body.get("input"), dict):
        return _problem(422, "Input validation failed", "- input is required")
    if strange := set(body) - {"input", "version", "webhook", "webhook_events_filter", "stream"}:
        return _problem(422, "Input validation failed", f"- {min(strange)} is not allowed")
    if name.startswith("missing/"):
        return _problem(404, "Not found", "The requested resource could not be found")
    if not name and body.get("version") != VERSION:
        return _problem(
            422, "Invalid version or not permitted", "The specified version does not exist"
        )
    return _wrong_header(request)


def _wrong_header(request: Request) -> Response | None:
    prefer = re.match(r"^wait(?:=(\d+))?$", request.headers.get("prefer", "wait"))
    if prefer is None or not 1 <= int(prefer[1] or 60) <= 60:
        return _problem(422, "Input validation failed", "- Prefer is invalid")
    deadline = request.headers.get("cancel-after", "60s")
    if not deadline or not _DEADLINE.match(deadline):
        return _problem(422, "Input validation failed", "- Cancel-After is invalid")
    return None


def _invalid(error: InvalidInput) -> Response:
    fields = [{"type": "invalid", "field": f"input.{error.field}", "description": error.said}]
    told = {"title": "Input validation failed", "status": 422,
            "detail": f"- input.{error.field}: {error.said}", "invalid_fields": fields}  # fmt: skip
    return JSONResponse(told, 422, media_type="application/problem+json")


def _problem(status: int, title: str, detail: str) -> Response:
    told = {"title": title, "detail": detail, "status": status}
    return JSONResponse(told, status, media_type="application/problem+json")


def _throttled(seconds: int) -> Response:
    detail = f"Request was throttled. Your rate limit resets in ~{seconds}s."
    return JSONResponse({"detail": detail, "status": 429}, 429)
