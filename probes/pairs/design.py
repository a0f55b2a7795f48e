"""Every cell of a design, each pair with its proof; implausible cells are flagged, never dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.pairs.alignment import AlignmentProof, PairRefused, prove, the_variable
from probes.pairs.grammar import USUAL, Choices
from probes.pairs.lexicon import Arm, Lexicon, Occupation
from probes.pairs.templates import VERB, Filled, Template, fill

RARE_SHARE = 0.05
"""Below this share of a sex in an occupation (United States) a cell is flagged as rare."""
SALIENCE, COMPARABILITY, AVAILABILITY = 5.0, 0.65, 200.0
"""Thresholds of the base filter as published: times that one gender is met with the word for each
time of the other; similarity with the field's other job descriptions; test sentences that exist."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two prompts of one template and occupation, for ``arms`` in that order. ``flags`` say what is
    implausible in either cell, and why."""

    template: Template
    occupation: Occupation
    variant: int
    arms: tuple[str, str]
    prompts: tuple[Filled, Filled]
    proof: AlignmentProof
    flags: tuple[str, ...] = ()

    @property
    def item(self) -> str:
        """What both calls of the pair have in common."""
        return f"{self.template.id}|{self.occupation.id}|{self.variant}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One place in the design: what each variable is."""

    values: Mapping[str, str]
    occupation: Occupation
    arm: Arm


def pair_of(
    template: Template,
    a: Cell,
    b: Cell,
    lexicon: Lexicon,
    *,
    variant: int = 0,
    choices: Choices = USUAL,
) -> Pair:
    """The pair of two cells with its proof.

    Raises PairRefused when the cells differ in no variable or in two, or the prompts in more than
    the slot's forms.
    """
    slot = the_variable(a.values, b.values)
    if slot not in (template.dimension, "occupation"):
        raise PairRefused(f"template '{template.id}' has no slot for {slot}")
    one = fill(template, a.occupation, a.arm, lexicon, variant=variant, choices=choices)
    two = fill(template, b.occupation, b.arm, lexicon, variant=variant, choices=choices)
    declared = [
        (x, y)
        for (name, x), (_, y) in zip(one.fillers, two.fillers, strict=True)
        if name in {slot, VERB} or (name == "occupation" and _agrees(template, lexicon))
    ]
    proof = prove(one.text, two.text, declared, slot, template.language)
    flags = (*implausible(a, template.dimension, lexicon, variant),)
    flags += tuple(
        f for f in implausible(b, template.dimension, lexicon, variant) if f not in flags
    )
    arms = (a.arm.id, b.arm.id) if slot != "occupation" else (a.occupation.id, b.occupation.id)
    return Pair(template, a.occupation, variant, arms, (one, two), proof, flags)


def _agrees(template: Template, lexicon: Lexicon) -> bool:
    """Whether the word for an occupation is a form of the gender slot (German nouns, and nouns that
    carry the mark themselves)."""
    return template.dimension == "gender"


def cell(lexicon: Lexicon, dimension: str, arm: Arm, occupation: Occupation) -> Cell:
    """The cell of ``arm`` and ``occupation``."""
    return Cell({"occupation": occupation.id, dimension: arm.id}, occupation, arm)


def all_pairs(
    templates: Sequence[Template],
    occupations: Sequence[Occupation],
    arms: tuple[str, str],
    lexicon: Lexicon,
    choices: Choices = USUAL,
) -> tuple[Pair, ...]:
    """Every template x occupation x variant, with both arms: nothing is left out."""
    found = []
    for template in templates:
        one, two = (lexicon.arm(template.dimension, arm) for arm in arms)
        for occupation in occupations:
            a, b = (cell(lexicon, template.dimension, arm, occupation) for arm in (one, two))
            found += [
                pair_of(template, a, b, lexicon, variant=v, choices=choices)
                for v in range(max(len(one.variants), len(two.variants)))
            ]
    return tuple(found)


def implausible(place: Cell, dimension: str, lexicon: Lexicon, variant: int = 0) -> list[str]:
    """Why a cell is implausible, one sentence each; the cell is asked about all the same."""
    found = []
    share = place.occupation.women_us
    if dimension == "gender" and share is not None:
        own = {"women": share, "men": 1 - share}.get(place.arm.id)
        if own is not None and own < RARE_SHARE:
            found.append(
                f"{place.arm.id} are {own:.0%} of {place.occupation.forms['word']}s in the United "
                f"States ({place.occupation.year})"
            )
    number = place.arm.variants[variant % len(place.arm.variants)].get("number", "")
    for rule in lexicon.conflicts:
        if (rule.dimension, rule.arm) != (dimension, place.arm.id):
            continue
        if place.occupation.id not in rule.occupations:
            continue
        if rule.below is None or (number.isdigit() and int(number) < rule.below):
            found.append(rule.reason)
    return found


@dataclass(frozen=True, slots=True)
class FilterLine:
    """The base filter's word on one occupation: each criterion "pass", "fail" or "unknown";
    ``verdict`` is "in" (all pass), "out" (one fails) or "undecided"."""

    occupation: str
    salience: str
    comparability: str
    availability: str
    verdict: str


def base_filter(
    occupations: Sequence[Occupation],
    *,
    salience: float = SALIENCE,
    comparability: float = COMPARABILITY,
    availability: float = AVAILABILITY,
) -> tuple[FilterLine, ...]:
    """Which occupations are fit for minimal pairs, criterion by criterion. What was never counted is
    unknown: neither a pass nor a fail. Availability was counted in two collections of many: a count
    below the threshold is unknown as well."""

    def judged(value: float | None, limit: float) -> str:
        return "unknown" if value is None else "pass" if value >= limit else "fail"

    lines = []
    for o in occupations:
        three = (
            judged(o.salience, salience),
            judged(o.comparability, comparability),
            "pass" if (o.availability or 0) >= availability else "unknown",
        )
        verdict = "out" if "fail" in three else "in" if set(three) == {"pass"} else "undecided"
        lines.append(FilterLine(o.id, *three, verdict))
    return tuple(lines)
