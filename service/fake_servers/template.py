"""A picture API that no maker has, with the habits of several: multipart answered by the bytes, JSON
answered by base64, and jobs answered by an address. For trying out a request template.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, decode, encode, seen_of

NAME = "template"
DOES = "an imaginary maker's plain API: /v1/edit (multipart), /v1/edit.json, /v1/jobs (polled)"
BEHAVIOURS: Mapping[str, str] = {
    "blocked": "422 with error.code blocked_face (what 'refuse' plays)",
    "filtered": "200 with a black picture, marked only by a header or a key",
    "job_refused": "a job that ends as refused, with a reason",
    "job_failed": "a job that ends as failed",
    "stuck": "a job that never ends",
    "poll_trouble": "two polls fail (503, 429), then the job is done",
    "expired": "the job's result has gone: 410",
    "no_result": "200 without a result",
    "no_credit": "402",
    "busy": "429 that names its wait in the body only",
}


class Wrong(Exception):
    """What the API turns away; the text is its sentence."""


def app(desk: Desk) -> Starlette:
    """The server."""
    mira = _Mira(desk)
    return Starlette(
        routes=[
            Route("/v1/edit", mira.edit, methods=["POST"]),
            Route("/v1/edit.json", mira.edit_json, methods=["POST", "PUT"]),
            Route("/v1/jobs", mira.submit, methods=["POST"]),
            Route("/v1/jobs/{id}", mira.job, methods=["GET"]),
            Route("/v1/jobs/{id}/stop", mira.stop, methods=["POST"]),
            Route("/v1/files/{name}", mira.file, methods=["GET"]),
        ]
    )


class _Mira:
    """What is kept between requests."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.jobs: dict[str, dict[str, Any]] = {}

    async def edit(self, request: Request) -> Response:
        """multipart: picture, mask (grey, white is edited), prompt, seed, strength."""
        if not self._desk.has_bearer(request):
            return _error(401, "bad_token", "The token is not valid")
        seen = seen_of(request)
        picture, mask = seen.files.get("picture"), seen.files.get("mask")
        try:
            if seen.file_types.get("picture") not in ("image/png", "image/jpeg"):
                raise Wrong("picture: a PNG or JPEG file is needed")
            int(seen.fields.get("seed", "0"))
            if not 0 <= float(seen.fields.get("strength", "1")) <= 1:
                raise Wrong("strength: 0 to 1")
            picture, mask = _pair(picture, mask, lambda grey: grey)
        except (Wrong, ValueError) as wrong:
            return _error(400, "bad_request", str(wrong))
        behaviour = self._desk.turn(picture)
        trouble = self._trouble(behaviour)
        if trouble is not None:
            return trouble
        result, verdict = self._work(behaviour, picture, mask)
        head = {"x-request-id": secrets.token_hex(8), "x-mira-verdict": verdict}
        return Response(result, media_type="image/png", headers=head)

    async def edit_json(self, request: Request) -> Response:
        """JSON: input.image (base64), input.mask (data URI, black is edited), text, options."""
        if not self._desk.has_key(request.headers.get("x-api-key")):
            return _error(401, "bad_token", "The key is not valid")
        body = seen_of(request).json()
        try:
            picture, mask, size = _json_edit(body)
        except Wrong as wrong:
            return _error(400, "bad_request", str(wrong))
        behaviour = self._desk.turn(picture)
        trouble = self._trouble(behaviour)
        if trouble is not None:
            return trouble
        result, verdict = self._work(behaviour, picture, mask, size)
        told: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "engine": "mira-3.1",
            "verdict": verdict,
        }
        if behaviour != "no_result":
            told["output"] = [{"image_b64": base64.b64encode(result).decode()}]
        return JSONResponse(told)

    async def submit(self, request: Request) -> Response:
        """JSON: image (data URI), mask (data URI of a PNG, transparent is edited), prompt."""
        if not self._desk.has_bearer(request):
            return _error(401, "bad_token", "The token is not valid")
        body = seen_of(request).json()
        try:
            if not isinstance(body, dict):
                raise Wrong("a JSON object is needed")
            given = _from_uri(body.get("image")), _from_uri(body.get("mask"))
            picture, mask = _pair(*given, _transparent)
        except Wrong as wrong:
            return _error(400, "bad_request", str(wrong))
        behaviour = self._desk.turn(picture)
        trouble = None if behaviour == "refuse" else self._trouble(behaviour)
        if trouble is not None:
            return trouble
        behaviour = "job_refused" if behaviour == "refuse" else behaviour
        name = secrets.token_hex(8)
        result, _ = self._work(behaviour, picture, mask)
        self.jobs[name] = {"behaviour": behaviour, "result": result, "polls": 0}
        link = f"{self._desk.url}/v1/jobs/{name}"
        return JSONResponse({"job": {"id": name, "state": "waiting", "link": link}}, 202)

    async def job(self, request: Request) -> Response:
        """The state of a job."""
        name = request.path_params["id"]
        job = self.jobs.get(name)
        if not self._desk.has_bearer(request) or job is None:
            return _error(404, "no_such_job", "There is no such job")
        job["polls"] += 1
        behaviour, told = job["behaviour"], {"id": name, "state": "working"}
        if behaviour == "poll_trouble" and job["polls"] <= 2:
            return _error(503 if job["polls"] == 1 else 429, "busy", "Try again in 2s")
        if job["polls"] == 1 or behaviour == "stuck":
            return JSONResponse({"job": told})
        ends = {"job_refused": "refused", "job_failed": "failed", "stopped": "stopped"}
        told["state"] = ends.get(behaviour, "finished")
        if told["state"] != "finished":
            said = "A face may not be edited" if behaviour == "job_refused" else "Worker lost"
            return JSONResponse({"job": told, "error": {"code": behaviour, "message": said}})
        files = [] if behaviour == "no_result" else [{"href": f"/v1/files/{name}.png"}]
        return JSONResponse({"job": told, "files": files, "engine": "mira-3.1"})

    async def stop(self, request: Request) -> Response:
        """Stop a job."""
        job = self.jobs.get(request.path_params["id"])
        if not self._desk.has_bearer(request) or job is None:
            return _error(404, "no_such_job", "There is no such job")
        job["behaviour"] = "stopped"
        return JSONResponse({"job": {"state": "stopped"}})

    async def file(self, request: Request) -> Response:
        """A result; whoever has the address may fetch it."""
        job = self.jobs.get(request.path_params["name"].removesuffix(".png"))
        if job is None or job["behaviour"] == "expired":
            return Response("gone", 410)
        return Response(job["result"], media_type="image/png")

    def _trouble(self, behaviour: str) -> Response | None:
        if behaviour in ("refuse", "blocked"):
            return _error(422, "blocked_face", "A face may not be edited")
        if behaviour == "no_credit":
            return _error(402, "no_credit", "The credit is used up")
        if behaviour == "busy":
            told = {"error": {"code": "busy", "message": "Busy", "retry_after_ms": 2500}}
            return JSONResponse(told, 429)
        return self._desk.common(behaviour)

    def _work(
        self,
        behaviour: str,
        picture: bytes,
        mask: bytes | None,
        size: tuple[int, int] | None = None,
    ) -> tuple[bytes, str]:
        if behaviour == "filtered":
            return encode(np.zeros_like(decode(picture))), "filtered"
        return self._desk.edit(picture, mask, size=size), "clean"


def _json_edit(body: Any) -> tuple[bytes, bytes | None, tuple[int, int]]:
    given = body.get("input") if isinstance(body, dict) else None
    options = body.get("options") if isinstance(body, dict) else None
    if not isinstance(given, dict) or not isinstance(options, dict):
        raise Wrong("input and options are needed")
    if not isinstance(body.get("text"), str) or type(options.get("seed")) is not int:
        raise Wrong("text: a string; options.seed: a whole number")
    size = options.get("size")
    if not isinstance(size, list) or [type(side) for side in size] != [int, int]:
        raise Wrong("options.size: two whole numbers")
    try:
        image = base64.b64decode(given.get("image") or "", validate=True)
    except ValueError:
        raise Wrong("input.image: base64 is needed") from None
    mask = _from_uri(given["mask"]) if "mask" in given else None
    picture, white = _pair(image, mask, lambda grey: 255 - grey)
    return picture, white, (size[0], size[1])


def _pair(
    picture: bytes | None, mask: bytes | None, to_white: Callable[[Any], Any]
) -> tuple[bytes, bytes | None]:
    """The picture, and the mask as grey where white is edited."""
    try:
        shape = decode(picture or b"").shape[:2]
        pixels = None if mask is None else to_white(decode(mask, cv2.IMREAD_UNCHANGED))
    except ValueError as error:
        raise Wrong(f"picture or mask: {error}") from None
    if pixels is None:
        return picture or b"", None
    if pixels.ndim != 2:
        raise Wrong("mask: one grey channel is needed")
    if pixels.shape != shape:
        raise Wrong("mask: the picture's size is needed")
    return picture or b"", encode(pixels)


def _transparent(pixels: Any) -> Any:
    if pixels.ndim != 3 or pixels.shape[2] != 4:
        raise Wrong("mask: an alpha channel is needed")
    return 255 - pixels[..., 3]


def _from_uri(text: Any) -> bytes | None:
    if text is None:
        return None
    head, comma, encoded = str(text).partition(",")
    if not comma or head != "data:image/png;base64":
        raise Wrong("a data URI of a PNG is needed")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise Wrong("a data URI of a PNG is needed") from None


def _error(status: int, code: str, said: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": said}}, status)
