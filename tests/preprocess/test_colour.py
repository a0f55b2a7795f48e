"""Colour to sRGB, against Little CMS, published matrices and hand-made profiles."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms
from skimage.color import rgb2lab

from domain.errors import PictureRejected
from preprocess.colour import encode_srgb, to_bytes, to_srgb
from preprocess.decode import open_picture
from preprocess.icc import XYZ_D50_TO_SRGB, coded_profile, evaluate, parse_profile
from preprocess.raster import Raster

RNG = np.random.default_rng(3)
PROPHOTO = np.array(  # Lindbloom, RGB working space matrices, ProPhoto RGB (D50), columns R G B
    [[0.7976749, 0.1351917, 0.0313534], [0.2880402, 0.7118741, 0.0000857], [0.0, 0.0, 0.8252100]]
)
D50_TO_SRGB = np.array(  # Lindbloom, Bradford-adapted sRGB, XYZ (D50) to linear RGB
    [[3.1338561, -1.6168667, -0.4906146], [-0.9787684, 1.9161415, 0.0334540], [0.0719453, -0.2289914, 1.4052427]]
)  # fmt: skip


def fixed(values: np.ndarray | list[float]) -> bytes:
    return np.rint(np.array(values) * 65536).astype(">i4").tobytes()


def gamma(value: float) -> bytes:
    return b"para\0\0\0\0\0\0\0\0" + fixed([value])


def icc(space: bytes, tags: dict[bytes, bytes]) -> bytes:
    """A profile with the given tags, laid out after ICC.1:2022 section 7."""
    at, table, body = 132 + 12 * len(tags), b"", b""
    for name, data in tags.items():
        table += name + struct.pack(">II", at + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    header = bytearray(128)
    header[8:12] = b"\4\x30\0\0"
    header[12:24] = b"mntr" + space + b"XYZ "
    header[36:40] = b"acsp"
    header[68:80] = fixed([0.9642, 1.0, 0.8249])
    whole = bytes(header) + struct.pack(">I", len(tags)) + table + body
    return struct.pack(">I", len(whole)) + whole[4:]


def rgb_profile(matrix: np.ndarray, curve: bytes) -> bytes:
    tags = {f"{c}XYZ".encode(): b"XYZ \0\0\0\0" + fixed(matrix[:, i]) for i, c in enumerate("rgb")}
    return icc(b"RGB ", tags | {f"{c}TRC".encode(): curve for c in "rgb"})


def converted(samples: np.ndarray, profile: bytes | None, model: str = "rgb") -> np.ndarray:
    pixels, _, _ = to_srgb(Raster(samples, model, "test", profile=profile))
    return pixels


@pytest.mark.parametrize(
    "name",
    ["adobergb_v2.jpg", "displayp3_v4.jpg", "rec2020_v4.png", "widegamut_v2.png",
     "channel_swapped_profile.png", "stale_prophoto_tag.jpg", "p3_blue.png"],
)  # fmt: skip
def test_matrix_profiles_agree_with_little_cms(data_dir: Path, name: str) -> None:
    with Image.open(data_dir / "hard-images" / "icc" / name) as image:
        profile = image.info["icc_profile"]
    colours = RNG.integers(0, 256, (100, 100, 3), np.uint8)
    theirs = ImageCms.profileToProfile(
        Image.fromarray(colours), io.BytesIO(profile), ImageCms.createProfile("sRGB")
    )
    assert theirs is not None
    difference = np.abs(converted(colours, profile).astype(int) - np.asarray(theirs))
    assert difference.max() <= 3
    assert difference.mean() < 0.3


def test_sixteen_bit_prophoto_agrees_with_published_matrices() -> None:
    colours = RNG.integers(0, 65536, (80, 80, 3), np.uint16)
    linear = (colours / 65535) ** 1.8 @ PROPHOTO.T @ D50_TO_SRGB.T
    wanted = encode_srgb(np.clip(linear, 0, 1)) * 255
    ours = converted(colours, rgb_profile(PROPHOTO, gamma(1.8)))
    difference = np.abs(ours - wanted)
    assert difference.max() < 1.1, "half a level of rounding, half of seven-digit matrices"
    assert np.percentile(difference, 99) < 0.55


def test_linear_light_keeps_every_shadow_level() -> None:
    levels = np.arange(256)
    x = levels / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    stored = np.repeat(np.rint(linear * 65535).astype(np.uint16)[None, :, None], 3, 2)
    profile = rgb_profile(np.linalg.inv(XYZ_D50_TO_SRGB), b"curv\0\0\0\0\0\0\0\0")
    assert np.array_equal(converted(stored, profile)[0, :, 0], levels)


def test_eight_and_sixteen_bits_of_the_same_colours_agree() -> None:
    colours = RNG.integers(0, 256, (50, 50, 3), np.uint8)
    profile = rgb_profile(PROPHOTO, gamma(1.8))
    wide = colours.astype(np.uint16) * 257
    assert np.array_equal(converted(colours, profile), converted(wide, profile))


def test_a_profile_that_is_srgb_in_substance_changes_nothing() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    colours = RNG.integers(0, 256, (50, 50, 3), np.uint8)
    assert converted(colours, profile) is colours


def test_a_grey_profile_is_applied_to_grey() -> None:
    ramp = np.arange(256, dtype=np.uint8)[None]
    pixels = converted(ramp, icc(b"GRAY", {b"kTRC": gamma(1.0)}), "grey")
    assert np.abs(pixels[0, :, 1] - encode_srgb(np.arange(256) / 255) * 255).max() <= 0.5


@pytest.mark.parametrize(
    ("kind", "values", "at_half"),
    [
        (0, [2.0], 0.25),
        (1, [2.0, 1.0, 0.0], 0.25),
        (2, [1.0, 0.5, 0.0, 0.25], 0.5),
        (3, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045], 0.2140),
        (4, [1.0, 0.5, 0.0, 0.5, 0.1, 0.25, 0.0], 0.5),
    ],
)
def test_parametric_curves_follow_the_standard(
    kind: int, values: list[float], at_half: float
) -> None:
    curve = b"para\0\0\0\0" + struct.pack(">HH", kind, 0) + fixed(values)
    profile = parse_profile(rgb_profile(PROPHOTO, curve))
    assert evaluate(profile.curves[0], 65537)[32768] == pytest.approx(at_half, abs=2e-4)


def test_coded_display_p3_has_the_published_matrix() -> None:
    profile = coded_profile(12, 13)
    assert profile is not None
    assert profile.matrix is not None
    published = np.array(  # CSS Color 4, lin_P3 to lin_sRGB
        [[1.2249402, -0.2249402, 0.0], [-0.0420570, 1.0420570, 0.0], [-0.0196376, -0.0786360, 1.0982736]]
    )  # fmt: skip
    assert np.abs(XYZ_D50_TO_SRGB @ profile.matrix - published).max() < 1e-3
    assert coded_profile(1, 13) is None


def test_neutral_lab_stays_neutral_and_keeps_its_lightness() -> None:
    neutral = np.zeros((1, 101, 3), np.float32)
    neutral[0, :, 0] = np.arange(101)
    pixels = converted(neutral, None, "lab")
    assert (pixels == pixels[:, :, :1]).all()
    assert np.abs(rgb2lab(pixels / 255)[0, :, 0] - np.arange(101)).max() < 0.3


def test_a_lab_tiff_written_by_little_cms_comes_back() -> None:
    colours = np.repeat(np.repeat(RNG.integers(60, 200, (6, 6, 3), np.uint8), 8, 0), 8, 1)
    transform = ImageCms.buildTransform(
        ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB"
    )
    image = ImageCms.applyTransform(Image.fromarray(colours), transform)
    assert image is not None
    buffer = io.BytesIO()
    image.save(buffer, "TIFF")
    pixels = open_picture(buffer.getvalue()).pixels
    assert np.abs(pixels.astype(int) - colours).max() <= 4


def test_cmyk_without_a_profile_is_converted_plainly_with_a_warning() -> None:
    inks = np.zeros((4, 4, 4), np.uint8)
    inks[:, :, 1:3] = 255  # magenta and yellow make red
    pixels, name, warnings = to_srgb(Raster(inks, "cmyk", "test"))
    assert tuple(pixels[0, 0]) == (255, 0, 0)
    assert name == "none"
    assert "unreliable" in warnings[0]


@pytest.mark.parametrize(
    ("model", "space"), [("rgb", b"GRAY"), ("grey", b"RGB "), ("cmyk", b"RGB "), ("rgb", b"CMYK")]
)
def test_a_profile_for_another_kind_of_picture_is_left_out_with_a_warning(
    model: str, space: bytes
) -> None:
    shape = {"rgb": (4, 4, 3), "grey": (4, 4), "cmyk": (4, 4, 4)}[model]
    samples = RNG.integers(0, 256, shape, np.uint8)
    profile = icc(space, {b"kTRC": gamma(1.0), b"A2B0": bytes(64)})
    pixels, name, warnings = to_srgb(Raster(samples, model, "test", profile=profile))
    plain, _, _ = to_srgb(Raster(samples, model, "test"))
    assert np.array_equal(pixels, plain)
    assert name.startswith("unreadable")
    assert "colour profile is unreadable or unsuitable" in warnings[0]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_profile_never_costs_the_picture(data: st.DataObject) -> None:
    profile = bytearray(rgb_profile(PROPHOTO, gamma(1.8)))
    for _ in range(data.draw(st.integers(1, 6))):
        profile[data.draw(st.integers(0, len(profile) - 1))] = data.draw(st.integers(0, 255))
    buffer = io.BytesIO()
    samples = np.full((4, 4, 3), 128, np.uint8)
    Image.fromarray(samples).save(buffer, "PNG", icc_profile=bytes(profile))
    picture = open_picture(buffer.getvalue())
    assert picture.pixels.shape == (4, 4, 3)
    assert picture.facts.profile


@given(st.integers(0, 65535))
def test_sixteen_bits_become_the_nearest_eight(value: int) -> None:
    (byte,) = to_bytes(np.array([[value]], np.uint16))[0]
    assert abs(byte - value / 257) <= 0.5


def test_hdr_is_refused_and_not_read_as_srgb(data_dir: Path) -> None:
    with pytest.raises(PictureRejected, match="HDR"):
        open_picture(data_dir / "hard-images" / "heif-avif" / "colors_hdr_p3.avif")
