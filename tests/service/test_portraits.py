"""A manifest is read as declared, and a bad one is refused naming file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import ManifestError
from service.portraits import read_manifest, select


def write(folder: Path, text: str) -> Path:
    path = folder / "manifest.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_attributes_are_the_declared_columns_without_empty_cells(tmp_path: Path) -> None:
    text = 'file,subject_id,gender,age,notes\na.jpg,s1,female,,"with, comma\nand line"\n'
    [portrait] = read_manifest(write(tmp_path, text))
    assert portrait.attributes == {"gender": "female"}
    assert portrait.path == tmp_path / "a.jpg"
    assert portrait.subject_id == "s1"


def test_the_sample_manifest_holds_sixteen_subjects_and_their_partners(samples_dir: Path) -> None:
    portraits = read_manifest(samples_dir / "portraits" / "manifest.csv")
    assert len(portraits) == 68
    assert len({p.subject_id for p in portraits}) == 16
    partners = [p for p in portraits if p.pair_base_file]
    assert len(partners) == 52
    known = {p.portrait_id for p in portraits}
    assert all(p.pair_base_file in known for p in partners)
    assert all(p.path.is_file() for p in portraits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file,subject\na,b\n", "column 'subject_id' is missing.*did you mean to call 'subject'"),
        ("file,subject_id\na,1\na,2\n", "line 3: duplicate id 'a' .first in line 2"),
        ("file,subject_id\n,1\n", "line 2: 'file' is empty"),
        ("file,subject_id\na,\n", "line 2: 'subject_id' is empty"),
        ("file,subject_id\n", "has no rows"),
        ("file,subject_id,age,age\na,1,2,3\n", "column 'age' stands twice"),
        ("", "column 'file' is missing"),
    ],
)
def test_a_bad_manifest_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ManifestError, match=expected):
        read_manifest(write(tmp_path, text))


def test_an_absent_manifest_is_told(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no such manifest"):
        read_manifest(tmp_path / "none.csv")


def test_selection_keeps_what_was_asked_for(samples_dir: Path) -> None:
    portraits = read_manifest(samples_dir / "portraits" / "manifest.csv")
    kept = select(portraits, {"varied_attribute": ["none"], "skin_tone": ["I", "VI"]}, None)
    assert {p.attributes["skin_tone"] for p in kept} == {"I", "VI"}
    assert len(select(portraits, {}, 5)) == 5


def test_a_selection_by_an_unknown_attribute_names_the_near_miss(samples_dir: Path) -> None:
    portraits = read_manifest(samples_dir / "portraits" / "manifest.csv")
    with pytest.raises(ManifestError, match="'skintone'; did you mean 'skin_tone'"):
        select(portraits, {"skintone": ["I"]}, None)
    with pytest.raises(ManifestError, match="no portrait is left"):
        select(portraits, {"skin_tone": ["IX"]}, None)
