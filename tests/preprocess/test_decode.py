"""The decode gate on pictures made here, with answers known beforehand."""

from __future__ import annotations

import io
import os
import struct
import threading
import zlib
from pathlib import Path

import cv2
import numpy as np
import pillow_heif
import pytest
import simplejpeg
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from domain.errors import PictureRejected
from preprocess.decode import encode_jpeg, encode_png, open_picture
from preprocess.limits import Limits

RNG = np.random.default_rng(7)
SCENE = cv2.GaussianBlur(RNG.integers(0, 256, (48, 64, 3), np.uint8), (0, 0), 3)


def png(
    samples: np.ndarray, colour: int, depth: int, extra: tuple[tuple[bytes, bytes], ...] = ()
) -> bytes:
    """A PNG written by hand (no filter), independent of any library that reads it."""
    height, width = samples.shape[:2]
    flat = samples.reshape(height, -1)
    rows = flat.astype(">u2").tobytes() if depth == 16 else flat.astype(np.uint8).tobytes()
    step = len(rows) // height
    packed = zlib.compress(b"".join(b"\0" + rows[i * step : (i + 1) * step] for i in range(height)))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), *extra, (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def exif(orientation: int, kind: int = 3) -> bytes:
    return (
        b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHH", 0x0112, kind, 1, orientation, 0) + bytes(4)
    )


def jpeg(pixels: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def saved(pixels: np.ndarray, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


# --- the plain way through


def test_a_png_comes_back_pixel_for_pixel() -> None:
    picture = open_picture(encode_png(SCENE))
    assert np.array_equal(picture.pixels, SCENE)
    assert picture.opaque is None
    assert picture.facts.format == "PNG"
    assert len(picture.sha256) == 64
    assert picture.facts.warnings == ()


def test_a_jpeg_has_the_pixels_that_libjpeg_turbo_gives() -> None:
    data = jpeg(SCENE, quality=90)
    assert np.array_equal(open_picture(data).pixels, simplejpeg.decode_jpeg(data, "RGB"))
    assert np.array_equal(open_picture(data).pixels, np.asarray(Image.open(io.BytesIO(data))))


def test_jfif_outranks_an_adobe_marker_as_libjpeg_has_it() -> None:
    data = jpeg(SCENE)
    adobe = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"  # "these are RGB"
    both = data[:20] + adobe + data[20:]
    assert np.array_equal(open_picture(both).pixels, np.asarray(Image.open(io.BytesIO(both))))


def test_sampling_that_turbojpeg_refuses_is_still_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = jpeg(SCENE)
    wanted = open_picture(data).pixels

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("tjDecompressHeader3(): Could not determine subsampling level")

    monkeypatch.setattr(simplejpeg, "decode_jpeg", refuse)
    picture = open_picture(data)
    assert np.array_equal(picture.pixels, wanted)
    assert "sampling is unusual" in picture.facts.warnings[0]
    with pytest.raises(PictureRejected):
        open_picture(data[:-2])


def test_bytes_and_file_give_the_same_picture(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(data := jpeg(SCENE))
    first, second = open_picture(path), open_picture(data)
    assert np.array_equal(first.pixels, second.pixels)
    assert first.sha256 == second.sha256


def test_encoders_write_no_metadata_and_no_subsampling() -> None:
    data = encode_jpeg(SCENE, 90)
    assert simplejpeg.decode_jpeg_header(data)[3] == "444"
    for encoded in (data, encode_png(SCENE)):
        with Image.open(io.BytesIO(encoded)) as image:
            assert not set(image.info) - {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
            assert not image.getexif()


@pytest.mark.parametrize("kind", ["WEBP", "TIFF", "BMP", "AVIF", "JPEG2000", "PNG"])
def test_lossless_formats_agree(kind: str) -> None:
    options = {"WEBP": {"lossless": True}, "AVIF": {"quality": 100, "subsampling": "4:4:4"}}
    picture = open_picture(saved(SCENE, kind, **options.get(kind, {})))
    error = np.abs(picture.pixels.astype(int) - SCENE).max()
    assert error <= (2 if kind == "AVIF" else 0)


def test_dimensions_and_contiguity_hold_after_turning() -> None:
    picture = open_picture(jpeg(SCENE, exif=b"Exif\0\0" + exif(6)))
    assert (picture.width, picture.height) == (48, 64)
    assert picture.pixels.flags.c_contiguous
    assert picture.facts.stored_size == (64, 48)


# --- orientation


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_orientation_is_applied_once_in_every_container(value: int, kind: str) -> None:
    turned = {  # what a viewer must do to show the stored pixels upright (Exif 2.32, tag 274)
        1: SCENE, 2: np.fliplr(SCENE), 3: np.rot90(SCENE, 2), 4: np.flipud(SCENE),
        5: SCENE.swapaxes(0, 1), 6: np.rot90(SCENE, -1),
        7: np.rot90(SCENE, 2).swapaxes(0, 1), 8: np.rot90(SCENE, 1),
    }[value]  # fmt: skip
    tags = Image.Exif()
    tags[0x0112] = value
    options: dict[str, object] = {"exif": tags}
    if kind == "WEBP":
        options["lossless"] = True
    picture = open_picture(saved(SCENE, kind, **options))
    assert picture.facts.orientation == value
    assert np.array_equal(picture.pixels, turned)


@pytest.mark.parametrize("bits", [np.uint8, np.uint16])
def test_a_wide_tiff_is_turned_once_as_well(bits: type, tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    stored = SCENE.astype(bits) * (257 if bits is np.uint16 else 1)
    tifffile.imwrite(path, stored, photometric="rgb", extratags=[(274, 3, 1, 6, True)])
    picture = open_picture(path)
    assert np.array_equal(picture.pixels, np.rot90(SCENE, -1))


@pytest.mark.parametrize(
    ("value", "kind", "said"), [(0, 3, "outside"), (9, 3, "outside"), (6, 4, "type")]
)
def test_orientations_that_make_no_sense_are_ignored_with_a_warning(
    value: int, kind: int, said: str
) -> None:
    picture = open_picture(jpeg(SCENE, exif=b"Exif\0\0" + exif(value, kind)))
    assert picture.facts.orientation == 1
    assert said in picture.facts.warnings[0]


def test_orientation_in_xmp_alone_is_never_followed_not_even_in_a_tiff() -> None:
    xmp = b'<x:xmpmeta xmlns:tiff="x" tiff:Orientation="6"/>'
    picture = open_picture(saved(SCENE, "TIFF", tiffinfo={700: xmp}))
    assert np.array_equal(picture.pixels, SCENE)


# --- transparency


def test_transparent_pixels_are_laid_over_white_and_marked() -> None:
    alpha = np.full((48, 64, 1), 255, np.uint8)
    alpha[:10] = 0
    alpha[10:20] = 128
    hidden = SCENE.copy()
    hidden[:10] = (255, 0, 255)
    picture = open_picture(png(np.dstack([hidden, alpha]), 6, 8))
    assert (picture.pixels[:10] == 255).all()
    half = (SCENE[10:20].astype(float) * 128 + 255 * 127) / 255
    assert np.abs(picture.pixels[10:20] - half).max() <= 0.51
    assert np.array_equal(picture.pixels[20:], SCENE[20:])
    assert picture.opaque is not None
    assert not picture.opaque[:20].any()
    assert picture.opaque[20:].all()
    assert "not fully opaque" in picture.facts.warnings[0]


def test_an_alpha_channel_that_hides_nothing_costs_nothing() -> None:
    picture = open_picture(png(np.dstack([SCENE, np.full((48, 64), 255, np.uint8)]), 6, 8))
    assert picture.opaque is None
    assert picture.facts.had_alpha
    assert np.array_equal(picture.pixels, SCENE)


def test_the_marks_turn_with_the_picture() -> None:
    alpha = np.full((48, 64), 255, np.uint8)
    alpha[:, :5] = 0
    picture = open_picture(png(np.dstack([SCENE, alpha]), 6, 8, ((b"eXIf", exif(6)),)))
    assert picture.opaque is not None
    assert picture.opaque.shape == picture.pixels.shape[:2]
    assert not picture.opaque[:5].any()
    assert picture.opaque[5:].all()


# --- depth


GREY = SCENE[:, :, 0]
WIDE = RNG.integers(0, 65536, (48, 64, 3), np.uint16)
ROUNDED = np.floor(WIDE / 257 + 0.5).astype(np.uint8)


def test_sixteen_bits_are_rounded_not_cut() -> None:
    picture = open_picture(png(WIDE, 2, 16))
    assert np.array_equal(picture.pixels, ROUNDED)
    assert picture.facts.bit_depth == 16


def test_sixteen_bit_grey_with_alpha_keeps_both() -> None:
    alpha = np.full((48, 64), 65535, np.uint16)
    alpha[0] = 0
    picture = open_picture(png(np.dstack([WIDE[:, :, 0], alpha]), 4, 16))
    assert np.array_equal(picture.pixels[1:, :, 0], ROUNDED[1:, :, 0])
    assert (picture.pixels[0] == 255).all()
    assert picture.facts.monochrome


def test_a_transparent_colour_of_sixteen_bits_is_matched_at_sixteen_bits() -> None:
    samples = np.full((4, 4, 3), 1000, np.uint16)
    samples[0, 0] = 1001  # the same eight bits, another colour
    picture = open_picture(png(samples, 2, 16, ((b"tRNS", struct.pack(">HHH", 1001, 1001, 1001)),)))
    assert picture.opaque is not None
    assert picture.opaque.sum() == 15


@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_a_sixteen_bit_tiff_keeps_its_colours_or_is_refused(planar: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    stored = WIDE if planar == "contig" else np.moveaxis(WIDE, 2, 0)
    tifffile.imwrite(path, stored, photometric="rgb", planarconfig=planar)
    try:
        picture = open_picture(path)
    except PictureRejected as error:
        assert planar == "separate"
        assert error.code in ("damaged", "not_supported")
    else:
        assert np.abs(picture.pixels.astype(int) - ROUNDED).max() <= 1


def test_a_grey_tiff_of_sixteen_bits_and_a_float_tiff(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "g.tif", WIDE[:, :, 0], photometric="minisblack", byteorder=">")
    picture = open_picture(tmp_path / "g.tif")
    assert np.array_equal(picture.pixels[:, :, 1], ROUNDED[:, :, 0])
    tifffile.imwrite(tmp_path / "f.tif", (SCENE / 255).astype(np.float32), photometric="rgb")
    assert np.array_equal(open_picture(tmp_path / "f.tif").pixels, SCENE)


def test_a_sixteen_bit_cmyk_tiff_is_no_rgb_with_alpha(tmp_path: Path) -> None:
    inks = np.zeros((8, 8, 4), np.uint16)
    inks[:, :, 0] = 65535  # cyan alone
    tifffile.imwrite(tmp_path / "c.tif", inks, photometric="separated")
    assert tuple(open_picture(tmp_path / "c.tif").pixels[0, 0]) == (0, 255, 255)


def test_black_and_white_and_grey_are_flagged_monochrome() -> None:
    assert open_picture(png(GREY, 0, 8)).facts.monochrome
    assert open_picture(jpeg(np.repeat(GREY[:, :, None], 3, 2))).facts.monochrome
    one_red = np.repeat(GREY[:, :, None], 3, 2).copy()
    one_red[5, 7] = (200, 0, 0)
    assert not open_picture(encode_png(one_red)).facts.monochrome


# --- whole or not


def test_a_jpeg_cut_anywhere_is_never_taken_for_whole() -> None:
    for options in ({}, {"progressive": True}, {"subsampling": 0}):
        data = jpeg(cv2.resize(SCENE, (256, 192)), quality=85, **options)
        for share in np.linspace(0.02, 0.985, 40):
            with pytest.raises(PictureRejected) as caught:
                open_picture(data[: int(len(data) * share)])
            assert caught.value.code in ("truncated", "damaged")


def test_a_jpeg_cut_and_closed_with_an_end_marker_is_noticed_too() -> None:
    for progressive in (False, True):
        data = jpeg(cv2.resize(SCENE, (256, 192)), quality=85, progressive=progressive)
        for share in (0.4, 0.6, 0.9):
            with pytest.raises(PictureRejected, match=r"truncated|damaged"):
                open_picture(data[: int(len(data) * share)] + b"\xff\xd9")


def test_a_progressive_jpeg_without_its_last_scan_is_truncated() -> None:
    data = jpeg(cv2.resize(SCENE, (256, 192)), quality=85, progressive=True)
    last_scan = data.rfind(b"\xff\xda")
    tables = data.rfind(b"\xff\xc4", 0, last_scan)
    with pytest.raises(PictureRejected, match="last scans"):
        open_picture(data[:tables] + b"\xff\xd9")


def test_only_the_end_marker_missing_is_accepted_with_a_warning() -> None:
    data = jpeg(SCENE)
    picture = open_picture(data[:-2])
    assert np.array_equal(picture.pixels, open_picture(data).pixels)
    assert "end marker is missing" in picture.facts.warnings[0]


def test_a_png_cut_or_flipped_anywhere_is_refused() -> None:
    data = encode_png(SCENE)
    for share in (0.1, 0.5, 0.9, 0.99):
        with pytest.raises(PictureRejected):
            open_picture(data[: int(len(data) * share)])
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    with pytest.raises(PictureRejected, match="checksum"):
        open_picture(bytes(flipped))


@pytest.mark.parametrize("depth", [8, 16])
def test_a_png_whose_checksums_fit_but_whose_rows_do_not_is_truncated(depth: int) -> None:
    samples = SCENE if depth == 8 else WIDE
    whole = png(samples, 2, depth)
    half = png(samples[:24], 2, depth)
    header = whole[8 : 8 + 25]
    with pytest.raises(PictureRejected, match="24 of 48 rows"):
        open_picture(whole[:8] + header + half[8 + 25 :])


def test_an_interlaced_png_without_its_last_pass_is_truncated(data_dir: Path) -> None:
    whole = (data_dir / "hard-images" / "png-special" / "basi2c08.png").read_bytes()
    at = whole.find(b"IDAT")
    size = int.from_bytes(whole[at - 4 : at], "big")
    rows = zlib.decompress(whole[at + 4 : at + 4 + size])
    body = b"IDAT" + zlib.compress(rows[: len(rows) // 2])
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    with pytest.raises(PictureRejected, match="passes missing"):
        open_picture(whole[: at - 4] + chunk + whole[at + 8 + size :])


def every_format() -> dict[str, bytes]:
    scene = cv2.resize(SCENE, (160, 120))
    heic, wide = io.BytesIO(), io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(scene)).save(heic)
    tifffile.imwrite(wide, scene.astype(np.uint16) * 257, photometric="rgb", rowsperstrip=20)
    kinds = ("WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "AVIF")
    found = {kind: saved(scene, kind) for kind in kinds}
    return found | {"HEIC": heic.getvalue(), "wide TIFF": wide.getvalue()}


@pytest.mark.parametrize("kind", list(every_format()))
def test_a_file_of_any_format_cut_anywhere_is_refused(kind: str) -> None:
    whole = every_format()[kind]
    assert open_picture(whole).width == 160
    for share in (0.1, 0.4, 0.7, 0.9, 0.97, 0.995):
        with pytest.raises(PictureRejected):
            open_picture(whole[: int(len(whole) * share)])


# --- limits and paths


def test_every_limit_is_read_from_the_header() -> None:
    tight = Limits(max_megapixels=0.001)
    for kind in ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "JPEG2000"):
        with pytest.raises(PictureRejected, match=r"image too large: 64 x 48, limit 0\.001 meg"):
            open_picture(saved(SCENE, kind), tight)
    with pytest.raises(PictureRejected, match="file too large"):
        open_picture(encode_png(SCENE), Limits(max_bytes=100))
    with pytest.raises(PictureRejected, match="side too large"):
        open_picture(encode_png(SCENE), Limits(max_side=50))


def test_too_many_frames_are_refused() -> None:
    frames = [Image.fromarray(SCENE // k) for k in (1, 2, 3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(PictureRejected, match="too many frames: 3, limit 2"):
        open_picture(buffer.getvalue(), Limits(max_frames=2))


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path / "absent.jpg", "no such file"),
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "not a regular file"),
        (Path("a\0b.jpg"), "cannot be read|no such file"),
    ):
        with pytest.raises(PictureRejected, match=reason):
            open_picture(path)


def test_a_decoder_that_falls_over_is_a_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    def fall(*_: object, **__: object) -> None:
        raise RuntimeError("inside the decoder")

    monkeypatch.setattr(simplejpeg, "decode_jpeg", fall)
    with pytest.raises(PictureRejected, match="damaged image"):
        open_picture(jpeg(SCENE))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_noise_in_any_format_is_a_picture_or_a_rejection(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF"]))
    whole = bytearray(saved(SCENE[:16, :16], kind))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    try:
        picture = open_picture(bytes(whole))
    except PictureRejected as error:
        assert error.reason
        assert error.code
    else:
        assert picture.pixels.dtype == np.uint8


def test_threads_may_decode_at_the_same_time() -> None:
    files = [saved(SCENE, kind) for kind in ("WEBP", "TIFF", "JPEG", "PNG")] * 4
    alone = [open_picture(f).pixels for f in files]
    together: dict[int, np.ndarray] = {}

    def decode(index: int) -> None:
        together[index] = open_picture(files[index]).pixels

    threads = [threading.Thread(target=decode, args=(i,)) for i in range(len(files))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(alone[i], together[i]) for i in range(len(files)))
