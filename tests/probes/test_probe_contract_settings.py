"""What every probe owes whoever writes a plan: one clear line, and no file that it does not name.

New probes are picked up by themselves; docs/adding_a_probe.md says what is asked of them.
"""

from __future__ import annotations

import collections.abc
import itertools
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from domain.errors import LikenessError
from probes.calls import Reply
from probes.contract import Settings, build
from tests.probes.contract_ways import FIRST, FOUND, WAYS, Way

in_one_language = pytest.mark.parametrize("way", FIRST, ids=str)
OPENED: list[str] = []
WATCHING = [False]


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if WATCHING[0] and event == "open":
        OPENED.append(str(args[0]))


sys.addaudithook(_watch)
"""Every way to open a file goes past it; it cannot be taken off again, so a switch stands before it."""


def model_of(way: Way) -> type[BaseModel]:
    """The probe's settings, by the object that it made of the example's."""
    made = way.build()
    kept = [value for value in vars(made).values() if isinstance(value, Settings)]
    assert len(kept) == 1, "a probe keeps its settings, a model of them"
    return type(kept[0])


def alternatives(hint: Any) -> Iterator[Any]:
    """The types that a field takes: Optional, Union and Annotated taken apart."""
    if get_origin(hint) is Annotated:
        yield from alternatives(get_args(hint)[0])
    elif get_origin(hint) in (Union, types.UnionType):
        for part in get_args(hint):
            yield from alternatives(part)
    else:
        yield hint


def filled(hint: Any, path: str) -> Iterator[Any]:
    """Values of the field with ``path`` wherever a text can stand."""
    for kind in alternatives(hint):
        if kind is str:
            yield path
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from nested(kind, path)
        elif get_origin(kind) in (tuple, list):
            yield [path]
            yield [path, path]
        elif get_origin(kind) is collections.abc.Mapping:
            yield {"x": path}


def nested(model: type[BaseModel], path: str) -> Iterator[dict[str, Any]]:
    """One field with ``path``, and every two: some files come in pairs."""
    hints = get_type_hints(model, include_extras=True)
    names = [name for name in model.model_fields if list(filled(hints[name], path))]
    for size in (1, 2):
        for some in itertools.combinations(names, size):
            yield {name: next(filled(hints[name], path)) for name in some}


def tried(way: Way, path: str) -> Iterator[tuple[str, LikenessError | None]]:
    """Each setting in which a text can stand set to ``path``, and the probe used from end to end: the
    name with the error."""
    model = model_of(way)
    hints = get_type_hints(model, include_extras=True)
    for name in model.model_fields:
        for value in filled(hints[name], path):
            OPENED.clear()
            WATCHING[0] = True
            try:
                used(way, name, value)
            except LikenessError as error:
                yield name, error
            else:
                yield name, None
            finally:
                WATCHING[0] = False


def used(way: Way, name: str, value: Any) -> None:
    probe = way.build(**{name: value})
    calls = probe.calls(way.language, 7)
    probe.score([probe.read(call, Reply("A")) for call in calls], way.language, 7)


@in_one_language
def test_a_setting_that_opens_a_file_is_among_the_paths(way: Way, tmp_path: Path) -> None:
    spec = FOUND[way.id][0]
    marker = tmp_path / "marker.txt"
    marker.write_text("no probe can read this", encoding="utf-8")
    opening = {name for name, _ in tried(way, str(marker)) if str(marker) in OPENED}
    assert opening == set(spec.path_settings)


@in_one_language
def test_a_file_that_is_not_there_is_told_in_one_line(way: Way, tmp_path: Path) -> None:
    told: dict[str, list[str]] = {}
    for name, error in tried(way, str(tmp_path / "absent.txt")):
        if error is not None:
            assert "\n" not in str(error)
            told.setdefault(name, []).append(str(error))
    for name in FOUND[way.id][0].path_settings:
        assert any("absent.txt" in line for line in told[name]), told[name]


@in_one_language
def test_files_are_looked_for_beside_the_plan(way: Way, tmp_path: Path) -> None:
    name = "beside-the-plan.txt"
    (tmp_path / name).write_text("no probe can read this", encoding="utf-8")
    there = Beside(way.id, way.number, way.language)
    found = {n for n, _ in tried(there.at(tmp_path), name) if str(tmp_path / name) in OPENED}
    assert found == set(FOUND[way.id][0].path_settings)


class Beside(Way):
    """The same way with another folder for its plan."""

    def at(self, folder: Path) -> Beside:
        object.__setattr__(self, "_folder", folder)
        for file in Way(self.id, self.number, self.language).folder.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        return self

    @property
    def folder(self) -> Path:
        return Path(self.__dict__["_folder"])

    @property
    def settings(self) -> dict[str, Any]:
        return Way(self.id, self.number, self.language).settings


@in_one_language
def test_a_key_that_is_unknown_is_told_with_the_one_that_was_meant(way: Way) -> None:
    names = [n for n in model_of(way).model_fields if len(n) > 4]
    meant = names[0]
    with pytest.raises(LikenessError) as told:
        way.build(**{meant[:-1]: 1})
    line = str(told.value)
    assert f"'{meant[:-1]}'" in line and meant in line and way.id in line and "\n" not in line
    with pytest.raises(LikenessError, match="unknown setting 'qqqqqq'"):
        way.build(qqqqqq=1)


@in_one_language
def test_a_value_of_the_wrong_kind_is_told_in_one_line(way: Way) -> None:
    for name in model_of(way).model_fields:
        with pytest.raises(LikenessError) as told:
            way.build(**{name: {"no": object()}})
        line = str(told.value)
        assert f"'{name}" in line and way.id in line and "\n" not in line and len(line) < 500


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_language_that_a_probe_does_not_have_is_told(way: Way) -> None:
    with pytest.raises(LikenessError) as told:
        way.build().calls("tlh", 7)
    assert "tlh" in str(told.value) and "\n" not in str(told.value)


def test_a_probe_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match=r"unknown probe 'resum'.*did you mean 'resume'"):
        build("resum", {}, tmp_path)
