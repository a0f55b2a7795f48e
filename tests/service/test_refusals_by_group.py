"""A refusal is an outcome that can fall on one group: it is counted, compared and named first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import adapters.contract
from adapters.contract import ToolSpec
from adapters.controls import TOOLS
from domain.edits import Edited, EditOutcome, EditRequest, Refused, Task
from domain.measurements import Outcome
from domain.plan import AuditPlan, Claim, PortraitSource, ToolChoice
from domain.portraits import Portrait
from domain.verdicts import Verdict, VerdictKind
from preprocess import models
from service.engine.local import Machine, run_audit
from service.findings import draw
from service.plans import LoadedPlan, load_plan
from service.report.cards import tool_card
from service.report.model import InstrumentRow, ItemRow, MeasurementRow, RunData
from service.report.wording import without_tool
from service.runs import Run

REPO = Path(__file__).resolve().parents[2]
PEOPLE = 40
SPEC = ToolSpec(id="picky", name="picky", tasks=(Task.RETOUCH,))


def a_run(
    refused: Mapping[str, int], *, remote: bool = True, claims: tuple[Claim, ...] = ()
) -> tuple[Run, list[ItemRow], list[MeasurementRow], list[InstrumentRow]]:
    """``refused`` of ``PEOPLE`` in each group; whoever was not refused kept every landmark."""
    plan = AuditPlan(
        name="x", portraits=PortraitSource(manifest="m.csv"), tools=[ToolChoice(id="picky")],
        claims=list(claims),
    )  # fmt: skip
    items, figures = [], []
    for group, count in refused.items():
        for k in range(PEOPLE):
            key = f"{group}{k}"
            outcome = Outcome.REFUSED if k < count else Outcome.MEASURED
            items.append(ItemRow(
                item_id=key, portrait_id=key, subject_id=key, attributes={"gender": group},
                tool="picky", tool_id="picky", control=False, task="retouch", perturbation="none",
                outcome=outcome, reason="input: policy" if k < count else None,
            ))  # fmt: skip
            if outcome is Outcome.MEASURED:
                figures.append(
                    MeasurementRow(key, "flrr", "face", 99.0 + (k % 3) / 10, "%", "measured", None)
                )
    portraits = [Portrait(i.portrait_id, Path(i.portrait_id), i.subject_id) for i in items]
    instrument = [
        InstrumentRow(i.portrait_id, i.subject_id, i.attributes, True, True, None) for i in items
    ]
    nothing = cast(Any, None)
    run = Run(
        LoadedPlan(plan, Path("plan.yaml"), "", Path("m.csv")), Path(), nothing, nothing, portraits,
        {"picky": plan.tools[0]}, frozenset(), {"picky": replace(SPEC, remote=remote)}, 0,
    )  # fmt: skip
    return run, items, figures, instrument


def refusals(verdicts: Any, family: str) -> list[Verdict]:
    return [v for v in verdicts if v.metric == "outcome:refused" and v.details["family"] == family]


def test_a_group_refused_more_often_is_a_named_disparity_that_says_harm_and_group() -> None:
    (v,) = refusals(draw(*a_run({"women": 15, "men": 1})).verdicts, "named")
    assert v.verdict is VerdictKind.DISPARITY
    assert v.details["worse_group"] == "women"
    assert "requests refused" in v.sentence and "Harmed more: women" in v.sentence
    assert v.n == {"men": PEOPLE, "women": PEOPLE}
    assert v.event == "refused"


def test_whom_a_remote_tool_refuses_is_asked_even_where_it_refused_nobody() -> None:
    (v,) = refusals(draw(*a_run({"women": 0, "men": 0})).verdicts, "named")
    assert v.effect == 0.0
    assert v.verdict is not VerdictKind.DISPARITY


def test_a_local_tool_that_refused_nobody_gets_no_such_question() -> None:
    assert refusals(draw(*a_run({"women": 0, "men": 0}, remote=False)).verdicts, "named") == []


def test_a_local_tool_that_refused_somebody_is_asked_as_well() -> None:
    found = draw(*a_run({"women": 15, "men": 1}, remote=False)).verdicts
    assert [v.verdict for v in refusals(found, "named")] == [VerdictKind.DISPARITY]


def test_a_plan_with_claims_of_its_own_still_finds_the_refusals_among_the_rest() -> None:
    claims = (Claim(metric="flrr", attribute="gender"),)
    found = draw(*a_run({"women": 15, "men": 1}, claims=claims)).verdicts
    assert refusals(found, "named") == []
    assert [v.verdict for v in refusals(found, "exploratory")] == [VerdictKind.DISPARITY]


def test_the_first_screen_names_the_refusals(tmp_path: Path) -> None:
    run, items, figures, instrument = a_run({"women": 15, "men": 1})
    found = draw(run, items, figures, instrument)
    data = RunData(
        "r", run.plan, "", "2026-01-01", "2026-01-01", items, figures, instrument, found.verdicts,
        [], {}, {}, 1.0, lambda key: b"",
    )  # fmt: skip
    card = tool_card(data, "picky")
    assert "requests refused" in f"{card.line} {card.outcome_line}".lower()
    assert ("refused", "refused", 16, "20.0 %") in card.outcomes


class Picky:
    """Softens every picture, and will not touch some of them: as a moderation filter might."""

    spec, model = SPEC, "picky 1"

    def __init__(self, soften: adapters.contract.Adapter) -> None:
        self.soften, self.refused = soften, 0

    def edit(self, request: EditRequest) -> EditOutcome:
        if request.attributes["gender"].startswith("feminine"):
            self.refused += 1
            key = f"req_{self.refused:08d}"
            said = f"Your request was rejected. Include the request ID {key}."
            return Refused("input", "content_policy", said, {"request_id": key})
        done = self.soften.edit(request)
        assert isinstance(done, Edited)
        return done

    def close(self) -> None:
        self.soften.close()


@pytest.mark.slow
def test_planted_refusals_go_through_a_whole_audit_into_the_first_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    softener = next(t for t in TOOLS if t.SPEC.id == "uniform_harm")

    class Module:
        SPEC = replace(SPEC, remote=True)

        @staticmethod
        def build(settings: Mapping[str, Any]) -> Picky:
            return Picky(softener.build({"strength": 0.3}))

    known = adapters.contract.discover() | {"picky": (Module.SPEC, cast(Any, Module))}
    monkeypatch.setattr(adapters.contract, "discover", lambda: known)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: refusals\ncontrols: false\ntools: [{id: picky}]\n"
        f"portraits: {{manifest: {REPO}/samples/portraits/manifest.csv,"
        " where: {varied_attribute: [none]}}\n"
    )
    machine = Machine(1, 1, models.model_path("face_landmarker.task").parent)
    done = run_audit(load_plan(plan), tmp_path / "out", machine=machine)
    (v,) = refusals(done.verdicts, "named")
    assert v.verdict is VerdictKind.DISPARITY and v.details["worse_group"] == "feminine-presenting"
    assert done.table[0] == v
    # a maker's id in each refusal must not make a kind of its own out of it
    assert [c for r, c in done.reasons.items() if "content_policy" in r] == [8]
    page = done.files["report.html"].read_text(encoding="utf-8")
    first_screen = page[: page.index("<nav")]
    said = re.search(r"Requests refused: [^<]*Harmed more: feminine-presenting", first_screen)
    assert said, first_screen[-3000:]
    assert without_tool(v) in page[page.index('id="verdicts"') :]
