"""A difference in the words of a business: people, or money, with the interval carried through.

What is multiplied is a difference of rates, not a ratio: with no difference it comes to nothing. The
published formula multiplies the ratio and is offered beside it as ``by_ratio`` (docs/probes/card.md says
what it counts). Where a difference is not shown there is no cost, and the line says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from domain.errors import LikenessError, did_you_mean
from probes.calls import PLAIN
from probes.card_change import combined
from probes.results import CostLine, Figure, Interval, ProbeResult


class Post(BaseModel):
    """``open`` posts of a kind (their number is taken as exact), and what filling one costs.
    ``figure`` is of the rule where this is None."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    open: Annotated[float, Field(gt=0)]
    cost: Annotated[float, Field(ge=0)]
    figure: str | None = None


class CostRule(BaseModel):
    """One line of a plan's ``costs``.

    ``figure`` names a difference of two rates in [-1, 1], first group less second: a figure or a
    test of the probe; "index" only where the index is one. ``groups`` are these two; else the test's
    or the probe's arms. ``applicants`` counts people of the group that comes off worse, ``event``
    says what they are asked to ("asked to the next round"). ``posts`` give a cost, ``ratio_figure`` the
    ratio for ``by_ratio``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    probe: str
    figure: str = "index"
    title: str = ""
    language: str | None = None
    condition: str = PLAIN
    groups: tuple[str, str] | None = None
    applicants: Annotated[int, Field(gt=0)] | None = None
    event: str = "asked to the next round"
    posts: tuple[Post, ...] = ()
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "EUR"
    by_ratio: bool = False
    ratio_figure: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    figure: Figure
    groups: tuple[str, str]
    where: str

    @property
    def worse(self) -> str:
        """The group with the lower rate."""
        return self.groups[1 if (self.figure.value or 0) > 0 else 0]

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.figure.interval is not None and self.figure.interval.excludes(0.0)


def read_costs(costs: Sequence[Mapping[str, Any]]) -> tuple[CostRule, ...]:
    """The rules of a plan; LikenessError with one line naming rule, key and cause."""
    return tuple(_rule(number, told) for number, told in enumerate(costs, 1))


def cost_lines(
    results: Sequence[ProbeResult], costs: Sequence[Mapping[str, Any]]
) -> tuple[CostLine, ...]:
    """Each rule applied to each result it concerns, in people and in money. LikenessError for a rule
    that makes no sense; a rule that finds no figure gives a line with the reason."""
    lines: list[CostLine] = []
    for rule in read_costs(costs):
        chosen = [
            r
            for r in results
            if r.probe == rule.probe
            and r.condition == rule.condition
            and rule.language in (None, r.language)
        ]
        if not chosen:
            reason = f"there is no result of probe '{rule.probe}' to take a difference from"
            lines.append(_without(_title(rule, rule.probe), "", reason))
        for result in chosen:
            lines += _of_result(rule, result)
    return tuple(lines)


def _of_result(rule: CostRule, result: ProbeResult) -> list[CostLine]:
    found = _find(rule, result, rule.figure)
    title = _title(rule, f"{result.title}, {result.language}")
    lines = []
    if rule.applicants is not None:
        lines.append(_people(rule, found, title))
    if rule.posts:
        lines.append(_money(rule, result, title))
    if rule.by_ratio:
        lines.append(_by_ratio(rule, result, title))
    return lines


def _people(rule: CostRule, found: _Found, title: str) -> CostLine:
    assert rule.applicants is not None
    refusal = _no_figure(found)
    if refusal:
        return _without(title, "people", refusal)
    value, interval = _scaled(found.figure, rule.applicants)
    interval = Interval(
        max(0.0, interval.low), min(float(rule.applicants), interval.high), interval.method,
        interval.level,
    )  # fmt: skip
    said = (
        f"Of {rule.applicants:,} applicants named like {found.worse}, {value:,.0f}"
        f" ({interval.low:,.0f} to {interval.high:,.0f}) fewer would be {rule.event} than of as many"
        f" named like {_other(found)}: {found.where}."
    )
    n, units = found.figure.n, found.figure.units
    return CostLine(title, Figure("people", title, value, interval, n, units, "people"), said)


def _money(rule: CostRule, result: ProbeResult, title: str) -> CostLine:
    """Sum over posts of open x difference x cost; posts with figures of their own add up as
    independent ones, posts that share one move together."""
    found = [(post, _find(rule, result, post.figure or rule.figure)) for post in rule.posts]
    for post, one in found:
        refusal = _no_figure(one)
        if refusal:
            name = f"{post.name}: " if post.name else ""
            return _without(title, rule.currency, f"{name}{refusal}")
    weights: dict[str, tuple[float, _Found]] = {}
    for post, one in found:
        sign = 1.0 if (one.figure.value or 0) > 0 else -1.0
        before = weights.get(one.where, (0.0, one))[0]
        weights[one.where] = (before + sign * post.open * post.cost, one)
    terms = [
        (w, one.figure.value, one.figure.interval)
        for w, one in weights.values()
        if one.figure.value is not None and one.figure.interval is not None
    ]
    value, interval = combined(terms)
    if interval is None:
        return _without(title, rule.currency, "its interval has no width")
    posts = "; ".join(
        f"{post.open:g} open{f' for {post.name}' if post.name else ''} x"
        f" {abs(one.figure.value or 0):.3f} x {post.cost:,.0f}"
        for post, one in found
    )
    said = (
        f"Expected cost {value:,.0f} {rule.currency} ({interval.low:,.0f} to {interval.high:,.0f}):"
        f" {posts}. Each is posts times the difference of rates times the cost of filling one, on the"
        " assumption that each person passed over costs one more search."
    )
    worse = {one.worse for _, one in found}
    if len(worse) > 1:
        said += " The difference is not to the same group's cost in every post."
    n = min(one.figure.n for _, one in found)
    amount = Figure("cost", title, value, interval, n, found[0][1].figure.units, rule.currency)
    return CostLine(title, amount, said)


def _by_ratio(rule: CostRule, result: ProbeResult, title: str) -> CostLine:
    """Sum over posts of open x ratio x cost, as published."""
    title = f"{title} (by ratio)"
    if not rule.posts or rule.ratio_figure is None:
        return _without(title, rule.currency, "the rule names no posts or no ratio_figure")
    ratio = _named(result, rule.ratio_figure)[0]
    if ratio.value is None:
        return _without(title, rule.currency, ratio.reason)
    base = sum(post.open * post.cost for post in rule.posts)
    value, interval = base * ratio.value, None
    if ratio.interval is not None:
        interval = Interval(
            base * ratio.interval.low, base * ratio.interval.high, ratio.interval.method,
            ratio.interval.level,
        )  # fmt: skip
    said = (
        f"By the published formula (posts x ratio x cost) {value:,.0f} {rule.currency}, of which"
        f" {base:,.0f} {rule.currency} would stand there with a ratio of 1, that is with no difference."
    )
    amount = Figure("by_ratio", title, value, interval, ratio.n, ratio.units, rule.currency)
    return CostLine(title, amount, said)


def _find(rule: CostRule, result: ProbeResult, name: str) -> _Found:
    figure, groups = _named(result, name)
    where = f"{figure.title or name} of {result.title}, {result.language}"
    if not result.usable:
        figure = Figure(name, name, None, reason=result.why_not or "the model is unusable for it")
    chosen = rule.groups or groups or ("the first group", "the second group")
    return _Found(figure, chosen, where)


def _named(result: ProbeResult, name: str) -> tuple[Figure, tuple[str, str] | None]:
    arms = (result.arms[0], result.arms[1]) if len(result.arms) > 1 else None
    if name == "index":
        return result.index, arms
    test = next((t for t in result.tests if t.id == name), None)
    if test is not None:
        return test.effect, test.groups
    figure = result.figure(name)
    if figure is not None:
        return figure, arms
    known = ["index", *(t.id for t in result.tests), *(f.id for f in result.figures)]
    reason = f"probe '{result.probe}' has no figure '{name}'{did_you_mean(name, known)}"
    return Figure(name, name, None, reason=reason), arms


def _no_figure(found: _Found) -> str:
    """Why nothing is multiplied, "" where something is."""
    figure = found.figure
    if figure.value is None:
        return figure.reason or "there is no figure"
    if figure.interval is None:
        return "the difference has no interval, so it is not shown"
    if abs(figure.value) > 1:
        return f"{figure.title} is no difference of rates"
    if not found.shown:
        low, high = figure.interval.low, figure.interval.high
        return (
            f"no difference between {found.groups[0]} and {found.groups[1]} is shown"
            f" ({figure.value:.3f}, {low:.3f} to {high:.3f})"
        )
    return ""


def _scaled(figure: Figure, factor: float) -> tuple[float, Interval]:
    """Magnitude and interval of the magnitude, times ``factor``."""
    assert figure.value is not None
    assert figure.interval is not None
    sign = 1 if figure.value > 0 else -1
    ends = sorted(factor * sign * end for end in (figure.interval.low, figure.interval.high))
    interval = Interval(ends[0], ends[1], figure.interval.method, figure.interval.level)
    return factor * abs(figure.value), interval


def _other(found: _Found) -> str:
    return next(g for g in found.groups if g != found.worse)


def _title(rule: CostRule, otherwise: str) -> str:
    return rule.title or otherwise


def _without(title: str, unit: str, reason: str) -> CostLine:
    amount = Figure("cost", title, None, unit=unit, reason=reason)
    return CostLine(title, amount, f"No cost is given: {reason}.")


def _rule(number: int, told: Mapping[str, Any]) -> CostRule:
    try:
        rule = CostRule.model_validate(dict(told))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        unknown = first["type"] == "extra_forbidden"
        cause = (
            f"unknown key{did_you_mean(key, CostRule.model_fields)}" if unknown else first["msg"]
        )
        raise LikenessError(f"costs, rule {number}: '{key}': {cause}") from None
    if rule.applicants is None and not rule.posts:
        raise LikenessError(f"costs, rule {number}: give applicants, posts, or both")
    if rule.by_ratio and rule.ratio_figure is None:
        raise LikenessError(f"costs, rule {number}: by_ratio needs a ratio_figure")
    return rule
