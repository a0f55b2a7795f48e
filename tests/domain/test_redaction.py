"""No key and no face in any text."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.redaction import DATA, HIDDEN, redact

KEY = "sk-proj-AbC/def+012=345&xyz"
FACE = random.Random(7).randbytes(2000)
KEYS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=&%", min_size=12, max_size=60)  # fmt: skip


@pytest.mark.parametrize(
    "shown",
    [
        KEY,
        quote(KEY, safe=""),
        quote_plus(KEY),
        urlencode({"key": KEY}),
        json.dumps({"key": KEY}),
        KEY.replace("&", "&amp;"),
        KEY.encode().hex(),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"me:{KEY}".encode()).decode(),
        base64.b64encode(f"api:{KEY}:x".encode()).decode(),
    ],
)
def test_a_key_is_hidden_in_every_usual_spelling(shown: str) -> None:
    told = redact(f"Incorrect API key provided: {shown}. See the docs.", [KEY])
    assert HIDDEN in told
    assert told.startswith("Incorrect API key provided: ")
    assert told.endswith("See the docs.")
    assert "AbC" not in told
    assert "def" not in told


@given(key=KEYS, before=st.text(max_size=30), after=st.text(max_size=30))
def test_no_key_survives_between_any_words(key: str, before: str, after: str) -> None:
    assert key not in redact(f"{before}{key}{after}", [key])


@given(key=KEYS, shift=st.binary(max_size=4), tail=st.binary(max_size=4))
def test_no_key_can_be_read_out_of_base64_wherever_it_begins(
    key: str, shift: bytes, tail: bytes
) -> None:
    shown = base64.b64encode(shift + key.encode() + tail).decode()
    left = redact(shown, [key]).replace(HIDDEN, "")
    # what is left of both ends: the neighbours, and at most two characters of the key's own
    assert len(left) <= 4 * ((len(shift) + len(tail)) // 3 + 3)


def test_the_beginning_of_a_key_at_a_cut_is_hidden() -> None:
    for length in range(6, len(KEY)):
        told = redact(f"wrong key {KEY[:length]}", [KEY])
        assert told == f"wrong key {HIDDEN}"
    assert redact("wrong key sk-", [KEY]) == "wrong key sk-"


def test_the_longest_of_overlapping_secrets_is_hidden_whole() -> None:
    assert "secret" not in redact("my-secret-key", ["my-secret-key", "secret"])


def test_a_word_as_short_as_a_word_is_no_key() -> None:
    assert redact("the face of the year", ["face", ""]) == "the face of the year"


@pytest.mark.parametrize(
    "encoded",
    [
        base64.b64encode(FACE).decode(),
        base64.urlsafe_b64encode(FACE).decode(),
        base64.encodebytes(FACE).decode(),
        base64.encodebytes(FACE).decode().replace("\n", "\r\n"),
        base64.encodebytes(FACE).decode().replace("\n", " "),
        json.dumps(base64.encodebytes(FACE).decode()),
        quote(base64.b64encode(FACE).decode(), safe=""),
        json.dumps(base64.b64encode(FACE).decode()).replace("/", "\\/"),
        f"data:image/png;base64,{base64.b64encode(FACE).decode()}",
        FACE.hex(),
        "\n".join(base64.b64encode(FACE).decode()[i : i + 64] for i in range(0, 2600, 64)),
    ],
    ids=["base64", "urlsafe", "mime", "crlf", "flattened", "json", "percent", "php", "uri", "hex", "pem"],
)  # fmt: skip
def test_a_face_is_hidden_in_every_usual_encoding(encoded: str) -> None:
    told = redact(f"could not decode: {encoded} (bad image)", [])
    assert told.startswith("could not decode: ")
    assert DATA in told
    assert told.endswith("(bad image)")
    assert len(told) < 120


def test_bytes_as_programs_print_them_are_hidden() -> None:
    told = redact(f"cannot identify image file {FACE[:400]!r}", [])
    assert told.startswith("cannot identify image file ")
    assert told.count("\\x") < 12


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 429: slow down, see https://example.com/docs/errors#rate",
        "model 5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa failed",
        "request req_0123456789abcdef0123456789abcdef",
        "2026-05-04T12:00:00Z [worker-17] CUDA out of memory. Tried to allocate 20.00 MiB",
        "a" * 79,
        "",
    ],
)
def test_ordinary_words_stay_as_they_are(text: str) -> None:
    assert redact(text, [KEY]) == text


@given(st.text(max_size=300))
def test_any_text_is_survived_and_redacting_again_changes_nothing(text: str) -> None:
    once = redact(text, [KEY])
    assert redact(once, [KEY]) == once
