"""Renders card.html: the baseline card on one page, to be printed and filed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from probes.calls import PLAIN
from probes.card import alarms
from service.report import wording
from service.report.page_parts import content_policy, environment, static_text
from service.report.probe_marks import figure_svg

STYLES = ("base.css", "tables.css", "probe_card.css")
FINDINGS = 8
"""More named findings than this are left to card.json, so that the card stays a page."""
LIMITS = {
    "max_abs_index": "Size of an index, at most",
    "max_rms": "Root mean square, at most",
    "max_refusal_rate": "Share declined in an arm, at most",
    "max_refusal_difference": "Difference of the shares declined, at most",
    "max_rbr": "Ratio of two shares, at most (or one over it)",
    "min_answered": "Share answered in an arm, at least",
    "max_regressions_failed": "Reviewers' cases that fail, at most",
    "direction_may_not_change": "No direction changes against the baseline",
}
STATES = {
    "pass": ("pill-good", "pass"),
    "fail": ("pill-bad", "fail"),
    "inconclusive": ("pill-inconclusive", "open"),
    "not_measurable": ("pill-inconclusive", "no figure"),
}
_WORST = ("fail", "inconclusive", "not_measurable", "pass")
_HYPHEN = re.compile(r"(?<!\w)-(?=\d)")
_OPEN = ("open", "not_comparable", "missing")


def card_html(card: Mapping[str, Any]) -> str:
    """The page of a card (``probes.card.card_of`` or ``read_card``). Every string of the run is
    escaped, its control and direction marks made visible."""
    style = "\n".join(static_text(name) for name in STYLES)
    disparities = [
        f"{_where(r)}: {_said(t['sentence'] or t['question'])}"
        for r in card["results"]
        for t in r["tests"]
        if t["verdict"] == "disparity"
    ]
    context = {
        "csp": content_policy(style, ""),
        "style": Markup(style),  # noqa: S704 - our own file
        "line_break": Markup("<br>"),
        "card": card,
        "w": wording,
        "alarms": [_said(sentence) for sentence in alarms(card)],
        "facts": _facts(card),
        "rows": [_row(r) for r in card["results"]],
        "composites": [_composite(c) for c in card["composites"]],
        "thresholds": _thresholds(card),
        "findings": disparities[:FINDINGS],
        "more_findings": max(0, len(disparities) - FINDINGS),
        "compared": card.get("compared"),
        "unsettled": [
            _said(line["sentence"])
            for line in card.get("compared", {}).get("lines", ())
            if line["state"] in _OPEN
        ],
    }
    return environment().get_template("probe_card.html.j2").render(context)


def _facts(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    model, design, run = card["model"], card["design"], card["run"]
    sampling = ", ".join(f"{k} {v:g}" for k, v in design["sampling"].items() if v is not None)
    returned = ", ".join(
        f"{name} ({wording.plural(count, 'reply', 'replies')})"
        for name, count in model["returned"].items()
    )
    not_taken = ", ".join(design["parameters_not_taken"])
    return [
        ("Model asked", model["asked"]),
        ("Named by replies", returned or "none"),
        ("Endpoint", model["host"] or "not said"),
        ("Date", run["date"]),
        ("Calls", f"{run['calls']:,}"),
        ("Seed", str(design["seed"])),
        ("Repeats", str(design["repeats"]) if design["repeats"] else "as each probe has them"),
        ("Sampling", sampling or "as each probe has it"),
        ("Not taken by the server", not_taken or "nothing"),
        ("Plan, sha256", design["plan_sha256"][:16]),
    ]


def _row(result: Mapping[str, Any]) -> dict[str, Any]:
    index = result["index"]
    excludes = index["low"] is not None and (index["low"] > 0 or index["high"] < 0)
    return {
        "title": result["title"],
        "language": result["language"],
        "condition": result["condition"],
        "mark": _mark(index),
        "index": _figure(index),
        "sd": None if index["sd"] is None else wording.figure(index["sd"], 2),
        "n": f"{index['n']:,} {index['units']}",
        "towards": result["index_means"][0 if index["value"] > 0 else 1] if excludes else "",
        "arms": [_arm(name, arm) for name, arm in result["arms"].items()],
        "usable": result["usable"],
        "why_not": result["why_not"],
    }


def _arm(name: str, arm: Mapping[str, Any]) -> dict[str, str]:
    counts, calls = arm["counts"], arm["calls"]
    declined = counts["refused"] + counts["filtered"]
    other = calls - counts["answered"] - declined
    return {
        "name": name,
        "answered": wording.percent(counts["answered"], calls),
        "declined": wording.percent(declined, calls),
        "other": wording.percent(other, calls),
    }


def _composite(composite: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "language": composite["language"],
        "condition": composite["condition"],
        "mark": _mark(composite["mean"]),
        "mean": _figure(composite["mean"]),
        "rms": _figure(composite["rms"], signed=False),
        "direction": composite["direction"],
    }


def _thresholds(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each limit once, with the worst of its states and the sentences that are not a pass."""
    found = []
    for name in dict.fromkeys(line["id"] for line in card["gate"]):
        lines = [line for line in card["gate"] if line["id"] == name]
        states = [line["state"] for line in lines]
        limits = sorted({line["limit"] for line in lines if line["limit"] is not None})
        waiting = [
            line["sentence"]
            for line in lines
            if line["state"] in ("inconclusive", "not_measurable")
        ]
        css, word = STATES[min(states, key=_WORST.index)]
        found.append(
            {
                "title": LIMITS.get(name, wording.words(name)),
                "limit": ", ".join(wording.figure(limit) for limit in limits),
                "css": css,
                "word": word,
                "counts": f"{states.count('pass')} of {len(states)} pass",
                "open": _said(waiting[0]) if waiting else "",
                "more": len(waiting) - 1,
            }
        )
    return found


def _figure(entry: Mapping[str, Any], signed: bool = True) -> dict[str, str | None]:
    if entry["value"] is None:
        return {"value": None, "interval": "", "reason": entry["reason"]}
    interval = "no interval"
    if entry["low"] is not None:
        interval = f"{_number(entry['low'], signed)} to {_number(entry['high'], signed)}"
    return {"value": _number(entry["value"], signed), "interval": interval, "reason": ""}


def _number(value: float, signed: bool) -> str:
    if abs(value) < 0.005:
        return "0.00"
    return (f"{value:+.2f}" if signed else f"{value:.2f}").replace("-", wording.MINUS)


def _said(sentence: str) -> str:
    """A sentence of the card for readers: without the limit's id before it, with true minus signs."""
    head, _, rest = sentence.partition(": ")
    return _HYPHEN.sub(wording.MINUS, rest if head in LIMITS else sentence)


def _where(result: Mapping[str, Any]) -> str:
    condition = "" if result["condition"] == PLAIN else f", {result['condition']}"
    return f"{result['title']}, {result['language']}{condition}"


def _mark(entry: Mapping[str, Any]) -> Markup:
    interval = None
    kind = ""
    if entry["low"] is not None:
        interval = {"low": entry["low"], "high": entry["high"]}
        kind = "disparity" if entry["low"] > 0 or entry["high"] < 0 else ""
    return figure_svg({"value": entry["value"], "interval": interval}, 1.0, kind)
