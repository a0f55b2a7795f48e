"""Stratified, seeded samples of a manifest: people first, what is short said, nothing guessed.

Cells are all combinations of the values that occur in the strata. With ``equal`` allocation each
cell is to hold the same number, the remainder going to cells in a seeded order; with
``proportional`` seats go by Sainte-Lague to the cells' people, the one rule under which a larger
sample always contains a smaller one. What a short cell lacks is not taken from another: the sample
is then smaller, balanced, and says by how much.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from domain.errors import ManifestError
from metrics.statistics.groups import with_age_bands
from metrics.statistics.table import Coded
from service.report.model import is_adversarial

UNKNOWN = "unknown"
EQUAL, PROPORTIONAL = "equal", "proportional"
ALLOCATIONS = (EQUAL, PROPORTIONAL)
AGE_GROUP = "age_group"
MOST_CELLS = 10_000
RAW_AGES = 10
"""``age`` with more distinct numbers than this is banded, as the statistics band it."""
_OLDEST = 130

Cell = tuple[str, ...]
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CellReport:
    """One cell. ``people`` distinct persons are there, ``wanted`` pictures were asked of it,
    ``sampled`` taken, of which ``repeats`` show a person a second time; ``short`` are lacking."""

    cell: Cell
    people: int
    wanted: int
    sampled: int
    repeats: int

    @property
    def short(self) -> int:
        """Pictures that the cell should have given and has not."""
        return self.wanted - self.sampled


@dataclass(frozen=True, slots=True)
class Sample:
    """``rows`` are indices into the manifest's rows, ascending: sampled portraits, their partners
    where asked for, and the adversarial set. The other fields say what was and was not taken."""

    rows: tuple[int, ...]
    cells: tuple[CellReport, ...]
    main: int
    partners: int
    partners_left: int
    adversarial: int
    adversarial_left: int
    adversarial_short: int
    unknown: Mapping[Cell, int]
    """Portraits by cell with a value that is not declared, which were not sampled."""


def draw_sample(
    rows: Sequence[Row],
    strata: Sequence[str],
    n: int,
    *,
    seed: int = 0,
    allocation: str = EQUAL,
    with_unknown: bool = False,
    partners: bool = False,
    adversarial: int = 0,
) -> Sample:
    """Draw ``n`` portraits. ``rows`` are the manifest's, with all of its columns.

    The order of the rows has no influence. For one seed a larger ``n`` contains a smaller one.
    Counterfactual partners are never drawn; with ``partners`` they come with their base, beyond
    ``n``. Raises ManifestError when the strata make too many cells.
    """
    apart = [i for i, r in enumerate(rows) if is_adversarial(r)]
    bound = [i for i, r in enumerate(rows) if _base(r) and not is_adversarial(r)]
    taken_apart = set(apart) | set(bound)
    free = [i for i in range(len(rows)) if i not in taken_apart]
    values = [strata_values(rows, name) for name in strata]
    cell_of = {i: tuple(column[i] for column in values) for i in free}
    unknown: dict[Cell, int] = {}
    if not with_unknown:
        for i in [i for i in free if UNKNOWN in cell_of[i]]:
            unknown[cell_of[i]] = unknown.get(cell_of[i], 0) + 1
            del cell_of[i]
    cells = _cells(list(cell_of.values()), strata)
    order = _Order(rows, seed)
    queues, people = _queues(rows, cell_of, cells, order)
    wanted = _seats(cells, people, n, allocation, order)
    reports, drawn = [], []
    for cell in cells:
        queue, persons = queues[cell]
        chosen = queue[: wanted[cell]]
        drawn += chosen
        reports.append(
            CellReport(cell, people[cell], wanted[cell], len(chosen), max(0, len(chosen) - persons))
        )
    boundary = _people_first(rows, [i for i in apart if not _base(rows[i])], order)[:adversarial]
    with_base = _partners(rows, [*drawn, *boundary])
    return Sample(
        rows=tuple(sorted([*drawn, *boundary, *(with_base if partners else [])])),
        cells=tuple(reports),
        main=len(drawn),
        partners=len(with_base) if partners else 0,
        partners_left=0 if partners else len(with_base),
        adversarial=len(boundary),
        adversarial_left=len(apart) - len(boundary),
        adversarial_short=adversarial - len(boundary),
        unknown=unknown,
    )


def _base(row: Row) -> str:
    return (row.get("pair_base_file") or "").strip()


def _partners(rows: Sequence[Row], drawn: Sequence[int]) -> list[int]:
    bases = {rows[i]["file"].strip() for i in drawn}
    return [i for i, r in enumerate(rows) if _base(r) in bases]


# Strata --------------------------------------------------------------------------------------


def strata_values(rows: Sequence[Row], name: str) -> list[str]:
    """The stratum of each row: as declared, an empty cell UNKNOWN.

    Ages in years become bands where the manifest has no column ``age_group`` (asked for all the
    same, it is made of ``age``) or where ``age`` has more than RAW_AGES numbers. The bands are those
    of the statistics: under 18, 18-29, 30-44, 45-59, 60 and over.
    """
    derived = name == AGE_GROUP and not any(AGE_GROUP in r for r in rows)
    column = [(r.get("age" if derived else name) or "").strip() or UNKNOWN for r in rows]
    years = {v: _years(v) for v in set(column)}
    numbers = sum(y is not None for y in years.values())
    if not derived and (name != "age" or numbers <= RAW_AGES):
        return column
    return [v if (y := years[v]) is None else _band(y) for v in column]


def _years(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _band(years: float) -> str:
    return BANDS[int(years)] if 0 <= years <= _OLDEST else UNKNOWN


def _bands() -> list[str]:
    """The band of every age in whole years, asked of the statistics so that the two agree."""
    ages = [str(y) for y in range(_OLDEST + 1)]
    banded = with_age_bands("age", Coded(np.arange(len(ages)), ages))
    return [banded.names[code] for code in banded.codes]


BANDS = _bands()


def _cells(found: Sequence[Cell], strata: Sequence[str]) -> list[Cell]:
    levels = [sorted({cell[k] for cell in found}) for k in range(len(strata))]
    count = math.prod(len(level) for level in levels)
    if count > MOST_CELLS:
        sizes = ", ".join(f"{s} {len(v)}" for s, v in zip(strata, levels, strict=True))
        raise ManifestError(
            f"the strata make {count:,} cells (values: {sizes}); at most {MOST_CELLS:,}: use bands"
        )
    there = set(found)
    # A value nobody declared crossed with others is a cell only where somebody stands in it
    return (
        [c for c in itertools.product(*levels) if c in there or UNKNOWN not in c] if found else []
    )


# Order and allocation ------------------------------------------------------------------------


class _Order:
    """A seeded order of anything with a name; the same for every order of the manifest's rows."""

    def __init__(self, rows: Sequence[Row], seed: int) -> None:
        self._seed = seed
        self._rows = [self.of("row", r["file"].strip()) for r in rows]

    def of(self, *names: str) -> bytes:
        return hashlib.sha256("\0".join((str(self._seed), *names)).encode()).digest()

    def row(self, index: int) -> bytes:
        return self._rows[index]


def _queues(
    rows: Sequence[Row], cell_of: Mapping[int, Cell], cells: Sequence[Cell], order: _Order
) -> tuple[dict[Cell, tuple[list[int], int]], dict[Cell, int]]:
    """For each cell its portraits in the order in which they are drawn with the number of them that
    show a new person, and its distinct people.

    Someone with portraits in several cells is drawn first in the one with the fewest people.
    """
    members: dict[Cell, list[int]] = {cell: [] for cell in cells}
    of_person: dict[str, list[int]] = {}
    for i, cell in cell_of.items():
        members[cell].append(i)
        of_person.setdefault(rows[i]["subject_id"].strip(), []).append(i)
    people = {c: len({rows[i]["subject_id"].strip() for i in m}) for c, m in members.items()}

    def home(i: int) -> tuple[int, bytes]:
        return people[cell_of[i]], order.row(i)

    first = {min(mine, key=home) for mine in of_person.values()}
    queues = {}
    for cell, mine in members.items():
        fresh = sorted((i for i in mine if i in first), key=order.row)
        again = _people_first(rows, [i for i in mine if i not in first], order)
        queues[cell] = ([*fresh, *again], len(fresh))
    return queues, people


def _people_first(rows: Sequence[Row], indices: Sequence[int], order: _Order) -> list[int]:
    """Every person once, then every person a second time, and so on."""
    seen: dict[str, int] = {}
    turn = {}
    for i in sorted(indices, key=order.row):
        person = rows[i]["subject_id"].strip()
        turn[i] = seen[person] = seen.get(person, -1) + 1
    return sorted(indices, key=lambda i: (turn[i], order.row(i)))


def _seats(
    cells: Sequence[Cell], people: Mapping[Cell, int], n: int, allocation: str, order: _Order
) -> dict[Cell, int]:
    """How many of ``n`` each cell is to give."""

    def rank(cell: Cell) -> bytes:
        return order.of("cell", *cell)

    if allocation == PROPORTIONAL:
        return _sainte_lague(cells, people, n, rank)
    ranked = sorted(cells, key=rank)
    return {c: n // len(cells) + (k < n % len(cells)) for k, c in enumerate(ranked)}


def _sainte_lague(
    cells: Sequence[Cell], people: Mapping[Cell, int], n: int, rank: Callable[[Cell], bytes]
) -> dict[Cell, int]:
    seats = dict.fromkeys(cells, 0)
    heap = [(-float(people[c]), rank(c), c) for c in cells if people[c]]
    heapq.heapify(heap)
    for _ in range(n if heap else 0):
        _, place, cell = heap[0]
        seats[cell] += 1
        heapq.heapreplace(heap, (-people[cell] / (2 * seats[cell] + 1), place, cell))
    return seats
