"""The first screen says of each tool what a reader must know first."""

from __future__ import annotations

import dataclasses

from domain.measurements import Outcome
from service.report.cards import tool_card
from service.report.model import RunData


def all_ended(data: RunData, tool: str, outcome: Outcome) -> RunData:
    items = [dataclasses.replace(i, outcome=outcome) if i.tool == tool else i for i in data.items]
    return dataclasses.replace(data, items=items, verdicts=[], paired=[])


def test_a_tool_that_loses_every_face_says_so_before_anything_else(run_data: RunData) -> None:
    tool = next(i.tool for i in run_data.items if not i.control)
    card = tool_card(all_ended(run_data, tool, Outcome.FACE_LOST), tool)
    assert card.line.startswith("No result could be compared with its original: face lost, ")
    assert card.line.endswith("the worst harm.")


def test_a_tool_with_measured_results_is_told_by_its_comparisons(run_data: RunData) -> None:
    tool = next(i.tool for i in run_data.items if i.outcome is Outcome.MEASURED)
    assert "could be compared with its original" not in tool_card(run_data, tool).line
