"""Finds what can be added by one file: a package's own modules, and those that third parties install."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any


def offered(
    package: str, group: str, take: Callable[[Any], object], broken: dict[str, str]
) -> None:
    """Hand every module of ``package`` (by name, folders left out), then every installed entry point
    of ``group`` to ``take``. A stranger's that cannot be loaded or taken is entered in ``broken``
    with the reason, and takes no other down with it."""
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    for info in sorted(found, key=lambda i: i.name):
        if not info.ispkg:
            take(importlib.import_module(f"{package}.{info.name}"))
    for entry in entry_points(group=group):
        try:
            take(entry.load())
        except Exception as error:
            broken[entry.name] = f"{type(error).__name__}: {error}"
