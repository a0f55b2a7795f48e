"""``likeness probe score``: scores of a benchmark from answers that were made elsewhere."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from domain.errors import LikenessError, did_you_mean
from probes.analysis import ranking
from probes.benchmarks.counting import Answer
from probes.benchmarks.items import loaders
from probes.benchmarks.predictions import Loaded, load_answers
from probes.benchmarks.scoring import Scores, score
from probes.benchmarks.telling import bound_notices
from probes.calls import Status
from probes.results import Figure, Interval
from service.cli.escape import printable

RANKING = "resume_ranking"
_RANGE = ("bias_range_disamb_low", "bias_range_disamb_high")
_STATUS_KEYS = {
    "unmatched": Status.UNPARSABLE,
    "out_of_choice": Status.OUT_OF_CHOICE,
    "no_answer": Status.ERRORED,
}


class RuleName(StrEnum):
    """How an answer becomes an option."""

    AUTO = "auto"
    INDEX = "index"
    UNIFIEDQA = "unifiedqa"
    WORDS = "words"


def add(group: typer.Typer) -> None:
    """Add the command to the group."""
    group.command("score")(run)


def run(
    benchmark: Annotated[
        str, typer.Option(help="bbq, ggbbq, cbbq, kobbq, esbbq, nobbq or resume_ranking.")
    ],
    rows: Annotated[
        list[Path], typer.Option(help="File of rows, gzip or plain; give it again for more files.")
    ],
    predictions: Annotated[
        str, typer.Option(help="Column of the rows that has the answers, or a JSON file of lists.")
    ] = "",
    key: Annotated[str, typer.Option(help="Entry of a JSON file that has several.")] = "",
    language: Annotated[str, typer.Option(help="Of the rows, where the file does not tell.")] = "",
    matching: Annotated[
        RuleName, typer.Option(help="How an answer becomes an option.")
    ] = RuleName.AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Of the intervals.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Score answers to a benchmark of the BBQ family, or rankings of resumes, made elsewhere.

    Plus is towards the stereotype. Intervals are 95 % and draw whole templates. Exit 0 when it was
    scored, 2 when it could not be.
    """
    if benchmark == RANKING:
        _rankings(rows, seed, as_json)
        return
    if benchmark not in loaders():
        known = [*loaders(), RANKING]
        hint = did_you_mean(benchmark, known)
        raise LikenessError(f"unknown benchmark '{benchmark}'{hint} (known: {', '.join(known)})")
    if not predictions:
        raise LikenessError("--predictions is needed: a column of the rows, or a JSON file")
    loaded = load_answers(
        benchmark, rows, predictions, key=key, language=language, rule=matching.value
    )
    scores = score(loaded.answers, seed)
    found = answer(benchmark, loaded, scores, seed)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        _show(found, scores)


def _rankings(rows: list[Path], seed: int, as_json: bool) -> None:
    if len(rows) != 1:
        raise LikenessError("resume_ranking: one file of rows at a time")
    found = ranking.score_file(rows[0], seed)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    table = Table("task", "replies", "least chosen", "most chosen", "gap", "p (Holm)", "disparity")
    for t in found["tasks"]:
        p = "none" if t["p_adjusted"] is None else f"{t['p_adjusted']:.3g}"
        told = [t["job"], str(t["replies"]), t["least_chosen"], t["most_chosen"], _short(t["gap"])]
        table.add_row(*map(printable, [*told, p, "yes" if t["disparity"] else "not shown"]))
    Console(file=sys.stdout).print(table)


def answer(benchmark: str, loaded: Loaded, scores: Scores, seed: int) -> dict[str, Any]:
    """Everything about the answers as plain data: all of them, then each category."""
    by_category: dict[str, list[Answer]] = defaultdict(list)
    for one in loaded.answers:
        by_category[one.item.category].append(one)
    return {
        "benchmark": benchmark,
        "matching": loaded.rule,
        **plain(scores),
        "notices": bound_notices(scores),
        "by_category": {name: plain(score(some, seed)) for name, some in by_category.items()},
    }


def plain(scores: Scores) -> dict[str, Any]:
    """Figures under their names with their intervals, methods, counts and reasons beside them."""
    singles = {name: f for name, f in scores.figures.items() if name not in _RANGE}
    low, high = (scores.figures[name] for name in _RANGE)
    there = low.value is not None
    counts = scores.counts
    return {
        **{name: f.value for name, f in singles.items()},
        "bias_range_disamb": [low.value, high.value] if there else None,
        "intervals": {
            **{name: _ends(f.interval) for name, f in singles.items()},
            "bias_range_disamb": [_ends(low.interval), _ends(high.interval)] if there else None,
        },
        "intervals_wilson": {name: _ends(i) for name, i in scores.wilson.items()},
        "methods": {
            name: f.interval.method for name, f in scores.figures.items() if f.interval is not None
        },
        "reasons": {name: f.reason for name, f in scores.figures.items() if f.reason},
        "rows": counts.of("asked"),
        "n": {
            "ambiguous": counts.of("answered", "ambiguous"),
            "disambiguated": counts.of("answered", "disambiguated"),
        },
        **{name: counts.status(status) for name, status in _STATUS_KEYS.items()},
        "no_unique_target": counts.of("no_unique_target"),
        "templates": len(counts.clusters),
        "distinct_contexts": counts.contexts or None,
        "n_b": counts.total("n_b"),
        "k_b": counts.total("k_b"),
        "n_c": counts.total("n_c"),
        "k_c": counts.total("k_c"),
        "counts": [
            {
                "context": c.condition,
                "question": c.polarity,
                "rows": c.asked,
                "no_unique_target": c.no_unique_target,
                "answered": c.answered,
                "correct": c.correct,
                "unknown": c.unknown,
                "towards": c.towards,
                "against": c.against,
                **{name: c.statuses.get(status, 0) for name, status in _STATUS_KEYS.items()},
            }
            for c in counts.cells
        ],
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _show(found: dict[str, Any], scores: Scores) -> None:
    table = Table("figure", "value", "95 % interval", "Wilson", "n")
    table.columns[0].no_wrap = True
    for name, figure in scores.figures.items():
        wilson = scores.wilson.get(name)
        table.add_row(
            name, _value(figure), _span(figure.interval, figure), _span(wilson), str(figure.n)
        )
    console = Console(file=sys.stdout)
    console.print(table)
    lines = [
        f"{found['rows']:,} rows of {found['templates']} templates; without an option: "
        + ", ".join(f"{found[name]:,} {name.replace('_', ' ')}" for name in _STATUS_KEYS),
        f"{found['no_unique_target']:,} rows have no unique target and are in no figure",
        f"texts with the stereotype: {found['k_b']:,} of {found['n_b']:,} right; against it: "
        f"{found['k_c']:,} of {found['n_c']:,}",
        "plus is towards the stereotype; Wilson's interval takes items for independent, which those of "
        "one template are not",
        *bound_notices(scores),
    ]
    for line in lines:
        console.print(line, highlight=False)
    _show_categories(console, found["by_category"])


def _show_categories(console: Console, categories: dict[str, Any]) -> None:
    if len(categories) < 2:
        return
    names = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
    table = Table("category", "rows", *names)
    for category, figures in categories.items():
        cells = [_short(figures[name]) for name in names]
        table.add_row(printable(category), str(figures["rows"]), *cells)
    console.print(table)


def _value(figure: Figure) -> str:
    if figure.value is None:
        return f"none: {figure.reason}"
    return f"{figure.value:.1f} %" if figure.unit == "%" else f"{figure.value:.3f}"


def _span(interval: Interval | None, figure: Figure | None = None) -> str:
    if interval is None:
        return ""
    digits = 1 if figure is not None and figure.unit == "%" else 3
    return f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"
