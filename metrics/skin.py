"""Which pixels of a face are skin, and how light that skin is.

Nothing here knows what colour skin is: the mask is the face's outline less eyes, brows and lips,
less what is far brighter or far darker than this very face. An absolute colour rule would throw
dark skin away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import numpy.typing as npt

from domain.faces import LEFT_BROW, LEFT_EYE, OUTER_LIPS, RIGHT_BROW, RIGHT_EYE, Face
from metrics.lab import LabColour, mean_lab, rgb_to_lab
from metrics.per_pair import once_per_pair
from metrics.regions import ByteMask, Points, Region, draw, face_frame, find_regions, regions

if TYPE_CHECKING:
    from metrics.pair import FacePair

SHADOW = 0.45
"""Skin darker than this share of the face's median luma is deep shadow, hair or a nostril."""
HIGHLIGHT = 1.55
"""Skin brighter than this multiple of the face's median luma is a specular highlight."""
CLIPPED = 254.0
MIN_SKIN_PIXELS = 150
MANY_PIXELS = 25_000
"""A mean colour is taken over about so many pixels."""
MIN_SKIN_SHARE = 0.15
"""Share of the face outline that must be left as skin."""
TONE_IED = 96.0
"""Working scale of the measured skin tone: a median over the cheeks needs no more pixels."""

MIN_TONE_PIXELS = 60

TOO_DARK = 6.0
"""L* below which eight-bit pixels hold no usable skin colour; the darkest Monk tone has 14."""
MONOCHROME_CHROMA = 1.0
CUTS = (55.0, 41.0, 28.0, 10.0, -30.0)
"""Cuts between the six groups of the individual typology angle, in degrees (Chardon et al. 1991,
Del Bino and Bernerd 2013)."""
GROUPS = tuple(f"measured ITA group {n}" for n in ("I", "II", "III", "IV", "V", "VI"))


@dataclass(frozen=True, slots=True)
class SkinTone:
    """Measured skin tone of one face. ``ita`` is in degrees, None with ``reason`` where it cannot
    be had. ``spread`` is the difference in ITA between the two cheeks: large under side light."""

    ita: float | None
    lightness: float | None = None
    b: float | None = None
    spread: float | None = None
    reason: str | None = None

    @property
    def group(self) -> str | None:
        """The measured ITA group, None where the angle is missing."""
        return None if self.ita is None else ita_group(self.ita)


@dataclass(frozen=True, slots=True, eq=False)
class BareFace:
    """``mask`` (h, w) uint8 0/1 on the face region's window: the face less eyes, brows and lips, and
    less the lower face where that is ``covered`` (by a mask, a scarf)."""

    mask: ByteMask
    covered: bool


def ita_group(ita: float) -> str:
    """The group of an individual typology angle in degrees: "measured ITA group I" is lightest."""
    return GROUPS[sum(ita <= cut for cut in CUTS)]


@once_per_pair
def skin_region(pair: FacePair) -> Region:
    """Skin of the ORIGINAL that both pictures show, as a region of the pair's crop, cached."""
    face = regions(pair)["face"]
    if face.reason is not None:
        return _no_skin(face)
    return _skin(face, bare_face(pair), pair.original_luma)


@once_per_pair
def bare_face(pair: FacePair) -> BareFace:
    """The original's face less its features, cached; the face region must be measurable."""
    return _bare(regions(pair), pair.original_crop, pair.points)


def find_skin(
    found: dict[str, Region],
    crop: npt.NDArray[np.uint8],
    luma: npt.NDArray[np.float32],
    points: Points,
) -> Region:
    """Skin inside the face region of a (h, w, 3) crop with its (h, w) luma 0..255."""
    face = found["face"]
    if face.reason is not None:
        return _no_skin(face)
    return _skin(face, _bare(found, crop, points), luma)


def _no_skin(face: Region) -> Region:
    return Region("skin", face.top, face.left, face.mask, face.pixels, face.reason)


def _bare(found: dict[str, Region], crop: npt.NDArray[np.uint8], points: Points) -> BareFace:
    face = found["face"]
    mask = cv2.bitwise_and(face.mask, 1 - features_mask(face, points))
    covered = lower_face_is_covered(found, crop, mask, face)
    if covered:
        mask &= 1 - _below_nose_bridge(face, points)
    return BareFace(mask, covered)


def _skin(face: Region, bare: BareFace, luma: npt.NDArray[np.float32]) -> Region:
    light = luma[face.window]
    median = levels_at(light, bare.mask, (0.5,))[0]
    kept = cv2.inRange(light, SHADOW * median, min(HIGHLIGHT * median, CLIPPED))
    mask = cv2.bitwise_and(bare.mask, kept)
    pixels = cv2.countNonZero(mask)
    reason = None
    if pixels < max(MIN_SKIN_PIXELS, MIN_SKIN_SHARE * face.pixels):
        share = 100.0 * pixels / face.pixels
        reason = f"too little skin can be told apart ({share:.0f} % of the face)"
    return Region("skin", face.top, face.left, mask, pixels, reason)


def features_mask(face: Region, points: Points) -> ByteMask:
    """Eyes, brows and lips, each a little grown, as a mask on the face region's window."""
    ied = face_frame(points).ied
    offset = np.array([face.left, face.top], np.float64)
    shape = (face.mask.shape[0], face.mask.shape[1])
    mask = draw(shape, [points[OUTER_LIPS], points[RIGHT_EYE], points[LEFT_EYE]], offset)
    _grow_outlines(mask, [points[RIGHT_EYE], points[LEFT_EYE]], offset, 0.16 * ied, closed=True)
    _grow_outlines(mask, [points[OUTER_LIPS]], offset, 0.08 * ied, closed=True)
    _grow_outlines(mask, [points[RIGHT_BROW], points[LEFT_BROW]], offset, 0.20 * ied, closed=False)
    return mask


def _grow_outlines(
    mask: ByteMask, lines: list[Points], offset: Points, width: float, closed: bool
) -> None:
    whole = [np.rint(np.clip(line - offset, -1e6, 1e6)).astype(np.int32) for line in lines]
    cv2.polylines(mask, whole, closed, 1, thickness=max(1, round(width)))


def levels_at(
    luma: npt.NDArray[np.float32], mask: ByteMask, shares: tuple[float, ...]
) -> tuple[int, ...]:
    """Whole levels of the luma (0..255) that so many shares of the masked pixels reach. Histograms
    of bytes are several times faster than those of floats, and both than sorting."""
    counts = cv2.calcHist([luma.astype(np.uint8)], [0], mask, [256], [0, 256])
    reached = np.cumsum(counts.ravel())
    return tuple(int(np.searchsorted(reached, reached[-1] * share)) for share in shares)


def lower_face_is_covered(
    found: dict[str, Region], crop: npt.NDArray[np.uint8], skin: ByteMask, face: Region
) -> bool:
    """True where the lower face is of quite another hue than the forehead and eyes: a mask."""
    colours = []
    for name in ("forehead", "lower_face"):
        region = found[name]
        if region.reason is not None:
            return False
        under = np.ascontiguousarray(skin[_inside(face, region)] & region.mask)
        if cv2.countNonZero(under) < MIN_SKIN_PIXELS:
            return False
        level = cv2.mean(crop[region.window], mask=under)[:3]
        colours.append(mean_lab(np.rint(np.array([level])).astype(np.uint8)))
    upper, lower = colours
    apart = float(np.hypot(upper.a - lower.a, upper.b - lower.b))
    return upper.b > 0 and lower.b < 0 and apart > 12.0


def _inside(outer: Region, inner: Region) -> tuple[slice, slice]:
    y, x = inner.top - outer.top, inner.left - outer.left
    return slice(y, y + inner.mask.shape[0]), slice(x, x + inner.mask.shape[1])


def _below_nose_bridge(face: Region, points: Points) -> ByteMask:
    """What a mask over nose and mouth hides, on the face region's window."""
    frame = face_frame(points)
    bridge = float(frame.locate(points[28:29])[0, 1])
    band = np.array([[-9.0, bridge], [9.0, bridge], [9.0, 9.0], [-9.0, 9.0]])
    shape = (face.mask.shape[0], face.mask.shape[1])
    return draw(shape, [frame.place(band)], np.array([face.left, face.top], np.float64))


def pixels_under(
    region: Region, crops: tuple[npt.NDArray[Any], ...]
) -> tuple[npt.NDArray[Any], ...]:
    """The (n, channels) pixels that a region covers in each of the crops.

    Of a large region every n-th row, the same in all: its mean colour moves by a few hundredths of
    a unit at most, a difference of two such means by less.
    """
    rows, columns = region.window
    step = max(1, region.pixels // MANY_PIXELS) | 1  # odd: even steps fall in with JPEG's blocks
    at = np.flatnonzero(region.mask[::step].view(np.bool_))
    windows = [np.ascontiguousarray(crop[rows.start : rows.stop : step, columns]) for crop in crops]
    return tuple(np.take(w.reshape(-1, w.shape[2]), at, axis=0) for w in windows)


def colour_reason(colour: LabColour, monochrome: bool, whose: str) -> str | None:
    """Why a mean skin colour is no skin colour, or None. ``whose`` is "original" or "edit"."""
    if colour.lightness < TOO_DARK:
        return f"the {whose} is too dark to measure (L* {colour.lightness:.1f})"
    if monochrome or colour.chroma < MONOCHROME_CHROMA:
        return f"{whose} is monochrome"
    if colour.b <= 0 or colour.a < -4.0:
        return (
            f"the {whose} has a colour cast (skin a* {colour.a:+.1f}, b* {colour.b:+.1f}), "
            "its skin tone cannot be told"
        )
    return None


def measured_ita(face: Face) -> SkinTone:
    """ITA of the median L* and b* of a patch of skin on either cheek; all skin where those hide.

    The patches lie beneath glasses, above beards and away from gloss. The figure carries the
    light of the picture: it is a grouping of pictures, never a statement about a person.
    """
    pixels, opaque, points = _tone_crop(face)
    found = find_regions(points, opaque)
    luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    skin = find_skin(found, pixels, luma, points)
    if skin.reason is not None:
        return SkinTone(None, reason=skin.reason)
    patches = skin.mask & _tone_patches(skin, points)
    area = patches if cv2.countNonZero(patches) >= MIN_TONE_PIXELS else skin.mask
    return _tone(pixels[skin.window], area, points - [skin.left, skin.top], face)


def _tone_patches(skin: Region, points: Points) -> ByteMask:
    """Two discs of 0.12 IED radius on the cheeks, 0.72 IED below the eye centres."""
    frame = face_frame(points)
    turn = np.linspace(0.0, 2 * np.pi, 24)
    disc = 0.12 * np.column_stack([np.cos(turn), np.sin(turn)])
    centres = frame.locate(
        np.array([points[RIGHT_EYE].mean(axis=0), points[LEFT_EYE].mean(axis=0)])
    )
    discs = [frame.place(disc + centre + [0.0, 0.72]) for centre in centres]
    shape = (skin.mask.shape[0], skin.mask.shape[1])
    return draw(shape, discs, np.array([skin.left, skin.top], np.float64))


def _tone(pixels: npt.NDArray[np.uint8], area: ByteMask, points: Points, face: Face) -> SkinTone:
    rows, columns = np.nonzero(area)
    values = rgb_to_lab(np.ascontiguousarray(pixels[rows, columns][:, None]))[:, 0]
    middle = np.median(values, axis=0)
    colour = LabColour(float(middle[0]), float(middle[1]), float(middle[2]))
    reason = colour_reason(colour, face.picture.facts.monochrome, "original")
    if reason is not None:
        return SkinTone(None, colour.lightness, colour.b, reason=reason)
    frame = face_frame(points)
    side = (np.column_stack([columns, rows]) - frame.origin) @ frame.along
    halves = [values[side < 0], values[side > 0]]
    spread = None
    if min(len(half) for half in halves) >= MIN_TONE_PIXELS // 3:
        angles = [LabColour(*(float(v) for v in np.median(half, axis=0))).ita for half in halves]
        spread = abs(angles[0] - angles[1])
    return SkinTone(colour.ita, colour.lightness, colour.b, spread)


def _tone_crop(
    face: Face,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_], Points]:
    """The face with its surroundings at the working scale: pixels, real pixels, points."""
    picture = face.picture
    margin = 0.9 * max(face.ied, 1.0)
    low = np.floor(np.clip(face.points.min(axis=0) - margin, 0, None)).astype(int)
    high = np.ceil(face.points.max(axis=0) + margin).astype(int) + 1
    rows, columns = slice(low[1], max(high[1], low[1] + 1)), slice(low[0], max(high[0], low[0] + 1))
    pixels = np.ascontiguousarray(picture.pixels[rows, columns])
    if pixels.size == 0:
        return np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.bool_), face.points - low
    opaque = np.ones(pixels.shape[:2], np.bool_)
    if picture.opaque is not None:
        opaque = np.ascontiguousarray(picture.opaque[rows, columns])
    points = face.points - low
    scale = TONE_IED / face.ied if face.ied > TONE_IED else 1.0
    if scale < 1.0:
        size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
        ratio = np.array([size[0] / pixels.shape[1], size[1] / pixels.shape[0]])
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
        opaque = cv2.resize(opaque.astype(np.uint8), size, interpolation=cv2.INTER_AREA) > 0
        points = (points + 0.5) * ratio - 0.5
    return pixels, opaque, points
