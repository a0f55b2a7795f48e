"""Takes keys and pictures out of texts before they reach a ledger, a log or a screen."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "[key]"
DATA = "[data]"
_CHARACTER = r"(?:[A-Za-z0-9+/_%-]|\\/)"
"""Of base64 (both alphabets), hexadecimal, percent-encoding, and JSON's escaped slash."""
_BREAK = r"(?:\\[rnt]|\s)+"
"""Between lines: real breaks, JSON's two characters, or the spaces that breaks were turned into."""
_ENCODED = re.compile(
    r"(?:data:[\w/+.-]+;base64,)?"
    # 60 at least: MIME breaks base64 after 76 characters, PEM after 64
    rf"(?:{_CHARACTER}{{60,}}(?:{_BREAK}{_CHARACTER}{{60,}})+(?:(?:\\[rn]|[\r\n])+{_CHARACTER}+)?"
    rf"|{_CHARACTER}{{80,}})={{0,2}}"
    # \x89PNG: bytes as programs print them
    r"|\\x[0-9A-Fa-f]{2}[^\\]{0,12}(?:\\(?:x[0-9A-Fa-f]{2}|[rnt'\"\\])[^\\]{0,12}){11,}"
)
_SHORTEST = 6
"""Characters below which a "key" would blank out ordinary words."""


def redact(text: str, secrets: Iterable[str]) -> str:
    """``without_keys``, and with every long run of encoded data replaced."""
    return _ENCODED.sub(DATA, without_keys(text, secrets))


def without_keys(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every secret (plain or encoded in one of the usual ways) replaced; also the
    beginning of a secret at the very end of ``text``, which may have been cut there."""
    for secret in secrets:
        if len(secret) < _SHORTEST:
            continue
        for form in sorted(set(_forms(secret)), key=len, reverse=True):
            text = text.replace(form, HIDDEN)
        text = _without_beginning_at_end(text, secret)
    return text


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield html.escape(secret)
    yield secret.encode().hex()
    yield from _base64_forms(secret.encode())


def _base64_forms(raw: bytes) -> Iterator[str]:
    """What of base64 text shows ``raw`` wherever in the encoded bytes it begins ("user:key" of
    Basic authentication): three shifts, without the characters that neighbours have a part in."""
    for shift, begins in ((0, 0), (1, 2), (2, 3)):
        ends = None if (shift + len(raw)) % 3 == 0 else -1
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            inner = encode(bytes(shift) + raw).decode().rstrip("=")[begins:ends]
            if len(inner) >= _SHORTEST:
                yield inner


def _without_beginning_at_end(text: str, secret: str) -> str:
    for length in range(len(secret) - 1, _SHORTEST - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + HIDDEN
    return text
