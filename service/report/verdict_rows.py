"""Verdicts as the rows of a table: what is shown of each, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from domain.verdicts import Verdict, VerdictKind
from metrics.contract import MetricSpec
from service.report import wording
from service.report.charts import interval_svg, metric_name, reaches, scale_key
from service.report.model import RunData

MOST_ROWS = 240
"""Rows in the page; report.json holds every verdict."""
ORDER = (VerdictKind.DISPARITY, VerdictKind.INCONCLUSIVE, VerdictKind.EQUIVALENT)
_BESIDE = {
    "net_of_the_instrument": "Net of what the instrument itself shows on a benign copy",
    "adjusted_for_brightness_eye_distance_pose_and_detail": (
        "With brightness, eye distance, pose and detail of the originals held equal"
    ),
}
_SHOWN_ELSEWHERE = frozenset(("family", "region", "threshold", *_BESIDE))


@dataclass(frozen=True)
class VerdictRow:
    """A verdict with its words and mark; ``named`` when the plan named it before the run.

    ``amount``, ``interval`` and ``margin`` are ready to read; rates in percentage points.
    """

    verdict: Verdict
    name: str
    sentence: str
    label: str
    mark: Markup
    named: bool
    amount: str
    interval: str
    margin: str
    notes: Sequence[str]
    estimates: Sequence[tuple[str, int, int, str, str]]
    details: Sequence[tuple[str, str]]


def verdict_rows(
    data: RunData, verdicts: Sequence[Verdict], specs: Mapping[str, MetricSpec]
) -> list[VerdictRow]:
    """Differences found first, then claims of the plan, then by adjusted p; at most ``MOST_ROWS``."""
    claims = {(c.metric, c.attribute) for c in data.plan.claims}

    def named(v: Verdict) -> bool:
        family = v.details.get("family")
        return family != "exploratory" if family else (v.metric, v.attribute) in claims

    def rank(v: Verdict) -> tuple[bool, bool, int, float, str, str, str]:
        p = 2.0 if v.p_adjusted is None else v.p_adjusted
        kind = ORDER.index(v.verdict)
        found = v.verdict is VerdictKind.DISPARITY
        region = str(v.details.get("region"))
        return (not found, not named(v), kind, p, v.metric, v.tool, region)

    reach = reaches(verdicts)
    shown = sorted(verdicts, key=rank)[:MOST_ROWS]
    return [_row(v, named(v), specs, reach[scale_key(v)]) for v in shown]


def _row(v: Verdict, named: bool, specs: Mapping[str, MetricSpec], reach: float) -> VerdictRow:
    rate = v.event is not None
    scale, unit = (100.0, "points of 100") if rate else (1.0, v.unit)

    def signed(value: float | None) -> str:
        return "–" if value is None else wording.figure(value * scale, 3, sign=True)

    return VerdictRow(
        verdict=v,
        name=_name(v, specs),
        sentence=wording.without_tool(v),
        label=wording.VERDICT_LABELS[v.verdict],
        mark=interval_svg(v, reach),
        named=named,
        amount=f"{signed(v.effect)} {unit}",
        interval=f"{signed(v.interval[0])} to {signed(v.interval[1])}" if v.interval else "",
        margin=f"margin ±{wording.figure(v.margin * scale)}" if v.margin else "",
        notes=_notes(v),
        estimates=[
            (
                e.group,
                e.n,
                e.items,
                _value(e.estimate, rate),
                f"{_value(e.low, rate)} to {_value(e.high, rate)}",
            )
            for e in v.estimates
        ],
        details=_details(v),
    )


def _name(v: Verdict, specs: Mapping[str, MetricSpec]) -> str:
    region = str(v.details.get("region") or "face")
    place = "" if region == "face" else f", {wording.words(region)}"
    spec = specs.get(v.metric)
    event = f", {wording.words(v.event)}" if v.event and not v.metric.startswith("outcome:") else ""
    return metric_name(spec, v.metric) + place + event


def _notes(v: Verdict) -> list[str]:
    """What the sentence does not say already."""
    notes = []
    if v.reason and v.reason not in v.sentence:
        notes.append(v.reason)
    for key, say in _BESIDE.items():
        told = v.details.get(key)
        if told:
            unit = "" if str(told).startswith("cannot") else f" {v.unit}"
            notes.append(f"{say}: {told}{unit}.")
    wanted = v.verdict is VerdictKind.INCONCLUSIVE and v.needed_n is not None
    if wanted and "would settle" not in v.sentence:
        notes.append(f"About {v.needed_n:,} people a group would settle it at 80 % power.")
    return notes


def _value(value: float | None, rate: bool) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if rate else wording.figure(value)


def _details(v: Verdict) -> list[tuple[str, str]]:
    shown = [("p before adjustment", wording.p_value(v.p_value))]
    for key, value in v.details.items():
        if key in _SHOWN_ELSEWHERE or value is None:
            continue
        if key.startswith("p_") and isinstance(value, float):
            text = wording.p_value(value)
        else:
            text = wording.figure(value) if isinstance(value, int | float) else str(value)
        shown.append((wording.words(key), text))
    return shown
