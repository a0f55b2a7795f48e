"""Reading an ICC profile's matrix and curves (ICC.1:2022), enough to convert at full bit depth."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Curve = tuple[int, tuple[float, ...]] | npt.NDArray[np.float64]
Floats = npt.NDArray[np.float64]

_MAX_TAGS = 200
_DEVICE_KINDS = ("mntr", "scnr", "prtr", "spac")
SRGB_TO_XYZ_D50: Floats = np.array(
    [
        [0.4360657, 0.3851515, 0.1430784],
        [0.2224932, 0.7168870, 0.0606169],
        [0.0139160, 0.0970764, 0.7140961],
    ]
)
"""IEC 61966-2-1 primaries adapted to D50 with Bradford, columns R, G, B (as in the sRGB profiles)."""
XYZ_D50_TO_SRGB: Floats = np.asarray(np.linalg.inv(SRGB_TO_XYZ_D50), np.float64)


class ProfileProblem(ValueError):
    """A profile that cannot be used; the text says why in a few words."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """``space`` "RGB ", "GRAY", "CMYK", "Lab " ...; ``matrix`` (3, 3) device linear to XYZ D50 and
    ``curves`` (1 or 3) where the profile is of the matrix or grey kind; ``has_table`` when it is
    built of lookup tables (A2B0), which Little CMS applies."""

    space: str
    kind: str
    pcs: str
    name: str
    curves: tuple[Curve, ...] = ()
    matrix: Floats | None = None
    has_table: bool = False


_CODED_PRIMARIES = {  # x, y of R, G, B, D65 white (ITU-T H.273 table 2)
    9: ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046)),
    12: ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
}
_CODED_CURVES: dict[int, Curve] = {  # H.273 table 3; 8 is linear, 13 sRGB, the others BT.709's
    8: (0, (1.0,)),
    13: (3, (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)),
}
_D65_TO_D50: Floats = np.array(
    [
        [1.0478112, 0.0228866, -0.0501270],
        [0.0295424, 0.9904844, -0.0170491],
        [-0.0092345, 0.0150436, 0.7521316],
    ]
)
"""Bradford adaptation, as in the ICC sRGB profiles."""


def coded_profile(primaries: int, transfer: int) -> Profile | None:
    """The space of H.273 code points, None for sRGB's primaries and for unknown ones.

    Curves other than linear are taken as sRGB's, which is how browsers show SDR video codes.
    """
    if primaries not in _CODED_PRIMARIES:
        return None
    columns = np.array([[x / y, 1.0, (1 - x - y) / y] for x, y in _CODED_PRIMARIES[primaries]]).T
    white = np.array([0.3127 / 0.3290, 1.0, (1 - 0.3127 - 0.3290) / 0.3290])
    matrix = _D65_TO_D50 @ (columns * np.linalg.solve(columns, white))
    curve = _CODED_CURVES.get(transfer, _CODED_CURVES[13])
    name = {9: "BT.2020 (coded)", 12: "Display P3 (coded)"}[primaries]
    return Profile("RGB ", "mntr", "XYZ ", name, (curve, curve, curve), matrix)


def parse_profile(data: bytes) -> Profile:
    """Read a profile. Raises ProfileProblem when it is cut, noise, or lacks what it must have."""
    if len(data) < 132 or data[36:40] != b"acsp":
        raise ProfileProblem("not an ICC profile")
    if int.from_bytes(data[:4], "big") > len(data):
        raise ProfileProblem("cut off")
    count = int.from_bytes(data[128:132], "big")
    if not 1 <= count <= _MAX_TAGS:
        raise ProfileProblem("damaged tag table")
    tags: dict[bytes, bytes] = {}
    for at in range(132, 132 + 12 * count, 12):
        start, size = struct.unpack_from(">II", data, at + 4) if at + 12 <= len(data) else (0, 0)
        if not size or start + size > len(data):
            raise ProfileProblem("damaged tag table")
        tags[data[at : at + 4]] = data[start : start + size]
    space, kind, pcs = (data[i : i + 4].decode("latin-1") for i in (16, 12, 20))
    if kind not in _DEVICE_KINDS:
        raise ProfileProblem("not a device profile")
    name = _description(tags.get(b"desc", b""))
    has_table = b"A2B0" in tags
    if space == "RGB " and not has_table:
        return Profile(space, kind, pcs, name, _curves(tags), _matrix(tags))
    if space == "GRAY" and b"kTRC" in tags:
        return Profile(space, kind, pcs, name, (_curve(tags[b"kTRC"]),))
    if not has_table:
        raise ProfileProblem("no matrix and no table in it")
    return Profile(space, kind, pcs, name, has_table=True)


def _curves(tags: dict[bytes, bytes]) -> tuple[Curve, ...]:
    try:
        return tuple(_curve(tags[name]) for name in (b"rTRC", b"gTRC", b"bTRC"))
    except KeyError as error:
        raise ProfileProblem("a tone curve is missing") from error


def _matrix(tags: dict[bytes, bytes]) -> Floats:
    try:
        columns = [_numbers(tags[name][8:20]) for name in (b"rXYZ", b"gXYZ", b"bXYZ")]
    except KeyError as error:
        raise ProfileProblem("a primary is missing") from error
    if any(len(column) != 3 for column in columns):
        raise ProfileProblem("a primary is cut off")
    matrix = np.array(columns).T
    if abs(float(np.linalg.det(matrix))) < 1e-4:
        raise ProfileProblem("its primaries make no colour space")
    return matrix


def _numbers(raw: bytes) -> Floats:
    """s15Fixed16 numbers."""
    return np.frombuffer(raw[: len(raw) // 4 * 4], ">i4").astype(np.float64) / 65536.0


_PARAMETERS = {0: 1, 1: 3, 2: 4, 3: 5, 4: 7}


def _curve(tag: bytes) -> Curve:
    if tag[:4] == b"curv" and len(tag) >= 12:
        count = int.from_bytes(tag[8:12], "big")
        if count == 0:
            return (0, (1.0,))
        if len(tag) < 12 + 2 * count:
            raise ProfileProblem("a tone curve is cut off")
        table = np.frombuffer(tag[12 : 12 + 2 * count], ">u2").astype(np.float64)
        return (0, (float(table[0]) / 256.0,)) if count == 1 else table / 65535.0
    if tag[:4] == b"para" and len(tag) >= 12:
        kind = int.from_bytes(tag[8:10], "big")
        values = tuple(float(v) for v in _numbers(tag[12:40]))
        if kind in _PARAMETERS and len(values) >= _PARAMETERS[kind]:
            return (kind, values[: _PARAMETERS[kind]])
    raise ProfileProblem("a tone curve of unknown kind")


def evaluate(curve: Curve, steps: int) -> npt.NDArray[np.float32]:
    """The curve at ``steps`` equal steps of 0..1, (steps,) float32 linear light in 0..1.

    Raises ProfileProblem when the curve is not finite or runs down.
    """
    x = np.linspace(0.0, 1.0, steps)
    if isinstance(curve, np.ndarray):
        y: npt.NDArray[Any] = np.interp(x, np.linspace(0.0, 1.0, len(curve)), curve)
    else:
        y = _parametric(curve[0], curve[1], x)
    if not np.isfinite(y).all() or y[-1] <= y[0]:
        raise ProfileProblem("a tone curve that makes no sense")
    return np.asarray(np.clip(y, 0.0, 1.0), np.float32)


def _parametric(kind: int, p: tuple[float, ...], x: Floats) -> Floats:
    """Parametric curve types 0-4 of ICC.1:2022 table 68."""
    with np.errstate(all="ignore"):
        g = p[0]
        if kind == 0:
            return x**g
        a, b = p[1], p[2]
        power = np.maximum(a * x + b, 0.0) ** g
        if kind in (1, 2):
            c = p[3] if kind == 2 else 0.0
            return np.where(x >= (-b / a if a else 0.0), power + c, c)
        c, d = p[3], p[4]
        e, f = (p[5], p[6]) if kind == 4 else (0.0, 0.0)
        return np.where(x >= d, power + e, c * x + f)


def _description(tag: bytes) -> str:
    """The profile's own name, printable ASCII and at most 60 characters."""
    text = ""
    if tag[:4] == b"desc" and len(tag) > 12:
        text = tag[12 : 12 + min(int.from_bytes(tag[8:12], "big"), 200)].decode("latin-1")
    elif tag[:4] == b"mluc" and len(tag) >= 28:
        size, start = struct.unpack_from(">II", tag, 20)
        text = tag[start : start + min(size, 400)].decode("utf-16-be", "replace")
    text = "".join(c for c in text if " " <= c <= "~").strip()
    return text[:60] or "unnamed"
