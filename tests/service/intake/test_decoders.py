"""Pictures are decoded in processes of their own, and one that kills its process gets a reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from preprocess.decode import encode_jpeg, encode_png
from preprocess.limits import Limits
from service.intake import decoding
from service.intake.decoding import DIED, SLOW, Decoders, Judged


@pytest.fixture(scope="module")
def decoders() -> Iterator[Decoders]:
    made = Decoders(Limits(max_megapixels=1.0), processes=1)
    yield made
    made.close()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_bytes(encode_png(np.full((8, 8, 3), 90, np.uint8)))
    return path


def test_a_picture_is_told_by_its_content(decoders: Decoders, picture: Path) -> None:
    assert decoders.judge(picture) == Judged(media_type="image/png")
    picture.write_bytes(encode_jpeg(np.full((8, 8, 3), 90, np.uint8)))
    assert decoders.judge(picture).media_type == "image/jpeg"


def test_the_gates_own_codes_and_reasons_come_through(decoders: Decoders, picture: Path) -> None:
    picture.write_bytes(b"<html>no</html>")
    assert decoders.judge(picture) == Judged(code="html", reason="not an image: looks like HTML")


def test_pixels_are_capped_before_anything_is_decoded(decoders: Decoders, picture: Path) -> None:
    picture.write_bytes(encode_png(np.zeros((1100, 1000, 3), np.uint8)))
    judged = decoders.judge(picture)
    assert judged.code == "too_large"
    assert "1000 x 1100, limit 1 megapixels" in judged.reason


def test_a_process_that_was_killed_is_replaced(decoders: Decoders, picture: Path) -> None:
    decoders.judge(picture)
    process = decoders._idle.queue[0]
    assert process is not None
    process._process.kill()
    process._process.join()
    assert decoders.judge(picture).accepted


def test_a_picture_that_kills_its_process_is_the_only_one_refused(
    decoders: Decoders, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: decoding._Decoder, _path: Path, _seconds: float) -> Judged:
        self._process.kill()
        raise EOFError

    with monkeypatch.context() as patch:
        patch.setattr(decoding._Decoder, "judge", die)
        assert decoders.judge(picture) == DIED
    assert decoders.judge(picture).accepted


def test_a_picture_that_takes_too_long_is_refused_and_its_process_ended(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(encode_png(np.zeros((5000, 5000, 3), np.uint8)))
    made = Decoders(Limits(), processes=1, seconds=0.0)
    try:
        assert made.judge(path) == SLOW
        assert list(made._idle.queue) == [None]
    finally:
        made.close()


def test_several_threads_share_the_processes(decoders: Decoders, picture: Path) -> None:
    found: list[Judged] = []
    threads = [
        threading.Thread(target=lambda: found.append(decoders.judge(picture))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [judged.accepted for judged in found] == [True] * 8
