"""The instrument on untouched portraits: what it accepts, finds and measures before any tool."""

from __future__ import annotations

import hashlib
from typing import Any

import cv2
import numpy as np

from domain.errors import LikenessError, PictureRejected
from domain.faces import Face
from domain.portraits import Portrait
from metrics import skin
from metrics.pair import FacePair
from preprocess.decode import open_picture
from preprocess.exif import ExifTool
from preprocess.face_notes import turn_of
from service.measuring import Instrument

_exiftool: ExifTool | None = None


def look_at(instrument: Instrument, portrait: Portrait) -> dict[str, Any]:
    """A row of the ledger about ``portrait``, without its ids: accepted, face found or the reason,
    figures of the original (``facts``), the face's points, warnings, the file's hash."""
    try:
        data = portrait.path.read_bytes()
    except OSError as error:
        return not_accepted(portrait, f"cannot be read: {error.strerror or error}")
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        picture = open_picture(data)
    except PictureRejected as error:
        return not_accepted(portrait, error.reason) | {"sha256": sha256}
    search = instrument.look(picture)
    warnings = [*picture.facts.warnings, *_hazards(portrait)]
    row = not_accepted(portrait, search.reason or "") | {
        "accepted": 1,
        "sha256": sha256,
        "warnings": warnings,
        "facts": {"faces": float(search.count)},
    }
    if search.face is None:
        return row
    facts, group, unmeasured = _facts(search.face)
    if unmeasured:
        warnings.append(f"measured skin tone: {unmeasured}")
    attributes = dict(portrait.attributes)
    if group:
        attributes["measured_ita_group"] = group
    return row | {
        "face_found": 1,
        "reason": None,
        "attributes": attributes,
        "facts": facts | row["facts"],
        "warnings": [*warnings, *search.face.notes],
        "face": {
            "points": np.round(search.face.points, 3).tolist(),
            "box": [float(v) for v in search.face.box],
        },
    }


def not_accepted(portrait: Portrait, reason: str) -> dict[str, Any]:
    """The row of a portrait that the decode gate refused."""
    return {
        "attributes": dict(portrait.attributes),
        "accepted": 0,
        "face_found": 0,
        "reason": reason,
        "facts": {},
        "face": None,
        "warnings": [],
        "sha256": "",
    }


def _facts(face: Face) -> tuple[dict[str, float | None], str | None, str | None]:
    """Figures of an original that could explain a difference between groups by themselves."""
    tone = skin.measured_ita(face)
    pair = FacePair(face, face)
    grey = pair.original_luma
    detail = float(cv2.Laplacian(grey, cv2.CV_32F, ksize=1).var())
    facts: dict[str, float | None] = {
        "ied_px": round(face.ied, 2),
        "turn": _turn(face),
        "mean_luma": round(float(grey.mean()), 2),
        "laplacian_variance": round(detail, 2),
        "measured_ita": None if tone.ita is None else round(tone.ita, 2),
    }
    return facts, tone.group, tone.reason


def _turn(face: Face) -> float | None:
    """Pose: the wider half of the face over the narrower, 1 seen from the front; None in profile."""
    turn = turn_of(face.points)
    return round(turn, 4) if np.isfinite(turn) else None


def _hazards(portrait: Portrait) -> list[str]:
    """Metadata that must not travel to a tool: told by name, never by value."""
    global _exiftool  # noqa: PLW0603 - one stay_open process for all portraits of this process
    try:
        if _exiftool is None:
            _exiftool = ExifTool()
        names = _exiftool.facts(portrait.path).hazards
    except LikenessError as error:
        return [f"metadata not checked: {error}"]
    except OSError as error:  # a full disk is not this portrait's fault: stop, to be resumed
        cause = error.strerror or str(error)
        raise LikenessError(f"{portrait.path}: metadata cannot be checked: {cause}") from None
    return [f"metadata left out of what tools get: {', '.join(names)}"] if names else []
