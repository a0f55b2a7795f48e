"""Names of pictures as their senders gave them: kept for people to read, never used as a path."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote, urlsplit

LONGEST = 200
"""Characters of a name that are kept."""
NAMELESS = "picture"


def stored_name(text: str, longest: int = LONGEST) -> str:
    """``text`` as given, without control, format and unpaired characters (a right-to-left override
    would disguise an ending), on one line, at most ``longest`` characters; never empty."""
    kept = "".join(" " if c.isspace() else c for c in text if _readable(c))
    kept = re.sub(r" +", " ", kept).strip()
    if len(kept) > longest:
        stem, dot, ending = kept.rpartition(".")
        tail = f"{dot}{ending}" if dot and len(ending) <= 12 else ""
        kept = (stem if tail else kept)[: longest - len(tail)].rstrip() + tail
    return kept or NAMELESS


def _readable(c: str) -> bool:
    # a joiner makes several emoji into one; every other format character hides or turns text round
    return c == "\u200d" or c.isspace() or unicodedata.category(c)[0] != "C"


def name_in_url(url: str) -> str:
    """The last part of a URL's path. What stands behind "?" is left out: it may hold a signature."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return NAMELESS
    return stored_name(unquote(path.rstrip("/").rpartition("/")[2]))


class Names:
    """Tells apart names that a person, or a file system, would take for the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, text: str) -> str:
        """``stored_name(text)``, with " (2)" and so on before its ending where it is taken."""
        name = stored_name(text)
        stem, dot, ending = name.rpartition(".")
        if not dot or "/" in ending:
            stem, dot, ending = name, "", ""
        candidate, number = name, 1
        while same(candidate) in self._taken:
            number += 1
            candidate = f"{stem} ({number}){dot}{ending}"
        self._taken.add(same(candidate))
        return candidate


def same(name: str) -> str:
    """What two names have in common when they are the same to a person."""
    return unicodedata.normalize("NFC", name).casefold()
