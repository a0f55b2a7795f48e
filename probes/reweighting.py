"""Weights that press down the labels a group gets too often: W = 1 / (1 + lambda x RBR).

It acts on what comes out, not on the model, and only where labels can be weighed before one is
chosen. docs/probes/mitigation.md works the published example through and says what does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from domain.errors import LikenessError
from probes.analysis.rates import ratio
from probes.results import HeatMap, Table

LAMBDA = 0.8
REST = "none of these"
"""Answers of a row that have none of the map's labels."""
Mode = Literal["over_represented", "first_arm", "two_sided"]
MODES: Mapping[Mode, str] = {
    "over_represented": (
        "each label is weighed down in the arm that has it more often, by the ratio above 1"
    ),
    "first_arm": (
        "as published: the first arm alone is weighed, by P_A / P_B; a label that it has too seldom"
        " is hardly touched"
    ),
    "two_sided": (
        "both arms are weighed alike, by the larger of the ratio and one over it: labels that tell"
        " the arms apart become rarer for everybody, and the ratio itself stays nearly as it was"
    ),
}


@dataclass(frozen=True, slots=True)
class Reweighted:
    """One label before and after. Shares are of the arm's labels, in [0, 1]; ``rbr`` is P_A / P_B
    (of the counts with half a label added where one of them is too small for a ratio: ``smoothed``)."""

    label: str
    rbr: float
    smoothed: bool
    weight_a: float
    weight_b: float
    before_a: float
    before_b: float
    after_a: float
    after_b: float

    @property
    def bbs_before(self) -> float:
        """|P_A - P_B| before."""
        return abs(self.before_a - self.before_b)

    @property
    def bbs_after(self) -> float:
        """|P_A - P_B| after."""
        return abs(self.after_a - self.after_b)

    @property
    def turned(self) -> bool:
        """Whether the other arm has the label more often now: the weight did too much."""
        before, after = self.before_a - self.before_b, self.after_a - self.after_b
        return before * after < 0


@dataclass(frozen=True, slots=True)
class Reweighting:
    """All labels of one row. ``distance_*`` is half the sum of BBS over labels, in [0, 1]: the share
    of answers that would have to change for the arms to be alike. No intervals: these are sums over
    the counts seen, not a trial. Only new answers tell what a weight does in use."""

    arms: tuple[str, str]
    lam: float
    mode: Mode
    labels: tuple[Reweighted, ...]

    @property
    def distance_before(self) -> float:
        """Half the sum of BBS before."""
        return sum(r.bbs_before for r in self.labels) / 2

    @property
    def distance_after(self) -> float:
        """Half the sum of BBS after."""
        return sum(r.bbs_after for r in self.labels) / 2

    @property
    def sentence(self) -> str:
        """What it does, what it worsens and what it turns over."""
        said = (
            f"With lambda {self.lam:g} the labels of {self.arms[0]} and {self.arms[1]} would differ in"
            f" {100 * self.distance_after:.0f} of 100 answers instead of"
            f" {100 * self.distance_before:.0f}"
        )
        worse = [r.label for r in self.labels if r.bbs_after > r.bbs_before + 1e-9]
        turned = [r.label for r in self.labels if r.turned]
        if worse:
            said += f"; further apart than before: {', '.join(worse)}"
        if turned:
            said += f"; turned over to the other arm: {', '.join(turned)}"
        return said + "."

    def table(self, name: str) -> Table:
        """For a report."""
        first, second = self.arms
        return Table(
            name,
            f"Labels weighed down by 1 / (1 + {self.lam:g} x RBR)",
            (
                "label", "RBR", f"weight, {first}", f"weight, {second}", f"{first} before",
                f"{second} before", f"{first} after", f"{second} after", "BBS before", "BBS after",
            ),
            tuple(
                (
                    r.label, r.rbr, r.weight_a, r.weight_b, r.before_a, r.before_b, r.after_a,
                    r.after_b, r.bbs_before, r.bbs_after,
                )
                for r in self.labels
            ),
            f"{self.sentence} Rule: {MODES[self.mode]}.",
        )  # fmt: skip


def weight(rbr: float, lam: float = LAMBDA) -> float:
    """1 / (1 + lam x rbr), in (0, 1]. A ratio of 1 has 1 / (1 + lam), so it is what other weights are
    read against. Raises ValueError for a negative ratio or lambda."""
    if rbr < 0 or lam < 0:
        raise ValueError(f"a ratio and lambda are not negative: {rbr}, {lam}")
    return 1 / (1 + lam * rbr)


def reweight(
    a: Mapping[str, int],
    b: Mapping[str, int],
    arms: tuple[str, str],
    lam: float = LAMBDA,
    mode: Mode = "over_represented",
) -> Reweighting:
    """Weigh the label counts ``a`` and ``b`` of the two arms and renormalise each.

    Raises LikenessError for an arm without labels, a negative lambda or an unknown mode.
    """
    if mode not in MODES:
        raise LikenessError(f"unknown way of weighing '{mode}' (known: {', '.join(MODES)})")
    if lam < 0:
        raise LikenessError(f"lambda is not negative: {lam:g}")
    na, nb = sum(a.values()), sum(b.values())
    for arm, n in zip(arms, (na, nb), strict=True):
        if n == 0:
            raise LikenessError(f"no label was given to {arm}: there is nothing to weigh")
    names = tuple(dict.fromkeys((*a, *b)))
    ratios = {name: _ratio(a.get(name, 0), na, b.get(name, 0), nb) for name in names}
    weights = {name: _weights(value, lam, mode) for name, (value, _) in ratios.items()}
    shares_a = {name: a.get(name, 0) / na for name in names}
    shares_b = {name: b.get(name, 0) / nb for name in names}
    after_a = _normalised({name: shares_a[name] * weights[name][0] for name in names})
    after_b = _normalised({name: shares_b[name] * weights[name][1] for name in names})
    rows = tuple(
        Reweighted(
            name, *ratios[name], *weights[name], shares_a[name], shares_b[name], after_a[name],
            after_b[name],
        )
        for name in names
    )  # fmt: skip
    return Reweighting(arms, lam, mode, rows)


def of_heat_map(
    heat_map: HeatMap, row: str, lam: float = LAMBDA, mode: Mode = "over_represented"
) -> Reweighting:
    """The same from one row (an occupation) of a heat map. LikenessError for a row it lacks."""
    cells = [cell for cell in heat_map.cells if cell.row == row]
    if not cells:
        raise LikenessError(f"heat map '{heat_map.id}' has no row '{row}'")
    a, b = {c.label: c.x_a for c in cells}, {c.label: c.x_b for c in cells}
    rest_a, rest_b = cells[0].n_a - sum(a.values()), cells[0].n_b - sum(b.values())
    if rest_a + rest_b > 0 and min(rest_a, rest_b) >= 0:
        a[REST], b[REST] = rest_a, rest_b
    return reweight(a, b, heat_map.arms, lam, mode)


def _ratio(xa: int, na: int, xb: int, nb: int) -> tuple[float, bool]:
    value, status = ratio(xa, na, xb, nb)
    if value:  # neither missing nor 0, whose inverse would take the label away altogether
        return value, False
    if status == "both_zero":
        return 1.0, True
    return (xa + 0.5) / (na + 1) / ((xb + 0.5) / (nb + 1)), True


def _weights(rbr: float, lam: float, mode: Mode) -> tuple[float, float]:
    neutral = weight(1.0, lam)
    if mode == "first_arm":
        return weight(rbr, lam), neutral
    strong = weight(max(rbr, 1 / rbr), lam)
    if mode == "two_sided":
        return strong, strong
    return (strong, neutral) if rbr > 1 else (neutral, strong)


def _normalised(parts: Mapping[str, float]) -> dict[str, float]:
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}
