"""The controls of an audit: tools of known effect, so that the instrument itself is on trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from domain.plan import AuditPlan, ToolChoice
from domain.portraits import Portrait

RESAVED_QUALITY = 98
"""JPEG quality of the benign copy. Portraits are mostly JPEGs already, and saving one again at a
quality near its own (90 to 94) beats with its first quantisation: it adds up to 0.5 log2 of
detail that is an artefact of the pair of qualities, not of the instrument."""
PLANTED_STRENGTH = 0.8
"""Share of the fine detail that the planted harms take; well above the instrument's noise."""


def control_tools(plan: AuditPlan, portraits: Sequence[Portrait]) -> list[ToolChoice]:
    """Identity, re-encode, uniform harm and, where two groups exist, harm to one group only.

    The planted group is the largest value of the plan's first attribute that the portraits
    declare with at least two values: a choice by count, not by what the group is.
    """
    tools = [
        ToolChoice(id="identity", name="control: identity"),
        ToolChoice(id="reencode", name="control: re-encode", settings={"quality": RESAVED_QUALITY}),
        ToolChoice(
            id="uniform_harm",
            name="control: uniform harm",
            settings={"strength": PLANTED_STRENGTH},
        ),
    ]
    for attribute in plan.groups:
        counts = Counter(p.attributes[attribute] for p in portraits if attribute in p.attributes)
        if len(counts) < 2:
            continue
        value = min(counts, key=lambda v: (-counts[v], v))
        settings = {"attribute": attribute, "value": value, "strength": PLANTED_STRENGTH}
        tools.append(ToolChoice(id="group_harm", name="control: group harm", settings=settings))
        break
    return tools
