"""The figures of the minimal pairs beside the index: neutral row, spread, determinism, "other"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import stdev

from probes.calls import Reading
from probes.labels import other_share
from probes.pairs import measures
from probes.pairs.diagnosis import of_one_type
from probes.pairs.measures import NEUTRAL_ROW, Unit
from probes.pairs.presets import Preset
from probes.results import Figure

NO_LABEL = "no answer has a label"


def of_pairs(
    every: Sequence[Unit],
    main: Sequence[Reading],
    arms: tuple[str, str],
    preset: Preset,
    seed: int,
) -> tuple[Figure, ...]:
    """All of them; ``every`` has the neutral row's units too, ``main`` the pairs' readings. The
    difference of refusals is among them, so that it is told where there are no verdicts."""
    found = [u for u in every if u.row != NEUTRAL_ROW]
    return (
        *_neutral(every, main, arms, preset, seed),
        *_answers(main, preset),
        _flipped(found, seed),
        measures.refusals(main, arms, seed)[1],
        _spread("templates", measures.by_cluster(found, lambda u: u.template)),
        _spread("variants", measures.by_cluster(found, lambda u: u.variant)),
    )


def _neutral(
    every: Sequence[Unit],
    main: Sequence[Reading],
    arms: tuple[str, str],
    preset: Preset,
    seed: int,
) -> tuple[Figure, Figure]:
    rows = [r for r in main if r.call.facts["occupation"] == NEUTRAL_ROW]
    units = [u for u in every if u.row == NEUTRAL_ROW]
    alone = measures.index(units, rows, arms, preset, seed)
    net, span, n = measures.net_of_neutral(every, seed)
    return (
        replace(alone, id="index_neutral", title="index without any occupation named"),
        Figure(
            "index_net", "index less that without any occupation named", net, span, n, "templates",
            reason="" if net is not None else "no template has both",
        ),
    )  # fmt: skip


def _answers(main: Sequence[Reading], preset: Preset) -> tuple[Figure, Figure]:
    labels = [r.label for r in main if r.label]
    share, kind = of_one_type(labels, preset)
    other = other_share(labels)
    return (
        Figure(
            "determinism", "answers of the commonest abstract type", share, n=len(labels),
            reason="" if share is not None else NO_LABEL, note=f"the type is {kind}" if kind else "",
        ),
        Figure(
            "other", "answers that fit no label", other, n=len(labels),
            reason="" if other is not None else NO_LABEL,
        ),
    )  # fmt: skip


def _flipped(found: Sequence[Unit], seed: int) -> Figure:
    tested = measures.flip_of_templates(found, seed)
    n = len({u.template for u in found})
    return Figure(
        "sign_flip_p", "p of the sign-flip over template means", tested.p, n=n, units="templates",
        reason=tested.reason, note=f"it cannot be below {2 / 2 ** min(n, 16):.2g}",
    )  # fmt: skip


def _spread(what: str, clusters: dict[str, list[float]]) -> Figure:
    means = [sum(gaps) / len(gaps) for gaps in clusters.values()]
    return Figure(
        f"spread_{what}", f"standard deviation of the index between {what}",
        stdev(means) if len(means) > 1 else None, n=len(means), units=what,
        reason="" if len(means) > 1 else f"fewer than two {what}",
    )  # fmt: skip
