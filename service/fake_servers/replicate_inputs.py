"""The input of the one model that the pretended Replicate runs: an inpainter."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import cv2

from service.fake_servers.desk import decode

LARGEST_DATA_URI = 256 * 1024
"""Bytes of the file in it: "use a data URL when you have a small file <= 256kb"."""
KNOWN: Mapping[str, type | tuple[type, ...]] = {
    "image": str,
    "image_input": list,
    "mask": str,
    "prompt": str,
    "seed": int,
    "width": int,
    "height": int,
    "steps": int,
    "guidance": (int, float),
    "output_format": str,
}


class InvalidInput(Exception):
    """One field that the schema does not allow."""

    def __init__(self, field: str, said: str) -> None:
        super().__init__(f"{field}: {said}")
        self.field, self.said = field, said


def read_inputs(
    given: Mapping[str, Any], url: str, files: Mapping[str, bytes]
) -> tuple[bytes, bytes | None, dict[str, Any]]:
    """The picture, the mask, and the input as the API echoes it (without the pictures)."""
    for name, value in given.items():
        if name not in KNOWN:
            raise InvalidInput(name, "is not allowed")
        if not isinstance(value, KNOWN[name]) or isinstance(value, bool):
            raise InvalidInput(name, "is of the wrong type")
    if not -(2**31) <= given.get("seed", 0) < 2**31:
        raise InvalidInput("seed", "is out of range")
    where = given.get("image") or (given.get("image_input") or [None])[0]
    if where is None:
        raise InvalidInput("image", "is required")
    picture = _file("image", where, url, files)
    mask = None
    if "mask" in given:
        mask = _file("mask", given["mask"], url, files)
        _check_mask(mask, picture)
    echoed = {k: v for k, v in given.items() if k not in ("image", "image_input", "mask")}
    return picture, mask, echoed


def _file(field: str, where: Any, url: str, files: Mapping[str, bytes]) -> bytes:
    if not isinstance(where, str):
        raise InvalidInput(field, "is no URI")
    if where.startswith("data:image/") and ";base64," in where:
        try:
            data = base64.b64decode(where.partition(";base64,")[2], validate=True)
        except ValueError:
            raise InvalidInput(field, "is no data URI") from None
        if len(data) > LARGEST_DATA_URI:
            raise InvalidInput(field, "is too large for a data URI")
    else:
        found = files.get(where.removeprefix(f"{url}/v1/files/"))
        if found is None:
            raise InvalidInput(field, "does not match format 'uri'")
        data = found
    try:
        decode(data)
    except ValueError:
        raise InvalidInput(field, "cannot identify image file") from None
    return data


def _check_mask(mask: bytes, picture: bytes) -> None:
    pixels = decode(mask, cv2.IMREAD_UNCHANGED)
    if pixels.ndim != 2:
        raise InvalidInput("mask", "must be black and white")
    if pixels.shape[:2] != decode(picture).shape[:2]:
        raise InvalidInput("mask", "must have the same size as image")
