"""``likeness probe compare``: two baseline cards, and whether anything must be looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.escape import printable
from service.gate import OF_DECISION

if TYPE_CHECKING:
    from probes.card_compare import CardLine, Comparison
    from probes.results import Figure

WORDS = {
    "alarm": "ALARM",
    "open": "cannot be told",
    "not_comparable": "not comparable",
    "missing": "missing",
    "changed": "changed",
    "added": "new",
    "no_change_shown": "no change shown",
}
"""What became of a figure, for people."""
ENDS = {
    "pass": "No alarm.",
    "fail": "ALARM: look at this before the release.",
    "inconclusive": "Inconclusive: not everything could be compared.",
}


def add(group: typer.Typer) -> None:
    """Add the command to ``likeness probe``."""
    group.command("compare")(compare)


def compare(
    earlier: Annotated[Path, typer.Argument(metavar="CARD_A", help="card.json to compare with.")],
    later: Annotated[Path, typer.Argument(metavar="CARD_B", help="card.json of the later run.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Compare two baseline cards: exit 0 no alarm, 1 alarm, 2 cannot read, 3 inconclusive.

    An alarm is a direction that turned over, came or went, a difference that grew, or more calls
    declined, each beyond what the intervals allow (Holm over all figures). What was asked otherwise is
    not compared, and says why.
    """
    from probes.card import read_card
    from probes.card_compare import compare_cards

    first, second = read_card(earlier), read_card(later)
    found = compare_cards(first, second)
    if as_json:
        print(json.dumps(as_data(first, second, found)))
    else:
        for line in as_lines(first, second, found):
            print(printable(line))
    raise typer.Exit(OF_DECISION[found.decision])


def as_data(
    first: Mapping[str, Any], second: Mapping[str, Any], found: Comparison
) -> dict[str, Any]:
    """The comparison for machines."""
    return {
        "schema": "likeness-card-comparison/1",
        "decision": str(found.decision),
        "cards": [
            {
                "sha256": card["sha256"],
                "date": card["run"]["date"],
                "name": card["run"]["name"],
                "model": card["model"]["asked"],
                "returned": sorted(card["model"]["returned"]),
            }
            for card in (first, second)
        ],
        "notices": list(found.notices),
        "lines": [_line_data(line) for line in found.lines],
    }


def as_lines(first: Mapping[str, Any], second: Mapping[str, Any], found: Comparison) -> list[str]:
    """The comparison for people: the cards, what to know of them, a table, what the table leaves
    unsaid, and the end."""
    lines = [
        f"{which}: {card['run']['name']}, {card['run']['date']}, model {card['model']['asked']}"
        f" at {card['model']['host'] or 'an unnamed host'}"
        for which, card in (("then", first), ("now ", second))
    ]
    lines += [f"note: {notice}" for notice in found.notices]
    rows: list[tuple[str, ...]] = [
        ("probe", "language", "condition", "figure", "then", "now", "change", "result")
    ]
    rows += [_row(line) for line in found.lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines.append("")
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    lines.append("")
    said = [line for line in found.lines if line.state not in ("no_change_shown", "added")]
    told = {_reason(line): f"{WORDS[line.state]}: {line.sentence}" for line in reversed(said)}
    lines += reversed(told.values())  # a reason once, with the first figure that it concerns
    if said:
        lines.append("")
    lines.append(ENDS[str(found.decision)])
    return lines


def _reason(line: CardLine) -> tuple[str, ...]:
    """What two lines must share for the second to say nothing new."""
    if line.state != "not_comparable":
        return (line.sentence,)
    place = (line.probe, line.language, line.condition)
    return (*place, line.sentence.partition(" cannot be compared: ")[2])


def _row(line: CardLine) -> tuple[str, ...]:
    from probes.card_change import told

    shown = line.state not in ("not_comparable", "missing", "added")
    return (
        line.probe,
        line.language,
        line.condition,
        line.figure,
        _figure(line.before),
        _figure(line.after),
        told(line.change.value, line.change.interval) if shown else "-",
        WORDS[line.state],
    )


def _figure(figure: Figure | None) -> str:
    from probes.card_change import told

    if figure is None:
        return "-"
    return told(figure.value, figure.interval)


def _line_data(line: CardLine) -> dict[str, Any]:
    interval = line.change.interval
    shown = line.state not in ("not_comparable", "missing", "added")
    return {
        "probe": line.probe,
        "language": line.language,
        "condition": line.condition,
        "figure": line.figure,
        "state": line.state,
        "before": _figure_data(line.before),
        "after": _figure_data(line.after),
        "change": line.change.value if shown else None,
        "low": interval.low if interval and shown else None,
        "high": interval.high if interval and shown else None,
        "p_adjusted": line.p_adjusted,
        "sentence": line.sentence,
    }


def _figure_data(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    interval = figure.interval
    return {
        "value": figure.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "reason": figure.reason,
    }
