"""The controls of an audit: which, how strong, and whom the planted harm strikes."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import PlanError
from domain.plan import AuditPlan
from domain.portraits import Portrait
from service.controls import control_tools


def people(**counts: int) -> list[Portrait]:
    return [
        Portrait(f"{value}{i}", Path("x"), f"{value}{i}", {"gender": value})
        for value, n in counts.items()
        for i in range(n)
    ]


def plan(**more: object) -> AuditPlan:
    base = {"name": "p", "portraits": {"manifest": "m"}, "tools": [{"id": "identity"}]}
    return AuditPlan.model_validate(base | more)


def test_the_largest_group_is_struck_unless_the_plan_chooses() -> None:
    tools = {t.id: t for t in control_tools(plan(), people(woman=3, man=2))}
    assert tools["group_harm"].settings["value"] == "woman"
    chosen = plan(planted={"attribute": "gender", "value": "man", "strength": 0.5})
    tools = {t.id: t for t in control_tools(chosen, people(woman=3, man=2))}
    assert tools["group_harm"].settings["value"] == "man"
    assert tools["group_harm"].settings["strength"] == 0.5
    assert tools["uniform_harm"].settings["strength"] == 0.5


def test_with_one_group_only_there_is_nobody_to_plant_a_difference_on() -> None:
    ids = [t.id for t in control_tools(plan(), people(woman=3))]
    assert ids == ["identity", "reencode", "uniform_harm"]


def test_a_group_that_nobody_declares_is_refused() -> None:
    with pytest.raises(PlanError, match="hold 'men' and another"):
        control_tools(plan(planted={"value": "men"}), people(woman=3, man=2))
