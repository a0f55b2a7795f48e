"""Black Forest Labs' FLUX API: a task is submitted, polled at the address that came back, fetched.

Sources: docs.bfl.ai (OpenAPI of flux-pro-1.0-fill and flux-kontext-pro, errors, image generation),
github.com/black-forest-labs/skills for FLUX.2.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

import cv2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, decode, seen_of

NAME = "bfl"
DOES = "Black Forest Labs FLUX: x-key, base64 in, polling_url, signed address out"
BEHAVIOURS: Mapping[str, str] = {
    "request_moderated": "the task ends as Request Moderated (what 'refuse' plays)",
    "content_moderated": "the task ends as Content Moderated",
    "moderated_at_once": "the submission itself is answered with Request Moderated",
    "error": "the task ends as Error",
    "task_not_found": "polling answers Task not found, with 404",
    "no_credit": "402, no credit left",
    "too_many": "429: too many tasks at once",
    "stuck": "Pending for ever",
    "poll_trouble": "two polls fail (503, 429), then it is Ready",
    "expired": "the picture's signature has expired: 403",
    "no_sample": "Ready without an address",
    "no_polling_url": "accepted, but no polling_url is named",
    "region": "the polling_url lies on the host of a region",
    "foreign": "the polling_url lies on somebody else's host",
    "web_page": "the picture's address answers a web page",
    "other_size": "the picture comes back at half the size",
}
REASONS = {"Moderation Reasons": ["Derivative Works Filter"]}
COMMON_FIELDS = frozenset(
    {"prompt", "seed", "safety_tolerance", "output_format", "webhook_url", "webhook_secret"}
)
FILL = COMMON_FIELDS | {"image", "mask", "steps", "guidance", "prompt_upsampling"}
KONTEXT = COMMON_FIELDS | {"input_image", "aspect_ratio", "prompt_upsampling"}
FLUX_2 = COMMON_FIELDS | {"input_image", "width", "height"}
ENDPOINTS: Mapping[str, frozenset[str]] = {
    "flux-pro-1.0-fill": FILL,
    "flux-kontext-pro": KONTEXT,
    "flux-kontext-max": KONTEXT,
    "flux-2-pro": FLUX_2,
    "flux-2-max": FLUX_2,
}
RANGES: Mapping[str, tuple[float, float]] = {
    "steps": (15, 50),
    "guidance": (1.5, 100),
    "safety_tolerance": (0, 6),
    "seed": (0, 2**32 - 1),
    "width": (64, 2048),
    "height": (64, 2048),
}


class Unprocessable(Exception):
    """One field that is not accepted."""

    def __init__(self, field: str, said: str) -> None:
        super().__init__(said)
        self.field, self.said = field, said


def app(desk: Desk) -> Starlette:
    """The server."""
    tasks = _Tasks(desk)
    return Starlette(
        routes=[
            Route("/v1/get_result", tasks.result, methods=["GET"]),
            Route("/v1/{model}", tasks.submit, methods=["POST"]),
            Route("/delivery/{name}", tasks.picture, methods=["GET"]),
        ]
    )


class _Tasks:
    """What is kept between requests."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.tasks: dict[str, dict[str, Any]] = {}

    async def submit(self, request: Request) -> Response:
        if not self._desk.has_key(request.headers.get("x-key")):
            return JSONResponse({"detail": "Not authenticated"}, 403)
        model = request.path_params["model"]
        if model not in ENDPOINTS:
            return JSONResponse({"detail": "Not Found"}, 404)
        try:
            picture, mask, size = _read(model, seen_of(request).json())
        except Unprocessable as wrong:
            detail = [{"type": "value_error", "loc": ["body", wrong.field], "msg": wrong.said}]
            return JSONResponse({"detail": detail}, 422)
        behaviour = self._desk.turn(picture)
        trouble = self._trouble(behaviour)
        if trouble is not None:
            return trouble
        behaviour = "request_moderated" if behaviour == "refuse" else behaviour
        if behaviour == "other_size":
            height, width = decode(picture).shape[:2]
            size = (width // 2, height // 2)
        name = secrets.token_hex(16)
        edit = self._desk.edit(picture, mask, size=size)
        self.tasks[name] = {"behaviour": behaviour, "picture": edit, "polls": 0}
        if behaviour == "moderated_at_once":
            return JSONResponse(_moderated(name, "Request Moderated"))
        told: dict[str, Any] = {"id": name, "cost": 5.0, "input_mp": 0.01, "output_mp": 0.01}
        if behaviour != "no_polling_url":
            told["polling_url"] = f"{self._host(behaviour)}/v1/get_result?id={name}"
        return JSONResponse(told)

    async def result(self, request: Request) -> Response:
        if not self._desk.has_key(request.headers.get("x-key")):
            return JSONResponse({"detail": "Not authenticated"}, 403)
        name = request.query_params.get("id", "")
        task = self.tasks.get(name)
        if task is None or task["behaviour"] == "task_not_found":
            return JSONResponse({"id": name, "status": "Task not found", "result": None}, 404)
        task["polls"] += 1
        behaviour = task["behaviour"]
        if behaviour == "poll_trouble" and task["polls"] <= 2:
            return Response(status_code=503 if task["polls"] == 1 else 429)
        if task["polls"] == 1 or behaviour == "stuck":
            return JSONResponse({"id": name, "status": "Pending", "result": None, "progress": 0.4})
        return JSONResponse(self._ended(name, behaviour))

    def _ended(self, name: str, behaviour: str) -> dict[str, Any]:
        if behaviour in ("request_moderated", "content_moderated"):
            return _moderated(name, behaviour.replace("_", " ").title())
        if behaviour == "error":
            return {
                "id": name,
                "status": "Error",
                "result": None,
                "details": {"error": "CUDA error"},
            }
        made: dict[str, Any] = {"prompt": "as sent", "seed": 42, "duration": 3.5}
        if behaviour != "no_sample":
            made["sample"] = f"{self._desk.url}/delivery/{name}.png?se=2026-01-01&sig=c2lnbmF0dXJl"
        return {"id": name, "status": "Ready", "result": made}

    async def picture(self, request: Request) -> Response:
        task = self.tasks.get(request.path_params["name"].removesuffix(".png"))
        if task is None or task["behaviour"] == "expired" or "sig" not in request.query_params:
            told = "<?xml version='1.0'?><Error><Code>AuthenticationFailed</Code></Error>"
            return Response(told, 403, media_type="application/xml")
        if task["behaviour"] == "web_page":
            return Response("<title>Sign in</title>", media_type="text/html")
        return Response(task["picture"], media_type="image/png")

    def _host(self, behaviour: str) -> str:
        others = {"region": "https://api.eu1.bfl.ai", "foreign": "https://flux.example.com"}
        return others.get(behaviour, self._desk.url)

    def _trouble(self, behaviour: str) -> Response | None:
        if behaviour == "no_credit":
            return JSONResponse({"detail": "Insufficient credits"}, 402)
        if behaviour == "too_many":
            return JSONResponse({"detail": "Rate limit exceeded: 24 active tasks"}, 429)
        return self._desk.common(behaviour, body={"detail": "Try again"})


def _moderated(name: str, status: str) -> dict[str, Any]:
    return {"id": name, "status": status, "result": None, "details": REASONS}


def _read(model: str, body: Any) -> tuple[bytes, bytes | None, tuple[int, int] | None]:
    """Picture, mask, and the size to answer with. Raises Unprocessable."""
    if not isinstance(body, dict):
        raise Unprocessable("body", "Input should be a valid dictionary")
    for name, value in body.items():
        if name not in ENDPOINTS[model]:
            raise Unprocessable(name, "Extra inputs are not permitted")
        low, high = RANGES.get(name, (float("-inf"), float("inf")))
        if name in RANGES and not (isinstance(value, int | float) and low <= value <= high):
            raise Unprocessable(name, f"Input should be between {low} and {high}")
    if body.get("output_format", "jpeg") not in ("png", "jpeg"):
        raise Unprocessable("output_format", "Input should be 'jpeg' or 'png'")
    if not isinstance(body.get("prompt", ""), str):
        raise Unprocessable("prompt", "Input should be a valid string")
    if "image" in ENDPOINTS[model]:
        picture, mask = _picture("image", body), _picture("mask", body)
        pixels = decode(mask, cv2.IMREAD_UNCHANGED)
        if pixels.ndim != 2:
            raise Unprocessable("mask", "The mask should be in black and white")
        if pixels.shape[:2] != decode(picture).shape[:2]:
            raise Unprocessable("mask", "Mask dimensions do not match the image")
        return picture, mask, None
    picture = _picture("input_image", body)
    if "width" in body:
        if body["width"] % 16 or body["height"] % 16:
            raise Unprocessable("width", "Input should be a multiple of 16")
        return picture, None, (body["width"], body["height"])
    return picture, None, _one_megapixel(body.get("aspect_ratio"), picture)


def _picture(field: str, body: Mapping[str, Any]) -> bytes:
    try:
        data = base64.b64decode(body[field], validate=True)
        decode(data)
    except KeyError:
        raise Unprocessable(field, "Field required") from None
    except (ValueError, TypeError):
        raise Unprocessable(field, "Invalid base64 image") from None
    return data


def _one_megapixel(ratio: Any, picture: bytes) -> tuple[int, int]:
    """Kontext answers with about a megapixel of the asked shape. Here a sixteenth, for speed."""
    height, width = decode(picture).shape[:2]
    if ratio is not None:
        parts = [int(p) for p in str(ratio).split(":") if p.isdigit()]
        if len(parts) != 2 or not 3 / 7 <= parts[0] / max(parts[1], 1) <= 7 / 3:
            raise Unprocessable("aspect_ratio", "Aspect ratio must be between 3:7 and 7:3")
        width, height = parts
    scale = (2**16 / (width * height)) ** 0.5
    return max(16, round(width * scale / 16) * 16), max(16, round(height * scale / 16) * 16)
