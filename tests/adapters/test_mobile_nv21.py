"""YUV420SP there and back: what the colour format alone costs, against Pillow's own JFIF conversion."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from adapters.phone.nv21 import from_nv21, round_trip_error, to_nv21


def noise(width: int = 64, height: int = 48) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_a_grey_picture_comes_back_as_it_was() -> None:
    grey = np.repeat(noise()[..., :1], 3, axis=2)
    assert np.array_equal(from_nv21(to_nv21(grey), 64, 48), grey)
    assert set(round_trip_error(grey).values()) == {0.0}


def test_luma_and_the_order_v_before_u_are_those_of_pillow() -> None:
    flat = np.zeros((16, 16, 3), np.uint8)
    flat[:, :8], flat[:, 8:] = (200, 40, 30), (20, 60, 210)
    y, cb, cr = (np.asarray(p) for p in Image.fromarray(flat).convert("YCbCr").split())
    data = np.frombuffer(to_nv21(flat), np.uint8)
    assert len(data) == 16 * 16 * 3 // 2
    assert np.abs(data[:256].reshape(16, 16).astype(int) - y).max() <= 1
    pairs = data[256:].reshape(8, 8, 2).astype(int)
    assert np.abs(pairs[..., 0] - cr[::2, ::2]).max() <= 1
    assert np.abs(pairs[..., 1] - cb[::2, ::2]).max() <= 1


def test_decoding_is_that_of_pillow() -> None:
    data = np.random.default_rng(5).integers(60, 200, 16 * 16 * 3 // 2, dtype=np.uint8)
    y = data[:256].reshape(16, 16)
    v, u = np.moveaxis(data[256:].reshape(8, 8, 2), -1, 0)
    planes = [y, u.repeat(2, 0).repeat(2, 1), v.repeat(2, 0).repeat(2, 1)]
    merged = Image.merge("YCbCr", [Image.fromarray(p) for p in planes])
    reference = np.asarray(merged.convert("RGB")).astype(int)
    assert np.abs(from_nv21(data.tobytes(), 16, 16) - reference).max() <= 1


def test_the_error_is_in_the_chroma_not_in_the_luma() -> None:
    found = round_trip_error(noise())
    assert found["chroma"] > 5 * found["luma"]
    assert set(found) == {"red", "green", "blue", "luma", "chroma"}
    smooth = np.dstack([np.add.outer(np.arange(48), np.arange(64))] * 3).astype(np.uint8)
    smooth[..., 0] += 60
    assert max(round_trip_error(smooth).values()) < 1.0


def test_odd_sides_and_wrong_lengths_are_told() -> None:
    with pytest.raises(ValueError, match="63x48 has an odd side"):
        to_nv21(np.zeros((48, 63, 3), np.uint8))
    with pytest.raises(ValueError, match="10 bytes are no 64x48 NV21 frame"):
        from_nv21(b"0123456789", 64, 48)
