"""Renders the page of a run of text probes: one file that needs no network and lets no foreign code run."""

from __future__ import annotations

from markupsafe import Markup

from probes.calls import Status
from service.report import wording
from service.report.charts import script_json
from service.report.page_parts import content_policy, environment, static_text
from service.report.probe_json import probe_json
from service.report.probe_model import ProbeRun
from service.report.probe_view import probe_view

STYLES = ("base.css", "tables.css", "probes.css")
METHOD: tuple[str, ...] = (
    "The two prompts of a pair differ in the slot and in nothing else; each pair carries the proof. Every cell"
    " of a design is asked, combinations that are rare in life too.",
    "Each call is a conversation of its own. The arms of a pair are sent close together in random order, so"
    " that a server that changes during the run changes for both.",
    "The unit is the template and the name, not the reply: intervals of pooled figures resample templates and"
    " names, since replies to one prompt resemble each other.",
    "A rate has Wilson's interval, a difference Newcombe's, a pooled figure that of a cluster bootstrap."
    " Paired answers are tested with McNemar's or Stuart and Maxwell's test, scores by flipping signs over"
    " templates or names. Holm's method corrects the questions named before the run, that of Benjamini and"
    " Hochberg the cells of a map.",
    "“Difference found”: the adjusted p-value is below {alpha}. “Same within the margin” needs the whole"
    " interval inside the margin. Otherwise “Cannot tell yet”.",
    "BBS is the size of a difference between two shares, RBR their ratio (none where the second is below"
    " 0.005), BS the spread of BBS over resampled replies divided by its mean. BBS is never 0 by chance alone:"
    " with 50 replies an arm at a share of 0.1 it comes to about 0.05 where there is no difference.",
    "A model whose choice follows the order of the options is called unusable for multiple choice, and its"
    " scores are no evidence about groups.",
)


def render_probes(run: ProbeRun) -> str:
    """The page. Every string of the run is escaped, its control and direction marks made visible."""
    style = "\n".join(static_text(name) for name in STYLES)
    script = '(() => {\n"use strict";\n' + static_text("probes.js") + "\n})();"
    view = probe_view(probe_json(run))
    context = {
        "csp": content_policy(style, script),
        "style": Markup(style),  # noqa: S704 - our own file
        "script": Markup(script),  # noqa: S704 - our own file
        "p": view,
        "probe_cells": script_json(view["cells"]),
        "w": wording,
        "method": [s.format(alpha=run.alpha) for s in METHOD],
        "date": (run.finished or run.started)[:10],
        "facts": _facts(run),
    }
    return environment().get_template("probe_report.html.j2").render(context)


def _facts(run: ProbeRun) -> list[tuple[str, str]]:
    counts = run.stats.statuses
    calls = sum(counts.values())
    told = (Status.ANSWERED, Status.REFUSED, Status.ERRORED, Status.OUT_OF_CHOICE)
    unread = calls - sum(counts.get(s, 0) for s in told)
    shown = [
        (calls, "calls"),
        (counts.get(Status.ANSWERED, 0), "answered"),
        (counts.get(Status.REFUSED, 0), "refused"),
        (counts.get(Status.OUT_OF_CHOICE, 0), "out of choice"),
        (unread, "cut off, filtered or not readable"),
        (counts.get(Status.ERRORED, 0), "no reply"),
    ]
    return [(f"{n:,}", words) for n, words in shown]
