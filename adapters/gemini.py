"""Google's Gemini picture models, ``POST /v1beta/models/MODEL:generateContent``. No mask: by prompt.

Sources: the Gemini API's image generation guide and reference, and the enumerations of Google's own
client libraries (google-genai), read in stored copies of 2026; nothing was called live.

What is not obvious: a refusal comes with status 200. ``promptFeedback.blockReason`` is about what was
sent, ``finishReason`` about what was made, and a model may also just answer in words. A wrong key is a
400. The key goes in a header, never in the address, where logs would keep it. Pictures among the
model's thoughts are drafts and are passed over. The shape and size of the result are always asked for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from adapters.codec import media_type_of
from adapters.contract import Adapter, ToolSpec
from adapters.guard import failures_are_answers, read_settings
from adapters.hosted.prompts import prompt_of
from adapters.over_http.results import edited, facts, json_of, picture_of, without_key
from adapters.over_http.wire import HttpSettings, Reply, Wire
from domain.edits import EditOutcome, EditRequest, Failed, Refused, Task
from domain.sizing import SizeRule
from domain.tools import Price

FAKE = "gemini"
EXAMPLE: Mapping[str, Any] = {}
REFUSALS = frozenset(
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION IMAGE_OTHER NO_IMAGE".split()
)
"""Finish reasons by which the model, or a filter behind it, declines. The others are faults."""
BODY_LIMIT = 20_000_000
"""Bytes of a request with pictures in it."""
ASPECTS: Mapping[str, tuple[int, int]] = {
    "1:1": (1024, 1024), "2:3": (848, 1264), "3:2": (1264, 848), "3:4": (896, 1200),
    "4:3": (1200, 896), "4:5": (928, 1152), "5:4": (1152, 928), "9:16": (768, 1376),
    "16:9": (1376, 768), "21:9": (1584, 672),
}  # fmt: skip
"""What each shape measures at 1K, in pixels; 2K and 4K double and quadruple the sides."""
SCALES = {"1K": 1, "2K": 2, "4K": 4}
PRICES = {"1K": 0.0336, "4K": 0.1134}
PRICED = "gemini-nano-banana-2.1"
PRICE_SOURCE = "Gemini API price list as quoted by LiteLLM and inference.sh, 2026-11; input on top"
HARMS = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
TEXT_ONLY = "TEXT_ONLY"

SPEC = ToolSpec(
    id="gemini",
    name="Google Gemini pictures",
    tasks=(Task.RETOUCH, Task.RESTYLE, Task.ENHANCE),
    size=SizeRule(sizes=tuple(ASPECTS.values())),
    takes_prompt=True,
    price_note="billed by tokens, one 1K picture is 1,120; the answer's usage is kept",
    licence="proprietary service, Google's terms",
    remote=True,
    concurrency=4,
    key_env="GEMINI_API_KEY",
    key_needed=True,
    refuses=(
        "What its filters block in the request (blockReason) or in the result (finishReason), and "
        "what the model answers in words alone: refused.",
        "A request of 20 MB or more: failed, before anything is sent.",
    ),
)


class GeminiSettings(HttpSettings):
    """``image_size`` is what the model makes, about 1, 4 or 16 megapixels. ``safety`` sets the
    threshold of the four adjustable filters; "" leaves the maker's. ``words`` False asks for a
    picture alone: the model then says less of why it declines. Nothing comes over the wire while the
    picture is made: hence the long ``timeout_s``."""

    base_url: str = "https://generativelanguage.googleapis.com"
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 300.0
    model: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] = PRICED
    image_size: Literal["1K", "2K", "4K"] = "1K"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    safety: Literal[
        "", "OFF", "BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"
    ] = ""
    words: bool = True


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting."""
    return Gemini(read_settings(GeminiSettings, settings, SPEC.id))


@dataclass(frozen=True, slots=True)
class Said:
    """What the first candidate holds: ``pictures`` as (base64, type), thoughts left out."""

    finish: str
    message: str
    words: str
    pictures: tuple[tuple[Any, str], ...]
    ratings: Any


class Gemini:
    """One connection pool; safe in threads."""

    def __init__(self, settings: GeminiSettings) -> None:
        self._settings = settings
        factor = SCALES[settings.image_size]
        self._shapes = {(w * factor, h * factor): name for name, (w, h) in ASPECTS.items()}
        price = PRICES.get(settings.image_size) if settings.model == PRICED else None
        self.spec = replace(
            SPEC,
            size=SizeRule(sizes=tuple(self._shapes)),
            price=None if price is None else Price(price, source=PRICE_SOURCE),
        )
        self.model = f"Google {settings.model}"
        key = settings.key
        self._wire = Wire(
            settings, {"x-goog-api-key": key.get_secret_value().strip()} if key else {}
        )
        self._closed = False

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One picture, one edit by prompt."""
        if self._closed:
            return Failed("the tool was closed")
        if self._settings.key is None:
            return without_key(SPEC)
        if request.task not in SPEC.tasks:
            raise ValueError(f"Gemini takes no mask, so it does no {request.task.value}")
        content, sent = self._content(request)
        reply = self._wire.send(
            "POST",
            f"v1beta/models/{self._settings.model}:generateContent",
            headers={"content-type": "application/json"},
            content=content,
        )
        meta = {**reply.meta(), "sent": sent}
        if reply.status != 200:
            return self._turned_down(reply, meta)
        return self._result(reply, request, meta)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._wire.close()

    def _content(self, request: EditRequest) -> tuple[bytes, dict[str, Any]]:
        """The body, and what of it is worth keeping."""
        picture = request.picture
        if not picture:
            raise ValueError("the request has no picture")
        kind = media_type_of(picture)
        if kind not in ("image/png", "image/jpeg", "image/webp"):
            raise ValueError("Gemini takes PNG, JPEG and WebP pictures")
        shape = self._shapes.get((request.width, request.height))
        if shape is None:
            size = f"{request.width}x{request.height}"
            raise ValueError(f"{size} is no size that Gemini makes at {self._settings.image_size}")
        prompt = prompt_of(request)
        config: dict[str, Any] = {
            "responseModalities": ["TEXT", "IMAGE"] if self._settings.words else ["IMAGE"],
            "imageConfig": {"aspectRatio": shape, "imageSize": self._settings.image_size},
        }
        if self._settings.temperature is not None:
            config["temperature"] = self._settings.temperature
        data = base64.b64encode(picture).decode()
        parts = [{"inlineData": {"mimeType": kind, "data": data}}, {"text": prompt}]
        body: dict[str, Any] = {
            "contents": [{"role": "user", "parts": parts}],
            "generationConfig": config,
        }
        if self._settings.safety:
            body["safetySettings"] = [
                {"category": f"HARM_CATEGORY_{harm}", "threshold": self._settings.safety}
                for harm in HARMS
            ]
        content = json.dumps(body).encode()
        if len(content) >= BODY_LIMIT:
            raise ValueError(
                f"the request would be {len(content):,} bytes; Gemini takes under 20 MB"
            )
        sent = {"model": self._settings.model, "prompt": prompt, **config}
        return content, sent | ({"safety": self._settings.safety} if self._settings.safety else {})

    def _turned_down(self, reply: Reply, meta: Mapping[str, Any]) -> Failed:
        body = reply.json_or_none()
        body = body[0] if isinstance(body, list) and body else body
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {}
        status, message = str(error.get("status") or ""), str(error.get("message") or "")
        details = [d for d in error.get("details") or [] if isinstance(d, dict)]
        said = " ".join(part for part in (status, message) if part)
        failed = self._wire.failure(reply, said)
        whole = {**failed.meta, **meta}
        hopeless = (
            reply.status == 404
            or status == "FAILED_PRECONDITION"
            or any(d.get("reason") in ("API_KEY_INVALID", "API_KEY_EXPIRED") for d in details)
            or (reply.status == 429 and _for_today(details))
        )
        if hopeless:
            return Failed(failed.reason, meta={**whole, "stop": True})
        return replace(failed, meta=whole)

    def _result(self, reply: Reply, request: EditRequest, meta: Mapping[str, Any]) -> EditOutcome:
        body = json_of(reply, meta)
        whole = {**meta, "returned": facts(body, ("usageMetadata",), self._wire)}
        for name, key in (("modelVersion", "model"), ("responseId", "request_id")):
            if body.get(name):
                whole[key] = self._wire.redact(str(body[name]))[:100]
        feedback = body.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            whole["returned"] |= facts(feedback, ("safetyRatings",), self._wire)
            text = self._wire.redact(str(feedback.get("blockReasonMessage") or ""))
            return Refused("input", self._wire.redact(str(feedback["blockReason"])), text, whole)
        said = _read(body)
        whole["returned"] |= {"finishReason": self._wire.redact(said.finish)}
        if said.ratings:
            whole["returned"] |= facts(
                {"safetyRatings": said.ratings}, ("safetyRatings",), self._wire
            )
        words = self._wire.redact(said.words or said.message)
        if said.finish in REFUSALS:
            return Refused("output", said.finish, words, whole)
        if said.pictures:
            # Several mean several attempts at the same; the last is the one it settled on
            data, kind = said.pictures[-1]
            return edited(picture_of(data, whole), kind, request, whole)
        if said.words and said.finish in ("STOP", ""):
            return Refused("output", TEXT_ONLY, words, whole)
        why = f"the answer holds no picture (finishReason {whole['returned']['finishReason']})"
        empty = said.finish in ("STOP", "") and not said.words
        return Failed(why, retryable=empty, meta={**whole, "maybe_billed": True})


def _read(body: Mapping[str, Any]) -> Said:
    candidates = body.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else {}
    first = first if isinstance(first, dict) else {}
    content = first.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    shown = [p for p in parts or [] if isinstance(p, dict) and not p.get("thought")]
    words = " ".join(str(p["text"]) for p in shown if p.get("text"))
    message = str(first.get("finishMessage") or "")
    return Said(
        str(first.get("finishReason") or ""),
        message,
        words,
        tuple(_pictures(shown)),
        first.get("safetyRatings"),
    )


def _pictures(parts: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Any, str]]:
    for part in parts:
        inline = part.get("inlineData") or part.get("inline_data")
        if isinstance(inline, dict):
            yield inline.get("data"), str(inline.get("mimeType") or inline.get("mime_type") or "")


def _for_today(details: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the quota that is used up is one of a whole day: waiting a minute would not help."""
    violations = [v for d in details for v in d.get("violations") or [] if isinstance(v, dict)]
    return any("PerDay" in str(v.get("quotaId") or "") for v in violations)
