"""The 102 neutral London portraits (Face Research Lab, CC-BY-4.0) as the benches use them."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import cv2
import numpy as np

from domain.pictures import Picture
from preprocess.decode import open_picture
from service import settings

SIDE = 1024


def portraits(most: int = 102) -> list[tuple[Picture, str]]:
    """The first ``most`` at 1024 px, each with its declared gender; ends the run without them."""
    repo = Path(__file__).resolve().parents[3]
    folder = (settings.load().data or repo.parent / "shared" / "data") / "faces" / "london"
    if not (folder / "manifest.csv").is_file():
        sys.exit(f"the London portraits are not in {folder}; set LIKENESS_DATA")
    with (folder / "manifest.csv").open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["file"].startswith("neutral/")]
    found = []
    for row in rows[:most]:
        pixels = open_picture(folder / row["file"]).pixels
        small = cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        picture = Picture(np.asarray(small, dtype=np.uint8), sha256=row["file"])
        found.append((picture, row["gender"]))
    return found
