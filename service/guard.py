"""Refuses to start when one of our top-level packages is somebody else's.

Plain names are short and memorable, and therefore taken: PyPI has a popular ``adapters`` package.
Were it found before ours, the product would fail late and oddly. Nothing of ours is imported here
before it is checked, and no stranger's code runs: only import specs are read.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PACKAGES = ("domain", "preprocess", "adapters", "metrics", "probes", "service")
ROOT = Path(__file__).resolve().parents[1]
CANNOT_RUN = 2


def strangers(root: Path = ROOT) -> list[str]:
    """One sentence for each of our package names that leads anywhere but to ``root``."""
    found = []
    for name in PACKAGES:
        place = _place(name)
        if place is None:
            found.append(f"the package '{name}' of this product is missing from {root}")
        elif place != root / name:
            found.append(
                f"the package '{name}' is not this product's: {place} hides {root / name}; "
                f"remove it ({_remedy(name, place)}) or give this product a virtual environment of its own"
            )
    return found


def check_packages() -> None:
    """End the process with exit code 2 and one line a stranger on stderr, or do nothing.

    SystemExit and not LikenessError: ``domain``, where that lives, may be the stranger.
    """
    found = strangers()
    if found:
        for line in found:
            sys.stderr.write(f"likeness: {line}\n")
        raise SystemExit(CANNOT_RUN)


def _place(name: str) -> Path | None:
    """The folder (or file) that ``import name`` would take, without importing it."""
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None else importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.origin and spec.has_location:
        origin = Path(spec.origin).resolve()
        return origin.parent if spec.submodule_search_locations is not None else origin
    folders = list(spec.submodule_search_locations or ())  # a namespace package has no file
    return Path(folders[0]).resolve() if folders else None


def _remedy(name: str, place: Path) -> str:
    """How to get rid of it: by its distribution when it came from one, else by its path."""
    if not {"site-packages", "dist-packages"} & set(place.parts):
        return f"delete or rename {place}"
    from importlib.metadata import packages_distributions  # slow, and only needed in distress

    owners = packages_distributions().get(name, [name])
    return f"pip uninstall {' '.join(sorted(set(owners)))}"
