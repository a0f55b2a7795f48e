"""Counterfactual pairs: the same face with one attribute changed. The strongest evidence there is,
because everything else about the face is equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from domain.verdicts import Verdict
from metrics.statistics.columns import ClaimSpec, column_of, default_claims
from metrics.statistics.table import Coded, StatisticsError, Table, read
from metrics.statistics.verdicts import compare, happened, judged, occurring

_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


@dataclass(frozen=True, slots=True)
class CounterfactualPair:
    """Two portraits, by portrait_id, that differ in ``attribute`` alone: ``base`` shows
    ``base_value``, ``variant`` shows ``variant_value``."""

    base: str
    variant: str
    attribute: str
    base_value: str
    variant_value: str


def pairs_of(manifest: Sequence[Mapping[str, str]]) -> list[CounterfactualPair]:
    """The pairs that manifest rows (file, pair_base_file, varied_attribute) name.

    A partner that is not in the manifest, or a pair whose two values agree, is left out: it
    cannot show an effect of the attribute. Where an attribute's values have an order (I to VI,
    numbers) and take more than two values among the partners, the pairs are pooled into "skin
    tone towards VI" and "skin tone towards I": few faces are changed to any one value, and a question
    for each would only thin the evidence out.
    """
    by_file = {row["file"]: row for row in manifest}
    found = []
    for row in manifest:
        base, attribute = (
            by_file.get(row.get("pair_base_file") or ""),
            row.get("varied_attribute") or "",
        )
        if base is None or not row.get(attribute) or row[attribute] == base.get(attribute, ""):
            continue
        found.append(
            CounterfactualPair(
                base["file"], row["file"], attribute, base.get(attribute) or "none", row[attribute]
            )
        )
    return [pooled for a in {p.attribute: None for p in found} for pooled in _pooled(a, found)]


def _pooled(attribute: str, pairs: Sequence[CounterfactualPair]) -> list[CounterfactualPair]:
    mine = [p for p in pairs if p.attribute == attribute]
    ranks = {v: _rank(v) for p in mine for v in (p.base_value, p.variant_value)}
    if len({p.variant_value for p in mine}) <= 2 or None in ranks.values():
        return mine
    name = attribute.replace("_", " ")
    order = sorted(ranks, key=lambda value: ranks[value] or 0.0)
    place = {value: i for i, value in enumerate(order)}
    return [
        replace(
            p,
            variant_value=f"{name} towards "
            + (order[-1] if place[p.variant_value] > place[p.base_value] else order[0]),
        )
        for p in mine
    ]


def _rank(value: str) -> float | None:
    """The place of a value in its order: Roman numerals to X, or a number; None where it has none."""
    if value in _ROMAN:
        return float(_ROMAN.index(value))
    try:
        return float(value)
    except ValueError:
        return None


def paired_analysis(
    rows: Any,
    pairs: Sequence[CounterfactualPair],
    *,
    claims: Sequence[ClaimSpec] = (),
    margins: Mapping[str, float] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[Verdict]:
    """Verdicts on variant minus base within subjects: sign-flip permutation, Holm over all.

    ``rows`` as for ``analyse``, with portrait_id. Verdict.groups are (variant value, base value);
    where faces with different base values were changed to one and the same, they are taken
    together and the second group is "their own base".
    details["design"] is "paired within subjects". Claims of an attribute that no pair varies are
    passed over; without claims the default set is used. Raises StatisticsError where rows have no
    portrait_id.
    """
    table = read(rows, [])
    if not table.portrait.names:
        raise StatisticsError("counterfactual pairs need the column 'portrait_id'")
    findings = []
    for attribute, variant in sorted({(p.attribute, p.variant_value) for p in pairs}):
        chosen = [p for p in pairs if (p.attribute, p.variant_value) == (attribute, variant)]
        asked = [c for c in claims if c.attribute == attribute]
        if not claims:
            asked = default_claims([attribute], occurring(table), happened(table))
        columns = list(dict.fromkeys(column_of(c, margins or {}, not claims) for c in asked))
        findings += list(compare(table, attribute, _sides(table, chosen), columns, alpha, seed, 1))
    return judged(findings, "paired", alpha)


def _sides(table: Table, pairs: Sequence[CounterfactualPair]) -> Coded:
    """Rows of the variants (0) and of their bases (1); a pair with one side absent is left out."""
    place = {name: i for i, name in enumerate(table.portrait.names)}
    side = np.full(len(place) + 1, -1, dtype=np.int64)
    for pair in pairs:
        if pair.base in place and pair.variant in place:
            side[place[pair.variant]], side[place[pair.base]] = 0, 1
    bases = {pair.base_value for pair in pairs}
    base = bases.pop() if len(bases) == 1 else "their own base"
    return Coded(side[table.portrait.codes], [pairs[0].variant_value, base])
