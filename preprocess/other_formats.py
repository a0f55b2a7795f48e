"""Decoding WebP, GIF, BMP, JPEG 2000, HEIC and AVIF: the first (or primary) picture of each."""

from __future__ import annotations

import io
from collections.abc import Callable

import pillow_heif
from PIL import Image

from domain.errors import PictureRejected
from preprocess import headers
from preprocess.boxes import check_boxes
from preprocess.exif_tags import read_exif
from preprocess.limits import Limits
from preprocess.quiet import quiet
from preprocess.raster import Raster
from preprocess.tiff import raster_of


def decode_webp(data: bytes, limits: Limits) -> Raster:
    """WebP, the first picture of an animation. Raises PictureRejected."""
    frames = headers.check_webp(data, limits)
    return _pillow(data, "WEBP", "WebP", frames, limits, turn=True)


def decode_gif(data: bytes, limits: Limits) -> Raster:
    """GIF, its first frame on its canvas. Raises PictureRejected."""
    return _pillow(data, "GIF", "GIF", headers.check_gif(data, limits), limits)


def decode_bmp(data: bytes, limits: Limits) -> Raster:
    """BMP. Raises PictureRejected."""
    headers.check_bmp(data, limits)
    return _pillow(data, "BMP", "BMP", 1, limits)


def decode_jpeg2000(data: bytes, limits: Limits) -> Raster:
    """JPEG 2000, boxed or bare. Raises PictureRejected."""
    profile = headers.check_jpeg2000(data, limits)
    raster = _pillow(data, "JPEG2000", "JPEG 2000", 1, limits)
    raster.profile = raster.profile or profile
    return raster


def decode_avif(data: bytes, limits: Limits) -> Raster:
    """AVIF through Pillow, which hands irot and imir over as one EXIF orientation."""
    boxes = check_boxes(data, limits, "AVIF")
    raster = _pillow(data, "AVIF", "AVIF", 0, limits, turn=True)
    raster.bit_depth, raster.code_points = boxes.bits, boxes.code_points
    return raster


def decode_heic(data: bytes, limits: Limits) -> Raster:
    """The primary picture of a HEIC, turned by libheif as irot and imir say; EXIF is not followed."""
    boxes = check_boxes(data, limits, "HEIC")

    def load() -> Raster:
        container = pillow_heif.open_heif(data, convert_hdr_to_8bit=True)
        picture = container[container.primary_index]
        width, height = picture.size
        limits.check_size(width, height, "HEIC")
        raster = raster_of(picture.to_pillow(), "HEIC")
        raster.profile = picture.info.get("icc_profile") or None
        raster.frames = len(container)
        return raster

    raster = _guarded("HEIC", load)
    raster.bit_depth, raster.code_points = boxes.bits, boxes.code_points
    if raster.frames > 1:
        raster.warnings.append(f"The file holds {raster.frames} pictures; the primary one is used.")
    return raster


def _pillow(
    data: bytes, plugin: str, name: str, frames: int, limits: Limits, turn: bool = False
) -> Raster:
    def load() -> Raster:
        with Image.open(io.BytesIO(data), formats=[plugin]) as image:
            limits.check_size(*image.size, name)
            exif, profile = image.info.get("exif"), image.info.get("icc_profile")
            count = frames or int(getattr(image, "n_frames", 1))
            image.load()
            raster = raster_of(image, name)
        raster.profile, raster.frames = profile or None, count
        if turn and exif:
            facts = read_exif(exif)
            raster.orientation, raster.adobe_rgb = facts.orientation, facts.adobe_rgb
            raster.warnings += facts.warnings
        return raster

    raster = _guarded(name, load)
    if raster.frames > 1:
        raster.warnings.append(
            f"The file is an animation of {raster.frames} frames; the first frame is used."
        )
    if raster.samples.dtype.itemsize > 1:
        raster.bit_depth = 8 * raster.samples.dtype.itemsize
    return raster


def _guarded(name: str, load: Callable[[], Raster]) -> Raster:
    """Whatever a decoder raises becomes one named rejection."""
    try:
        with quiet():
            return load()
    except PictureRejected:
        raise
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        kind = "truncated" if "truncated" in text.lower() or "eof" in text.lower() else "damaged"
        if "cannot identify" in text:
            text = "its header cannot be read"
        raise PictureRejected(f"{kind} {name} ({text[:80]})", kind) from error
