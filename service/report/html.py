"""Renders report.html: one file that needs no network, runs from a folder and locks out foreign code."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from domain.measurements import Outcome
from domain.verdicts import Verdict, VerdictKind
from metrics.contract import MetricSpec
from service.report import tables, wording
from service.report.charts import interval_svg, payload, reaches, script_json
from service.report.groups import MIN_PEOPLE, Grouping, attribute_label
from service.report.model import RunData
from service.report.pictures import embed

HERE = Path(__file__).parent
SCRIPTS = ("core.js", "state.js", "boxplot.js", "heatmap.js", "diagnosis.js", "items.js", "main.js")
STYLES = ("base.css", "tables.css", "explore.css")
ALWAYS_SHOWN = (
    Outcome.MEASURED,
    Outcome.FACE_LOST,
    Outcome.NOT_MEASURABLE,
    Outcome.REFUSED,
    Outcome.FAILED,
)


def render(data: RunData, groups: Grouping, specs: Mapping[str, MetricSpec]) -> str:
    """The page. Every string of the run is escaped, its control and direction marks made visible."""
    style = "\n".join(_static(name) for name in STYLES)
    script = '(() => {\n"use strict";\n' + "\n".join(_static(name) for name in SCRIPTS) + "\n})();"
    pictures = embed(data)
    context = {
        "csp": content_policy(style, script),
        "style": Markup(style),  # noqa: S704 - our own file
        "script": Markup(script),  # noqa: S704 - our own file
        "payload": script_json(payload(data, groups, specs, pictures)),
        "pictures": script_json(pictures.pictures),
        "embedded": len(pictures.items),
        "data": data,
        "w": wording,
        "attribute_label": attribute_label,
        "min_people": MIN_PEOPLE,
        **_summary(data),
        **_sections(data, groups, specs),
    }
    return _environment().get_template("report.html.j2").render(context)


def content_policy(style: str, script: str) -> str:
    """Nothing may load or run except this page's own style and script, by hash, and inline pictures."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _static(name: str) -> str:
    return (HERE / "static" / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        figure=wording.figure,
        p_value=wording.p_value,
        words=wording.words,
        plural=wording.plural,
        sha=lambda text: str(text)[:16],
    )
    return environment


def _finalize(value: Any) -> Any:
    if value is None:
        return "–"
    return value if isinstance(value, Markup) else wording.visible(value)


@dataclass(frozen=True)
class ToolCard:
    """One tool in the summary: its sentence and how its comparisons and items ended."""

    label: str
    models: str
    line: str
    mark: str
    verdicts: Mapping[VerdictKind, int]
    items: int
    people: int
    outcomes: Sequence[tuple[str, str, int, str]]


def _summary(data: RunData) -> dict[str, Any]:
    under_test = [i for i in data.items if not i.control]
    return {
        "cards": [_card(data, t) for t, control in tables.tool_order(data) if not control],
        "facts": [
            (f"{len({r.portrait_id for r in data.instrument}):,}", "portraits"),
            (f"{len({r.subject_id for r in data.instrument}):,}", "people"),
            (f"{len({i.tool for i in under_test}):,}", "tools"),
            (f"{len(under_test):,}", "results asked for"),
            *(
                (f"{sum(i.outcome is o for i in under_test):,}", words)
                for o, words in (
                    (Outcome.FACE_LOST, "faces lost"),
                    (Outcome.REFUSED, "refused"),
                    (Outcome.FAILED, "failed"),
                )
            ),
        ],
        "controls_ok": all(c.ok for c in data.controls) if data.controls else None,
        "controls_failed": [c for c in data.controls if not c.ok],
        "found": sum(r.face_found for r in data.instrument),
        "originals_count": len(data.instrument),
        "date": (data.finished or data.started)[:10],
    }


def _card(data: RunData, label: str) -> ToolCard:
    items = [i for i in data.items if i.tool == label]
    verdicts = [v for v in data.verdicts if v.tool == label]
    counts = {kind: sum(v.verdict is kind for v in verdicts) for kind in VerdictKind}
    mark = "inconclusive"
    if counts[VerdictKind.DISPARITY]:
        mark = "disparity"
    elif verdicts and counts[VerdictKind.EQUIVALENT] == len(verdicts):
        mark = "equivalent"
    ended = [(o, sum(i.outcome is o for i in items)) for o in Outcome]
    return ToolCard(
        label=label,
        models=", ".join(sorted({i.model for i in items if i.model})),
        line=wording.tool_line(verdicts, data.plan.groups),
        mark=mark,
        verdicts=counts,
        items=len(items),
        people=len({i.subject_id for i in items}),
        outcomes=[
            (str(o), wording.OUTCOME_LABELS[o], n, wording.percent(n, len(items)))
            for o, n in ended
            if n
        ],
    )


def _sections(data: RunData, groups: Grouping, specs: Mapping[str, MetricSpec]) -> dict[str, Any]:
    planned = [a for a in groups.planned if a in groups.names]
    crossed = tables.outcome_attributes(groups)
    seen = {i.outcome for i in data.items if not i.control}
    controls = {label for label, control in tables.tool_order(data) if control}
    return {
        "verdicts": _verdict_rows(
            data, [v for v in data.verdicts if v.tool not in controls], specs
        ),
        "control_verdicts": _verdict_rows(
            data, [v for v in data.verdicts if v.tool in controls], specs
        ),
        "outcome_columns": [o for o in Outcome if o in ALWAYS_SHOWN or o in seen],
        "outcome_tables": [(a, tables.outcomes(data, groups, a)) for a in crossed],
        "originals_tables": [(a, tables.originals(data, groups, a)) for a in planned],
        "exclusion_tables": [(a, *_exclusion_table(data, groups, a)) for a in planned[:3]],
        "missing": tables.missing_figures(data)[:40],
        "specs": list(specs.values()),
        "statistics": [s.format(alpha=data.plan.alpha) for s in wording.STATISTICS],
        "engine_note": wording.ENGINES.get(data.plan.engine, data.plan.engine),
        "plan_lines": data.plan_text.splitlines(),
        "sources": _sources(data),
        "attributes": groups.names,
    }


def _exclusion_table(
    data: RunData, groups: Grouping, attribute: str
) -> tuple[list[str], list[tables.ReasonRow]]:
    rows = tables.exclusions(data, groups, attribute)
    return tables.ordered({g for r in rows for g in r.by_group}), rows


def _sources(data: RunData) -> list[str]:
    """Where the portraits come from, as their manifest declares it."""
    found = {
        str(row.attributes[key])
        for row in data.instrument
        for key in ("source", "dataset", "licence", "license")
        if row.attributes.get(key)
    }
    return [data.plan.portraits.manifest, *sorted(found)]


@dataclass(frozen=True)
class VerdictRow:
    """A verdict with the words and the mark the table shows; ``named`` when the plan claims it."""

    verdict: Verdict
    name: str
    harm: str
    label: str
    mark: Markup
    named: bool
    event: str


def _verdict_rows(
    data: RunData, verdicts: Sequence[Verdict], specs: Mapping[str, MetricSpec]
) -> list[VerdictRow]:
    """Named claims first, then differences, then by adjusted p."""
    claims = {(c.metric, c.attribute) for c in data.plan.claims}
    reach = reaches(verdicts)
    order = [VerdictKind.DISPARITY, VerdictKind.INCONCLUSIVE, VerdictKind.EQUIVALENT]
    rows = []
    for v in verdicts:
        spec = specs.get(v.metric.partition("|")[0].partition(":")[0])
        region = str(v.details.get("region") or "")
        name = (spec.name if spec else wording.words(v.metric)) + (
            f", {wording.words(region)}" if region and region != "face" else ""
        )
        rows.append(
            VerdictRow(
                verdict=v,
                name=name,
                harm=spec.harm if spec else "",
                label=wording.VERDICT_LABELS[v.verdict],
                mark=interval_svg(v, reach[v.metric]),
                named=(v.metric, v.attribute) in claims,
                event=wording.words(v.event) if v.event else "",
            )
        )

    def rank(r: VerdictRow) -> tuple[Any, ...]:
        p = r.verdict.p_adjusted
        return (
            not r.named,
            order.index(r.verdict.verdict),
            2.0 if p is None else p,
            r.name,
            r.verdict.tool,
        )

    return sorted(rows, key=rank)
