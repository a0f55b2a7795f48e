"""Results that were made elsewhere: a vendor's or a person's, as a folder or as a CSV list.

A tool that cannot be called from here is audited all the same. The bytes are handed on untouched.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import model_validator

from adapters.contract import Adapter, ToolSpec
from adapters.guard import Settings, failures_are_answers, read_settings
from adapters.local.precomputed_list import ResultList
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.errors import LikenessError

SPEC = ToolSpec(
    id="precomputed",
    name="Results made elsewhere",
    tasks=tuple(Task),
    deterministic=True,
    price_note="already made",
    licence="the results' own",
    path_settings=("folder", "csv"),
)
EXAMPLE: Mapping[str, Any] = {"folder": "."}
PICTURE_SUFFIXES = frozenset(
    [".png", ".jpg", ".jpeg", ".webp", ".avif", ".heic", ".heif", ".tif", ".tiff", ".bmp", ".gif"]
)
MAX_RESULT_BYTES = 256_000_000


class PrecomputedSettings(Settings):
    """Exactly one of the two. ``folder`` holds results named like their originals (same name or same
    stem, with the manifest's subfolders or without), under ``TASK/`` and ``PERTURBATION/`` where
    there are several. ``csv`` lists them: see ``ResultList``. ``model`` goes into the report."""

    folder: str = ""
    csv: str = ""
    model: str = ""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.folder) == bool(self.csv):
            raise ValueError("give either 'folder' or 'csv'")
        return self


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting, folder or CSV."""
    checked = read_settings(PrecomputedSettings, settings, SPEC.id)
    if checked.csv:
        return PrecomputedTool(ResultList(Path(checked.csv)), checked)
    folder = Path(checked.folder)
    if not folder.is_dir():
        raise LikenessError(f"tool 'precomputed': folder '{checked.folder}' was not found")
    return PrecomputedTool(ResultFolder(folder), checked)


class PrecomputedTool:
    """Looks each result up by the original's file name, the task and the perturbation."""

    spec = SPEC

    def __init__(self, results: ResultFolder | ResultList, settings: PrecomputedSettings) -> None:
        self._results = results
        self.model = settings.model or f"results in {Path(settings.folder or settings.csv).name}"

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The supplied result or its supplied refusal; ``Failed`` where nothing was supplied."""
        if not request.original_name:
            return Failed("no result can be looked up: the request names no original")
        found = self._results.find(request.original_name, request.task, request.perturbation)
        if found is None:
            about = "" if request.perturbation == "none" else f" under '{request.perturbation}'"
            return Failed(f"no result was supplied for {request.original_name}{about}")
        if not isinstance(found, Path):
            return found
        size = found.stat().st_size
        if size == 0 or size > MAX_RESULT_BYTES:
            return Failed(f"the result {found.name} is {'empty' if size == 0 else 'over 256 MB'}")
        return Edited(found.read_bytes(), {"file": found.name})

    def close(self) -> None:
        """Nothing to free."""


class ResultFolder:
    """Results by name. Nothing outside the folder is ever read, whatever a name or a link says."""

    def __init__(self, folder: Path) -> None:
        self._root = folder.resolve()
        self._listed: dict[Path, dict[str, list[Path]]] = {}

    def find(self, original: str, task: Task, perturbation: str) -> Path | None:
        """The one result's file; None without one. ValueError when two answer, or one lies outside."""
        name = PurePosixPath(original.replace("\\", "/"))
        names = [PurePosixPath(name.name)]
        if not name.is_absolute() and ".." not in name.parts:
            names.insert(0, name)
        places = [[task.value, perturbation], [perturbation]]
        if perturbation == "none":
            places += [[task.value], []]
        for place in places:
            for short in names:
                if found := self._in(self._root.joinpath(*place, short.parent), short):
                    return found
        return None

    def _in(self, folder: Path, name: PurePosixPath) -> Path | None:
        alike = self._stems(folder).get(name.stem, [])
        matches = [path for path in alike if path.name == name.name] or alike
        if len(matches) > 1:
            both = ", ".join(path.name for path in matches)
            raise ValueError(f"more than one result for {name.name}: {both}")
        if not matches:
            return None
        if not matches[0].resolve().is_relative_to(self._root):
            raise ValueError(f"'{matches[0].name}' leads outside the folder of results")
        return matches[0]

    def _stems(self, folder: Path) -> dict[str, list[Path]]:
        """The folder's pictures by stem, listed once."""
        if folder not in self._listed:
            stems: dict[str, list[Path]] = {}
            for path in sorted(folder.iterdir()) if folder.is_dir() else []:
                if path.suffix.lower() in PICTURE_SUFFIXES:
                    stems.setdefault(path.stem, []).append(path)
            self._listed[folder] = stems
        return self._listed[folder]
