"""The meshes read straight from MediaPipe's memory, and the way back to its public interface."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from preprocess import mediapipe_meshes
from preprocess.decode import open_picture
from preprocess.engines_mediapipe import MediapipeEngine
from preprocess.mediapipe_meshes import MeshReader


@pytest.fixture(scope="module")
def landmarker() -> Any:
    engine = MediapipeEngine()
    engine._strict._ready()
    yield engine._strict._landmarker
    engine.close()


@pytest.fixture(scope="module")
def image(data_dir: Path) -> Any:
    import mediapipe as mp

    path = next(iter(sorted((data_dir / "faces" / "london" / "neutral").glob("*.jpg"))))
    return mp.Image(image_format=mp.ImageFormat.SRGB, data=open_picture(path).pixels)


def test_the_direct_way_gives_the_points_of_the_public_interface(
    landmarker: Any, image: Any
) -> None:
    reader = MeshReader(landmarker)
    public, direct = reader.read(image), reader.read(image)
    assert reader.direct is True  # else the pinned MediaPipe no longer offers it
    expected = [[(p.x, p.y) for p in face] for face in landmarker.detect(image).face_landmarks]
    assert len(expected) == 1 and np.array_equal(expected[0], public[0])
    assert np.array_equal(expected[0], direct[0])


def test_a_mediapipe_without_those_names_is_read_by_its_public_interface() -> None:
    face = [SimpleNamespace(x=0.25, y=0.5), SimpleNamespace(x=0.75, y=1.0)]
    other = SimpleNamespace(detect=lambda image: SimpleNamespace(face_landmarks=[face]))
    reader = MeshReader(other)
    assert reader.direct is False
    assert reader.read(object())[0].tolist() == [[0.25, 0.5], [0.75, 1.0]]


def test_a_direct_way_that_gives_other_points_is_given_up(
    landmarker: Any, image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mediapipe_meshes, "_block", lambda points, count: np.zeros((count, 2)))
    reader = MeshReader(landmarker)
    first, second = reader.read(image), reader.read(image)
    assert reader.direct is False
    assert np.array_equal(first[0], second[0]) and first[0].any()


def test_a_picture_without_a_face_decides_nothing(landmarker: Any) -> None:
    import mediapipe as mp

    plain = mp.Image(image_format=mp.ImageFormat.SRGB, data=np.zeros((96, 96, 3), np.uint8))
    reader = MeshReader(landmarker)
    assert reader.read(plain) == [] and reader.direct is None
