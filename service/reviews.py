"""Reviews made by people, as they come back in a CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from domain.errors import LikenessError, did_you_mean
from service.report.model import ItemRow, Review

COLUMNS = ("item_id", "reviewer", "decision", "reason")
DECISIONS = ("keep", "exclude")
KEPT_AS = "reviews.csv"
"""The run's own copy, from which a later ``--resume`` without ``--reviews`` goes on."""


def read_reviews(path: Path) -> tuple[list[Review], str]:
    """The decisions in ``path`` (UTF-8 CSV with ``COLUMNS``) and its text.

    Raises LikenessError, one line with file and line, for a wrong column, an empty cell, an unknown
    decision, an exclusion without a reason, and two decisions on one item that disagree.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LikenessError(f"{path}: no such file of reviews") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LikenessError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    _columns(path, [c.strip() for c in reader.fieldnames or []])
    reader.fieldnames = [c.strip() for c in reader.fieldnames or []]
    reviews: list[Review] = []
    first: dict[str, tuple[int, Review]] = {}
    for row in reader:
        line = reader.line_num
        review = _review(path, line, row)
        before = first.setdefault(review.item_id, (line, review))
        if before[1].keep is not review.keep:
            raise LikenessError(
                f"{path}: line {line}: {review.reviewer} says {_word(review)} on item "
                f"'{review.item_id}', {before[1].reviewer} in line {before[0]} says "
                f"{_word(before[1])}: settle it first"
            )
        reviews.append(review)
    return reviews, text


def _word(review: Review) -> str:
    return "keep" if review.keep else "exclude"


def _columns(path: Path, have: list[str]) -> None:
    for name in COLUMNS:
        if name not in have:
            hint = did_you_mean(name, have, 0.6)
            raise LikenessError(
                f"{path}: line 1: no column '{name}'{hint} (columns: {', '.join(have)})"
            )
    for name in have:
        if name not in COLUMNS:
            raise LikenessError(
                f"{path}: line 1: unknown column '{name}' (known: {', '.join(COLUMNS)})"
            )


def _review(path: Path, line: int, row: Mapping[str | None, object]) -> Review:
    if None in row:
        raise LikenessError(f"{path}: line {line}: more cells than columns")
    cells = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    for name in ("item_id", "reviewer", "decision"):
        if not cells[name]:
            raise LikenessError(f"{path}: line {line}: '{name}' is empty")
    decision = cells["decision"].lower()
    if decision not in DECISIONS:
        raise LikenessError(
            f"{path}: line {line}: decision '{cells['decision']}' is neither keep nor exclude"
        )
    if decision == "exclude" and not cells["reason"]:
        raise LikenessError(f"{path}: line {line}: an exclusion needs its reason")
    return Review(cells["item_id"], cells["reviewer"], decision == "keep", cells["reason"])


def check_reviews(path: Path, reviews: Iterable[Review], items: Iterable[ItemRow]) -> None:
    """Raise LikenessError for a review of an item that the run does not have, or of a control."""
    known = {i.item_id: i for i in items}
    for review in reviews:
        item = known.get(review.item_id)
        if item is None:
            hint = did_you_mean(review.item_id, known, 0.8)
            raise LikenessError(f"{path}: this run has no item '{review.item_id}'{hint}")
        if item.control:
            raise LikenessError(
                f"{path}: item '{review.item_id}' is one of the instrument's controls, "
                "which no review can take out"
            )
