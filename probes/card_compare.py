"""Two cards, figure by figure: what changed beyond its interval, what turned over, what cannot be told.

A figure is compared only where both cards asked alike; another model behind the same questions is what
a card is for, and is told first. Holm's correction runs over every figure that is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from domain.measurements import Decision
from probes.analysis.multiplicity import HOLM, holm
from probes.analysis.tests import fisher
from probes.card_change import Change, change, told
from probes.card_design import card_notices, differences, unusable
from probes.card_entries import figure_of
from probes.results import Figure

State = Literal["alarm", "changed", "no_change_shown", "open", "not_comparable", "missing", "added"]
ORDER: tuple[State, ...] = (
    "alarm", "open", "not_comparable", "missing", "changed", "added", "no_change_shown",
)  # fmt: skip
"""As a reader should meet them."""
NOTHING = Change(None)
NO_CHANGE: tuple[State, str] = ("no_change_shown", "has no change beyond its interval")
UNSETTLED = ("open", "not_comparable", "missing")


@dataclass(frozen=True, slots=True)
class CardLine:
    """One figure of two cards. ``before`` or ``after`` is None where the card has no such figure.
    ``p_adjusted`` is after Holm over the comparison. ``sentence`` says it all."""

    probe: str
    language: str
    condition: str
    figure: str
    state: State
    before: Figure | None
    after: Figure | None
    change: Change
    p_adjusted: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two cards say side by side. ``notices`` are about the cards as wholes (another model, a
    test with another verdict)."""

    lines: tuple[CardLine, ...]
    notices: tuple[str, ...]

    @property
    def alarms(self) -> tuple[CardLine, ...]:
        """What must be looked at before a release."""
        return tuple(line for line in self.lines if line.state == "alarm")

    @property
    def decision(self) -> Decision:
        """Fail with an alarm; inconclusive when nothing, or not everything, could be told; else pass."""
        if self.alarms:
            return Decision.FAIL
        states = {line.state for line in self.lines}
        settled = bool(states - {"added"}) and not states & set(UNSETTLED)
        return Decision.PASS if settled else Decision.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class _Pair:
    """One figure before judgement. ``signed`` figures have a direction at 0, which ``means`` words."""

    place: tuple[str, str, str]
    name: str
    before: Figure | None
    after: Figure | None
    reasons: tuple[str, ...] = ()
    means: tuple[str, str] | None = None
    change: Change = NOTHING
    counted: bool = False


def compare_cards(a: Mapping[str, Any], b: Mapping[str, Any]) -> Comparison:
    """``b`` (the later) against ``a`` (the earlier). Both as ``read_card`` or ``card_of`` gives them.

    Alarms: a direction that turned over (intervals that exclude 0 on opposite sides); one that is
    newly shown, or no longer, where the change itself is shown; a difference that grew; more calls
    declined. A direction that comes or goes without a shown change is "open": it was near the edge.
    """
    pairs = [_with_change(p) for p in (*_results(a, b), *_composites(a, b))]
    adjusted = holm([p.change.p if p.before and p.after and not p.reasons else None for p in pairs])
    alpha = float(b["design"].get("alpha") or 0.05)
    tested = sum(p is not None for p in adjusted)
    lines = [_judged(p, q, alpha, tested) for p, q in zip(pairs, adjusted, strict=True)]
    lines.sort(key=lambda line: ORDER.index(line.state))
    return Comparison(tuple(lines), tuple(card_notices(a, b)))


def _place(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return (entry["probe"], entry["language"], entry["condition"])


def _results(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[_Pair]:
    first = {_place(r): r for r in a["results"]}
    second = {_place(r): r for r in b["results"]}
    pairs = []
    for place in dict.fromkeys((*first, *second)):
        before, after = first.get(place), second.get(place)
        one = after or before
        assert one is not None
        reasons = tuple(differences(before, after)) if before and after else ()
        means = (str(one["index_means"][0]), str(one["index_means"][1]))
        useless = tuple(unusable(before, after)) if before and after else ()
        pairs.append(_pair(place, "index", before, after, reasons + useless, means))
        if before and after:
            pairs.append(_pair(place, "declined", before, after, reasons))
            arms = one["design"]["arms"]
            if len(arms) > 1:
                words = (f"more with {arms[0]}", f"more with {arms[1]}")
                pairs.append(_pair(place, "declined_difference", before, after, reasons, words))
    return pairs


def _composites(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[_Pair]:
    first = {(c["language"], c["condition"]): c for c in a["composites"]}
    second = {(c["language"], c["condition"]): c for c in b["composites"]}
    results = [{_place(r): r for r in card["results"]} for card in (a, b)]
    pairs = []
    for language, condition in dict.fromkeys((*first, *second)):
        before, after = first.get((language, condition)), second.get((language, condition))
        place = ("composite", language, condition)
        one = after or before
        assert one is not None
        reasons: tuple[str, ...] = ()
        if before and after:
            reasons = tuple(_of_parts(before, after, results[0], results[1]))
        means = (str(one["means"][0]), str(one["means"][1]))
        pairs.append(_pair(place, "mean", before, after, reasons, means))
        if before and after:
            pairs.append(_pair(place, "rms", before, after, reasons))
    return pairs


def _of_parts(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    first: Mapping[tuple[str, str, str], Mapping[str, Any]],
    second: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> list[str]:
    """Why two composites are not of the same thing."""
    parts = [{p["probe"]: (p["sign"], p["weight"]) for p in c["parts"]} for c in (before, after)]
    if parts[0] != parts[1]:
        return ["its parts, their signs or their weights are others"]
    found = []
    for probe in parts[0]:
        place = (probe, after["language"], after["condition"])
        one, two = first.get(place), second.get(place)
        if one is None or two is None:
            continue
        if differences(one, two):
            found.append(f"its part '{probe}' was asked otherwise")
        elif unusable(one, two):
            found.append(f"its part '{probe}' is unusable for this model")
    return found


def _pair(
    place: tuple[str, str, str],
    name: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    reasons: tuple[str, ...],
    means: tuple[str, str] | None = None,
) -> _Pair:
    first, second = (figure_of(side[name]) if side else None for side in (before, after))
    return _Pair(place, name, first, second, reasons, means, counted=name == "declined")


def _with_change(pair: _Pair) -> _Pair:
    if pair.before is None or pair.after is None:
        return pair
    found = change(pair.before, pair.after)
    if pair.counted and found.value is not None:
        counts = [(round((f.value or 0) * f.n), f.n) for f in (pair.after, pair.before)]
        found = replace(found, p=fisher(*counts[0], *counts[1]).p)
    return replace(pair, change=found)


def _judged(pair: _Pair, p: float | None, alpha: float, tested: int) -> CardLine:
    state, words = _state(pair, p is not None and p < alpha)
    probe, language, condition = pair.place
    where = f"{probe}, {language}" + ("" if condition == "plain" else f", '{condition}'")
    title = (pair.after or pair.before or Figure("", "", None)).title
    name = {"index": "index", "mean": "mean", "rms": "root mean square"}.get(pair.name, title)
    said = f"{where}: {name} {words}"
    if pair.change.value is not None and state not in ("not_comparable", "missing", "added"):
        assert pair.before is not None
        assert pair.after is not None
        after = "" if p is None else f"; p after {HOLM} over {tested} figures {_p(p)}"
        said += (
            f": {told(pair.before.value, pair.before.interval)} then,"
            f" {told(pair.after.value, pair.after.interval)} now, change"
            f" {told(pair.change.value, pair.change.interval)}{after}"
        )
    return CardLine(
        probe, language, condition, pair.name, state, pair.before, pair.after, pair.change, p,
        f"{said}.",
    )  # fmt: skip


def _state(pair: _Pair, moved: bool) -> tuple[State, str]:
    if pair.after is None:
        return "missing", "is in the earlier card only: nothing says what became of it"
    if pair.before is None:
        return "added", "is in the later card only"
    why = "; ".join(pair.reasons) or pair.change.reason
    if why:
        return "not_comparable", f"cannot be compared: {why}"
    if pair.change.p is None:
        return "open", "has no interval to judge a change by"
    if pair.means is not None:
        return _direction(pair.before, pair.after, pair.means, moved)
    way: tuple[State, str] = ("alarm", "rose")
    if (pair.change.value or 0) < 0:
        way = ("changed", "fell")
    return way if moved else NO_CHANGE


def _direction(
    before: Figure, after: Figure, means: Sequence[str], moved: bool
) -> tuple[State, str]:
    first, second = leans(before), leans(after)
    assert before.value is not None
    assert after.value is not None
    if first * second < 0:
        return "alarm", f"turned over, from {_side(first, means)} to {_side(second, means)}"
    if first and not second:
        words = f"no longer shows a direction (it was {_side(first, means)})"
        return ("alarm", words) if moved else ("open", f"{words}, and no change is shown either")
    if second and not first:
        words = f"now shows a direction: {_side(second, means)}"
        return ("alarm", words) if moved else ("open", f"{words}, and no change is shown either")
    if not moved:
        return NO_CHANGE
    if first and abs(after.value) > abs(before.value):
        return "alarm", f"grew {_side(second, means)}"
    return "changed", "is nearer to no difference" if first else "moved"


def leans(figure: Figure) -> int:
    """Sign of a figure whose interval excludes 0; 0 where it does not, or is not there."""
    if figure.value is None or figure.interval is None or not figure.interval.excludes(0.0):
        return 0
    return 1 if figure.value > 0 else -1


def _side(sign: int, means: Sequence[str]) -> str:
    return means[0 if sign > 0 else 1]


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
