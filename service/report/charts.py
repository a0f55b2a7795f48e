"""What the report's drawings are made of: the columns the browser plots, and small interval marks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from domain.measurements import Outcome
from domain.verdicts import Verdict
from metrics.contract import MetricSpec
from service.report.exclusions import LEVELS
from service.report.groups import Grouping, attribute_label, heat_axes, ordered, ordinal
from service.report.model import ItemRow, RunData
from service.report.pictures import Embedded
from service.report.tables import tool_order, worst_first
from service.report.wording import (
    DECISION_LABELS,
    DIRECTION_LABELS,
    OUTCOME_LABELS,
    visible,
    words,
)

OUTCOME, HEALTH = "outcome:", "health_"
WORST_SHOWN = 4
"""Worst items drawn at once for each tool."""


def script_json(value: object) -> Markup:
    """JSON that is safe inside a ``<script>`` element: no "<", ">", "&" and no line separators."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - escaped just above


def metric_name(spec: MetricSpec | None, metric: str) -> str:
    """Words for a metric, an outcome's rate ("outcome:refused") or a health score."""
    if spec is not None:
        short = spec.name.split(" (", maxsplit=1)[0]
        return short[:1].upper() + short[1:]
    if metric.startswith(OUTCOME):
        ended = metric.removeprefix(OUTCOME)
        return f"Rate of “{OUTCOME_LABELS[Outcome(ended)] if ended in set(Outcome) else ended}”"
    if metric.startswith(HEALTH):
        return f"Health score, profile “{words(metric.removeprefix(HEALTH))}”"
    return words(metric)


def metric_entry(spec: MetricSpec | None, metric: str, unit: str) -> dict[str, Any]:
    """Name, unit, direction, threshold of a metric; only its id and unit where it has no spec."""
    if spec is None and metric.startswith(HEALTH):
        return {
            "id": metric,
            "name": metric_name(None, metric),
            "unit": visible(unit),
            "direction": "higher_is_better",
            "says": DIRECTION_LABELS["higher_is_better"],
            "perfect": 100,
        }
    if spec is None:
        return {
            "id": metric,
            "name": metric_name(None, metric),
            "unit": visible(unit),
            "direction": "",
            "says": "",
        }
    return {
        "id": spec.id,
        "name": metric_name(spec, metric),
        "unit": spec.unit,
        "direction": str(spec.direction),
        "says": DIRECTION_LABELS[str(spec.direction)],
        "perfect": spec.perfect,
        "threshold": spec.threshold,
        "harm": spec.harm,
    }


def payload(
    data: RunData, groups: Grouping, specs: Mapping[str, MetricSpec], pictures: Embedded
) -> dict[str, Any]:
    """Everything the browser draws from, in columns; strings made visible, figures to 5 digits."""
    items = sorted(data.items, key=lambda i: i.item_id)
    index = {item.item_id: number for number, item in enumerate(items)}
    columns, missing, reasons, units = _figures(data, index)
    axes = heat_axes(groups.names)
    return {
        "tools": [{"label": visible(t), "control": c} for t, c in tool_order(data)],
        "attributes": [_attribute(groups, items, name) for name in groups.names],
        "heat": list(axes) if axes else None,
        "items": [_item(item, data, groups) for item in items],
        "outcomes": {str(k): v for k, v in OUTCOME_LABELS.items()},
        "metrics": _metrics(columns, units, specs),
        "values": columns,
        "missing": missing,
        "reasons": reasons,
        "profile": data.plan.profile,
        "minScore": data.plan.min_score,
        "worst": _worst(data, index, pictures),
        "trios": {str(index[k]): v for k, v in pictures.items.items()},
        "problems": {str(index[k]): visible(v) for k, v in pictures.problems.items()},
    }


def _figures(
    data: RunData, index: Mapping[str, int]
) -> tuple[dict[str, list[float | None]], dict[str, dict[str, int]], list[str], dict[str, str]]:
    """Values by "metric|region" with one place an item, and the reason of each missing figure."""
    columns: dict[str, list[float | None]] = {}
    missing: dict[str, dict[str, int]] = {}
    reasons: dict[str, int] = {}
    units: dict[str, str] = {}
    for m in data.measurements:
        if m.item_id not in index:
            continue
        key = f"{m.metric}|{m.region}"
        units.setdefault(m.metric, m.unit)
        column = columns.setdefault(key, [None] * len(index))
        if m.value is None:
            place = reasons.setdefault(visible(m.reason or "no reason given"), len(reasons))
            missing.setdefault(key, {})[str(index[m.item_id])] = place
        else:
            column[index[m.item_id]] = float(f"{m.value:.5g}")
    return columns, missing, list(reasons), units


def _metrics(
    columns: Mapping[str, Sequence[float | None]],
    units: Mapping[str, str],
    specs: Mapping[str, MetricSpec],
) -> list[dict[str, Any]]:
    """Metrics that have figures, in the order of the specs, each with its regions (face first)."""
    regions: dict[str, list[str]] = {}
    for key in columns:
        metric, _, region = key.partition("|")
        regions.setdefault(metric, []).append(region)
    order = [m for m in specs if m in regions] + sorted(m for m in regions if m not in specs)
    return [
        {
            **metric_entry(specs.get(m), m, units[m]),
            "regions": sorted(regions[m], key=lambda r: (r != "face", r)),
        }
        for m in order
    ]


def _attribute(groups: Grouping, items: Sequence[ItemRow], name: str) -> dict[str, Any]:
    values = ordered(groups.of(i, name) for i in items)
    return {
        "name": name,
        "label": visible(attribute_label(name)),
        "planned": name in groups.planned,
        "ordinal": ordinal(values),
        "values": [visible(v) for v in values],
    }


def _item(item: ItemRow, data: RunData, groups: Grouping) -> dict[str, Any]:
    health = {
        profile: [h.score, DECISION_LABELS[h.decision], [visible(r) for r in h.reasons]]
        for profile, h in sorted(item.health.items())
    }
    place = data.cleaning.of(item.item_id).place
    return {
        "id": visible(item.item_id),
        "portrait": visible(item.portrait_id),
        "subject": visible(item.subject_id),
        "tool": visible(item.tool),
        "task": words(item.task),
        "change": words(item.perturbation),
        "outcome": str(item.outcome),
        "reason": visible(item.reason) if item.reason else None,
        "groups": {n: visible(groups.of(item, n)) for n in groups.names},
        "health": health,
        "warnings": [visible(w) for w in item.warnings],
        "aside": None if data.cleaning.counted(item.item_id) else LEVELS[place],
    }


def _worst(data: RunData, index: Mapping[str, int], pictures: Embedded) -> list[dict[str, Any]]:
    """The worst items with a picture, for each tool under test; one picture a person first."""
    ranked = [i for i in worst_first(data) if i.item_id in pictures.items]
    found = []
    for tool, control in tool_order(data):
        if control:
            continue
        mine = [i for i in ranked if i.tool == tool]
        first_of_person = list({i.subject_id: i for i in reversed(mine)}.values())[::-1]
        firsts = {i.item_id for i in first_of_person}
        chosen = (first_of_person + [i for i in mine if i.item_id not in firsts])[:WORST_SHOWN]
        found.append({"tool": visible(tool), "items": [index[i.item_id] for i in chosen]})
    return found


def interval_svg(verdict: Verdict, reach: float) -> Markup:
    """A verdict's effect with its interval on a line from -``reach`` to ``reach``, the margin shaded.

    Empty where there is no effect. Shapes carry classes only: the report's style sheet colours them.
    """
    if verdict.effect is None or reach <= 0:
        return Markup("")
    low, high = verdict.interval or (verdict.effect, verdict.effect)

    def place(value: float) -> float:
        return round(80 + 74 * max(-1.0, min(1.0, value / reach)), 1)

    band = Markup("")
    if verdict.margin:
        left, right = place(-verdict.margin), place(verdict.margin)
        band = Markup(
            '<rect class="iv-margin" x="{}" y="3" width="{}" height="16" rx="2"/>'
        ).format(left, round(right - left, 1))
    return Markup(
        '<svg class="iv iv-{}" viewBox="0 0 160 22" width="160" height="22" aria-hidden="true">{}'
        '<line class="iv-zero" x1="80" x2="80" y1="1" y2="21"/>'
        '<line class="iv-line" x1="{}" x2="{}" y1="11" y2="11"/>'
        '<circle class="iv-dot" cx="{}" cy="11" r="4.5"/></svg>'
    ).format(str(verdict.verdict), band, place(low), place(high), place(verdict.effect))


def reaches(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Half the width of the line for each kind of figure, so that rows of one harm share one scale.

    Wide enough for every effect and for four margins; longer intervals run to the edge.
    """
    ends: dict[str, float] = {}
    fitting: dict[str, float] = {}
    for v in verdicts:
        key = scale_key(v)
        bounds = [abs(e) for e in (v.effect, v.margin, *(v.interval or ())) if e is not None]
        ends[key] = max([ends.get(key, 0.0), *bounds])
        fitting[key] = max(fitting.get(key, 0.0), 1.2 * abs(v.effect or 0.0), 4 * (v.margin or 0.0))
    return {key: min(end, fitting[key] or end) for key, end in ends.items()}


def scale_key(verdict: Verdict) -> str:
    """Verdicts with one key are drawn to one scale: the same metric, as figure or as rate."""
    return f"{verdict.metric} {verdict.event or ''}"
