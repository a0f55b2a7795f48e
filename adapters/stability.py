"""Stability AI's Stable Image services, v2beta: inpaint for the masked tasks, structure for restyling.

Source: the OpenAPI description of the v2beta REST API (as kept in public generated clients), read in
stored copies; nothing was called live.

What is not obvious: the mask edits where it is white. ``grow_mask`` is always sent, 0 unless the plan
says otherwise: the service's own 5 pixels would edit, and blur, beyond what it was asked to. The
answer is asked for as JSON, because a filtered picture comes with status 200 and blurred, and the
word for it, ``finish_reason``, then lies in the body and cannot get lost on the way as a header can;
the bytes of the picture are the same. Seed 0 means "any", so seeds here are 1 and up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from adapters.codec import mask_png, media_type_of
from adapters.contract import Adapter, ToolSpec
from adapters.guard import failures_are_answers, read_settings
from adapters.hosted.prompts import prompt_of
from adapters.over_http.results import edited, facts, json_of, picture_of, without_key
from adapters.over_http.wire import USER_AGENT, HttpSettings, Reply, Wire
from domain.edits import EditOutcome, EditRequest, Failed, Refused, Task
from domain.sizing import SizeRule
from domain.tools import RateLimit

FAKE = "stability"
EXAMPLE: Mapping[str, Any] = {}
MASKED = (Task.INPAINT_BACKGROUND, Task.INPAINT_FACE, Task.INPAINT_LOWER_FACE)
INPAINT = "v2beta/stable-image/edit/inpaint"
STRUCTURE = "v2beta/stable-image/control/structure"
SEEDS = 4_294_967_294
PIXEL_LIMIT = 9_437_184
BODY_LIMIT = 10 * 1024 * 1024
FORM_BYTES = 16_384
"""Put aside for the parts of the form that are not pictures, beside the prompts."""
MOST_STRETCHED = 2.5
PROMPT_LIMIT = 10_000
PAUSE_S = 60.0
"""Who exceeds the rate is shut out for a minute; the answer does not say so."""
SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}

SPEC = ToolSpec(
    id="stability",
    name="Stability AI, Stable Image",
    tasks=(*MASKED, Task.RESTYLE),
    size=SizeRule(min_side=64, max_side=3072),
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    price_note="billed in credits of 0.01 USD for each success; the prices have changed, see yours",
    licence="proprietary service, Stability AI's terms",
    remote=True,
    concurrency=4,
    rate=RateLimit(150, 10),
    key_env="STABILITY_API_KEY",
    key_needed=True,
    refuses=(
        "What its content moderation flags in the request (403) or in the result, which it then "
        "blurs behind a 200: refused.",
        "Pictures with a side under 64 pixels or more than 9,437,184 pixels, and requests over "
        "10 MiB: failed, before anything is sent.",
    ),
)


class StabilitySettings(HttpSettings):
    """``grow_mask`` 0-100 pixels (newer descriptions of the API say 0-20) and ``style_preset`` (such
    as "photographic"; "" for none) are inpaint's, ``control_strength`` 0-1 (1: nearest to the
    picture's lines) is structure's."""

    base_url: str = "https://api.stability.ai"
    grow_mask: Annotated[int, Field(ge=0, le=100)] = 0
    control_strength: Annotated[float, Field(ge=0, le=1)] = 0.7
    negative_prompt: Annotated[str, Field(max_length=PROMPT_LIMIT)] = ""
    style_preset: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,40}$")] = ""
    output_format: Literal["png", "jpeg", "webp"] = "png"


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting."""
    return Stability(read_settings(StabilitySettings, settings, SPEC.id))


class Stability:
    """One connection pool; safe in threads."""

    spec = SPEC
    model = "Stability AI v2beta stable-image"

    def __init__(self, settings: StabilitySettings) -> None:
        self._settings = settings
        auth = {}
        if settings.key is not None:
            auth["authorization"] = f"Bearer {settings.key.get_secret_value().strip()}"
        self._wire = Wire(settings, auth)
        self._closed = False

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One picture, one edit."""
        if self._closed:
            return Failed("the tool was closed")
        if self._settings.key is None:
            return without_key(SPEC)
        masked = request.task in MASKED
        path = INPAINT if masked else STRUCTURE
        fields = self._fields(request, masked)
        files = _files(request, masked)
        size = sum(len(part[1]) for part in files.values())
        if size + sum(len(v.encode()) for v in fields.values()) + FORM_BYTES > BODY_LIMIT:
            raise ValueError(f"the request would be over 10 MiB ({size:,} bytes of pictures)")
        headers = {"accept": "application/json", "stability-client-id": USER_AGENT}
        reply = self._wire.send("POST", path, headers=headers, data=fields, files=files)
        meta = {**reply.meta(), "model": path, "sent": {**fields, "mask": masked}}
        if reply.status != 200:
            return self._turned_down(reply, meta)
        return self._result(reply, request, meta)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._wire.close()

    def _fields(self, request: EditRequest, masked: bool) -> dict[str, str]:
        prompt = prompt_of(request)
        if len(prompt) > PROMPT_LIMIT:
            raise ValueError(f"the prompt is over {PROMPT_LIMIT} characters")
        fields = {
            "prompt": prompt,
            "seed": str(request.seed % SEEDS + 1),
            "output_format": self._settings.output_format,
        }
        if self._settings.negative_prompt:
            fields["negative_prompt"] = self._settings.negative_prompt
        if not masked:
            return {**fields, "control_strength": f"{self._settings.control_strength:g}"}
        if self._settings.style_preset:
            fields["style_preset"] = self._settings.style_preset
        return {**fields, "grow_mask": str(self._settings.grow_mask)}

    def _turned_down(self, reply: Reply, meta: Mapping[str, Any]) -> EditOutcome:
        body = reply.json_or_none()
        body = body if isinstance(body, dict) else {}
        name, errors = str(body.get("name") or ""), body.get("errors")
        message = "; ".join(map(str, errors)) if isinstance(errors, list) else ""
        said = ": ".join(part for part in (name, message) if part)
        if body.get("id") and "request_id" not in meta:
            meta = {**meta, "request_id": self._wire.redact(str(body["id"]))[:100]}
        if name == "content_moderation":
            return Refused("input", name, self._wire.redact(message), meta)
        failed = self._wire.failure(reply, said)
        wait = failed.retry_after
        if reply.status == 429 and wait is None and failed.retryable:
            wait = PAUSE_S
        return replace(failed, retry_after=wait, meta={**failed.meta, **meta})

    def _result(self, reply: Reply, request: EditRequest, meta: Mapping[str, Any]) -> EditOutcome:
        body = json_of(reply, meta)
        whole = {**meta, "returned": facts(body, ("finish_reason", "seed"), self._wire)}
        reason = body.get("finish_reason")
        if reason == "CONTENT_FILTERED":
            text = "the result broke the content policy and came back blurred"
            # It counts as a success there, so it costs what a success costs
            return Refused("output", reason, text, {**whole, "maybe_billed": True})
        if reason != "SUCCESS":
            word = self._wire.redact(str(reason)) if reason else "nothing"
            why = f"the answer says {word} of whether its picture was filtered"
            return Failed(why, meta={**whole, "maybe_billed": True})
        return edited(picture_of(body.get("image"), whole), reply.media_type, request, whole)


def _files(request: EditRequest, masked: bool) -> dict[str, tuple[str, bytes, str]]:
    """The pictures of the form. Raises ValueError for what the service would not take."""
    picture = request.picture
    if not picture:
        raise ValueError("the request has no picture")
    kind = media_type_of(picture)
    if kind not in SUFFIX:
        raise ValueError("Stability takes PNG, JPEG and WebP pictures")
    width, height = request.width, request.height
    if min(width, height) < SPEC.size.min_side:
        raise ValueError(f"{width}x{height} is below the smallest side of 64 pixels")
    if width * height > PIXEL_LIMIT:
        raise ValueError(f"{width}x{height} is over {PIXEL_LIMIT:,} pixels")
    files = {"image": (f"picture.{SUFFIX[kind]}", picture, kind)}
    if masked:
        mask = mask_png(request)
        assert request.mask is not None
        if request.mask.values.shape != (height, width):  # it would be stretched without a word
            raise ValueError("the mask is not of the picture's size")
        files["mask"] = ("mask.png", mask, "image/png")
    elif max(width, height) > MOST_STRETCHED * min(width, height):
        raise ValueError(f"{width}x{height} is longer than 2.5:1, which structure does not take")
    return files
