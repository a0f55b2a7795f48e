"""Renders report.html: one file that needs no network, runs from a folder and locks out foreign code."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup

from domain.measurements import Outcome
from metrics.contract import MetricSpec
from service.report import tables, wording
from service.report.calls import calls_rows, notices
from service.report.cards import tool_card
from service.report.charts import metric_name, payload, script_json
from service.report.equitability import ERRORS, equitability_tables
from service.report.groups import MIN_PEOPLE, Grouping, attribute_label, ordered
from service.report.model import RunData
from service.report.page_parts import content_policy, environment, static_text
from service.report.pictures import embed
from service.report.probe_view import probe_view
from service.report.verdict_rows import verdict_rows

SCRIPTS = (
    "core.js",
    "state.js",
    "boxplot.js",
    "heatmap.js",
    "diagnosis.js",
    "items.js",
    "main.js",
    "probes.js",
)
STYLES = ("base.css", "tables.css", "explore.css", "probes.css")
ALWAYS_SHOWN = (
    Outcome.MEASURED,
    Outcome.FACE_LOST,
    Outcome.NOT_MEASURABLE,
    Outcome.REFUSED,
    Outcome.FAILED,
)


def render(data: RunData, groups: Grouping, specs: Mapping[str, MetricSpec]) -> str:
    """The page. Every string of the run is escaped, its control and direction marks made visible."""
    style = "\n".join(static_text(name) for name in STYLES)
    script = (
        '(() => {\n"use strict";\n' + "\n".join(static_text(name) for name in SCRIPTS) + "\n})();"
    )
    pictures = embed(data)
    probes = probe_view(data.probes) if data.probes else None
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
        "metric_label": lambda metric: metric_name(specs.get(metric), metric),
        "min_people": MIN_PEOPLE,
        "p": probes,
        "probe_cells": script_json(probes["cells"]) if probes else "",
        **_summary(data),
        **_sections(data, groups, specs),
    }
    return environment().get_template("report.html.j2").render(context)


def _summary(data: RunData) -> dict[str, Any]:
    under_test = [i for i in data.items if not i.control]
    return {
        "cards": [tool_card(data, t) for t, control in tables.tool_order(data) if not control],
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
        "controls_failed": [c for c in data.controls if c.ok is False],
        "controls_untested": [c for c in data.controls if c.ok is None],
        "found": sum(r.face_found for r in data.instrument),
        "originals_count": len(data.instrument),
        "date": (data.finished or data.started)[:10],
    }


def _sections(data: RunData, groups: Grouping, specs: Mapping[str, MetricSpec]) -> dict[str, Any]:
    planned = [a for a in groups.planned if a in groups.names]
    crossed = tables.outcome_attributes(groups)
    seen = {i.outcome for i in data.items if not i.control}
    controls = {label for label, control in tables.tool_order(data) if control}
    tested = [v for v in data.verdicts if v.tool not in controls]
    return {
        "verdicts": verdict_rows(data, tested, specs),
        "paired": verdict_rows(data, data.paired, specs),
        "verdicts_all": len(tested),
        "control_verdicts": verdict_rows(
            data, [v for v in data.verdicts if v.tool in controls], specs
        ),
        "outcome_columns": [o for o in Outcome if o in ALWAYS_SHOWN or o in seen],
        "outcome_tables": [(a, _by_tool(tables.outcomes(data, groups, a))) for a in crossed],
        "calls_rows": calls_rows(data),
        "call_notices": notices(data),
        "equitability_tables": equitability_tables(data, groups),
        "error_names": ERRORS,
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


def _by_tool(rows: list[tables.OutcomeRow]) -> list[tuple[str, list[tables.OutcomeRow]]]:
    return [(tool, list(members)) for tool, members in groupby(rows, key=lambda r: r.tool)]


def _exclusion_table(
    data: RunData, groups: Grouping, attribute: str
) -> tuple[list[str], list[tables.ReasonRow]]:
    rows = tables.exclusions(data, groups, attribute)
    return ordered({g for r in rows for g in r.by_group}), rows


def _sources(data: RunData) -> list[str]:
    """Where the portraits come from, as their manifest declares it."""
    found = {
        str(row.attributes[key])
        for row in data.instrument
        for key in ("source", "dataset", "licence", "license")
        if row.attributes.get(key)
    }
    return [data.plan.portraits.manifest, *sorted(found)]
