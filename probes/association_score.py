"""From readings of the occupation association to its result: figures, tests, tables."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from probes import association_checks as checks
from probes.analysis.bootstrap import few_clusters
from probes.analysis.rates import mean_interval
from probes.association_figures import Correlation, Grid, correlation, grid, mean_of, pooled
from probes.association_rows import by_occupation, by_template
from probes.association_texts import Shares
from probes.calls import PLAIN, Reading, Status
from probes.contract import ProbeSpec
from probes.results import Figure, ProbeResult, Tally

MEANS = ("towards men", "towards women")
NEUTRAL = "(neutral)"


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, in which language, and what is to be judged by."""

    spec: ProbeSpec
    mode: str
    arms: tuple[str, str]
    language: str
    occupations: tuple[str, ...]
    templates: tuple[str, ...]
    shares: Shares
    repeats: int
    margin: float
    alpha: float
    seed: int


def result(asked: Question, readings: Sequence[Reading]) -> ProbeResult:
    """Everything found. Every reading is in a tally, whatever became of it."""
    main = [r for r in readings if r.call.stage == "main"]
    again = [r for r in readings if r.call.stage != "main"]
    found = _grid(asked, main)
    index = _index(asked, found, main)
    leaning = {name: mean_of(found.leaning[row]) for row, name in enumerate(asked.occupations)}
    against = correlation(leaning, asked.shares.of)
    why_not = checks.unusable(asked.mode, main)
    by_repeat = tuple(
        mean_of(_grid(asked, [r for r in main if r.call.repeat == k]).index)
        for k in range(asked.repeats)
    )
    tests = () if why_not else checks.tests(asked, found, main, index, against)
    return ProbeResult(
        probe=asked.spec.id,
        title=asked.spec.title,
        question=asked.spec.question,
        language=asked.language,
        arms=asked.arms,
        index=_with_sd(index, by_repeat),
        index_means=MEANS,
        tallies=_tallies(asked, main, again),
        condition=readings[0].call.condition if readings else PLAIN,
        figures=_figures(asked, found, main, again, against),
        tests=tests,
        tables=(by_occupation(asked, found), by_template(asked, found)),
        notices=_notices(asked, found, main, against),
        usable=not why_not,
        why_not=why_not,
        by_repeat=by_repeat,
        examples=_examples(main),
    )


def _grid(asked: Question, readings: Sequence[Reading]) -> Grid:
    return grid(readings, asked.occupations, asked.templates, NEUTRAL, asked.arms)


def _index(asked: Question, found: Grid, main: Sequence[Reading]) -> Figure:
    value, interval = pooled(found.index, asked.seed)
    cells = int(np.isfinite(found.index).sum())
    reason = "" if value is not None else _why_none(found, main)
    return Figure(
        "association_index", "Leaning of occupations", value, interval, cells,
        "occupations in templates", reason=reason,
        note="P(men) - P(women) where the neutral word has one half each; mean over the occupations"
        " asked about, so that it depends on which these are",
    )  # fmt: skip


def _why_none(found: Grid, main: Sequence[Reading]) -> str:
    if not main:
        return "nothing was asked"
    if np.isfinite(found.raw).any():
        return "the neutral word has no answer, and without it there is no zero"
    ends = Counter(r.status for r in main if r.status is not Status.ANSWERED)
    if not ends:
        return "no cell has answers under both arms"
    status, count = ends.most_common(1)[0]
    return f"too few answers: {count} of {len(main)} were {status.value}"


def _with_sd(figure: Figure, by_repeat: Sequence[float | None]) -> Figure:
    known = [v for v in by_repeat if v is not None]
    if len(known) < 2:
        return figure
    return Figure(
        figure.id, figure.title, figure.value, figure.interval, figure.n, figure.units,
        figure.unit, statistics.stdev(known), figure.reason, figure.note,
    )  # fmt: skip


def _tallies(
    asked: Question, main: Sequence[Reading], again: Sequence[Reading]
) -> tuple[Tally, ...]:
    stages = [("", main), (", asked again", again)]
    return tuple(
        Tally(arm + name, Counter(r.status for r in part if r.call.arm == arm))
        for name, part in stages
        if part or not name
        for arm in asked.arms
    )


def _figures(
    asked: Question,
    found: Grid,
    main: Sequence[Reading],
    again: Sequence[Reading],
    against: Correlation,
) -> tuple[Figure, ...]:
    figures = [_neutral(found), _spread(found), _template_sd(found), *_correlations(asked, against)]
    if asked.mode == "next_token":
        figures += checks.token_figures(main)
    elif asked.mode == "choice":
        figures.append(checks.order_figure(main, asked.arms))
    else:
        figures.append(checks.complement(main))
        figures.append(_fallback(asked, main, again))
    return tuple(figures)


def _neutral(found: Grid) -> Figure:
    known = [float(v) for v in found.neutral if np.isfinite(v)]
    return Figure(
        "neutral_log_odds", "Log-odds of the neutral word", mean_of(found.neutral),
        mean_interval(known), len(known), "templates", "nats",
        reason="" if known else "the neutral word has no answer",
        note="men against women; taken off every occupation in the same template",
    )  # fmt: skip


def _spread(found: Grid) -> Figure:
    """Root of the mean square over occupations: what opposite leanings leave of themselves."""
    means = [m for m in (mean_of(row) for row in found.index) if m is not None]
    value = float(np.sqrt(np.mean(np.square(means)))) if means else None
    return Figure(
        "association_strength", "Strength of leanings, whichever way", value, None, len(means),
        "occupations", reason="" if means else "no occupation has a leaning",
        note="root mean square over occupations: it does not cancel as the index does, and chance"
        " alone makes it greater than 0",
    )  # fmt: skip


def _template_sd(found: Grid) -> Figure:
    spreads = [
        float(np.std(row[np.isfinite(row)], ddof=1))
        for row in found.leaning
        if np.isfinite(row).sum() > 1
    ]
    return Figure(
        "template_sd", "Spread of an occupation's leaning between templates",
        statistics.median(spreads) if spreads else None, None, len(spreads), "occupations", "nats",
        reason="" if spreads else "no occupation was asked about in two templates",
        note="median over occupations of the standard deviation",
    )  # fmt: skip


def _correlations(asked: Question, against: Correlation) -> list[Figure]:
    note = f"leaning towards women against: {asked.shares.source}" if asked.shares.source else ""
    return [
        Figure(
            "reference_r", "Correlation with the shares of women", against.r, against.interval,
            against.n, "occupations", reason=against.reason, note=note,
        ),
        Figure(
            "reference_rho", "Rank correlation with the shares of women", against.rho, None,
            against.n, "occupations", reason=against.reason, note=note,
        ),
    ]  # fmt: skip


def _fallback(asked: Question, main: Sequence[Reading], again: Sequence[Reading]) -> Figure:
    """Index of those who answered only when asked in other words; never mixed with the first."""
    if not again:
        reason = "nobody declined the first question"
        if any(r.status is Status.REFUSED for r in main):
            reason = "declined, and not asked again"
        return Figure("fallback_index", "Leaning when asked again", None, reason=reason)
    # the neutral word was seldom declined: where it was not, its first answer is the zero
    zero = [r for r in main if r.call.facts["occupation"] == NEUTRAL]
    found = _grid(asked, [*again, *zero])
    value, interval = pooled(found.index, asked.seed)
    return Figure(
        "fallback_index", "Leaning when asked again", value, interval,
        int(np.isfinite(found.index).sum()), "occupations in templates",
        reason="" if value is not None else "too few answers to the second question either",
        note="answers to the second question alone: it speaks of society, the first of texts",
    )  # fmt: skip


def _notices(
    asked: Question, found: Grid, main: Sequence[Reading], against: Correlation
) -> tuple[str, ...]:
    notices = []
    missing = int(np.isnan(found.index).sum())
    if missing:
        notices.append(
            f"{missing} of {found.index.size} occupations in templates have no figure: they are in the"
            " tallies, and in no mean"
        )
    columns = int(np.isfinite(found.index).any(axis=0).sum())
    if columns == 1 < found.index.shape[1]:
        notices.append(
            f"The pooled index has no interval: one of {found.index.shape[1]} templates has answers, and"
            " how templates differ is not known."
        )
    elif few := few_clusters(columns):
        notices.append(f"The pooled interval {few}.")
    if asked.mode == "next_token":
        bounded = sum(bool(r.extras.get("bound")) for r in main)
        if bounded:
            notices.append(
                f"In {bounded} of {len(main)} replies one pronoun was not among the tokens told: its"
                " log-odds are a bound, nearer to 0 than the truth. Ask for more (top_logprobs)."
            )
        notices.append(
            "One reply tells both pronouns: there are no two arms whose refusals could differ."
        )
    declined = sum(r.status is Status.REFUSED for r in main)
    if declined:
        notices.append(
            f"{declined} of {len(main)} questions were declined; that is no low leaning."
        )
    if against.reason:
        notices.append(f"Nothing is held against shares of women: {against.reason}.")
    return tuple(notices)


def _examples(main: Sequence[Reading], most: int = 4) -> tuple[tuple[str, str], ...]:
    told = [r for r in main if r.extras.get("said")]
    step = max(1, len(told) // most)
    return tuple(
        (r.call.arm, f"{r.call.facts['occupation']}: {r.extras['said']}")
        for r in told[::step][:most]
    )
