"""Google's Gemini ``generateContent`` for picture models: a prompt and a picture in, a 200 whatever the
model or its filters decide.

Source: the Gemini API's reference and image generation guide, the enumerations of Google's client
libraries, and error bodies quoted in public trackers. Streaming, files and search are not played.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, Seen, seen_of
from service.fake_servers.gemini_checks import Order, Wrong, read_order

NAME = "gemini"
DOES = "Google Gemini generateContent: JSON with inline pictures, no mask, refusals behind a 200"
_FINISHES = {
    name.lower(): name
    for name in (
        "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE",
        "SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "OTHER",
    )
}  # fmt: skip
_BLOCKS = {
    f"blocked_{name.lower()}": name
    for name in ("SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY")
}
BEHAVIOURS: Mapping[str, str] = {
    **{name: f"200, finishReason {reason}, no content" for name, reason in _FINISHES.items()},
    **{name: f"200, promptFeedback.blockReason {reason}" for name, reason in _BLOCKS.items()},
    "text_only": "200, STOP, and words in place of a picture",
    "no_parts": "200, STOP, and nothing at all",
    "thoughts": "200 with a draft among the thoughts before the picture",
    "several": "200 with two pictures",
    "other_size": "200 with a picture of another size than was asked",
    "wrong_type": "200 with a document in place of a picture",
    "429_per_day": "429: the quota of the day is used up",
    "location": "400 FAILED_PRECONDITION: not in this country",
}
DECLINED = "Unable to show the generated image. The model could not generate the image."
WORDS = "I cannot edit pictures of real people in this way."
QUOTA = "You exceeded your current quota, please check your plan and billing details."


def app(desk: Desk) -> Starlette:
    """The server. The key is taken from the header or, as the maker does, from the address."""

    async def generate(request: Request) -> Response:
        seen = seen_of(request)
        try:
            _check_key(desk, seen)
            order = read_order(request.path_params["call"], seen)
            behaviour = desk.turn(order.picture)
            _trouble(behaviour)
        except Wrong as wrong:
            return JSONResponse({"error": wrong.error()}, wrong.code)
        return desk.common(behaviour) or JSONResponse(_answer(desk, order, behaviour))

    versions = ("v1beta", "v1")  # REST documentation and the maker's newer SDK
    return Starlette(
        routes=[Route(f"/{v}/models/{{call}}", generate, methods=["POST"]) for v in versions]
    )


def _check_key(desk: Desk, seen: Seen) -> None:
    key = seen.headers.get("x-goog-api-key") or seen.query.get("key")
    if desk.key and not key:
        raise Wrong(
            403, "PERMISSION_DENIED",
            "Method doesn't allow unregistered callers. Please use API Key or other form of API consumer identity.",
        )  # fmt: skip
    if not desk.has_key(key):
        raise Wrong(
            400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            },
        )  # fmt: skip


def _trouble(behaviour: str) -> None:
    if behaviour in ("429", "429_per_day"):
        per = "Day" if behaviour == "429_per_day" else "Minute"
        quota = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
            "quotaId": f"GenerateRequestsPer{per}PerProjectPerModel",
            "quotaValue": "20",
        }
        raise Wrong(
            429, "RESOURCE_EXHAUSTED", QUOTA,
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [quota]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"},
        )  # fmt: skip
    told = {
        "location": (400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        "500": (500, "INTERNAL", "An internal error has occurred."),
        "503": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    }
    if behaviour in told:
        raise Wrong(*told[behaviour])


@dataclass(frozen=True, slots=True)
class _Candidate:
    finish: str
    parts: list[dict[str, Any]] | None = None
    message: str = ""


def _answer(desk: Desk, order: Order, behaviour: str) -> dict[str, Any]:
    said: dict[str, Any] = {
        "usageMetadata": _usage(order),
        "modelVersion": order.model,
        "responseId": uuid.uuid4().hex[:22],
    }
    if behaviour in _BLOCKS:
        return {"promptFeedback": {"blockReason": _BLOCKS[behaviour]}, **said}
    made = _candidate(desk, order, behaviour)
    candidate: dict[str, Any] = {"finishReason": made.finish, "index": 0}
    if made.parts is not None:
        candidate["content"] = {"parts": made.parts, "role": "model"}
        said["usageMetadata"] |= _output_usage(order)
    if made.finish == "SAFETY":
        rating = {"category": "HARM_CATEGORY_SEXUALLY_EXPLICIT", "probability": "MEDIUM"}
        candidate["safetyRatings"] = [{**rating, "blocked": True}]
    if made.message:
        candidate["finishMessage"] = made.message
    return {"candidates": [candidate], **said}


def _candidate(desk: Desk, order: Order, behaviour: str) -> _Candidate:
    reason = _FINISHES.get("image_safety" if behaviour == "refuse" else behaviour)
    if reason:
        return _Candidate(reason, None, DECLINED if reason.startswith("IMAGE") else "")
    if behaviour == "text_only":
        return _Candidate("STOP", [{"text": WORDS}])
    if behaviour == "no_parts":
        return _Candidate("STOP", [])
    width, height = order.size
    if behaviour == "other_size":
        width, height = width // 2, height // 2
    picture = _inline(desk.edit(order.picture, size=(width, height)), "image/png")
    if behaviour == "wrong_type":
        picture = _inline(b"%PDF-1.7 a document", "application/pdf")
    parts: list[dict[str, Any]] = [{"text": "Here is the edited picture."}] if order.words else []
    draft = _inline(desk.edit(order.picture, size=(64, 64)), "image/png")
    if behaviour == "thoughts":
        parts = [{"text": "Thinking of the light.", "thought": True}, {**draft, "thought": True}]
    if behaviour == "several":
        parts.append(draft)
    return _Candidate("STOP", [*parts, picture])


def _inline(data: bytes, kind: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": kind, "data": base64.b64encode(data).decode()}}


def _usage(order: Order) -> dict[str, Any]:
    text = max(1, len(order.prompt) // 4)
    details = [
        {"modality": "TEXT", "tokenCount": text},
        {"modality": "IMAGE", "tokenCount": 258},
    ]
    return {
        "promptTokenCount": text + 258,
        "totalTokenCount": text + 258,
        "promptTokensDetails": details,
    }


def _output_usage(order: Order) -> dict[str, Any]:
    made = {"1K": 1120, "2K": 1680, "4K": 3780}[order.image_size]
    return {
        "candidatesTokenCount": made,
        "totalTokenCount": _usage(order)["totalTokenCount"] + made,
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": made}],
    }
