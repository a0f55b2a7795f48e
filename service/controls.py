"""The controls of an audit: tools of known effect, so that the instrument itself is on trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from domain.errors import PlanError
from domain.plan import AuditPlan, ToolChoice
from domain.portraits import Portrait

RESAVED_QUALITY = 98
"""JPEG quality of the benign copy. Portraits are mostly JPEGs already, and saving one again at a
quality near its own (90 to 94) beats with its first quantisation: it adds up to 0.5 log2 of
detail that is an artefact of the pair of qualities, not of the instrument."""


def control_tools(plan: AuditPlan, portraits: Sequence[Portrait]) -> list[ToolChoice]:
    """Identity, re-encode, uniform harm and, where two groups exist, harm to one group only.

    The plan's ``planted`` says how strong the harms are and which group is struck. Raises PlanError
    when no portrait declares that group.
    """
    strength = plan.planted.strength
    tools = [
        ToolChoice(id="identity", name="control: identity"),
        ToolChoice(id="reencode", name="control: re-encode", settings={"quality": RESAVED_QUALITY}),
        ToolChoice(
            id="uniform_harm", name="control: uniform harm", settings={"strength": strength}
        ),
    ]
    struck = _struck(plan, portraits)
    if struck is not None:
        settings = {"attribute": struck[0], "value": struck[1], "strength": strength}
        tools.append(ToolChoice(id="group_harm", name="control: group harm", settings=settings))
    return tools


def _struck(plan: AuditPlan, portraits: Sequence[Portrait]) -> tuple[str, str] | None:
    """(attribute, value) of the group that the planted harm strikes; None where all are alike."""
    asked = [plan.planted.attribute] if plan.planted.attribute else plan.groups
    for attribute in asked:
        counts = Counter(p.attributes[attribute] for p in portraits if attribute in p.attributes)
        value = plan.planted.value
        if value is not None and value in counts and len(counts) > 1:
            return attribute, value
        if value is None and len(counts) > 1:
            return attribute, min(counts, key=lambda v: (-counts[v], v))
    if plan.planted.value is not None:
        where = f" '{plan.planted.attribute}'" if plan.planted.attribute else ""
        raise PlanError(
            f"planted: no two groups of{where or ' the plan'} hold '{plan.planted.value}' and another"
        )
    return None
