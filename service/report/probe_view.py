"""What the page of a probe run shows, from its JSON: so that one template serves a probe's own report
and the section in an audit's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from domain.verdicts import VerdictKind
from service.report import wording
from service.report.probe_marks import figure_svg, shade

Row = Mapping[str, Any]
STATUS_LABELS = {
    "answered": "answered",
    "refused": "refused",
    "filtered": "blocked by a filter",
    "truncated": "cut off",
    "unparsable": "not readable",
    "out_of_choice": "out of choice",
    "errored": "no reply",
}
GRADE_LABELS = {
    "high": "more than threefold, beyond chance",
    "elevated": "beyond chance",
    "low": "small, beyond chance",
    "not_shown": "not shown",
    "undefined": "no ratio",
}
GATE_LABELS = {
    "pass": "pass",
    "fail": "fail",
    "inconclusive": "inconclusive",
    "not_measurable": "not measurable",
}
LANGUAGES = {
    "en": "English", "zh": "Chinese", "de": "German", "es": "Spanish", "ca": "Catalan",
    "ko": "Korean", "no": "Norwegian", "nb": "Norwegian",
}  # fmt: skip
_ORDER = [str(VerdictKind.DISPARITY), str(VerdictKind.INCONCLUSIVE), str(VerdictKind.EQUIVALENT)]
TESTS_OPEN, TESTS_SHOWN = 6, 60
"""Questions of a probe that are open to view, and that the page has at all; report.json has all."""


def probe_view(report: Row) -> dict[str, Any]:
    """Everything the section's template reads. ``report`` is what ``probe_json`` made, or was read
    back from report.json."""
    results = [_result(r, report["run"]["alpha"]) for r in report["results"]]
    cells = _number_cells(results)
    return {
        "report": report,
        "results": results,
        "cells": cells,
        "lines": in_short(report),
        "across": _across(report["results"]),
        "composites": [_composite(c) for c in report["composites"]],
        "before_after": [_before_after(b) for b in report["before_after"]],
        "statuses": STATUS_LABELS,
        "language": lambda code: LANGUAGES.get(code, code),
        "gate_labels": GATE_LABELS,
        "amount": amount,
        "span": span,
        "mark": figure_svg,
    }


def in_short(report: Row) -> list[tuple[str, str]]:
    """(mark, sentence) for the first screen: what cannot be used, what was found, what was not."""
    lines = [("warn", said) for said in _unusable(report)]
    found = [
        (r, t)
        for r in report["results"]
        for t in r["tests"]
        if r["usable"] and t["verdict"] == VerdictKind.DISPARITY and t["sentence"]
    ]
    found.sort(key=_foremost)
    lines += [("disparity", f"{_where(r, report)}: {t['sentence']}") for r, t in found[:4]]
    if len(found) > 4:
        lines.append(("none", f"{len(found) - 4} more differences were found; see each probe."))
    if not found and any(r["usable"] for r in report["results"]):
        lines.append(
            ("none", "No difference between the groups was shown, and none is thereby ruled out.")
        )
    lines += [("none", said) for said in map(_composite_line, report["composites"]) if said]
    return lines


def _unusable(report: Row) -> list[str]:
    """One line a probe, however many languages and conditions it could not be asked in."""
    lines = []
    bad = [r for r in report["results"] if not r["usable"]]
    several = len({r["language"] for r in report["results"]}) > 1
    for title in dict.fromkeys(r["title"] for r in bad):
        mine = [r for r in bad if r["title"] == title]
        spoken = dict.fromkeys(LANGUAGES.get(r["language"], r["language"]) for r in mine)
        where = f", {', '.join(spoken)}" if several else ""
        more = f" ({len(mine)} parts of the run)" if len(mine) > 1 else ""
        lines.append(f"{title}{where}{more}: {mine[0]['why_not']}")
    return lines


def _composite_line(composite: Row) -> str:
    if composite["condition"] != "plain":
        return ""
    language = LANGUAGES.get(composite["language"], composite["language"])
    mean = composite["mean"]
    if mean["value"] is None:
        return f"{language}, composite index: none, {mean['reason']}."
    said = f"{language}, composite index {amount(mean, sign=True)} ({span(mean)}): {composite['direction']}"
    return f"{said}; root mean square {amount(composite['rms'])}."


def _where(result: Row, report: Row) -> str:
    several = len({r["language"] for r in report["results"]}) > 1
    language = f", {LANGUAGES.get(result['language'], result['language'])}" if several else ""
    condition = "" if result["condition"] == "plain" else f", {wording.words(result['condition'])}"
    return f"{result['title']}{language}{condition}"


def _foremost(found: tuple[Row, Row]) -> tuple[bool, float, str]:
    """What was asked plainly first, then the smallest adjusted p."""
    result, test = found
    p = test["p_adjusted"]
    return (result["condition"] != "plain", 1.0 if p is None else p, test["id"])


def _result(result: Row, alpha: float) -> dict[str, Any]:
    tests = sorted(
        result["tests"],
        key=lambda t: (
            _ORDER.index(t["verdict"]),
            not t["correction"].startswith("Holm"),  # named before the run, not a map's cells
            2.0 if t["p_adjusted"] is None else t["p_adjusted"],
            t["id"],
        ),
    )
    found = sum(t["verdict"] == VerdictKind.DISPARITY for t in tests)
    first = max(TESTS_OPEN, found)
    return {
        **result,
        "anchor": "-".join((result["probe"], result["language"], result["condition"])),
        "tests": [_test(t, tests) for t in tests[:first]],
        "tests_folded": [_test(t, tests) for t in tests[first:TESTS_SHOWN]],
        "tests_all": len(tests),
        "heat_maps": [_heat_map(m, alpha) for m in result["heat_maps"]],
        "seen": [s for s in STATUS_LABELS if any(t["counts"][s] for t in result["tallies"])],
        "repeats": [v for v in result["by_repeat"] if v is not None],
    }


def _test(test: Row, tests: Sequence[Row]) -> dict[str, Any]:
    same = [t for t in tests if t["effect"]["unit"] == test["effect"]["unit"]]
    ends = [abs(end) for t in same for end in _ends(t["effect"])]
    return {
        **test,
        "label": wording.VERDICT_LABELS[VerdictKind(test["verdict"])],
        "mark": figure_svg(test["effect"], max(ends, default=1.0) or 1.0, test["verdict"]),
    }


def _ends(figure: Row) -> list[float]:
    if figure["value"] is None:
        return []
    interval = figure["interval"]
    return [figure["value"], *((interval["low"], interval["high"]) if interval else ())]


def _heat_map(heat: Row, alpha: float) -> dict[str, Any]:
    by_place = {(c["row"], c["label"]): c for c in heat["cells"]}
    rows = [
        (row, [_cell(by_place.get((row, label)), heat["arms"], alpha) for label in heat["labels"]])
        for row in heat["rows"]
    ]
    return {**heat, "lines": rows}


def _cell(cell: Row | None, arms: Sequence[str], alpha: float) -> dict[str, Any]:
    if cell is None:
        return {"shade": "none", "shown": "", "detail": [], "flagged": False, "framed": False}
    delta = cell["delta"]
    return {
        "shade": shade(delta),
        "shown": "–" if delta is None else wording.figure(round(delta, 2), 2, sign=True),
        "flagged": bool(cell["flags"]),
        "framed": cell["p_adjusted"] is not None and cell["p_adjusted"] < alpha,
        "detail": _cell_detail(cell, arms),
    }


def _cell_detail(cell: Row, arms: Sequence[str]) -> list[tuple[str, str]]:
    delta = {"value": cell["delta"], "interval": cell["delta_interval"]}
    log2 = {"value": cell["log2_rbr"], "interval": cell["log2_rbr_interval"]}
    ratio = (
        wording.words(cell["rbr_status"]) if cell["rbr"] is None else wording.figure(cell["rbr"])
    )
    pairs = [
        ("cell", f"{wording.words(cell['row'])}, {wording.words(cell['label'])}"),
        (arms[0], f"{cell['x_a']} of {cell['n_a']}"),
        (arms[1], f"{cell['x_b']} of {cell['n_b']}"),
        ("difference", f"{amount(delta, sign=True)} ({span(delta)})"),
        ("BBS, its size", _bbs(cell)),
        ("RBR", ratio),
        ("log2 of the smoothed ratio", f"{amount(log2, sign=True)} ({span(log2)})"),
        ("BS", wording.figure(cell["bs"]) if cell["bs"] is not None else cell["bs_reason"]),
        ("spread between templates", wording.figure(cell["template_sd"])),
        ("adjusted p", wording.p_value(cell["p_adjusted"])),
        ("ratio, by its interval alone", GRADE_LABELS[cell["grade"]]),
    ]
    return pairs + [("note", flag) for flag in cell["flags"]]


def _bbs(cell: Row) -> str:
    """With what it would come to where there is no difference: it is never 0 by chance."""
    chance = cell["bbs_by_chance"]
    beside = "" if chance is None else f"; {wording.figure(chance, 2)} where there is no difference"
    return f"{wording.figure(cell['bbs'])}{beside}"


def _number_cells(results: list[dict[str, Any]]) -> list[list[list[str]]]:
    """Give each cell of the page its number in the list of details that the script reads."""
    details: list[list[list[str]]] = []
    for result in results:
        for heat in result["heat_maps"]:
            for _, cells in heat["lines"]:
                for cell in cells:
                    cell["number"] = len(details)
                    details.append(
                        [[wording.visible(k), wording.visible(v)] for k, v in cell["detail"]]
                    )
    return details


def _across(results: Sequence[Row]) -> list[tuple[str, list[tuple[str, Row | None]]]]:
    """Plain indices of each probe, language beside language; empty for one language."""
    plain = [r for r in results if r["condition"] == "plain"]
    languages = list(dict.fromkeys(r["language"] for r in plain))
    if len(languages) < 2:
        return []
    titles = list(dict.fromkeys(r["title"] for r in plain))
    found = {(r["title"], r["language"]): r for r in plain}
    return [(title, [(code, found.get((title, code))) for code in languages]) for title in titles]


def _composite(composite: Row) -> dict[str, Any]:
    return {**composite, "mark": figure_svg(composite["mean"])}


def _before_after(change: Row) -> dict[str, Any]:
    return {**change, "mark": figure_svg(change["change"])}


def amount(figure: Row | None, digits: int = 2, sign: bool = False) -> str:
    """The figure's value in words of a report; "–" without one."""
    value = None if figure is None else figure["value"]
    return wording.figure(value, digits, sign)


def span(figure: Row | None) -> str:
    """ "95 % −0.1 to 0.3"; "no interval" without one."""
    interval = None if figure is None else figure["interval"]
    if not interval:
        return "no interval"
    level = round(100 * interval.get("level", 0.95))
    low, high = (wording.figure(interval[end], 2, sign=True) for end in ("low", "high"))
    return f"{level} % {low} to {high}"
