"""``likeness inspect``: what the decode gate sees in each file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from domain.errors import LikenessError, PictureRejected
from domain.pictures import Picture
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder
from service.cli.escape import printable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inspect")(inspect)


def inspect(
    files: Annotated[list[Path], typer.Argument(help="Picture files.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line on stdout.")
    ] = False,
) -> None:
    """Show what is seen in each file: accepted or why not, upright size, colours, faces.

    A rejected, missing or unreadable file is a line with its reason; exit 0 all the same.
    """
    for answer in _answers(files):
        # ASCII JSON: a name's control and right-to-left characters reach the terminal escaped
        for line in [json.dumps(answer)] if as_json else _lines(answer):
            print(line, flush=True)


def _answers(files: list[Path]) -> Iterator[dict[str, Any]]:
    finder = FaceFinder()
    try:
        for path in files:
            yield inspected(path, finder)
    finally:
        finder.close()


def inspected(path: Path, finder: FaceFinder) -> dict[str, Any]:
    """Facts of one file, JSON-able; keys are the same for accepted and rejected files."""
    try:
        picture = open_picture(path)
    except PictureRejected as error:
        return _answer(path, reason=error.reason, code=error.code)
    facts = picture.facts
    return _answer(
        path,
        accepted=True,
        width=picture.width,
        height=picture.height,
        profile=facts.profile,
        orientation=facts.orientation,
        centre_srgb=patch_mean(picture, centred=True),
        topleft_srgb=patch_mean(picture, centred=False),
        format=facts.format,
        bit_depth=facts.bit_depth,
        frames=facts.frames,
        monochrome=facts.monochrome,
        transparent=picture.opaque is not None,
        warnings=list(facts.warnings),
        **_faces(picture, finder),
    )


def _answer(path: Path, **known: Any) -> dict[str, Any]:
    keys = (
        "reason code width height profile orientation centre_srgb topleft_srgb faces ied face_reason "
        "format bit_depth frames monochrome transparent"
    )
    blank = dict.fromkeys(keys.split())
    return {"file": str(path), "accepted": False, **blank, "warnings": [], **known}


def _faces(picture: Picture, finder: FaceFinder) -> dict[str, Any]:
    try:
        search = finder.find(picture, thorough=True)
    except LikenessError as error:
        return {"face_reason": f"not searched: {error}"}
    except Exception as error:  # a landmark engine's own failure must not end the list
        return {"face_reason": f"not searched: {type(error).__name__}"}
    ied = None if search.face is None else round(search.face.ied, 2)
    return {"faces": search.count, "ied": ied, "face_reason": search.reason}


def patch_mean(picture: Picture, centred: bool) -> list[float]:
    """Mean R, G, B (0-255) of a patch a tenth of each side, rounded to whole pixels, at the centre
    or in the top left corner."""
    height, width = (max(1, int(n / 10 + 0.5)) for n in (picture.height, picture.width))
    top = (picture.height - height) // 2 if centred else 0
    left = (picture.width - width) // 2 if centred else 0
    patch = picture.pixels[top : top + height, left : left + width]
    mean: npt.NDArray[np.float64] = patch.mean(axis=(0, 1))
    return [round(float(v), 1) for v in mean]


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    """One file for people: a line of facts, then its notes, indented."""
    name = printable(answer["file"])
    if not answer["accepted"]:
        yield f"{name}: rejected: {printable(answer['reason'])}"
        return
    centre, corner = (
        " ".join(f"{v:.0f}" for v in answer[k]) for k in ("centre_srgb", "topleft_srgb")
    )
    faces = "faces not searched" if answer["faces"] is None else _count(answer["faces"])
    ied = "" if answer["ied"] is None else f", eyes {answer['ied']:.0f} px apart"
    yield (
        f"{name}: {answer['format']}, {answer['width']} x {answer['height']}, "
        f"profile {printable(answer['profile'])}, sRGB centre {centre}, corner {corner}, {faces}{ied}"
    )
    for note in (answer["face_reason"], *answer["warnings"]):
        if note:
            yield f"  - {printable(note)}"


def _count(faces: int) -> str:
    return f"{faces} face" + ("" if faces == 1 else "s")
