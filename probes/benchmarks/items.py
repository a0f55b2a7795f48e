"""One item of a benchmark of the BBQ family, in one shape whatever file it came from.

An item asks about two people, of whom one belongs to a group that a stereotype is about, and offers a
third option that says nothing can be known. Parrish et al. 2022; Jin et al. 2024 for the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from domain.errors import LikenessError, did_you_mean
from probes.benchmarks.tables import RowsError

Condition = Literal["ambiguous", "disambiguated"]
Polarity = Literal["negative", "non_negative"]
Side = Literal["unknown", "towards", "against"]
"""What an option says: nothing, what the stereotype says, or its opposite."""
CONDITIONS: Mapping[str, Condition] = {
    "ambig": "ambiguous",
    "ambiguous": "ambiguous",
    "ambiguous_context": "ambiguous",
    "amb": "ambiguous",
    "disambig": "disambiguated",
    "disambiguous": "disambiguated",
    "disambiguated": "disambiguated",
    "disambiguous_context": "disambiguated",
    "dis": "disambiguated",
}
POLARITIES: Mapping[str, Polarity] = {
    "neg": "negative",
    "negative": "negative",
    "nonneg": "non_negative",
    "non_neg": "non_negative",
    "non_negative": "non_negative",
}


@dataclass(frozen=True, slots=True)
class Item:
    """``options`` in the order of the file; ``unknown``, ``label`` (the right one) and ``target`` (the
    one person of the group that the stereotype is about) are indices into them. ``target`` is None
    where no option or more than one belongs to the group: such an item has no direction and goes
    into no figure. ``groups`` are the options' group tags, ``words`` the group's text of each
    option where the file has it. ``template`` is the cluster: items of one template go together."""

    benchmark: str
    category: str
    id: str
    template: str
    polarity: Polarity
    condition: Condition
    context: str
    question: str
    options: tuple[str, ...]
    unknown: int
    target: int | None
    label: int
    language: str
    groups: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def towards(self) -> int | None:
        """The option that the stereotype says: the target in a negative question, the other person in
        a non-negative one."""
        if self.target is None or self.polarity == "negative":
            return self.target
        people = [i for i in range(len(self.options)) if i not in (self.unknown, self.target)]
        return people[0] if len(people) == 1 else None

    def side(self, option: int) -> Side | None:
        """What ``option`` says; None for a person's where the item has no direction."""
        if option == self.unknown:
            return "unknown"
        if self.towards is None:
            return None
        return "towards" if option == self.towards else "against"

    @property
    def cluster(self) -> tuple[str, str]:
        """Category and template: template numbers start anew in each category."""
        return self.category, self.template


def only(indices: Sequence[int]) -> int | None:
    """The one index there is; None for none and for several."""
    return indices[0] if len(indices) == 1 else None


def the_unknown(path: Path, number: int, tags: Sequence[str]) -> int:
    """Index of the one tag "unknown". Raises RowsError where there is none or more than one."""
    found = only([i for i, tag in enumerate(tags) if tag.lower() == "unknown"])
    if found is None:
        raise RowsError(f"{path}, row {number}: not exactly one option is tagged 'unknown'")
    return found


Loader = Callable[[Path, str], list[Item]]
"""Takes the file and the language wanted ("" for the set's own)."""


def loaders() -> Mapping[str, Loader]:
    """Every data set by name."""
    from probes.benchmarks import bbq, cbbq, esbbq, ggbbq, kobbq, unifiedqa

    return {
        "bbq": unifiedqa.load_either,
        "cbbq": cbbq.load,
        "esbbq": esbbq.load,
        "ggbbq": ggbbq.load,
        "kobbq": kobbq.load,
        "nobbq": bbq.load_norwegian,
    }


OWN_LANGUAGE = {"cbbq": "zh", "ggbbq": "de", "kobbq": "ko", "nobbq": "no"}
"""Sets that are in one language."""


def load(benchmark: str, path: Path, language: str = "") -> list[Item]:
    """The items of ``path`` in file order, in ``language`` ("" for the set's own). Raises RowsError naming file, row and column, and
    LikenessError for a data set
    that is not known or is in another language."""
    known = loaders()
    if benchmark not in known:
        hint = did_you_mean(benchmark, known)
        raise LikenessError(
            f"unknown benchmark '{benchmark}'{hint} (known: {', '.join(sorted(known))})"
        )
    own = OWN_LANGUAGE.get(benchmark, language)
    if language and language != own:
        raise LikenessError(f"benchmark '{benchmark}' is in '{own}', not in '{language}'")
    items = known[benchmark](path, language)
    for number, item in enumerate(items, 1):
        if (item.condition == "ambiguous") != (item.label == item.unknown):
            raise RowsError(
                f"{path}, row {number}, column 'label': the right answer is the unknown one in "
                "ambiguous contexts and in no other"
            )
    return items
