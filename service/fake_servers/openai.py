"""OpenAI's ``POST /v1/images/edits`` in multipart form: edits where the mask's alpha is 0.

Source: the maker's API reference for images/edits, debugging headers and rate limits; the shape of a
moderation refusal (``moderation_details.moderation_stage``) from its SDK types. The variants that take
JSON with image addresses, and streaming, are not played.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, seen_of
from service.fake_servers.openai_checks import DALLE, Order, Rejected, read_order

NAME = "openai"
DOES = "OpenAI images/edits: multipart, mask by transparency, base64 back, moderation as a 400"
BEHAVIOURS: Mapping[str, str] = {
    "moderation_blocked": "400 moderation_blocked, stage input (what 'refuse' plays)",
    "moderation_output": "400 moderation_blocked, stage output",
    "moderation_plain": "400 moderation_blocked without details, as older models answer",
    "content_policy": "400 content_policy_violation, as dall-e-2 answers",
    "insufficient_quota": "429 that no waiting cures: the credit is used up",
    "429_sentence": "429 that names its wait in the message only",
    "billing": "400 billing_hard_limit_reached",
    "unverified": "403: the organisation may not use this model",
    "unchanged": "200 with the picture as it came",
    "other_size": "200 with a picture of another size than was asked",
    "no_picture": "200 with an empty list",
    "expired_url": "200 with an address that has died (dall-e-2 only)",
}
TOKENS = {"low": 272, "medium": 1056, "high": 4160, "xhigh": 4160, "max": 4160, "standard": 1056}
"""Output tokens of a 1024x1024 picture by quality, from the maker's price page for gpt-image-1."""
MODERATED = (
    "Your request was rejected by the safety system. If you believe this is an error, contact us at "
    "help.openai.com and include the request ID {id}. safety_violations=[sexual]."
)
SLOW_DOWN = (
    "Rate limit reached for gpt-image-1 (for limit gpt-image) in organization org-fake on "
    "input-images per min: Limit 5, Used 5, Requested 1. Please try again in 1s."
)
QUOTA = "You exceeded your current quota, please check your plan and billing details."
UNVERIFIED = "Your organization must be verified to use the model `gpt-image-1`."


def app(desk: Desk) -> Starlette:
    """The server. A picture that is to be fetched lies at ``/files/ID.png`` for as long as it runs."""
    kept: dict[str, bytes] = {}

    async def edits(request: Request) -> Response:
        call = _Call()
        if not desk.has_bearer(request):
            return call.error(401, _unauthorised(request), None, "invalid_api_key")
        try:
            order = read_order(seen_of(request))
        except Rejected as wrong:
            return call.reply({"error": wrong.error}, 400)
        behaviour = desk.turn(order.picture)
        return _refusal(call, behaviour) or _trouble(call, desk, behaviour) or call.reply(
            _answer(desk, order, behaviour, kept)
        )  # fmt: skip

    async def files(request: Request) -> Response:
        data = kept.get(request.path_params["name"])
        if data is None:
            return Response("AuthenticationFailed: the signature has expired", 403)
        return Response(data, media_type="image/png")

    return Starlette(
        routes=[
            Route("/v1/images/edits", edits, methods=["POST"]),
            Route("/files/{name}", files, methods=["GET"]),
        ]
    )


class _Call:
    """One call: its id and the headers that every answer of the maker has."""

    def __init__(self) -> None:
        self.id, self._began = f"req_{uuid.uuid4().hex}", time.monotonic()

    def headers(self) -> dict[str, str]:
        spent = (time.monotonic() - self._began) * 1000
        return {
            "x-request-id": self.id,
            "openai-version": "2020-10-01",
            "openai-organization": "org-fake",
            "openai-processing-ms": str(round(spent)),
            "x-ratelimit-limit-requests": "5",
            "x-ratelimit-remaining-requests": "4",
            "x-ratelimit-reset-requests": "12s",
        }

    def reply(
        self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        return JSONResponse(body, status, headers={**self.headers(), **(headers or {})})

    def error(
        self, status: int, message: str, kind: str | None, code: str | None, **more: Any
    ) -> Response:
        """An error object; ``more`` are further keys, or ``headers``."""
        headers = more.pop("headers", None)
        told = {
            "message": message,
            "type": kind or "invalid_request_error",
            "param": None,
            "code": code,
            **more,
        }
        return self.reply({"error": told}, status, headers)


def _unauthorised(request: Request) -> str:
    """The maker echoes the ends of a wrong key, so a client must not repeat the message as it is."""
    key = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not key:
        return "You didn't provide an API key. You need to provide it in an Authorization header."
    shown = f"{key[:8]}{'*' * 12}{key[-4:]}" if len(key) > 12 else "*" * len(key)
    return f"Incorrect API key provided: {shown}."


def _refusal(call: _Call, behaviour: str) -> Response | None:
    said, kind = MODERATED.format(id=call.id), "image_generation_user_error"
    stages = {
        "refuse": "input",
        "moderation_blocked": "input",
        "moderation_output": "output",
    }
    if behaviour in stages:
        details = {"moderation_stage": stages[behaviour], "categories": ["sexual"]}
        return call.error(400, said, kind, "moderation_blocked", moderation_details=details)
    if behaviour == "moderation_plain":
        return call.error(400, said, kind, "moderation_blocked")
    if behaviour == "content_policy":
        said = "Your request was rejected as a result of our safety system."
        return call.error(400, said, None, "content_policy_violation")
    return None


def _trouble(call: _Call, desk: Desk, behaviour: str) -> Response | None:
    waits = {"retry-after": "1", "retry-after-ms": "1000", "x-ratelimit-remaining-requests": "0"}
    limited = "rate_limit_exceeded"
    answers = {
        "429": (429, SLOW_DOWN, "input-images", limited, waits),
        "429_sentence": (429, SLOW_DOWN, "input-images", limited, {}),
        "insufficient_quota": (429, QUOTA, "insufficient_quota", "insufficient_quota", {}),
        "billing": (400, "Billing hard limit has been reached", None, "billing_hard_limit_reached", {}),
        "unverified": (403, UNVERIFIED, None, None, {}),
        "500": (500, "The server had an error while processing your request.", "server_error", None, {}),
        "503": (503, "The engine is currently overloaded.", "server_error", None, {"retry-after": "1"}),
    }  # fmt: skip
    if behaviour in answers:
        status, said, kind, code, headers = answers[behaviour]
        return call.error(status, said, kind, code, headers=headers)
    return desk.common(behaviour, call.headers())


def _answer(desk: Desk, order: Order, behaviour: str, kept: dict[str, bytes]) -> dict[str, Any]:
    size = order.size
    if behaviour == "other_size":
        size = (size[0] // 2, size[1] // 2)
    kind = "jpg" if order.output_format == "jpeg" else order.output_format
    picture = desk.edit(order.picture, order.edit_here, size=size, kind=kind)
    if behaviour == "unchanged":
        picture = order.picture
    data = [] if behaviour == "no_picture" else [_item(desk, order, picture, kept)] * order.count
    if behaviour == "expired_url":
        kept.clear()
    said: dict[str, Any] = {"created": int(time.time()), "data": data}
    if order.model != DALLE:
        said |= {
            "background": order.background,
            "output_format": order.output_format,
            "quality": order.quality,
            "size": f"{order.size[0]}x{order.size[1]}",
            "usage": _usage(order),
        }
    return said


def _item(desk: Desk, order: Order, picture: bytes, kept: dict[str, bytes]) -> dict[str, str]:
    if not order.as_url:
        return {"b64_json": base64.b64encode(picture).decode()}
    name = f"img-{uuid.uuid4().hex}.png"
    kept[name] = picture
    return {"url": f"{desk.url}/files/{name}?sig=fake"}


def _usage(order: Order) -> dict[str, Any]:
    text = max(1, len(order.prompt) // 4)
    pictures = 323 if order.fields.get("input_fidelity") != "high" else 4483
    output = round(TOKENS[order.quality] * order.size[0] * order.size[1] / 1024**2) * order.count
    return {
        "input_tokens": text + pictures,
        "input_tokens_details": {"image_tokens": pictures, "text_tokens": text},
        "output_tokens": output,
        "total_tokens": text + pictures + output,
    }
