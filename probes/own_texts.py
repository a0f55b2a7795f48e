"""Texts of a probe: those that come with it, or a user's own in the same form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from domain.errors import LikenessError

DEFAULT = "en"


def texts_of(
    kind: str, language: str, file: Path | None, checked: Callable[[Any, str], Mapping[str, Any]]
) -> dict[str, Any]:
    """What stands in probes/data/``kind`` for the language (English where there is none of its own),
    with that of ``file``, which ``checked`` has passed by its name, in its place. Raises LikenessError
    naming the file and what is wrong in it."""
    folder = resources.files("probes.data") / kind
    known = language if folder.joinpath(f"{language}.yaml").is_file() else DEFAULT
    told = yaml.safe_load(folder.joinpath(f"{known}.yaml").read_text(encoding="utf-8"))
    if file is None:
        return dict(told)
    try:
        own = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        raise LikenessError(f"{kind} '{file.name}': not there, or no YAML") from None
    return {**told, **checked(own, file.name)}
