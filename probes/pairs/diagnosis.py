"""Does a template measure anything? Whether it listens to its slot, whether it always draws the same
answer, what a low temperature shows, and whether answers are of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from probes.calls import Reading, Status
from probes.pairs.presets import OTHER, Preset

DETERMINED = 0.85
"""Least share of answers of one abstract type with which a template counts as determined."""
WEAK = 0.9
"""A template whose commonest label has this share in every row and arm says the same of everyone."""
LISTENS_AT = 0.05
PERMUTATIONS = 2000
PAIR, SENSITIVITY, LOW = "pair", "sensitivity", "low_temperature"
Listens = Literal["listens", "does not listen", "not shown"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One template's. ``moved`` is the total variation distance (0 to 1) between the answers to the
    irrelevant word and to the arms, with ``p_value`` of a permutation test; both None without
    answers. ``commonest`` is the label met most, ``share`` its share of the pairs' answers.
    ``determined`` is the share of answers of the commonest abstract type ``type``. ``lean_low`` and
    ``lean`` are the index over the same cells at the low and at the usual temperature.
    """

    template: str
    listens: Listens
    moved: float | None
    p_value: float | None
    commonest: str
    share: float | None
    weak: bool
    determined: float | None
    type: str
    lean: float | None
    lean_low: float | None
    notes: tuple[str, ...] = ()


def diagnose(readings: Sequence[Reading], preset: Preset, seed: int) -> tuple[Diagnosis, ...]:
    """One diagnosis for each template met in ``readings``, whose calls' facts tell template, row
    ("occupation") and role (a pair's, the sensitivity swap's, or at low temperature)."""
    named = list(dict.fromkeys(r.call.facts["template"] for r in readings))
    return tuple(
        _one([r for r in readings if r.call.facts["template"] == t], t, preset, seed + i)
        for i, t in enumerate(named)
    )


def of_one_type(labels: Sequence[str], preset: Preset) -> tuple[float | None, str]:
    """Share of ``labels`` whose abstract type is the commonest one, with that type; "other" has no
    type and counts against. None without labels."""
    if not labels:
        return None, ""
    types = Counter(preset.labels[x].type for x in labels if x in preset.labels)
    if not types:
        return 0.0, ""
    kind, count = types.most_common(1)[0]
    return count / len(labels), kind


def distance(a: Sequence[str], b: Sequence[str]) -> float | None:
    """Total variation distance between the labels of two samples, 0 to 1 (biased upward when they are
    small); None when one is empty."""
    if not a or not b:
        return None
    one, two = Counter(a), Counter(b)
    return 0.5 * sum(abs(one[x] / len(a) - two[x] / len(b)) for x in one | two)


def permuted(a: Sequence[str], b: Sequence[str], seed: int) -> float | None:
    """Two-sided p value that both samples come from one distribution of labels: the distance against
    seeded permutations, (hits + 1) / (permutations + 1). None when one is empty."""
    observed = distance(a, b)
    if observed is None:
        return None
    names = sorted(set(a) | set(b))
    place = {x: i for i, x in enumerate(names)}
    pool = np.array([place[x] for x in (*a, *b)])
    rng = np.random.default_rng(seed)
    totals = np.bincount(pool, minlength=len(names))
    firsts = rng.multivariate_hypergeometric(totals, len(a), size=PERMUTATIONS)
    gaps = np.abs(firsts / len(a) - (totals - firsts) / len(b)).sum(axis=1) / 2
    return float(((gaps >= observed - 1e-12).sum() + 1) / (PERMUTATIONS + 1))


def lean(readings: Sequence[Reading], arms: tuple[str, str], preset: Preset) -> float | None:
    """Half the difference of the arms' mean signs, in [-1, 1]; None when an arm has no label."""
    means = []
    for arm in arms:
        signs = [preset.sign(r.label) for r in readings if r.call.arm == arm and r.label]
        if not signs:
            return None
        means.append(sum(signs) / len(signs))
    return (means[0] - means[1]) / 2


def _one(readings: Sequence[Reading], template: str, preset: Preset, seed: int) -> Diagnosis:
    role: Mapping[str, list[Reading]] = {
        name: [r for r in readings if r.call.facts["role"] == name and r.status is Status.ANSWERED]
        for name in (PAIR, SENSITIVITY, LOW)
    }
    odd = _labels(role[SENSITIVITY])
    row = next((r.call.facts["occupation"] for r in role[SENSITIVITY] or role[LOW]), None)
    same_row = [r for r in role[PAIR] if r.call.facts["occupation"] == row]
    usual, every = _labels(same_row), _labels(role[PAIR])
    moved, p = distance(odd, usual), permuted(odd, usual, seed)
    commonest, count = Counter(every).most_common(1)[0] if every else ("", 0)
    weak = _weak(role[PAIR], commonest)
    share, kind = of_one_type(every, preset)
    pair = preset.arms[readings[0].call.language]
    listens: Listens = "not shown"
    if p is not None and p < LISTENS_AT:
        listens = "listens"
    elif odd and usual and _mostly(odd, commonest) and _mostly(usual, commonest):
        listens = "does not listen"
    return Diagnosis(
        template, listens, moved, p, commonest, count / len(every) if every else None, weak,
        share, kind, lean(same_row, pair, preset), lean(role[LOW], pair, preset),
        _notes(listens, weak, commonest, share, kind),
    )  # fmt: skip


def _labels(readings: Sequence[Reading]) -> list[str]:
    return [r.label for r in readings if r.label]


def _mostly(labels: Sequence[str], label: str) -> bool:
    return labels.count(label) >= WEAK * len(labels)


def _weak(readings: Sequence[Reading], commonest: str) -> bool:
    cells: dict[tuple[str, str], list[str]] = {}
    for r in readings:
        if r.label:
            cells.setdefault((r.call.facts["occupation"], r.call.arm), []).append(r.label)
    return len(cells) > 2 and all(_mostly(labels, commonest) for labels in cells.values())


def _notes(
    listens: Listens, weak: bool, commonest: str, share: float | None, kind: str
) -> tuple[str, ...]:
    notes = []
    if listens == "does not listen":
        notes.append("does not listen: an irrelevant word in the slot draws the same answers")
    if weak:
        which = "none of the labels" if commonest == OTHER else f"'{commonest}'"
        notes.append(f"too weak: the answer is {which} whoever and whatever stands there")
    if share is not None and share < DETERMINED:
        most = f"{share:.0%} of the answers are of type {kind}" if kind else "no answer has a type"
        notes.append(f"not determined: {most}, less than {DETERMINED:.0%}")
    return tuple(notes)
