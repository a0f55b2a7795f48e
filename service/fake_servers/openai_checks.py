"""What OpenAI's images/edits turns away before any work, in its own words.

Source: the maker's API reference and SDK types (openai-python, image_edit_params), and error bodies
quoted in public trackers: unsupported_file_mimetype, invalid_mask_image_format, invalid_value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import cv2

from service.fake_servers.desk import Seen, decode

GPT_1 = frozenset({"gpt-image-1", "gpt-image-1-mini", "gpt-image-1.5", "chatgpt-image-latest"})
GPT_2 = frozenset({"gpt-image-2", "gpt-image-2-2026-04-21"})
GPT_25 = frozenset(
    f"gpt-image-2.5-{name}{date}"
    for name in ("flare", "sunburst")
    for date in ("", "-2026-09-08")
)  # fmt: skip
DALLE = "dall-e-2"
DEFAULT_MODEL = "gpt-image-1.5"
FIXED_SIZES = ((1024, 1024), (1024, 1536), (1536, 1024))
DALLE_SIZES = ((256, 256), (512, 512), (1024, 1024))
MB = 1_000_000
BOTH = frozenset({"image", "image[]", "mask", "prompt", "model", "n", "size", "user", "quality"})
GPT_ONLY = frozenset(
    "background input_fidelity output_compression output_format partial_images stream moderation "
    "safety_identifier".split()
)
PNG, JPEG, WEBP = "image/png", "image/jpeg", "image/webp"


@dataclass(frozen=True, slots=True)
class Order:
    """An edit that may go ahead. ``size`` is (width, height) of the result; ``edit_here`` is None when
    the whole picture may change, else a grey PNG, white where the mask's alpha is 0."""

    model: str
    picture: bytes
    edit_here: bytes | None
    size: tuple[int, int]
    count: int
    quality: str
    output_format: str
    background: str
    as_url: bool
    prompt: str
    fields: dict[str, Any] = field(default_factory=dict, repr=False)


class Rejected(Exception):
    """The request is wrong: the maker's ``error`` object, sent with a 400."""

    def __init__(
        self, message: str, param: str | None, code: str | None, kind: str = "invalid_request_error"
    ) -> None:
        super().__init__(code or kind)
        self.error = {"message": message, "type": kind, "param": param, "code": code}


def read_order(seen: Seen) -> Order:
    """The request as an Order. Raises Rejected at the first thing that is wrong with it."""
    kind = seen.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data"):
        raise Rejected(
            f"Invalid Content-Type header ({kind or 'none'}), expected multipart/form-data.",
            None, None,
        )  # fmt: skip
    values = seen.fields
    model = values.get("model") or DEFAULT_MODEL
    if model not in GPT_1 | GPT_2 | GPT_25 | {DALLE}:
        raise Rejected(f"The model '{model}' does not exist.", "model", "model_not_found")
    _known_parameters(seen, model)
    pictures = _pictures(seen, model)
    prompt = values.get("prompt") or ""
    if not prompt:
        raise Rejected("Missing required parameter: 'prompt'.", "prompt", "missing_required_parameter")  # fmt: skip
    longest = 1000 if model == DALLE else 32_000
    if len(prompt) > longest:
        raise Rejected(
            f"Invalid 'prompt': string too long. Expected a string with maximum length {longest}, "
            f"but got a string with length {len(prompt)} instead.", "prompt", "string_above_max_length",
        )  # fmt: skip
    size = _size(values, model, pictures[0])
    output_format, background = _output(values, model)
    return Order(
        model, pictures[0], _mask(seen, model, pictures[0]), size, _count(values),
        _quality(values, model), output_format, background,
        model == DALLE and _one_of(values, "response_format", ("url", "b64_json"), "url") == "url",
        prompt, dict(values),
    )  # fmt: skip


def _known_parameters(seen: Seen, model: str) -> None:
    allowed = BOTH | ({"response_format"} if model == DALLE else GPT_ONLY)
    for name in (*seen.fields, *seen.files):
        if name.partition("#")[0] not in allowed:
            raise Rejected(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    if model in GPT_2 and "input_fidelity" in seen.fields:
        raise Rejected(
            f"The model '{model}' does not support the 'input_fidelity' parameter.",
            "input_fidelity", "invalid_input_fidelity_model",
        )  # fmt: skip
    if "input_fidelity" in seen.fields:
        known = ("low",) if model == "gpt-image-1-mini" else ("high", "low")
        _one_of(seen.fields, "input_fidelity", known, "low")


def _one_of(values: dict[str, Any], name: str, known: tuple[str, ...], default: str) -> str:
    value = values.get(name, default)
    if value not in known:
        quoted = [f"'{k}'" for k in known]
        listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
        raise Rejected(
            f"Invalid value: '{value}'. Supported values are: {listed}.", name, "invalid_value"
        )
    return str(value)


def _pictures(seen: Seen, model: str) -> list[bytes]:
    names = [n for n in seen.files if n.partition("#")[0] in {"image", "image[]"}]
    if not names:
        raise Rejected(
            "Missing required parameter: 'image'.", "image", "missing_required_parameter"
        )
    most = 1 if model == DALLE else 16
    if len(names) > most:
        raise Rejected(f"Too many images: at most {most} may be given.", "image", "invalid_value")
    kinds = (PNG,) if model == DALLE else (JPEG, PNG, WEBP)
    for place, name in enumerate(names, start=1):
        kind = seen.file_types[name]
        if kind not in kinds:
            quoted = [f"'{k}'" for k in kinds]
            listed = (
                quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
            )
            raise Rejected(
                f"Invalid file '{name}': unsupported mimetype ('{kind}'). "
                f"Supported file formats are {listed}.", name, "unsupported_file_mimetype",
            )  # fmt: skip
        _readable(seen.files[name], place, kinds, model)
    return [seen.files[name] for name in names]


def _readable(data: bytes, place: int, kinds: tuple[str, ...], model: str) -> None:
    limit = 4 if model == DALLE else 50
    if len(data) >= limit * MB:
        raise Rejected(f"Image {place} is too large: it must be less than {limit} MB.", "image", "invalid_image_file")  # fmt: skip
    try:
        pixels = decode(data, cv2.IMREAD_UNCHANGED)
    except ValueError:
        pixels = None
    if pixels is None or _kind(data) not in kinds:
        raise Rejected(
            f"Invalid image file or mode for image {place}, please check your image file.",
            "image", "invalid_image_file", "image_generation_user_error",
        )  # fmt: skip
    if model != DALLE:
        return
    if pixels.ndim == 3 and pixels.shape[2] == 3:
        raise Rejected("Invalid input image - format must be in ['RGBA', 'LA', 'L'], got RGB.", "image", None)  # fmt: skip
    if pixels.shape[0] != pixels.shape[1]:
        raise Rejected("Invalid input image - image must be square.", "image", None)


def _kind(data: bytes) -> str:
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return PNG
    if data[:3] == b"\xff\xd8\xff":
        return JPEG
    return WEBP if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def _mask(seen: Seen, model: str, picture: bytes) -> bytes | None:
    own = decode(picture, cv2.IMREAD_UNCHANGED)
    if "mask" not in seen.files:
        if model != DALLE:
            return None
        pixels = own  # its own transparency says where
    else:
        pixels = _read_mask(seen.files["mask"])
        if pixels.shape[:2] != own.shape[:2]:
            raise _bad_mask("mask size does not match image size")
    if pixels.ndim != 3 or pixels.shape[2] != 4:
        raise _bad_mask("mask image missing alpha channel")
    done, data = cv2.imencode(".png", (pixels[..., 3] == 0).astype("uint8") * 255)
    if not done:
        raise _bad_mask("mask cannot be read")
    return bytes(data.tobytes())


def _read_mask(data: bytes) -> Any:
    if len(data) >= 4 * MB:
        raise _bad_mask("mask must be less than 4 MB")
    if _kind(data) != PNG:
        raise _bad_mask("mask must be a PNG file")
    try:
        return decode(data, cv2.IMREAD_UNCHANGED)
    except ValueError:
        raise _bad_mask("mask cannot be read") from None


def _bad_mask(why: str) -> Rejected:
    return Rejected(
        f"Invalid mask image format - {why}", "mask", "invalid_mask_image_format",
        "image_generation_user_error",
    )  # fmt: skip


def _size(values: dict[str, Any], model: str, picture: bytes) -> tuple[int, int]:
    sizes = DALLE_SIZES if model == DALLE else FIXED_SIZES
    asked = values.get("size") or ("1024x1024" if model == DALLE else "auto")
    if asked == "auto" and model != DALLE:
        height, width = decode(picture).shape[:2]
        return min(FIXED_SIZES, key=lambda s: abs(s[0] / s[1] - width / height))
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", asked)
    if model in GPT_2 | GPT_25 and found:
        size = int(found[1]), int(found[2])
        if not _free_size(size):
            raise Rejected(
                f"Invalid size '{asked}': both edges must be multiples of 16 and at most 3840, the "
                "aspect ratio within 1:3 to 3:1, and 655360 to 8294400 pixels.", "size", "invalid_value",
            )  # fmt: skip
        return size
    named = tuple(f"{w}x{h}" for w, h in sizes)
    chosen = _one_of(
        {"size": asked}, "size", named if model == DALLE else (*named, "auto"), "1024x1024"
    )
    return sizes[named.index(chosen)]


def _free_size(size: tuple[int, int]) -> bool:
    width, height = size
    whole = all(side > 0 and side % 16 == 0 and side <= 3840 for side in size)
    return whole and max(size) <= 3 * min(size) and 655_360 <= width * height <= 8_294_400


def _count(values: dict[str, Any]) -> int:
    asked = str(values.get("n", "1"))
    if not asked.isdecimal() or not 1 <= int(asked) <= 10:
        raise Rejected(f"Invalid 'n': expected an integer from 1 to 10, got '{asked}'.", "n", "invalid_value")  # fmt: skip
    return int(asked)


def _quality(values: dict[str, Any], model: str) -> str:
    known: tuple[str, ...] = ("low", "medium", "high", "auto")
    if model == DALLE:
        known = ("standard", "auto")
    elif model in GPT_25:
        known = ("low", "medium", "high", "xhigh", "max", "auto")
    asked = _one_of(values, "quality", known, "auto")
    return "high" if asked == "auto" else asked


def _output(values: dict[str, Any], model: str) -> tuple[str, str]:
    output = _one_of(values, "output_format", ("png", "jpeg", "webp"), "png")
    background = _one_of(values, "background", ("transparent", "opaque", "auto"), "auto")
    if background == "transparent" and (model in GPT_2 or output == "jpeg"):
        raise Rejected(
            "Transparent background is not supported for this model or output format.",
            "background", "invalid_value",
        )  # fmt: skip
    return output, "transparent" if background == "transparent" else "opaque"
