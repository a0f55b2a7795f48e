"""Takes keys and pictures out of texts before they reach a ledger, a log or a screen."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

HIDDEN = "[key]"
DATA = "[data]"
_ENCODED = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{80,}={0,2}")
_SHORTEST = 6
"""Characters below which a "key" would blank out ordinary words."""


def redact(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every secret (plain, URL-encoded or in base64) and every long run of encoded
    data replaced."""
    for secret in secrets:
        if len(secret) < _SHORTEST:
            continue
        for form in _forms(secret):
            text = text.replace(form, HIDDEN)
    return _ENCODED.sub(DATA, text)


def _forms(secret: str) -> list[str]:
    raw = secret.encode()
    forms = {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
    return sorted(forms, key=len, reverse=True)
