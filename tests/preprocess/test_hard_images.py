"""Every row of the hard-images manifest behaves as it says. ``pytest -s`` prints the table."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from domain.errors import LikenessError, PictureRejected
from domain.pictures import Picture
from domain.urls import check_url
from preprocess.archive import EntryOutcome, clean_name, open_archive
from preprocess.decode import open_picture

REPO = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LIKENESS_DATA", REPO.parent / "shared" / "data")) / "hard-images"
OTHER_GROUPS = ("archives", "filenames")

REASONS = {  # what a rejection must say, where the manifest quotes it
    "bombs/gif_65535_claim.gif": "too large: 65535 x 65535, limit",
    "bombs/jp2_claim.jp2": "too large: 60000 x 60000, limit",
    "bombs/jpeg_65500_claim.jpg": "too large: 65500 x 65500, limit",
    "bombs/pil_decompression_bomb.gif": "too large: .*, limit",
    "bombs/png_16000x16000_rgb_claim.png": "too large: 16000 x 16000, limit",
    "bombs/png_30000x30000_1bit.png": "too large: 30000 x 30000, limit",
    "bombs/png_60000x60_strip.png": "side too large",
    "bombs/tiff_60000_claim.tif": "too large: 60000 x 60000, limit",
    "bombs/webp_16383x16383.webp": "too large: 16383 x 16383, limit",
    "corrupt-truncated/base64_text.png": r"not an image: text \(data URL\)",
    "corrupt-truncated/html_error_page.jpg": "not an image: looks like HTML",
    "corrupt-truncated/jpeg_bad_huffman.jpg": "damaged JPEG",
    "corrupt-truncated/jpeg_cut_05pct.jpg": r"truncated image \(\d+ of 592 rows\)",
    "corrupt-truncated/jpeg_cut_50pct.jpg": r"truncated image \(\d+ of 592 rows\)",
    "corrupt-truncated/jpeg_cut_97pct.jpg": r"truncated image \(5\d\d of 592 rows\)",
    "corrupt-truncated/jpeg_height_zero.jpg": "invalid JPEG size",
    "corrupt-truncated/jpeg_zero_hole.jpg": "damaged JPEG",
    "corrupt-truncated/multipart_boundary_inside.jpg": "not an image: multipart text",
    "corrupt-truncated/one_byte.jpg": "not an image",
    "corrupt-truncated/pil_broken.png": "damaged|truncated",
    "corrupt-truncated/pil_truncated_image.png": "damaged|truncated",
    "corrupt-truncated/png_cut_50pct.png": r"truncated image \(\d+ of 355 rows\)",
    "corrupt-truncated/png_flipped_byte.png": r"damaged PNG \(checksum\)",
    "corrupt-truncated/progressive_cut_40pct.jpg": "truncated image",
    "corrupt-truncated/random_noise_1k.jpg": "not an image",
    "corrupt-truncated/sharp_corrupt_header.jpg": "damaged JPEG",
    "corrupt-truncated/soi_eoi_only.jpg": "JPEG without image data",
    "corrupt-truncated/utf8_bom_before_jpeg.jpg": r"not a valid JPEG \(3 stray bytes",
    "corrupt-truncated/zero_byte.jpg": "empty file",
    "heif-avif/colors_hdr_p3.avif": r"HDR \(PQ\) image not supported",
    "heif-avif/corrupted.heic": "(damaged|empty|truncated) HEIC",
    "heif-avif/truncated.heic": "truncated HEIC",
    "jpeg-variants/partial_progressive.jpg": "truncated",
    "jxl-jp2-other/face.jxl": "JPEG XL not supported",
    "jxl-jp2-other/fixture.bpg": "format BPG not accepted",
    "jxl-jp2-other/hopper.ppm": "format Netpbm not accepted",
    "jxl-jp2-other/la.tga": "format TGA not accepted",
    "jxl-jp2-other/logo.svg": "SVG not accepted",
    "mpo-gainmap/pil_ultrahdr.jpg": "truncated",
    "pairs/truncated_edit_edit.jpg": "truncated image",
    "png-special/cicp_pq.png": "HDR PNG .*not supported",
    "png-special/ihdr_missing.png": "damaged PNG",
    "png-special/xcrn0g04.png": r"not a valid PNG \(damaged by text-mode transfer\)",
    "png-special/xd0n2c08.png": "invalid PNG header",
    "png-special/xdtn0g01.png": "PNG without image data",
    "png-special/xhdn0g08.png": r"damaged PNG \(checksum\)",
    "png-special/xlfn0g04.png": "not a valid PNG",
    "wrong-type/exe_named.png": "not an image",
    "wrong-type/gif_js.gif": "GIF",
    "wrong-type/json_named.webp": "not an image",
    "wrong-type/mp4_named.jpg": "video, not an image",
    "wrong-type/pdf_named.jpg": "PDF, not an image",
    "wrong-type/svg_named.png": "SVG not accepted",
    "wrong-type/zip_named.jpg": "ZIP archive sent as an image",
}
BAD_PROFILE = "colour profile is unreadable or unsuitable"
WARNINGS = {  # what an accepted file must be warned about
    "animated-multiframe/face_anim.apng": "animation of 2 frames",
    "animated-multiframe/face_then_other_face.gif": "animation of 3 frames",
    "animated-multiframe/two_faces_anim.webp": "animation of 2 frames",
    "animated-multiframe/two_pages.tif": "holds 2 pages",
    "bombs/gif_8000_frames.gif": "animation of 8000 frames",
    "cmyk-ycck/portrait_cmyk_noicc.jpg": "CMYK .* colour figures are unreliable",
    "corrupt-truncated/jpeg_no_eoi.jpg": "end marker is missing",
    "exif-broken/hopper_bad_exif.jpg": "EXIF unreadable",
    "icc/cmyk_profile_in_rgb.jpg": BAD_PROFILE,
    "icc/exif_says_adobergb_no_icc.jpg": "EXIF says Adobe RGB",
    "icc/gray_profile_in_rgb.jpg": BAD_PROFILE,
    "icc/lcms_bad.jpg": BAD_PROFILE,
    "icc/missing_chunk_2_of_3.jpg": BAD_PROFILE,
    "icc/random_bytes_profile.jpg": BAD_PROFILE,
    "icc/truncated_profile.jpg": BAD_PROFILE,
    "icc/zero_length_profile.jpg": BAD_PROFILE,
    "jpeg-variants/extraneous_data.jpg": "stray data",
    "jpeg-variants/face_q5.jpg": "heavily compressed",
    "modes-depth/face_1bit.png": "no tonal information",
    "modes-depth/face_rgba_hidden_magenta.png": "not fully opaque",
    "orientation/portrait_0.jpg": "orientation 0 lies outside",
    "orientation/tag_type_ascii.jpg": "orientation has the wrong type",
    "orientation/tag_value_9.jpg": "orientation 9 lies outside",
    "orientation/xmp_only_6.jpg": "XMP is not followed",
    "pairs/jpeg_q25_edit.jpg": "heavily compressed",
    "png-special/iccp_broken.png": BAD_PROFILE,
    "png-special/truncated_end_chunk.png": "end chunk is missing",
}


def rows(*groups: str, without: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """Rows of the manifest; one placeholder row where the data folder is absent."""
    path = DATA / "manifest.csv"
    if not path.is_file():
        return [{"file": "(data folder absent)", "group": "absent", "action": "absent"}]
    with path.open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    return [r for r in found if (r["group"] in groups or not groups) and r["group"] not in without]


def by_file(row: dict[str, str]) -> str:
    return row["file"]


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    lines: list[str] = []
    yield lines
    print("\n" + "\n".join(lines))


def patch(picture: Picture, centred: bool) -> np.ndarray:
    """Mean colour of a tenth of each side, rounded half up."""
    width, height = (max(1, int(n / 10 + 0.5)) for n in (picture.width, picture.height))
    x, y = ((picture.width - width) // 2, (picture.height - height) // 2) if centred else (0, 0)
    mean: np.ndarray = picture.pixels[y : y + height, x : x + width].mean(axis=(0, 1))
    return mean


def differences(picture: Picture, row: dict[str, str]) -> str:
    """In words what differs from the manifest's size and colours; "" when nothing does."""
    if row["width"] and (picture.width, picture.height) != (int(row["width"]), int(row["height"])):
        return f"size {picture.width}x{picture.height}"
    for column, centred in (("centre_srgb", True), ("topleft_srgb", False)):
        if row[column]:
            wanted = np.array(row[column].split(), float)
            error = float(np.abs(patch(picture, centred) - wanted).max())
            if error > float(row["tolerance"]):
                return f"{column} off by {error:.1f}"
    return ""


@pytest.mark.parametrize("row", rows(without=OTHER_GROUPS), ids=by_file)
def test_a_picture_of_the_manifest_is_taken_or_refused_as_it_says(
    data_dir: Path, row: dict[str, str], table: list[str]
) -> None:
    name = row["file"]
    started = time.monotonic()
    try:
        picture = open_picture(data_dir / "hard-images" / name)
    except PictureRejected as error:
        table.append(f"{row['action']:7} {name:58} rejected: {error.reason}")
        decided_by_face = row["group"] == "faces"
        cut_edit = name == "pairs/truncated_edit_edit.jpg"
        assert not decided_by_face, "no face row is broken as a file"
        assert row["action"] in ("reject", "either") or cut_edit, error.reason
        assert error.code
        assert re.search(REASONS.get(name, "."), error.reason), error.reason
        assert "<_io" not in error.reason, "an object's address says nothing to people"
    else:
        said = " ".join(picture.facts.warnings)
        table.append(f"{row['action']:7} {name:58} {picture.width}x{picture.height} {said}")
        assert row["action"] != "reject" or row["group"] == "faces"
        wrong = differences(picture, row)
        assert not wrong or (row["action"] == "either" and said), wrong
        if name in WARNINGS:
            assert re.search(WARNINGS[name], said), said
    assert time.monotonic() - started < 20, "bounded time, with much room for a busy machine"


def test_every_quoted_reason_and_warning_belongs_to_a_row_of_the_manifest(data_dir: Path) -> None:
    known = {row["file"] for row in rows()}
    assert set(REASONS) | set(WARNINGS) <= known


def test_bombs_take_little_memory(data_dir: Path) -> None:
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from domain.errors import PictureRejected\nfrom preprocess.decode import open_picture\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "for name in sys.argv[1:]:\n"
        "    try: open_picture(Path(name))\n"
        "    except PictureRejected: pass\n"
        "print((peak() - before) / 1024)\n"
    )
    folder = data_dir / "hard-images"
    files = [*sorted((folder / "bombs").iterdir()), folder / "png-special" / "ztxt_30mb.png"]
    command = [sys.executable, "-c", script, *map(str, files)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 80, "megabytes beyond what the imports take"


ARCHIVES = {  # entry by entry: clean name and outcome; or the reason why the whole is refused
    "bomb_100_to_1.zip": ["ok.jpg: taken", "big.png: reject expands too much"],
    "bzip2_lzma.zip": ["1.jpg: reject compression method not supported"],
    "empty.zip": "archive contains no images",
    "good_nested.zip": [
        "one.jpg: taken", "two.jpg: taken", "three.JPG: taken", "notes.txt: skip not an image",
    ],
    "long_names.zip": ["x.jpg: taken", f"{'n' * 116}.jpg: taken"],
    "macos_extras.zip": [
        "one.jpg: taken", "_one.jpg: skip side file", "DS_Store: skip side file",
        "Thumbs.db: skip side file", "desktop.ini: skip side file",
    ],
    "many_entries_2500.zip": "too many files in the archive: 2500, limit 2000",
    "names_shift_jis_no_flag.zip": ["\u5199\u771fAB.jpg: taken"],
    "nested.zip": ["ok.jpg: taken", "inner.zip: skip nested archive not opened"],
    "one_bad_in_six.zip": [
        "1.jpg: taken", "2.jpg: taken", "3.jpg: truncated image", "4.jpg: taken",
        "5.png: reject empty", "6.jpg: taken",
    ],
    "overlapping_40x.zip": "overlapping entries",
    "password.zip": "archive is password protected",
    "same_name_twice.zip": ["p.jpg: taken", "p (2).jpg: taken"],
    "symlink_entry.zip": ["ok.jpg: taken", "link.jpg: reject link in archive"],
    "tar_gz_named.zip": "not a ZIP archive",
    "truncated.zip": "damaged or incomplete archive",
    "unicode_nfc_nfd.zip": ["portr\xe9.jpg: taken", "portre\u0301 (2).jpg: taken"],
    "wrong_crc_first.zip": ["1.jpg: reject checksum error", "2.jpg: taken"],
    "zip_slip_backslash.zip": ["ok.jpg: taken", "evil.jpg: reject unsafe path"],
    "zip_slip_dotdot.zip": [
        "ok.jpg: taken", "evil.jpg: reject unsafe path", "evil2.jpg: reject unsafe path",
    ],
}  # fmt: skip


def outcomes(path: Path) -> Iterator[str]:
    for entry in open_archive(path).entries():
        if entry.outcome is not EntryOutcome.ACCEPT:
            assert entry.data is None
            yield f"{entry.name}: {entry.outcome} {entry.reason}"
            continue
        assert entry.data is not None
        try:
            open_picture(entry.data)
        except PictureRejected as error:
            yield f"{entry.name}: {error.reason}"
        else:
            yield f"{entry.name}: taken"


@pytest.mark.parametrize("row", rows("archives"), ids=by_file)
def test_an_archive_of_the_manifest_is_read_entry_by_entry_as_it_says(
    data_dir: Path, row: dict[str, str], table: list[str]
) -> None:
    path = data_dir / "hard-images" / row["file"]
    wanted = ARCHIVES[path.name]
    if isinstance(wanted, str):
        with pytest.raises(PictureRejected, match=wanted) as caught:
            list(outcomes(path))
        table.append(f"{row['action']:7} {row['file']:58} rejected: {caught.value.reason}")
        return
    found = list(outcomes(path))
    table.append(f"{row['action']:7} {row['file']:58} {'; '.join(found)}")
    assert len(found) == len(wanted), found
    for line, start in zip(found, wanted, strict=True):
        assert line.startswith(start), line


def test_hostile_file_names_are_opened_like_any_other(data_dir: Path, tmp_path: Path) -> None:
    with tarfile.open(data_dir / "hard-images" / "filenames" / "odd-names.tar") as tar:
        tar.extractall(tmp_path, filter="data")
    listed = {Path(r["file"]).name for r in rows("filenames") if not r["file"].endswith(".txt")}
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert {f.name for f in files} == listed
    for file in files:
        assert open_picture(file).width == 96
        cleaned = clean_name(file.name)
        assert not set(cleaned) & set("/\\<>|&;$`%\u202e\n\0")
        assert cleaned == cleaned.strip()


def test_names_of_a_multipart_upload_are_cleaned(data_dir: Path) -> None:
    path = data_dir / "hard-images" / "filenames" / "multipart-filename-strings.txt"
    for name in path.read_text(encoding="utf-8").split("\n"):
        cleaned = clean_name(name)
        assert cleaned not in ("", ".", "..")
        assert not cleaned.startswith((".", "~", "-", " "))
        assert not cleaned.lower().startswith(("con.", "nul.", "lpt1."))
        assert len(cleaned.encode()) <= 120
        assert not set(cleaned) & set("/\\<>|&;$`%\n\0")


URL_REASONS = (
    "private address", "private address", "private address", "link-local", "scheme file",
    "scheme gopher", "no scheme", "not a URL", "port", "private address",
)  # fmt: skip


def test_every_hostile_url_gets_its_own_named_reason(data_dir: Path) -> None:
    path = data_dir / "hard-images" / "filenames" / "url-strings.txt"
    urls = path.read_text(encoding="utf-8").splitlines()
    assert len(urls) == len(URL_REASONS)
    for url, reason in zip(urls, URL_REASONS, strict=True):
        with pytest.raises(LikenessError, match=reason):
            check_url(url)
