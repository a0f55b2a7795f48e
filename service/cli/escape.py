"""Names from outside, made fit for a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """``text`` with control, bidirectional-override and unpaired surrogate characters written as
    escapes, so that a file name cannot move the cursor, colour the screen or reverse a line."""
    return "".join(
        c if c == " " or unicodedata.category(c)[0] not in "CZ" else _escape(c) for c in text
    )


def _escape(c: str) -> str:
    return c.encode("unicode_escape", "surrogatepass").decode("ascii")
