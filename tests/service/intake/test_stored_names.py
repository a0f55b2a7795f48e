"""Names are kept as given, as far as that is safe to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.intake.names import LONGEST, NAMELESS, Names, name_in_url, same, stored_name


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("r\xe9sum\xe9.jpg", "r\xe9sum\xe9.jpg"),
        ('=HYPERLINK("x").jpg', '=HYPERLINK("x").jpg'),
        ("<script>.png", "<script>.png"),
        ("folder/sub/a.png", "folder/sub/a.png"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("a\0b\r\nc.png", "ab c.png"),
        ("tab\there.png", "tab here.png"),
        ("half\ud800.png", "half.png"),
        ("\U0001f468\u200d\U0001f469.png", "\U0001f468\u200d\U0001f469.png"),
        ("   ", NAMELESS),
        ("", NAMELESS),
    ],
)
def test_a_name_is_kept_as_given_without_what_hides_or_turns_text(
    given_name: str, kept: str
) -> None:
    assert stored_name(given_name) == kept


def test_a_long_name_keeps_its_ending() -> None:
    assert stored_name("x" * 500 + ".jpeg") == "x" * (LONGEST - 5) + ".jpeg"


@given(st.text(max_size=600))
def test_whatever_comes_is_one_short_line_and_stays_so(text: str) -> None:
    kept = stored_name(text)
    assert 0 < len(kept) <= LONGEST
    assert kept.splitlines() == [kept]
    assert stored_name(kept) == kept
    kept.encode()


def test_names_that_a_person_takes_for_the_same_are_told_apart() -> None:
    names = Names()
    given_names = ["a.jpg", "A.JPG", "e\u0301.png", "\xe9.png", "a.jpg", "noending", "noending"]
    kept = [names.unique(n) for n in given_names]
    assert kept == [
        "a.jpg", "A (2).JPG", "e\u0301.png", "\xe9 (2).png", "a (3).jpg", "noending", "noending (2)",
    ]  # fmt: skip
    assert len({same(k) for k in kept}) == len(kept)


def test_the_name_in_a_url_is_the_end_of_its_path_without_any_signature() -> None:
    assert name_in_url("https://x.example/a/b%20c.jpg?X-Amz-Signature=secret#f") == "b c.jpg"
    assert name_in_url("https://x.example/%2e%2e%2fetc.png") == "../etc.png"
    assert name_in_url("https://x.example/") == NAMELESS
    assert name_in_url("http://[::1") == NAMELESS
