"""Cursors: opaque, tamper-evident, and stable while rows come in."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.paging import Cursors, cut
from service.api.problems import Problem

SECRET = b"s" * 32
POSITIONS = st.lists(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False)), max_size=4)


def refused(cursors: Cursors, text: str) -> bool:
    try:
        cursors.read(text)
    except Problem as problem:
        assert problem.status_code == 400
        assert problem.slug == "bad-cursor"
        return True
    return False


@given(POSITIONS)
def test_a_cursor_gives_back_the_position_it_was_made_of(position: list[str | int | float]) -> None:
    cursors = Cursors(SECRET, "runs")
    assert cursors.read(cursors.write(position)) == json.loads(json.dumps(position))


def test_no_cursor_is_the_beginning() -> None:
    assert Cursors(SECRET, "runs").read(None) is None


def test_a_cursor_fits_only_its_own_list_filter_and_service() -> None:
    made = Cursors(SECRET, "items", "r_1", "done").write((4,))
    assert refused(Cursors(SECRET, "items", "r_2", "done"), made)
    assert refused(Cursors(SECRET, "items", "r_1", None), made)
    assert refused(Cursors(SECRET, "runs", "r_1", "done"), made)
    assert refused(Cursors(b"t" * 32, "items", "r_1", "done"), made)


def test_any_changed_byte_is_noticed() -> None:
    cursors = Cursors(SECRET, "runs")
    whole = base64.urlsafe_b64decode(cursors.write(("2026-01-01", "r_1")) + "==")
    for place in range(len(whole)):
        altered = bytes(b ^ (1 if i == place else 0) for i, b in enumerate(whole))
        assert refused(cursors, base64.urlsafe_b64encode(altered).decode().rstrip("="))


@pytest.mark.parametrize("text", ["", "a", "!!!", "AAAA", "ä", "=" * 8, "A" * 3000, "é\x00"])
def test_what_was_never_a_cursor_is_refused(text: str) -> None:
    assert refused(Cursors(SECRET, "runs"), text)


def test_two_lists_of_the_same_words_are_told_apart() -> None:
    made = Cursors(SECRET, "a", "b,c").write((1,))
    assert refused(Cursors(SECRET, "a", "b", "c"), made)


def test_the_last_page_has_no_next() -> None:
    cursors = Cursors(SECRET, "runs")
    page, more = cut([1, 2, 3], 2, cursors, lambda n: (n,))
    assert page == [1, 2]
    assert cursors.read(more) == [2]
    assert cut([1, 2], 2, cursors, lambda n: (n,)) == ([1, 2], None)
    assert cut([], 2, cursors, lambda n: (n,)) == ([], None)
