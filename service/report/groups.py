"""Which group a row belongs to, and in which order groups are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.report.model import InstrumentRow, ItemRow, RunData
from service.report.wording import UNKNOWN, words

MAX_GROUPS = 16
"""An attribute with more values than this (a name, a file) is no grouping."""
NO_GROUPS = frozenset(
    ("file", "pair_id", "source", "dataset", "licence", "license", "width", "height")
)
"""Columns about the file, not about the person."""
MIN_PEOPLE = 5
"""Below this many people a group's figure is shown with a warning and no ratio is made of it."""
SMALL_SHARE = 0.02
"""Groups below this share of the people are left out of impact ratios (New York Local Law 144)."""
MEASURED_ITA = "measured_ita_group"

_ROMAN = {
    "I": 1,
    "II": 2,
    "III": 3,
    "IV": 4,
    "V": 5,
    "VI": 6,
    "VII": 7,
    "VIII": 8,
    "IX": 9,
    "X": 10,
}
_ITA_ORDER = ("very light", "light", "intermediate", "tan", "brown", "dark")
_SPLIT = re.compile(r"\s*(?:\*|×|&|\+| x )\s*")


def attribute_label(name: str) -> str:
    """Words for an attribute: "skin tone", "measured ITA group", "gender × age group"."""
    if name == MEASURED_ITA:
        return "measured ITA group"
    return " × ".join(words(p) for p in _SPLIT.split(name))


def group_of(attributes: Mapping[str, str], name: str) -> str:
    """The group of a row; several attributes joined by ×, "unknown" where a part is not declared."""
    if attributes.get(name):
        return str(attributes[name])
    parts = _SPLIT.split(name)
    if len(parts) < 2:
        return UNKNOWN
    values = [str(attributes.get(p) or UNKNOWN) for p in parts]
    return UNKNOWN if all(v == UNKNOWN for v in values) else " × ".join(values)


def order_key(value: str) -> tuple[int, float, str]:
    """Sort key: ages by number, skin tones by Roman numeral, words by letter, "unknown" last."""
    if value == UNKNOWN:
        return (9, 0.0, "")
    low = value.strip().lower()
    if low in _ITA_ORDER:
        return (1, float(_ITA_ORDER.index(low)), low)
    last = value.rsplit(maxsplit=1)[-1] if value.split() else ""
    if last in _ROMAN:
        return (1, float(_ROMAN[last]), low)
    number = re.match(r"\D{0,2}(\d+(?:\.\d+)?)", value)
    if number:
        return (2, float(number.group(1)), low)
    return (3, 0.0, low)


def ordered(values: Iterable[str]) -> list[str]:
    """Each value once, in the order groups are read."""
    return sorted(set(values), key=order_key)


def ordinal(values: Sequence[str]) -> bool:
    """Whether the groups lie on a scale (ages, skin tones), so that colours may run along it."""
    known = [v for v in values if v != UNKNOWN]
    return bool(known) and all(order_key(v)[0] < 3 for v in known)


@dataclass(frozen=True)
class Grouping:
    """Every attribute a reader may group by: the plan's first, then the other declared ones."""

    planned: tuple[str, ...]
    names: tuple[str, ...]
    by_portrait: Mapping[str, Mapping[str, str]]

    def of(self, item: ItemRow | InstrumentRow, name: str) -> str:
        """The group of an item or of an original."""
        return group_of(self.by_portrait.get(item.portrait_id, item.attributes), name)


def grouping(data: RunData) -> Grouping:
    """Collect attributes from items and originals; the measured ITA group comes from the originals."""
    merged: dict[str, dict[str, str]] = {}
    rows: tuple[ItemRow | InstrumentRow, ...] = (*data.items, *data.instrument)
    for row in rows:
        known = {k: str(v) for k, v in row.attributes.items() if str(v).strip()}
        merged.setdefault(row.portrait_id, {}).update(known)
    planned = tuple(dict.fromkeys([*data.plan.groups, *(c.attribute for c in data.plan.claims)]))
    distinct: dict[str, Counter[str]] = {}
    for attributes in merged.values():
        for name, value in attributes.items():
            distinct.setdefault(name, Counter())[value] += 1
    usable = [
        n for n in sorted(distinct) if 2 <= len(distinct[n]) <= MAX_GROUPS and n not in NO_GROUPS
    ]
    names = tuple(dict.fromkeys([*planned, *usable]))
    return Grouping(planned, names, merged)


def heat_axes(names: Sequence[str]) -> tuple[str, str] | None:
    """The two attributes of the heat map: skin tone by age where both are there, else what is."""
    skin = [
        n
        for n in ("skin_tone", "monk", "fitzpatrick", MEASURED_ITA, "ethnicity", "race")
        if n in names
    ]
    age = [n for n in ("age_group", "age_band", "age", "gender", "sex") if n in names]
    rest = [n for n in names if n not in skin[:1] + age[:1]]
    chosen = (skin[:1] + age[:1] + rest)[:2]
    return (chosen[0], chosen[1]) if len(chosen) == 2 else None
