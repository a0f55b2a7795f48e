"""A batch laid out for a run: nothing but plain files in one folder, and always the same manifest."""

from __future__ import annotations

import csv
import errno
import io
from pathlib import Path
from typing import Any

import pytest

from domain.errors import LikenessError, ManifestError, PlanError, StoreUnavailable
from service.engine import materialise
from service.engine.materialise import check, file_name, lay_out, manifest_text, private_folder
from service.offers import load_offers
from service.portraits import read_manifest
from service.store.blobs import Blobs

OFFERS = load_offers(None)
PLAN = "name: x\ntools: [{id: identity}]\n"


def item(seq: int, name: str, blob: str = "", **attributes: str) -> dict[str, Any]:
    return {"seq": seq, "name": name, "blob": blob, "attributes": attributes or None}


HOSTILE = [
    "../../etc/passwd", "/etc/passwd", "..\\..\\boot.ini", "=cmd|' /C calc'!A0.png", "@sum.png",
    "-1+1.png", "a\nb.png", 'quote".png', "<script>.png", "con", ".bashrc", "manifest.csv",
    "plan.yaml", "x" * 400 + ".png", "臉.png", "in-use", "", "out/x.png", "00001-anna.png", "a//b.png",
    "a/../b.png", "a/.b.png", "PLAN.YAML", "a", "a./b.png", "C:b.png",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_picture_is_a_plain_file_of_the_folder_whatever_it_is_called(
    name: str, tmp_path: Path
) -> None:
    found = file_name(item(7, name))
    assert found.startswith("00007-") and "/" not in found and "\\" not in found
    assert (tmp_path / found).resolve().parent == tmp_path.resolve()
    assert len(found.encode()) < 200 and found.isprintable()
    (tmp_path / found).write_bytes(b"")


@pytest.mark.parametrize("name", ["anna.png", "a b.png", "set 1/front/anna.2.jpeg"])
def test_a_picture_of_a_plain_name_keeps_it(name: str) -> None:
    assert file_name(item(7, name)) == name


def test_no_two_pictures_share_a_name() -> None:
    names = {file_name(item(seq, name)) for seq, name in enumerate(HOSTILE + HOSTILE)}
    assert len(names) == 2 * len(HOSTILE)


def test_the_manifest_holds_every_picture_in_order_with_what_was_said_of_it(
    tmp_path: Path,
) -> None:
    items = [
        item(1, "anna.png", gender="female", subject_id="anna", file="anna.png"),
        item(2, "ben.png", gender="male", age="41", note='says "a, b"\nand more'),
        item(3, "ben 2.png", pair_base_file="ben.png", varied_attribute="age"),
    ]
    (tmp_path / "manifest.csv").write_text(manifest_text(items), newline="")
    one, two, three = read_manifest(tmp_path / "manifest.csv")
    assert (one.portrait_id, one.subject_id) == ("anna.png", "anna")
    assert one.attributes == {"gender": "female"}
    assert two.subject_id == "ben.png", "without a person's name each is its own"
    assert two.attributes == {"gender": "male", "age": "41", "note": 'says "a, b"\nand more'}
    assert (three.pair_base_file, three.varied_attribute) == ("ben.png", "age")


def test_the_manifest_of_a_batch_is_always_the_same_text() -> None:
    a = item(1, "a.png", b="1", a="2")
    b = item(1, "a.png", a="2", b="1")
    assert manifest_text([a]) == manifest_text([b])


def test_columns_of_strangers_stay_columns() -> None:
    text = manifest_text([item(1, "a.png", **{"=1+1": "=cmd", "x,y": "z"})])
    head, values = list(csv.reader(io.StringIO(text)))
    assert dict(zip(head, values, strict=True))["=1+1"] == "=cmd"
    assert head[:2] == ["file", "subject_id"]


def test_only_the_pictures_that_the_plan_asks_for_are_fetched(tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    items = [
        item(n, f"{n}.png", blobs.put(bytes([n])), gender=("male", "female")[n % 2])
        for n in range(1, 7)
    ]
    text = f"{PLAN}portraits: {{where: {{gender: [male]}}, limit: 2}}\n"
    folder = tmp_path / "run"
    folder.mkdir()
    loaded = lay_out(folder, text, items, OFFERS, blobs)
    assert sorted(p.name for p in folder.iterdir()) == [
        "2.png", "4.png", "manifest.csv", "plan.yaml",
    ]  # fmt: skip
    assert (folder / "4.png").read_bytes() == b"\x04"
    assert loaded.manifest == folder / "manifest.csv"
    assert (folder / "plan.yaml").read_text() == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{PLAN}groups: [shoe_size]\n", "no portrait declares 'shoe_size'"),
        (f"{PLAN}portraits: {{where: {{gender: [x]}}}}\n", "no portrait is left of 2"),
        (f"{PLAN}portraits: {{where: {{gendr: [male]}}}}\n", "did you mean 'gender'?"),
        (f"{PLAN}planted: {{attribute: gender, value: x}}\n", "no two groups"),
        ("name: x\ntools: [{id: command}]\n", "does not offer 'command'"),
    ],
)
def test_a_plan_that_does_not_fit_its_batch_is_told_before_it_is_queued(
    text: str, said: str
) -> None:
    items = [item(1, "a.png", gender="male"), item(2, "b.png", gender="female")]
    with pytest.raises(LikenessError) as caught:
        check(text, items, OFFERS)
    assert said in str(caught.value) and "/" not in str(caught.value).partition(" ")[0]


def test_a_plan_that_fits_passes() -> None:
    items = [item(1, "a.png", gender="male"), item(2, "b.png", gender="female")]
    assert check(PLAN, items, OFFERS).plan.name == "x"


def test_a_batch_without_a_picture_is_told() -> None:
    with pytest.raises(ManifestError, match="no accepted picture"):
        check(PLAN, [], OFFERS)


def test_a_mistake_keeps_its_kind() -> None:
    with pytest.raises(PlanError):
        check("name: x\n", [item(1, "a.png")], OFFERS)


def test_a_full_disk_is_something_to_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        materialise.plan_over(tmp_path, PLAN, [item(1, "a.png")], OFFERS)


def test_a_run_has_a_folder_of_its_own_that_nobody_else_reads(tmp_path: Path) -> None:
    with (
        private_folder(tmp_path / "work", "r_1") as one,
        private_folder(tmp_path / "work", "r_1") as two,
    ):
        assert one != two and one.stat().st_mode & 0o777 == 0o700
        assert materialise.sweep(tmp_path / "work") == 0, "both are in use"
    assert not one.exists() and not two.exists()


def test_folders_that_a_killed_worker_left_are_removed_and_one_in_use_stays(
    tmp_path: Path,
) -> None:
    left = tmp_path / "run-r_dead-x"
    left.mkdir()
    (left / "in-use").touch()
    (left / "00001-face.png").write_bytes(b"a face")
    with private_folder(tmp_path, "r_alive") as alive:
        assert materialise.sweep(tmp_path) == 1
        assert not left.exists() and alive.exists()
