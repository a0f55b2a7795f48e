"""What the pictures of a batch are called in the folder of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.materialise import file_name, lay_out
from service.intake.names import Names
from service.offers import load_offers
from service.store.blobs import Blobs

PLAN = "name: x\ntools: [{id: identity}]\ncontrols: false\n"


def named(name: str, seq: int = 7) -> str:
    return file_name({"seq": seq, "name": name})


@pytest.mark.parametrize(
    "name", ["a.jpg", "images/id01_base.jpg", "A b-1.final.jpeg", "x/y/z/1.png"]
)
def test_a_plain_name_is_kept(name: str) -> None:
    assert named(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "../a.jpg", "/etc/passwd", "a/../b.jpg", "a//b.jpg", ".hidden.jpg", "=cmd.jpg", "-x.jpg",
        "@a.jpg", "plan.yaml", "manifest.csv", "MANIFEST.CSV", "in-use", "out/a.jpg", "OUT/a.jpg",
        "00001-a.jpg", "a.png/b.png", "a\\b.jpg", "a\nb.jpg", "b\u202egpj.exe", "é.jpg", "a" * 150 + ".jpg",
        "a/b/c/d/e.jpg", "", "no ending",
    ],
)  # fmt: skip
def test_any_other_name_gets_a_number_and_is_one_file_of_the_folder(name: str) -> None:
    found = named(name)
    assert found.startswith("00007-")
    assert "/" not in found
    assert (Path("folder") / found).resolve().parent == Path("folder").resolve()


@given(st.lists(st.text(min_size=1), min_size=2, max_size=6))
def test_no_two_pictures_of_a_batch_get_the_same_file(texts: list[str]) -> None:
    names = Names()
    found = [named(names.unique(text), seq) for seq, text in enumerate(texts)]
    assert len({name.casefold() for name in found}) == len(found)
    assert not any(Path(a) in Path(b).parents for a in found for b in found)


def test_pictures_in_folders_are_laid_out_there(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    items = [
        {"seq": n, "name": name, "blob": blobs.put(name.encode()), "attributes": {}}
        for n, name in enumerate(("images/a.png", "images/b/c.png", "../d.png"))
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    loaded = lay_out(folder, PLAN, items, load_offers(None), blobs)
    assert (folder / "images/a.png").read_bytes() == b"images/a.png"
    assert (folder / "images/b/c.png").read_bytes() == b"images/b/c.png"
    assert (folder / "00002-d.png").read_bytes() == b"../d.png"
    assert "images/b/c.png" in loaded.manifest.read_text()
