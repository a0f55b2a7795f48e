"""Errors that name an item and a cause in one line, fit to be shown to a user as they are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LikenessError(Exception):
    """Base of every expected failure. ``str(error)`` is one clear line without a traceback."""


class PictureRejected(LikenessError):
    """The decode gate refuses a file.

    ``reason`` is a short sentence for people ("truncated image (210 of 592 rows)"), ``code`` a
    stable word for machines ("truncated").
    """

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class PlanError(LikenessError):
    """One or more mistakes in an audit plan, each with file, line and key."""


class ManifestError(LikenessError):
    """A portrait manifest that cannot be read as one (missing column, duplicate id, no rows)."""


class ModelMissing(LikenessError):
    """A model file is absent or its hash is wrong; the message says which command fetches it."""


class ExtraMissing(LikenessError):
    """An optional package is not installed; the message names the extra that brings it."""


class LedgerError(LikenessError):
    """The ledger of a run cannot be opened, or belongs to another plan."""


class StoreUnavailable(LedgerError):
    """The database or the store of pictures cannot be used at the moment (gone, locked, full, read
    only). Nothing was half written; the same step may be tried again later."""


class Conflict(LedgerError):
    """What was to be entered is there already, or lacks what it belongs to."""


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The tail of a message about a misspelt ``word``: "; did you mean 'noise'?" where one of
    ``known`` is near enough (difflib ratio of at least ``cutoff``), else ""."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else ""
