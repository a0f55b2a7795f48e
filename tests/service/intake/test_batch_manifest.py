"""Rows of a manifest go to the pictures they name, to no other."""

from __future__ import annotations

import pytest

from domain.errors import ManifestError
from service.intake.manifest import Sent, match, read_rows


def sent(*names: str) -> list[Sent]:
    return [Sent(i, n, f"kept {n}") for i, n in enumerate(names, 1)]


def rows(*names: str) -> list[dict[str, str]]:
    return [{"file": n, "gender": f"of {n}"} for n in names]


def test_a_row_goes_to_the_picture_of_its_name() -> None:
    found = match(rows("b.jpg", "a.jpg"), sent("a.jpg", "b.jpg"))
    assert {seq: row["gender"] for seq, row in found.attributes.items()} == {
        1: "of a.jpg",
        2: "of b.jpg",
    }
    assert (found.faults, found.without_row) == ([], 0)


@pytest.mark.parametrize(
    ("row", "picture"),
    [
        ("images/a.jpg", "a.jpg"),
        ("a.jpg", "images/a.jpg"),
        ("images\\a.jpg", "images/a.jpg"),
        ("./a.jpg", "a.jpg"),
        ("A.JPG", "a.jpg"),
        ("e\u0301.jpg", "\xe9.jpg"),
    ],
)
def test_folders_letters_and_forms_of_unicode_do_not_keep_them_apart(
    row: str, picture: str
) -> None:
    assert list(match(rows(row), sent(picture)).attributes) == [1]


def test_the_whole_path_decides_before_its_last_part() -> None:
    found = match(rows("f/a.jpg", "m/a.jpg"), sent("m/a.jpg", "f/a.jpg"))
    assert found.attributes[1]["gender"] == "of m/a.jpg"
    assert found.attributes[2]["gender"] == "of f/a.jpg"


def test_a_row_that_could_mean_two_pictures_goes_to_neither() -> None:
    found = match(rows("a.jpg"), sent("f/a.jpg", "m/a.jpg"))
    assert found.attributes == {}
    assert found.faults == [
        ("a.jpg", "ambiguous_row", "a row of the manifest fits 2 pictures of one name")
    ]
    assert found.without_row == 2


def test_two_rows_that_could_mean_one_picture_go_nowhere() -> None:
    found = match(rows("f/a.jpg", "m/a.jpg"), sent("a.jpg"))
    assert found.attributes == {}
    assert [code for _, code, _ in found.faults] == ["no_picture", "no_picture"]


def test_a_row_without_a_picture_and_a_picture_without_a_row_are_both_told() -> None:
    found = match(rows("a.jpg", "lost.jpg"), sent("a.jpg", "extra.jpg"))
    assert [(name, code) for name, code, _ in found.faults] == [("lost.jpg", "no_picture")]
    assert found.without_row == 1


def test_the_base_of_a_pair_is_named_as_the_batch_names_it() -> None:
    table = [
        {"file": "images/base.jpg"},
        {"file": "images/edit.jpg", "pair_base_file": "images/base.jpg"},
    ]
    found = match(table, sent("base.jpg", "edit.jpg"))
    assert found.attributes[2]["pair_base_file"] == "kept base.jpg"


def test_a_manifest_with_a_byte_order_mark_and_empty_values_is_read() -> None:
    data = "\ufefffile,gender,age\na.jpg, x ,\n\n".encode()
    assert read_rows(data, 10) == [{"file": "a.jpg", "gender": "x"}]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "column 'file' is missing"),
        (b"name,gender\nx,y\n", "column 'file' is missing"),
        (b"File,gender\nx,y\n", "did you mean"),
        (b"file\n", "has no rows"),
        (b"file,file\na,b\n", "stands twice"),
        (b"file,\na,b\n", "name is empty"),
        (b"file,gender\n,x\n", "'file' is empty"),
        (b"file\na.jpg\n./A.JPG\n", r"line 3: './A.JPG' stands twice \(first in line 2\)"),
        (b"file\na,b\n", "more values than columns"),
        (b"file\n" + b"x" * 600 + b"\n", "longer than 500"),
        (b"file\n\xff\xfe\n", "not UTF-8"),
        (b"file\na\0b\n", "null characters"),
        (b'file\n"a\n', "line"),
        (b"file\n" + b"".join(b"%d.jpg\n" % i for i in range(11)), "more than 10 rows"),
        (b"file," + b",".join(b"c%d" % i for i in range(200)) + b"\nx\n", "201 columns"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused_by_name(data: bytes, reason: str) -> None:
    with pytest.raises(ManifestError, match=reason):
        read_rows(data, 10)
