"""Hostile archives, pictures and names through REST: the right answer for each, and no other harm."""

from __future__ import annotations

import csv
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.service.api.conftest import Service

pytestmark = pytest.mark.usefixtures("shared_decoders")

ARCHIVES: dict[str, tuple[str, str] | list[str]] = {
    "bomb_100_to_1.zip": ["ok.jpg: accepted", "big.png: rejected expands"],
    "bzip2_lzma.zip": ["1.jpg: rejected not_accepted"],
    "empty.zip": ("bad-archive", "no images"),
    "good_nested.zip": ["accepted", "accepted", "accepted", "notes.txt: skipped not_image"],
    "long_names.zip": ["accepted", "accepted"],
    "macos_extras.zip": ["accepted", *["skipped side_file"] * 4],
    "many_entries_2500.zip": ("too-large", "too many files"),
    "names_shift_jis_no_flag.zip": ["accepted"],
    "nested.zip": ["ok.jpg: accepted", "inner.zip: skipped archive"],
    "one_bad_in_six.zip": [
        "accepted", "accepted", "accepted", "accepted", "3.jpg: rejected truncated",
        "5.png: rejected empty",
    ],
    "overlapping_40x.zip": ("bad-archive", "overlapping"),
    "password.zip": ("bad-archive", "password"),
    "same_name_twice.zip": ["accepted", "accepted"],
    "symlink_entry.zip": ["ok.jpg: accepted", "rejected link"],
    "tar_gz_named.zip": ("bad-archive", "not a ZIP"),
    "truncated.zip": ("bad-archive", "damaged or incomplete"),
    "unicode_nfc_nfd.zip": ["accepted", "accepted"],
    "wrong_crc_first.zip": ["1.jpg: rejected damaged", "2.jpg: accepted"],
    "zip_slip_backslash.zip": ["ok.jpg: accepted", "rejected unsafe_path"],
    "zip_slip_dotdot.zip": ["ok.jpg: accepted", "rejected unsafe_path", "rejected unsafe_path"],
}  # fmt: skip


def manifest(data_dir: Path) -> list[dict[str, str]]:
    with (data_dir / "hard-images" / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def outside(home: Path) -> list[str]:
    """Files that an upload may have left anywhere but in the stores."""
    kept = re.compile(r"blobs/|service\.sqlite3|secret\.key")
    found = (str(p.relative_to(home)) for p in home.rglob("*") if p.is_file())
    return [name for name in found if not kept.match(name)]


def test_the_archives_of_the_manifest_are_answered_as_it_says(
    service: Service, data_dir: Path
) -> None:
    listed = {Path(r["file"]).name for r in manifest(data_dir) if r["group"] == "archives"}
    assert listed == set(ARCHIVES)
    wrong = {}
    for name, wanted in ARCHIVES.items():
        data = (data_dir / "hard-images" / "archives" / name).read_bytes()
        answer = service.client.post(
            "/v1/batches", content=data, headers={"Content-Type": "application/zip"}
        )
        if isinstance(wanted, tuple):
            kind, words = wanted
            said = answer.json()
            good = said["type"] == f"/problems/{kind}" and words in said["detail"]
        else:
            found = [f"{i['name']}: {i['state']} {i['code'] or ''}" for i in answer.json()["items"]]
            good = answer.status_code == 201 and _fit(found, wanted)
        if not good:
            wrong[name] = answer.json()
    assert wrong == {}
    assert outside(service.context.server.home) == []


def _fit(found: list[str], wanted: list[str]) -> bool:
    """Each wanted line is the one or the end of a line of its own, in whatever order."""
    rest = list(found)
    for line in sorted(wanted, key=len, reverse=True):
        match = next((f for f in rest if line in f), None)
        if match is None:
            return False
        rest.remove(match)
    return not rest


def test_pictures_of_the_manifest_are_taken_or_refused_as_the_gate_does(
    service: Service, data_dir: Path
) -> None:
    groups = ("bombs", "corrupt-truncated", "wrong-type", "animated-multiframe", "jxl-jp2-other")
    rows = [r for r in manifest(data_dir) if r["group"] in groups]
    parts: list[Any] = [
        ("files", (r["file"], (data_dir / "hard-images" / r["file"]).read_bytes())) for r in rows
    ]
    answer = service.client.post("/v1/batches", files=parts)
    assert answer.status_code == 201
    by_name = {i["name"]: i for i in answer.json()["items"]}
    assert list(by_name) == [r["file"] for r in rows]
    wanted = {"reject": "rejected", "accept": "accepted"}
    wrong = {
        r["file"]: by_name[r["file"]]
        for r in rows
        if r["action"] in wanted and by_name[r["file"]]["state"] != wanted[r["action"]]
    }
    assert wrong == {}
    refused = [i for i in by_name.values() if i["state"] == "rejected"]
    assert all(i["code"] and len(i["reason"].splitlines()) == 1 for i in refused)


def test_hostile_file_names_are_kept_as_text_and_touch_no_file(
    service: Service, data_dir: Path, tmp_path: Path
) -> None:
    folder = data_dir / "hard-images" / "filenames"
    with tarfile.open(folder / "odd-names.tar") as tar:
        tar.extractall(tmp_path / "odd", filter="data")
    picture = next(p for p in (tmp_path / "odd").rglob("*") if p.is_file()).read_bytes()
    names = (folder / "multipart-filename-strings.txt").read_text("utf-8").split("\n")
    names = [n for n in names if n]
    escaped = [n.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "") for n in names]
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="'
        + name.encode("utf-8", "surrogatepass")
        + b'"\r\n\r\n'
        + picture
        + b"\r\n"
        for name in escaped
    )
    answer = service.client.post(
        "/v1/batches",
        content=body + b"--b--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )
    assert answer.status_code == 201, answer.text
    batch = answer.json()
    assert batch["accepted"] == len(names)
    kept = [i["name"] for i in batch["items"]]
    assert len(set(kept)) == len(kept)
    assert all((0 < len(n) <= 210 and n.isprintable()) or "\u200d" in n for n in kept)
    assert {p.name for p in (service.context.server.home).iterdir()} >= {"blobs"}
    assert not [n for n in outside(service.context.server.home) if not n.startswith("odd/")]


def test_urls_of_the_manifest_are_refused_each_for_its_reason(
    service: Service, data_dir: Path
) -> None:
    path = data_dir / "hard-images" / "filenames" / "url-strings.txt"
    urls = [u for u in path.read_text("utf-8").splitlines() if u]
    answer = service.client.post("/v1/batches", json={"urls": [{"url": u} for u in urls]})
    items = answer.json()["items"]
    assert [(i["state"], i["code"]) for i in items] == [("rejected", "address_refused")] * len(urls)
    assert all(i["reason"].startswith("not fetched: ") for i in items)
