"""Ratings of templates by people: does the sentence itself praise or blame?"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import LikenessError

NEUTRAL = (2.8, 3.2)
"""Mean ratings (1 blame, 3 neither, 5 praise) within which a template is neutral, as published."""
RATERS = 15
"""Raters a template had in the published procedure; with fewer the mean is flagged."""
COLUMNS = ("template", "rater", "rating")


@dataclass(frozen=True, slots=True)
class Neutrality:
    """One template's ratings. ``mean`` is None when nobody rated it. ``flags`` say why it is not
    certain to be neutral; empty for one that is."""

    template: str
    mean: float | None
    raters: int
    flags: tuple[str, ...]


def neutrality(path: Path, templates: Sequence[str]) -> tuple[Neutrality, ...]:
    """Ratings from a CSV file with columns template, rater, rating (1 to 5), for each of ``templates``.

    LikenessError names file, line and cause: a column that is missing, a rating that is none, a rater
    who rated a template twice, a template that is not there.
    """
    ratings = _read(path, set(templates))
    return tuple(
        _judged(t, [v for (name, _), v in ratings.items() if name == t]) for t in templates
    )


def _read(path: Path, known: set[str]) -> dict[tuple[str, str], float]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LikenessError(f"{path.name}: cannot be read ({type(error).__name__})") from None
    rows = csv.DictReader(io.StringIO(text))
    missing = [c for c in COLUMNS if c not in (rows.fieldnames or ())]
    if missing:
        raise LikenessError(f"{path.name}: column {', '.join(missing)} is missing")
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        where = f"{path.name}, line {rows.line_num}"
        template, rater, given = ((row[c] or "").strip() for c in COLUMNS)
        if template not in known:
            raise LikenessError(f"{where}: there is no template '{template}'")
        try:
            rating = float(given)
        except ValueError:
            raise LikenessError(f"{where}: rating '{given}' is no number") from None
        if not 1 <= rating <= 5:
            raise LikenessError(f"{where}: rating {given} is not from 1 to 5")
        if not rater or (template, rater) in found:
            cause = f"rater '{rater}' rated '{template}' twice" if rater else "no rater"
            raise LikenessError(f"{where}: {cause}")
        found[template, rater] = rating
    return found


def _judged(template: str, ratings: Sequence[float]) -> Neutrality:
    if not ratings:
        return Neutrality(template, None, 0, ("nobody rated it",))
    mean = sum(ratings) / len(ratings)
    flags = []
    if len(ratings) < RATERS:
        flags.append(f"{len(ratings)} raters, fewer than {RATERS}")
    low, high = NEUTRAL
    if not low - 1e-9 <= mean <= high + 1e-9:
        flags.append(f"mean {mean:.2f} outside {low:g} to {high:g}: the sentence itself leans")
    return Neutrality(template, mean, len(ratings), tuple(flags))
