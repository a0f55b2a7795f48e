"""OpenAI's image edits, ``POST /v1/images/edits``: the GPT Image models, and dall-e-2.

Sources: openai-python ``types/image_edit_params.py``, the image generation guide and the edits
reference of developers.openai.com, read in stored copies of 2026; nothing was called live.

What is not obvious: the mask edits where its alpha is 0; a GPT Image model takes it as a hint only.
Quality, size and background are always sent, because "auto" lets the server choose anew for every
picture. There is no seed. dall-e-2 demands a square RGBA PNG under 4 MB, so an opaque alpha channel is
added to the picture, with its colours untouched; every other model gets the bytes as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import cv2
import numpy as np
from pydantic import Field

from adapters.codec import mask_as_alpha, media_type_of, read_rgb
from adapters.contract import Adapter, ToolSpec
from adapters.guard import failures_are_answers, read_settings
from adapters.hosted.openai_models import ANY_SIZE, KNOWN, Family, family_of, price_of
from adapters.hosted.prompts import prompt_of
from adapters.over_http.results import edited, facts, json_of, picture_of, without_key
from adapters.over_http.wire import HttpSettings, Reply, Wire
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError

FAKE = "openai"
EXAMPLE: Mapping[str, Any] = {}
MASKED = (Task.INPAINT_BACKGROUND, Task.INPAINT_FACE, Task.INPAINT_LOWER_FACE)
MASK_LIMIT = 4_000_000
"""Bytes: "less than 4MB"."""
PICTURE_LIMIT = 50_000_000
REFUSALS = frozenset({"moderation_blocked", "content_policy_violation", "content_filter"})
SAFETY_WORDS = ("safety system", "content policy")
"""The older refusals carry no code, only these words."""
NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
    }
)
NO_MODEL = frozenset({"model_not_found", "invalid_model"})
SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}


SPEC = ToolSpec(
    id="openai_images",
    name="OpenAI image edits",
    tasks=(*MASKED, Task.RETOUCH, Task.RESTYLE, Task.ENHANCE),
    size=ANY_SIZE,
    mask_support="advisory",
    takes_prompt=True,
    price_note="billed by tokens; the answer's usage is kept with every call",
    licence="proprietary service, OpenAI's terms",
    remote=True,
    concurrency=4,
    key_env="OPENAI_API_KEY",
    key_needed=True,
    refuses=(
        "What OpenAI's safety system blocks, in the picture, the prompt or the result: refused.",
        "A mask over 4 MB or one that marks nothing: failed, before anything is sent.",
        "A size that the model does not make: failed, before anything is sent.",
    ),
)


class OpenAiSettings(HttpSettings):
    """``model`` decides the sizes and which of the others exist. ``input_fidelity`` None means high
    where the model has a choice (it matters for faces). ``moderation`` low asks for the milder
    filter. ``base_url`` may end in /v1, as other programs write it. Nothing comes over the wire while
    the picture is made, which may take minutes: hence the long ``timeout_s``."""

    base_url: str = "https://api.openai.com"
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 300.0
    model: str = "gpt-image-2.5-sunburst-2026-09-08"
    quality: Literal["auto", "low", "medium", "high", "xhigh", "max"] = "medium"
    input_fidelity: Literal["low", "high"] | None = None
    background: Literal["auto", "opaque", "transparent"] = "opaque"
    output_format: Literal["png", "jpeg", "webp"] = "png"
    moderation: Literal["auto", "low"] = "auto"
    organization: str = ""
    project: str = ""


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting or a model that edits nothing."""
    checked = read_settings(OpenAiSettings, settings, SPEC.id)
    return OpenAiImages(checked, _check(checked))


def _check(settings: OpenAiSettings) -> Family:
    """The model's family. Raises LikenessError when a setting does not exist for it."""
    model = settings.model
    family = family_of(model)
    if family is None:
        raise LikenessError(
            f"tool '{SPEC.id}': setting 'model': '{model}' makes no edits; known: {', '.join(KNOWN)}"
        )
    chosen = settings.model_fields_set
    for name, value, allowed in (
        ("quality", settings.quality, family.qualities),
        ("input_fidelity", settings.input_fidelity, (None, *family.fidelities)),
        ("background", settings.background, family.backgrounds),
    ):
        if name in chosen and value not in allowed:
            can = ", ".join(a for a in allowed if a) or "left out"
            raise LikenessError(
                f"tool '{SPEC.id}': setting '{name}': {model} does not know '{value}'; "
                f"it can be: {can}"
            )
    if settings.background == "transparent" and settings.output_format == "jpeg":
        raise LikenessError(
            f"tool '{SPEC.id}': setting 'background': a JPEG is never transparent; use png or webp"
        )
    return family


class OpenAiImages:
    """One connection pool; safe in threads."""

    def __init__(self, settings: OpenAiSettings, family: Family) -> None:
        self._settings, self._family = settings, family
        self._dall_e = settings.model.startswith("dall-e")
        self.spec = replace(
            SPEC,
            tasks=MASKED if self._dall_e else SPEC.tasks,
            size=family.size,
            price=price_of(settings.model, settings.quality),
        )
        self.model = f"OpenAI {settings.model}"
        auth = {}
        if settings.key is not None:
            auth["authorization"] = f"Bearer {settings.key.get_secret_value().strip()}"
        if settings.organization:
            auth["openai-organization"] = settings.organization
        if settings.project:
            auth["openai-project"] = settings.project
        self._wire = Wire(settings, auth)
        ends = settings.base_url.endswith("/v1")
        self._path = "images/edits" if ends else "v1/images/edits"
        self._closed = False

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One picture, one edit. Masked tasks take the request's mask, the others none."""
        if self._closed:
            return Failed("the tool was closed")
        if self._settings.key is None:
            return without_key(SPEC)
        fields = self._fields(request)
        files = self._files(request)
        reply = self._wire.send("POST", self._path, data=fields, files=files)
        meta = {**reply.meta(), "sent": {**fields, "mask": len(files) > 1}}
        if reply.status != 200:
            return self._turned_down(reply, meta)
        return self._result(reply, request, meta)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._wire.close()

    def _fields(self, request: EditRequest) -> dict[str, str]:
        prompt = prompt_of(request)
        if len(prompt) > self._family.prompt_limit:
            raise ValueError(f"the prompt is over {self._family.prompt_limit} characters")
        fields = {
            "model": self._settings.model,
            "prompt": prompt,
            "n": "1",
            "size": self._size(request),
        }
        if self._dall_e:
            return {**fields, "response_format": "b64_json"}
        fields |= {
            "quality": self._settings.quality,
            "background": self._settings.background,
            "output_format": self._settings.output_format,
        }
        if self._family.fidelities:
            best = self._family.fidelities[-1]
            fields["input_fidelity"] = self._settings.input_fidelity or best
        if self._settings.moderation != "auto":
            fields["moderation"] = self._settings.moderation
        return fields

    def _size(self, request: EditRequest) -> str:
        width, height, rule = request.width, request.height, self._family.size
        fits = (
            (width, height) in rule.sizes
            if rule.sizes
            else all(
                side % rule.multiple == 0 and rule.min_side <= side <= rule.max_side
                for side in (width, height)
            )
        )
        if not fits:
            raise ValueError(f"{width}x{height} is no size that {self._settings.model} makes")
        return f"{width}x{height}"

    def _files(self, request: EditRequest) -> list[tuple[str, tuple[str, bytes, str]]]:
        picture = request.picture
        if not picture:
            raise ValueError("the request has no picture")
        kind = media_type_of(picture)
        if kind not in SUFFIX:
            raise ValueError("OpenAI takes PNG, JPEG and WebP pictures")
        mask = self._mask(request, kind) if request.task in MASKED else None
        if self._dall_e:
            picture, kind = _opaque_rgba(picture), "image/png"
        limit = MASK_LIMIT if self._dall_e else PICTURE_LIMIT
        if len(picture) >= limit:
            raise ValueError(f"the picture is not under {limit // 1_000_000} MB")
        name = "image" if self._dall_e else "image[]"
        files = [(name, (f"picture.{SUFFIX[kind]}", picture, kind))]
        if mask is not None:
            files.append(("mask", ("mask.png", mask, "image/png")))
        return files

    def _mask(self, request: EditRequest, kind: str) -> bytes:
        data = mask_as_alpha(request)
        assert request.mask is not None
        if request.mask.values.shape != (request.height, request.width):
            raise ValueError("the mask is not of the picture's size")
        if kind != "image/png":
            raise ValueError("the mask is a PNG, so OpenAI wants the picture as PNG too")
        if len(data) >= MASK_LIMIT:
            raise ValueError(f"the mask is {len(data):,} bytes; OpenAI takes less than 4 MB")
        return data

    def _turned_down(self, reply: Reply, meta: Mapping[str, Any]) -> EditOutcome:
        body = reply.json_or_none()
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {}
        code, message = str(error.get("code") or ""), str(error.get("message") or "")
        if reply.status == 401:  # its sentence repeats the ends of the key
            message = f"the key was refused ({code or 'no code'})"
        said = self._wire.redact(message)
        worded = not code and any(word in message.lower() for word in SAFETY_WORDS)
        if code in REFUSALS or (worded and reply.status < 429):
            details = error.get("moderation_details")
            details = details if isinstance(details, dict) else {}
            stage = str(details.get("moderation_stage"))
            kept = facts(details, ("moderation_stage", "categories"), self._wire)
            whole = {**meta, "returned": kept} if kept else dict(meta)
            if stage == "output":  # it was made before it was withheld
                whole["maybe_billed"] = True
            stage = stage if stage in ("input", "output") else "policy"
            return Refused(stage, code or "safety_system", said, whole)
        failed = self._wire.failure(reply, message)
        whole = {**failed.meta, **meta}
        if code in NO_CREDIT | NO_MODEL or reply.status == 404 or error.get("param") == "model":
            # A 429 without credit never gets better by waiting
            return Failed(failed.reason, meta={**whole, "stop": True})
        return replace(failed, meta=whole)

    def _result(self, reply: Reply, request: EditRequest, meta: Mapping[str, Any]) -> Edited:
        body = json_of(reply, meta)
        names = ("size", "quality", "background", "output_format", "usage")
        whole = {**meta, "returned": facts(body, names, self._wire)}
        if body.get("model"):
            whole["model"] = self._wire.redact(str(body["model"]))
        data = body.get("data")
        first = data[0] if isinstance(data, list) and data else {}
        first = first if isinstance(first, dict) else {}
        if not first.get("b64_json") and isinstance(first.get("url"), str):
            fetched = self._wire.fetch(first["url"])
            return edited(fetched.body, fetched.media_type, request, whole)
        picture = picture_of(first.get("b64_json"), whole)
        return edited(picture, "base64 of something else", request, whole)


def _opaque_rgba(picture: bytes) -> bytes:
    """The picture with an alpha channel that hides nothing; its colours are the same to the bit."""
    pixels = read_rgb(picture)
    alpha = np.full((*pixels.shape[:2], 1), 255, dtype=np.uint8)
    done, data = cv2.imencode(".png", np.concatenate([pixels[..., ::-1], alpha], axis=-1))
    if not done:
        raise ValueError("the picture cannot be written as PNG")
    return bytes(data.tobytes())
