"""Stability AI's v2beta Stable Image services: inpaint (edits where the mask is light) and structure.

Source: the OpenAPI description of the v2beta REST API, as kept in public generated clients. It says of
inpaint that results have 4 megapixels; this server keeps the picture's size, and plays the other
when told to ("four_megapixels"). The 429 names no wait, as described; the pause is a minute there.
"""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, Seen, decode, encode, seen_of

NAME = "stability"
DOES = "Stability AI v2beta inpaint and structure: multipart, white mask, filtered results behind a 200"
BEHAVIOURS: Mapping[str, str] = {
    "content_moderation": "403 content_moderation, about the request (what 'refuse' plays)",
    "content_filtered": "200 with a blurred picture and finish_reason CONTENT_FILTERED",
    "payment_required": "402: no credits left",
    "forbidden": "403 that is no moderation: the key may not do this",
    "no_finish_reason": "200 that does not say whether the picture was filtered",
    "four_megapixels": "200 with a picture of four megapixels",
    "bad_base64": "200 whose picture is no base64",
    "wrong_type": "200 whose picture is a text",
}
BODY_LIMIT = 10 * 1024 * 1024
LEAST_SIDE, MOST_PIXELS = 64, 9_437_184
FORMATS = {"png": "png", "jpeg": "jpg", "webp": "webp"}
FLAGGED = "Your request was flagged by our content moderation system, as a result your request was denied and you were not charged."  # fmt: skip
TOO_MANY = "You have made more than 150 requests in 10 seconds."
NO_CREDIT = "You lack sufficient credits to make this request. Please purchase more credits."


class _Wrong(Exception):
    """What is wrong with a request."""

    def __init__(self, status: int, name: str, *errors: str) -> None:
        super().__init__(name)
        self.status, self.name, self.errors = status, name, errors


def app(desk: Desk) -> Starlette:
    """The server."""

    async def work(request: Request) -> Response:
        seen = seen_of(request)
        structure = request.url.path.endswith("structure")
        try:
            if not desk.has_bearer(request):
                raise _Wrong(401, "unauthorized", "missing or invalid API key")
            _check_request(seen)
            picture = _check_picture(seen, structure)
            _check_fields(seen.fields, structure)
            mask = None if structure else _mask(seen, picture)
            behaviour = desk.turn(seen.files["image"])
            _trouble(behaviour)
        except _Wrong as wrong:
            return _problem(wrong)
        return desk.common(behaviour) or _answer(desk, seen, mask, behaviour)

    paths = ("edit/inpaint", "control/structure")
    return Starlette(
        routes=[Route(f"/v2beta/stable-image/{path}", work, methods=["POST"]) for path in paths]
    )


def _problem(wrong: _Wrong) -> Response:
    body = {"id": uuid.uuid4().hex, "name": wrong.name, "errors": list(wrong.errors)}
    return JSONResponse(body, wrong.status)


def _trouble(behaviour: str) -> None:
    told = {
        "refuse": (403, "content_moderation", FLAGGED),
        "content_moderation": (403, "content_moderation", FLAGGED),
        "forbidden": (403, "permission_denied", "You lack the necessary permissions."),
        "payment_required": (402, "payment_required", NO_CREDIT),
        "429": (429, "rate_limit_exceeded", TOO_MANY),
        "500": (500, "internal_error", "An unexpected server error has occurred."),
    }
    if behaviour in told:
        raise _Wrong(*told[behaviour])


def _check_request(seen: Seen) -> None:
    if not seen.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise _Wrong(400, "bad_request", "content-type: must be multipart/form-data")
    if seen.headers.get("accept", "image/*") not in ("image/*", "application/json", "*/*"):
        raise _Wrong(400, "bad_request", "accept: must be image/* or application/json")
    if len(seen.body) > BODY_LIMIT:
        raise _Wrong(413, "payload_too_large", "body: payload cannot be larger than 10MiB in size")


def _check_picture(seen: Seen, structure: bool) -> np.ndarray:
    """The pixels of the picture, with its alpha channel if it has one."""
    if "image" not in seen.files:
        raise _Wrong(400, "bad_request", "image: is required")
    try:
        pixels = decode(seen.files["image"], cv2.IMREAD_UNCHANGED)
    except ValueError:
        raise _Wrong(400, "bad_request", "image: must be a valid jpeg, png or webp") from None
    height, width = pixels.shape[:2]
    if min(width, height) < LEAST_SIDE:
        raise _Wrong(400, "bad_request", f"image: every side must be at least {LEAST_SIDE} pixels")
    if width * height > MOST_PIXELS:
        raise _Wrong(400, "bad_request", f"image: at most {MOST_PIXELS} pixels")
    if structure and max(width, height) > 2.5 * min(width, height):
        raise _Wrong(400, "bad_request", "image: the aspect ratio must be between 1:2.5 and 2.5:1")
    return pixels


def _check_fields(fields: Mapping[str, Any], structure: bool) -> None:
    prompt = fields.get("prompt", "")
    if not 1 <= len(prompt) <= 10_000:
        raise _Wrong(400, "bad_request", "prompt: must be 1 to 10000 characters")
    if len(fields.get("negative_prompt", "")) > 10_000:
        raise _Wrong(400, "bad_request", "negative_prompt: must be at most 10000 characters")
    if fields.get("output_format", "png") not in FORMATS:
        raise _Wrong(400, "bad_request", "output_format: must be one of jpeg, png, webp")
    limits = {"seed": 4_294_967_294.0}
    limits |= {"control_strength": 1.0} if structure else {"grow_mask": 100.0}
    for name, most in limits.items():
        if not 0 <= _number(fields, name) <= most:
            raise _Wrong(400, "bad_request", f"{name}: must be between 0 and {most:g}")


def _number(fields: Mapping[str, Any], name: str) -> float:
    try:
        value = float(fields.get(name, 0))
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise _Wrong(400, "bad_request", f"{name}: must be a number")
    return value


def _mask(seen: Seen, picture: np.ndarray) -> bytes:
    """Grey, white where it edits, grown as asked. Without a mask the picture's own transparency is
    taken; a mask of another size is stretched, without a word."""
    height, width = picture.shape[:2]
    if "mask" in seen.files:
        try:
            grey = decode(seen.files["mask"], cv2.IMREAD_GRAYSCALE)
        except ValueError:
            raise _Wrong(400, "bad_request", "mask: must be a valid jpeg, png or webp") from None
    elif picture.ndim == 3 and picture.shape[2] == 4:
        grey = np.asarray(255 - picture[..., 3], np.uint8)
    else:
        raise _Wrong(400, "bad_request", "mask: is required for an image without an alpha channel")
    if grey.shape != (height, width):
        grey = np.asarray(cv2.resize(grey, (width, height)), np.uint8)
    grow = int(float(seen.fields.get("grow_mask", 5)))
    if grow:
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * grow + 1, 2 * grow + 1))
        grey = np.asarray(cv2.GaussianBlur(cv2.dilate(grey, kernel), (0, 0), grow / 2), np.uint8)
    return encode(grey)


def _answer(desk: Desk, seen: Seen, mask: bytes | None, behaviour: str) -> Response:
    name = seen.fields.get("output_format", "png")
    size = (2048, 2048) if behaviour == "four_megapixels" else None
    picture = desk.edit(seen.files["image"], mask, size=size, kind=FORMATS[name])
    filtered = behaviour == "content_filtered"
    if filtered:
        blurred = cv2.GaussianBlur(decode(picture), (0, 0), 20)
        picture = encode(np.asarray(blurred, np.uint8), FORMATS[name])
    if behaviour == "wrong_type":
        picture = b"no picture at all"
    said: dict[str, Any] = {
        "finish_reason": "CONTENT_FILTERED" if filtered else "SUCCESS",
        "seed": int(float(seen.fields.get("seed", 0))) or 343940597,
    }
    if behaviour == "no_finish_reason":
        del said["finish_reason"]
    headers = {"x-request-id": uuid.uuid4().hex}
    if seen.headers.get("accept") == "application/json":
        data = "%%%" if behaviour == "bad_base64" else base64.b64encode(picture).decode()
        headers["content-type"] = f"application/json; type=image/{name}"
        return JSONResponse({"image": data, **said}, headers=headers)
    headers |= {key.replace("_", "-"): str(value) for key, value in said.items()}
    return Response(picture, headers=headers, media_type=f"image/{name}")
