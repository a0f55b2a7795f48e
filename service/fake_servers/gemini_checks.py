"""What Gemini's generateContent turns away before any work, in its own words.

Source: error bodies quoted in public trackers, and the fields of the REST reference (both spellings,
camelCase and snake_case, are taken, as by every Google API).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.fake_servers.desk import Seen, decode

MODELS = frozenset(
    "gemini-nano-banana-2.1 gemini-3-pro-image gemini-3.1-flash-image gemini-3.1-flash-lite-image".split()
)
TEXT_MODELS = frozenset({"gemini-3.5-flash", "gemini-3.1-pro-preview"})
BODY_LIMIT = 20_971_520
SIZES: Mapping[str, tuple[int, int]] = {
    "1:1": (1024, 1024), "2:3": (848, 1264), "3:2": (1264, 848), "3:4": (896, 1200),
    "4:3": (1200, 896), "4:5": (928, 1152), "5:4": (1152, 928), "9:16": (768, 1376),
    "16:9": (1376, 768), "21:9": (1584, 672),
}  # fmt: skip
"""Pixels of a 1K result by aspect ratio."""
SCALES = {"1K": 1, "2K": 2, "4K": 4}
TOP = frozenset(
    "contents generationConfig safetySettings systemInstruction tools toolConfig cachedContent model"
    " store serviceTier labels".split()
)
CONFIG = frozenset(
    "responseModalities imageConfig temperature topP topK seed candidateCount maxOutputTokens "
    "stopSequences thinkingConfig responseMimeType mediaResolution presencePenalty frequencyPenalty "
    "responseFormat".split()
)
PARTS = frozenset({"text", "inlineData", "fileData", "thought", "thoughtSignature"})
BLOB = frozenset({"mimeType", "data"})
IMAGE = frozenset({"aspectRatio", "imageSize"})
KINDS = frozenset("image/png image/jpeg image/webp image/heic image/heif".split())
THRESHOLDS = frozenset(
    "OFF BLOCK_NONE BLOCK_ONLY_HIGH BLOCK_MEDIUM_AND_ABOVE BLOCK_LOW_AND_ABOVE".split()
)


class Wrong(Exception):
    """An answer that is an error: ``google.rpc.Status`` in JSON."""

    def __init__(self, code: int, status: str, message: str, *details: Mapping[str, Any]) -> None:
        super().__init__(status)
        self.code, self.status, self.message, self.details = code, status, message, details

    def error(self) -> dict[str, Any]:
        """The error object."""
        told: dict[str, Any] = {"code": self.code, "message": self.message, "status": self.status}
        return {**told, "details": list(self.details)} if self.details else told


@dataclass(frozen=True, slots=True)
class Order:
    """A request that may go ahead. ``size`` is (width, height) of the result."""

    model: str
    picture: bytes
    prompt: str
    size: tuple[int, int]
    image_size: str
    words: bool


def invalid(message: str) -> Wrong:
    """A 400 INVALID_ARGUMENT."""
    return Wrong(400, "INVALID_ARGUMENT", message)


def read_order(call: str, seen: Seen) -> Order:
    """The request to ``MODEL:generateContent`` as an Order. Raises Wrong at the first mistake."""
    model, _, method = call.partition(":")
    if method != "generateContent" or model not in MODELS | TEXT_MODELS:
        raise Wrong(
            404, "NOT_FOUND",
            f"models/{model} is not found for API version v1beta, or is not supported for generateContent.",
        )  # fmt: skip
    if len(seen.body) > BODY_LIMIT:
        raise invalid(f"Request payload size exceeds the limit: {BODY_LIMIT} bytes.")
    body = seen.json()
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received. Unexpected token.")
    body = _known(body, TOP, "")
    config = _known(body.get("generationConfig") or {}, CONFIG, " at 'generation_config'")
    _safety(body.get("safetySettings") or [])
    picture, prompt = _contents(body.get("contents"))
    asked = config.get("responseModalities") or ["TEXT", "IMAGE"]
    if model in TEXT_MODELS and "IMAGE" in asked:
        raise invalid("Model does not support the requested response modalities: image,text")
    size, scale = _size(config, picture)
    return Order(model, picture, prompt, size, scale, "TEXT" in asked)


def _known(value: Any, names: frozenset[str], where: str) -> dict[str, Any]:
    """``value`` with camelCase keys; a key that no field has is an error, as by every Google API."""
    if not isinstance(value, dict):
        raise invalid(f"Invalid value{where}: an object is expected.")
    found = {}
    for key, one in value.items():
        name = re.sub(r"_([a-z])", lambda m: m[1].upper(), key)
        if name not in names:
            raise invalid(
                f'Invalid JSON payload received. Unknown name "{key}"{where}: Cannot find field.'
            )
        found[name] = one
    return found


def _safety(rules: Any) -> None:
    for rule in rules:
        if not isinstance(rule, dict):
            raise invalid("Invalid value at 'safety_settings[0]'")
        if rule.get("threshold") not in THRESHOLDS:
            raise invalid("Invalid value at 'safety_settings[0].threshold'")
        if not str(rule.get("category")).startswith("HARM_CATEGORY_"):
            raise invalid("Invalid value at 'safety_settings[0].category'")


def _contents(contents: Any) -> tuple[bytes, str]:
    if not isinstance(contents, list) or not contents or not isinstance(contents[-1], dict):
        raise invalid("* GenerateContentRequest.contents: contents is not specified")
    pictures, words = [], []
    for number, part in enumerate(contents[-1].get("parts") or []):
        where = f"'contents[0].parts[{number}]'"
        known = _known(part, PARTS, f" at {where}")
        if "inlineData" in known:
            pictures.append(_picture(_known(known["inlineData"], BLOB, f" at {where}"), number))
        elif known.get("text"):
            words.append(str(known["text"]))
    if not words:
        raise invalid(
            "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty."
        )
    if not pictures:
        raise invalid("Unable to process input image. An image is expected.")
    return pictures[0], " ".join(words)


def _picture(blob: Mapping[str, Any], number: int) -> bytes:
    if blob.get("mimeType") not in KINDS:
        raise invalid(f"Unsupported MIME type: {blob.get('mimeType')}")
    text = str(blob.get("data") or "")
    try:
        # bytes in a Google API's JSON: either alphabet, padded or not (the maker's SDK sends - and _)
        plain = text.rstrip("=").replace("-", "+").replace("_", "/")
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        where = f"contents[0].parts[{number}].inline_data.data"
        raise invalid(
            f"Invalid value at '{where}' (TYPE_BYTES), Base64 decoding failed for \"{text}\""
        ) from None
    try:
        decode(data)
    except ValueError:
        raise invalid("Unable to process input image. Please retry or report.") from None
    return data


def _size(config: Mapping[str, Any], picture: bytes) -> tuple[tuple[int, int], str]:
    asked = _known(config.get("imageConfig") or {}, IMAGE, " at 'generation_config.image_config'")
    scale = asked.get("imageSize", "1K")
    if scale not in SCALES:
        raise invalid(f"Invalid value at 'generation_config.image_config.image_size': {scale}")
    aspect = asked.get("aspectRatio")
    if aspect is None:
        height, width = decode(picture).shape[:2]
        aspect = min(SIZES, key=lambda a: abs(SIZES[a][0] / SIZES[a][1] - width / height))
    if aspect not in SIZES:
        raise invalid("aspect_ratio must be one of the supported values.")
    width, height = SIZES[aspect]
    return (width * SCALES[scale], height * SCALES[scale]), scale
