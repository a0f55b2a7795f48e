"""Puts figures, tests, map and tables of the minimal pairs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from domain.verdicts import VerdictKind
from probes.analysis.bootstrap import pooled_difference
from probes.analysis.cells import Draw, build_cells
from probes.analysis.multiplicity import HOLM, MAX_T, holm, of_share, over_families
from probes.analysis.tests import Tested
from probes.calls import Reading
from probes.labels import other_share
from probes.pairs import figures, measures, tables
from probes.pairs.design import FilterLine, Pair
from probes.pairs.diagnosis import PAIR, Diagnosis, diagnose
from probes.pairs.measures import NEUTRAL_ROW, Unit
from probes.pairs.neutrality import Neutrality
from probes.pairs.presets import OTHER, Preset
from probes.results import Figure, HeatMap, Interval, ProbeResult, Table, TestResult

MOSTLY_OTHER = 0.5

EACH = 0.5
"""Of the error, for the named questions and for the labels: an alarm in either is one of the probe."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked: the design's pairs, the preset with this run's arms, and the limits of a verdict."""

    pairs: Sequence[Pair]
    preset: Preset
    arms: tuple[str, str]
    alpha: float
    margin: float
    filtered: Sequence[FilterLine] = ()
    ratings: Sequence[Neutrality] = ()


def result(
    probe: str, question: str, readings: Sequence[Reading], language: str, asked: Asked, seed: int
) -> ProbeResult:
    """Everything found in the readings of one language and condition."""
    main = [r for r in readings if r.call.facts["role"] == PAIR]
    named = [r for r in main if r.call.facts["occupation"] != NEUTRAL_ROW]
    every_unit = measures.units(main, asked.arms, asked.preset)
    found = [u for u in every_unit if u.row != NEUTRAL_ROW]
    repeats = measures.by_repeat(named, asked.arms, asked.preset)
    index = _with_sd(measures.index(found, named, asked.arms, asked.preset, seed), repeats)
    diagnoses = diagnose(readings, asked.preset, seed)
    why_not = _unusable(main, index, diagnoses)
    heat = _map(main, asked, seed)
    return ProbeResult(
        probe,
        asked.preset.title,
        question,
        language,
        asked.arms,
        index,
        (f"{asked.preset.ends[0]}: {asked.arms[0]}", f"{asked.preset.ends[0]}: {asked.arms[1]}"),
        measures.tallies(readings, asked.arms),
        condition=readings[0].call.condition if readings else "plain",
        axis=asked.preset.axis,
        figures=figures.of_pairs(every_unit, main, asked.arms, asked.preset, seed),
        tests=() if why_not else _tests(named, found, index, asked, seed),
        heat_maps=(heat,),
        tables=_tables(every_unit, diagnoses, heat.rows, asked, seed),
        notices=tuple(tables.notices(main, asked.arms, diagnoses)),
        usable=not why_not,
        why_not=why_not,
        by_repeat=repeats,
        examples=tables.examples(named, asked.arms),
    )


def _with_sd(index: Figure, repeats: Sequence[float | None]) -> Figure:
    known = [v for v in repeats if v is not None]
    return Figure(
        index.id, index.title, index.value, index.interval, index.n, index.units,
        sd=stdev(known) if len(known) > 1 else None, reason=index.reason, note=index.note,
    )  # fmt: skip


def _unusable(main: Sequence[Reading], index: Figure, diagnoses: Sequence[Diagnosis]) -> str:
    if index.value is None:
        return f"no differences to measure: {index.reason}"
    share = other_share([r.label for r in main])
    if share is not None and share > MOSTLY_OTHER:
        return f"{share:.0%} of the answers fit no label: unusable for these labels"
    if diagnoses and all(d.listens == "does not listen" for d in diagnoses):
        return "no template listens to its slot: an irrelevant word draws the same answers"
    return ""


def _map(main: Sequence[Reading], asked: Asked, seed: int) -> HeatMap:
    rows = list(dict.fromkeys(p.occupation.id for p in asked.pairs))
    odd = {(p.occupation.id, arm) for p in asked.pairs if p.flags for arm in p.arms}
    return build_cells(
        _draws(main),
        asked.arms,
        rows,
        [*asked.preset.labels, OTHER],
        seed,
        title=f"Answers by occupation and label, {asked.arms[0]} against {asked.arms[1]}",
        map_id="occupation_label",
        implausible=odd,
    )


def _draws(main: Sequence[Reading]) -> list[Draw]:
    return [
        Draw(r.call.facts["occupation"], r.call.arm, r.call.facts["template"], r.label)
        for r in main
    ]


def _tests(
    named: Sequence[Reading], found: Sequence[Unit], index: Figure, asked: Asked, seed: int
) -> tuple[TestResult, ...]:
    labels = [*asked.preset.labels, OTHER]
    leaning = measures.index_test(found, seed)
    exclusive, apart = measures.label_margins(named, asked.arms, labels)
    declined, gap = measures.refusals(named, asked.arms, seed)
    questions = (
        ("index", f"Do answers about {_two(asked)} lean differently?", leaning, index),
        ("labels", f"Are the labels of {_two(asked)} the same altogether?", exclusive, apart),
        ("refusals", f"Are {_two(asked)} declined equally often?", declined, gap),
    )
    adjusted = over_families(holm([tested.p for _, _, tested, _ in questions]), EACH)
    results = [
        _named(name, question, tested, figure, p, asked)
        for (name, question, tested, figure), p in zip(questions, adjusted, strict=True)
    ]
    return (*results, *_by_label(named, labels, asked, seed))


def _named(
    name: str, question: str, tested: Tested, figure: Figure, p: float | None, asked: Asked
) -> TestResult:
    margin = asked.margin if name in ("index", "refusals") else None
    verdict = measures.judged(p, figure.interval, asked.alpha, margin)
    said = _sentence(name, figure, verdict, asked)
    return TestResult(
        name, question, asked.arms, figure, verdict, tested.p, p, tested.method, of_share(HOLM, EACH),
        "named", said, margin,
    )  # fmt: skip


def _by_label(
    named: Sequence[Reading], labels: Sequence[str], asked: Asked, seed: int
) -> list[TestResult]:
    draws = _draws(named)
    found = []
    ps = over_families(measures.label_p_values(draws, asked.arms, labels, seed), EACH)
    for label, p in zip(labels, ps, strict=True):
        counts: dict[str, list[int]] = {}
        for d in draws:
            if d.label is not None:
                held = counts.setdefault(d.template, [0, 0, 0, 0])
                at = 0 if d.arm == asked.arms[0] else 2
                held[at] += d.label == label
                held[at + 1] += 1
        value, interval = pooled_difference(
            [(h[0], h[1], h[2], h[3]) for h in counts.values()], seed
        )
        figure = Figure(
            f"label:{label}", f"share of '{_said(label)}': {asked.arms[0]} less {asked.arms[1]}",
            value, interval, len(counts), "templates",
            reason="" if value is not None else "an arm has no label",
        )  # fmt: skip
        verdict = measures.judged(p, interval, asked.alpha, asked.margin)
        found.append(
            TestResult(
                figure.id,
                f"Is '{_said(label)}' said equally often of {_two(asked)}?",
                asked.arms,
                figure,
                verdict,
                None,
                p,
                "sign-flip of rows and templates",
                of_share(MAX_T, EACH),
                "labels",
                _sentence(f"'{_said(label)}'", figure, verdict, asked),
                asked.margin,
            )
        )
    return found


def _two(asked: Asked) -> str:
    return f"{asked.arms[0]} and {asked.arms[1]}"


def _sentence(name: str, figure: Figure, verdict: VerdictKind, asked: Asked) -> str:
    a, b = asked.arms
    if figure.value is None:
        return f"Nothing can be said about {a} and {b}: {figure.reason}."
    if verdict is VerdictKind.EQUIVALENT:
        return f"{_harm(name, asked)}: {a} and {b} differ by less than {asked.margin:g}{_span(figure.interval)}."
    if verdict is VerdictKind.INCONCLUSIVE:
        return (
            f"{_harm(name, asked)}: {figure.value:+.3f} for {a} against {b}{_span(figure.interval)}; "
            "neither a difference nor its absence is shown."
        )
    if name == "labels":
        return (
            f"Answers about {a} and {b} are about different things: {figure.value:.0%} would have to "
            "change their label."
        )
    more, less = (a, b) if figure.value > 0 else (b, a)
    return f"{_harm(name, asked)}: more of {more} than of {less}, by {abs(figure.value):.3f}{_span(figure.interval)}."


def _said(label: str) -> str:
    """The label's id as words."""
    return label.replace("_", " ")


def _harm(name: str, asked: Asked) -> str:
    ends = asked.preset.ends
    return {
        "index": f"{ends[0].capitalize()} rather than {ends[1]} is said",
        "labels": "What is said altogether",
        "refusals": "Questions are declined",
    }.get(name, f"{name} is said")


def _span(interval: Interval | None) -> str:
    return f" (95 % interval {interval.low:+.3f} to {interval.high:+.3f})" if interval else ""


def _tables(
    every: Sequence[Unit],
    diagnoses: Sequence[Diagnosis],
    rows: Sequence[str],
    asked: Asked,
    seed: int,
) -> tuple[Table, ...]:
    found = [
        tables.proofs(asked.pairs),
        tables.of_rows(every, rows, seed),
        tables.of_templates(diagnoses, asked.ratings),
        tables.of_filter(asked.filtered),
    ]
    odd = tables.flagged(asked.pairs)
    return (*found, odd) if odd else tuple(found)
