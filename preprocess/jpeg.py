"""Decoding JPEG with libjpeg-turbo (simplejpeg), its warnings taken seriously."""

from __future__ import annotations

import io
import re

import numpy as np
import simplejpeg
from PIL import Image

from domain.errors import PictureRejected
from domain.pictures import RgbPixels
from preprocess.exif_tags import read_exif, xmp_orientation_warning
from preprocess.jpeg_checks import JpegFile, read_jpeg
from preprocess.limits import Limits
from preprocess.raster import Raster

_HARMLESS = re.compile(r"extraneous bytes before marker|Unknown Adobe color transform", re.I)
_HEAVY_QUALITY = 25


def decode_jpeg(data: bytes, limits: Limits) -> Raster:
    """The first picture of a JPEG, MPO or gain-map file as a Raster.

    Raises PictureRejected for a cut, incomplete or damaged file.
    """
    jpeg = read_jpeg(data, limits)
    warnings: list[str] = []
    cmyk = len(jpeg.components) == 4
    try:
        samples = simplejpeg.decode_jpeg(jpeg.stream, _colours(jpeg), strict=True)
    except ValueError as error:
        samples = _after_complaint(jpeg, str(error), warnings)
    if jpeg.missing_scans():
        raise PictureRejected(
            "truncated image (progressive JPEG without its last scans)"
            if jpeg.progressive
            else "truncated image (a colour component is missing)",
            "truncated",
        )
    _notes(jpeg, warnings)
    model = "cmyk" if cmyk else "grey" if len(jpeg.components) == 1 else "rgb"
    if model == "grey":
        samples = np.ascontiguousarray(samples[:, :, 0])
    if cmyk and jpeg.adobe is not None:  # Adobe writes inks inverted (Photoshop since 1990)
        samples = 255 - samples
    return _with_metadata(Raster(samples, model, "JPEG", warnings=warnings), jpeg)


def _colours(jpeg: JpegFile) -> str:
    return {1: "GRAY", 3: "RGB", 4: "CMYK"}[len(jpeg.components)]


def _after_complaint(jpeg: JpegFile, complaint: str, warnings: list[str]) -> RgbPixels:
    """Decode although libjpeg complained, if the complaint is harmless; else reject by name."""
    if _HARMLESS.search(complaint) and jpeg.scans:
        try:
            samples: RgbPixels = simplejpeg.decode_jpeg(jpeg.stream, _colours(jpeg), strict=False)
        except ValueError as error:
            raise PictureRejected(f"damaged JPEG ({error})", "damaged") from error
        warnings.append(f"The JPEG holds stray data between its parts ({_short(complaint)}).")
        return samples
    if "Could not determine subsampling" in complaint:
        return _unusual_sampling(jpeg, warnings)
    if not jpeg.complete_end or (jpeg.progressive and "premature" in complaint):
        raise PictureRejected(_truncated(jpeg), "truncated")
    raise PictureRejected(f"damaged JPEG ({_short(complaint)})", "damaged")


def _unusual_sampling(jpeg: JpegFile, warnings: list[str]) -> RgbPixels:
    """Decode with Pillow's libjpeg what TurboJPEG refuses for its chroma sampling alone."""
    try:
        with Image.open(io.BytesIO(jpeg.stream), formats=["JPEG"]) as image:
            image.load()
            samples: RgbPixels = np.asarray(image)
    except Exception as error:
        raise PictureRejected(
            "damaged JPEG (its tables or frame cannot be read)", "damaged"
        ) from error
    if not jpeg.complete_end:
        raise PictureRejected("truncated image (end marker missing)", "truncated")
    warnings.append("The JPEG's chroma sampling is unusual: small damage might go unseen.")
    return samples[:, :, None] if samples.ndim == 2 else samples


def _truncated(jpeg: JpegFile) -> str:
    """ "truncated image (N of M rows)": rows of flat filling at the bottom do not count."""
    if jpeg.progressive:
        return "truncated image (progressive JPEG without its last scans)"
    try:
        pixels = simplejpeg.decode_jpeg(jpeg.stream, _colours(jpeg), strict=False)
    except ValueError:
        return f"truncated image (0 of {jpeg.height} rows)"
    filled = (pixels == pixels[-1, -1]).all(axis=(1, 2))
    rows = int(np.argmin(filled[::-1])) if not filled.all() else jpeg.height
    return f"truncated image ({jpeg.height - rows} of {jpeg.height} rows)"


def _short(complaint: str) -> str:
    return complaint.removeprefix("Corrupt JPEG data: ").strip()[:100]


def _notes(jpeg: JpegFile, warnings: list[str]) -> None:
    if not jpeg.complete_end:
        warnings.append("The JPEG's end marker is missing; all pixels are there.")
    if jpeg.stray and not warnings:
        warnings.append(f"The JPEG holds stray data between its parts ({jpeg.stray} bytes).")
    quality = jpeg.quality()
    if quality <= _HEAVY_QUALITY:
        warnings.append(
            f"The picture is heavily compressed (JPEG quality about {quality}): texture figures are unreliable."
        )
    if jpeg.frames > 1:
        warnings.append(f"The file holds {jpeg.frames} pictures; the first one is used.")


def _with_metadata(raster: Raster, jpeg: JpegFile) -> Raster:
    raster.profile, raster.profile_problem = jpeg.icc()
    raster.frames = jpeg.frames
    if jpeg.exif is not None:
        facts = read_exif(jpeg.exif)
        raster.orientation, raster.adobe_rgb = facts.orientation, facts.adobe_rgb
        raster.warnings += facts.warnings
    if jpeg.xmp is not None and raster.orientation == 1:
        raster.warnings += xmp_orientation_warning(jpeg.xmp)
    return raster
