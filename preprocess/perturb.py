"""Controlled disturbances of a portrait: the same harm must not depend on a clean studio picture."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from domain.errors import LikenessError
from domain.faces import Face
from domain.pictures import Picture, RgbPixels
from domain.plan import Perturbation

NOISE_SIGMA = 0.05 * 255
SATURATION_UP, SATURATION_DOWN = 1.3, 0.7
LUMA = (0.299, 0.587, 0.114)
"""ITU-R BT.601 weights, on gamma-encoded values."""
UPPER_FACE_ONLY: frozenset[str] = frozenset({"crop_above_nose"})
"""Perturbations after which no lower face is left: such items carry upper-face figures only."""


def perturb(
    picture: Picture,
    face: Face | None,
    name: Perturbation,
    seed: int = 0,
    portrait_id: str = "",
) -> Picture:
    """The picture under one named perturbation; the same arguments give the same pixels.

    * ``none``: the picture itself.
    * ``noise``: independent Gaussian noise on every channel, sigma 0.05 of the full range (12.75
      of 255), clipped. Seeded by ``seed`` and ``portrait_id``, so that neither the order of work
      nor another portrait changes it; the picture's sha256 stands in for an empty id.
    * ``crop_above_nose``: rows from the top to the nose tip (point 30), that row included.
    * ``red_up`` .. ``blue_down``: that channel's saturation by +30 or -30 %. Channel-wise
      saturation is the channel's distance from the pixel's own luma: c' = Y + k (c - Y), k = 1.3
      or 0.7, Y = 0.299 R + 0.587 G + 0.114 B (BT.601) of the pixel before. A grey pixel stays.

    See-through pixels keep their white. Raises LikenessError for an unknown name, and where the
    crop has no face or no nose tip in the picture to go by.
    """
    if name not in get_args(Perturbation):
        known = ", ".join(get_args(Perturbation))
        raise LikenessError(f"unknown perturbation '{name}'; known: {known}")
    if name == "none":
        return picture
    if name == "crop_above_nose":
        return _crop_above_nose(picture, face)
    if name == "noise":
        pixels = _noise(picture.pixels, _generator(seed, portrait_id or picture.sha256))
    else:
        colour, _, way = name.partition("_")
        factor = SATURATION_UP if way == "up" else SATURATION_DOWN
        pixels = _saturate(picture.pixels, ("red", "green", "blue").index(colour), factor)
    if picture.opaque is not None:
        pixels[~picture.opaque] = picture.pixels[~picture.opaque]
    return replace(picture, pixels=pixels, sha256="")


def _generator(seed: int, portrait_id: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}\0{portrait_id}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))


def _noise(pixels: RgbPixels, generator: np.random.Generator) -> RgbPixels:
    noise = generator.standard_normal(pixels.shape, dtype=np.float32) * np.float32(NOISE_SIGMA)
    return _to_bytes(pixels + noise)


def _saturate(pixels: RgbPixels, channel: int, factor: float) -> RgbPixels:
    luma = pixels @ np.array(LUMA, dtype=np.float64)
    changed = pixels.copy()
    changed[..., channel] = _to_bytes(luma + factor * (pixels[..., channel] - luma))
    return changed


def _to_bytes(values: npt.NDArray[np.floating]) -> RgbPixels:
    return np.asarray(np.clip(np.rint(values), 0, 255), dtype=np.uint8)


def _crop_above_nose(picture: Picture, face: Face | None) -> Picture:
    if face is None:
        raise LikenessError("crop_above_nose needs a face, and none was found in the picture")
    last = int(np.floor(face.points[30, 1]))
    if not 0 <= last < picture.height:
        raise LikenessError("crop_above_nose: the nose tip lies outside the picture")
    opaque = None if picture.opaque is None else picture.opaque[: last + 1].copy()
    return replace(picture, pixels=picture.pixels[: last + 1].copy(), opaque=opaque, sha256="")
