"""The controls of an audit: tools of known effect, so that the instrument itself is on trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from domain.plan import AuditPlan, ToolChoice
from domain.portraits import Portrait

PLANTED_STRENGTH = 0.8
"""Share of the fine detail that the planted harms take; well above the instrument's noise."""


def control_tools(plan: AuditPlan, portraits: Sequence[Portrait]) -> list[ToolChoice]:
    """Identity, re-encode, uniform harm and, where two groups exist, harm to one group only.

    The planted group is the largest value of the plan's first attribute that the portraits
    declare with at least two values: a choice by count, not by what the group is.
    """
    tools = [
        ToolChoice(id="identity", name="control: identity"),
        ToolChoice(id="reencode", name="control: re-encode"),
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
