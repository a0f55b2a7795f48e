"""Write a tiny, untrained diffusion model to a folder, to try the tool stable_diffusion on.

Usage: python scripts/tiny_diffusion.py FOLDER [--kind inpaint|text|xl|single-file|lora]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from samples.tiny_diffusion import (
    describe,
    tiny_lora,
    tiny_pipeline,
    tiny_single_file,
    tiny_xl,
)


def main(given: Sequence[str] | None = None) -> int:
    """Write the model and print what was written; 1 when the folder holds something already."""
    parser = argparse.ArgumentParser(
        prog="tiny_diffusion", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--kind", default="inpaint", choices=("inpaint", "text", "xl", "single-file", "lora")
    )
    parser.add_argument(
        "--checker",
        type=float,
        help="add a safety checker with this threshold to an inpaint or text model: "
        "-2 flags every picture, 2 none",
    )
    args = parser.parse_args(given)
    folder: Path = args.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        print(f"{folder}: holds something already; name a new folder", file=sys.stderr)
        return 1
    if args.kind == "single-file":
        print(f"{tiny_single_file(folder)} (settings: model, and config {folder / 'config'})")
    elif args.kind == "lora":
        print(tiny_lora(folder))
    else:
        if args.kind == "xl":
            tiny_xl(folder)
        else:
            channels = 9 if args.kind == "inpaint" else 4
            tiny_pipeline(folder, channels=channels, checker=args.checker)
        print(f"{folder}: {describe(folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
