"""A multipart upload is read in bounded memory, in whatever pieces it comes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.intake.parts import BrokenUpload, Part, PartLimits, PartReader

LIMITS = PartLimits(file_bytes=1000, field_bytes=100, parts=10, total_bytes=10_000)
TYPE = 'multipart/form-data; boundary="x-y"'


def body(*parts: tuple[str, bytes], end: bool = True) -> bytes:
    whole = b"".join(
        b"--x-y\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + data + b"\r\n"
        for head, data in parts
    )
    return whole + (b"--x-y--\r\n" if end else b"")


def read(data: bytes, folder: Path, pieces: Sequence[int] = (), **limits: int) -> list[Part]:
    kept = PartLimits(**{f: limits.get(f, getattr(LIMITS, f)) for f in PartLimits.__slots__})
    reader = PartReader(TYPE, folder, kept, ["files"])
    found = []
    try:
        start = 0
        for stop in [*sorted(p % (len(data) + 1) for p in pieces), len(data)]:
            found += reader.feed(data[start:stop])
            start = stop
        reader.finish()
    finally:
        reader.close()
    return found


def test_files_go_to_disk_under_numbers_and_fields_stay_in_memory(tmp_path: Path) -> None:
    data = body(
        ('name="files"; filename="../../etc/x.png"', b"\x00\r\n--x-"), ('name="name"', b"Hi")
    )
    file, name = read(data, tmp_path)
    assert (file.filename, file.size) == ("../../etc/x.png", 7)
    assert file.path is not None and file.path.parent == tmp_path
    assert file.path.name == "part-000001"
    assert file.path.read_bytes() == b"\x00\r\n--x-"
    assert (name.field, name.data, name.path) == ("name", b"Hi", None)


@given(st.lists(st.integers(0, 10**6), max_size=12))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_where_the_pieces_are_cut_changes_nothing(tmp_path: Path, pieces: list[int]) -> None:
    data = body(('name="files"; filename="a"', bytes(range(256))), ('name="name"', b"\r\n--x"))
    file, name = read(data, tmp_path, pieces)
    assert file.path is not None and file.path.read_bytes() == bytes(range(256))
    assert name.data == b"\r\n--x"


@pytest.mark.parametrize(
    ("head", "filename"),
    [
        ('name="files"; filename="r\xe9\u4e2d.jpg"', "r\xe9\u4e2d.jpg"),
        ('name="files"; filename="a \\"b\\".jpg"', 'a "b".jpg'),
        ('name="files"; filename="a.jpg"; filename*=UTF-8\'\'evil.exe', "a.jpg"),
        ('name="files"; filename="C:\\fakepath\\a.jpg"', "a.jpg"),
        ('name="files"; filename=""', ""),
        ('name="files"', None),
    ],
)
def test_names_are_read_as_browsers_and_curl_send_them(
    tmp_path: Path, head: str, filename: str | None
) -> None:
    assert read(body((head, b"x")), tmp_path)[0].filename == filename


def test_a_name_that_is_no_utf8_is_data_all_the_same(tmp_path: Path) -> None:
    data = body(('name="files"; filename="x"', b"d")).replace(
        b'filename="x"', b'filename="\xff\xfe"'
    )
    assert read(data, tmp_path)[0].filename == "\ufffd\ufffd"


def test_a_file_over_the_limit_is_counted_but_not_kept(tmp_path: Path) -> None:
    data = body(('name="files"; filename="a"', b"x" * 1001), ('name="files"; filename="b"', b"y"))
    large, small = read(data, tmp_path)
    assert (large.path, large.size) == (None, 1001)
    assert [p.name for p in tmp_path.iterdir()] == [small.path.name if small.path else ""]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"total_bytes": 50}, "upload too large"),
        ({"parts": 1}, "more than 1 parts"),
        ({"field_bytes": 1}, "over 1 bytes"),
    ],
)
def test_a_limit_of_the_whole_ends_it(tmp_path: Path, limits: dict[str, int], reason: str) -> None:
    data = body(('name="files"; filename="a"', b"x"), ('name="name"', b"long"))
    with pytest.raises(BrokenUpload, match=reason) as caught:
        read(data, tmp_path, **limits)
    assert caught.value.too_large


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"--x-y\r\n",
        body(('name="files"; filename="a"', b"x"), end=False),
        body(('nothing="a"', b"x")),
        b"--x-y\r\n\r\nno headers\r\n--x-y--\r\n",
        b"--x-y\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--x-y--\r\n",
        b"--x-y\r\n" + b"A: b\r\n" * 50 + b"\r\nx\r\n--x-y--\r\n",
        b"--x-y\r\nA: " + b"b" * 40_000 + b"\r\n\r\nx\r\n--x-y--\r\n",
    ],
)
def test_a_damaged_upload_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BrokenUpload) as caught:
        read(data, tmp_path, total_bytes=100_000)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "multipart/form-data; boundary=" + "x" * 300]
)
def test_an_upload_without_a_usable_boundary_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BrokenUpload, match="boundary"):
        PartReader(kind, tmp_path, LIMITS, ["files"])


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_noise_never_raises_anything_else(tmp_path: Path, noise: bytes) -> None:
    with pytest.raises(BrokenUpload):
        read(b"--x-y\r\n" + noise, tmp_path)


def test_what_a_usual_client_sends_is_read(tmp_path: Path) -> None:
    request = httpx.Request(
        "POST", "http://x/", files=[("files", ("a.png", b"1")), ("files", ("b.png", b"2"))],
        data={"name": "N"},
    )  # fmt: skip
    reader = PartReader(request.headers["content-type"], tmp_path, LIMITS, ["files"])
    parts = reader.feed(request.read())
    reader.finish()
    assert sorted((p.field, p.filename) for p in parts) == [
        ("files", "a.png"), ("files", "b.png"), ("name", None),
    ]  # fmt: skip
