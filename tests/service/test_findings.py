"""What the statistics of an audit rest on: the counted items, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from domain.measurements import Outcome
from domain.plan import AuditPlan, Claim, PortraitSource, ToolChoice
from domain.portraits import Portrait
from domain.verdicts import Verdict, VerdictKind
from service.cleaning import clean
from service.findings import Findings, draw
from service.plans import LoadedPlan
from service.report.model import InstrumentRow, ItemRow, MeasurementRow, Review
from service.runs import Run

CLAIMS = [
    Claim(metric="flrr", attribute="gender", event="below", threshold=95, margin=0.1),
    Claim(metric="outcome:failed", attribute="gender"),
]
PLAN = AuditPlan(
    name="x", portraits=PortraitSource(manifest="m.csv"), tools=[ToolChoice(id="inr")],
    claims=CLAIMS,
)  # fmt: skip
PEOPLE = 41


def item(group: str, k: int, **more: Any) -> ItemRow:
    key = f"{group}{k}"
    base = ItemRow(
        item_id=key, portrait_id=key, subject_id=key, attributes={"gender": group}, tool="inr",
        tool_id="inr", control=False, task="restyle", perturbation="none",
        outcome=Outcome.MEASURED, reason=None,
    )  # fmt: skip
    return replace(base, **more)


def figure(row: ItemRow, value: float) -> MeasurementRow:
    return MeasurementRow(row.item_id, "flrr", "face", value, "%", "measured", None)


def audit(men_harmed: int, women_harmed: int) -> tuple[list[ItemRow], list[MeasurementRow]]:
    items, figures = [], []
    for group, harmed in (("men", men_harmed), ("women", women_harmed)):
        for k in range(PEOPLE):
            row = item(group, k)
            items.append(row)
            figures.append(figure(row, 40.0 if k < harmed else 99.0))
    return items, figures


def found(
    items: Sequence[ItemRow], figures: Sequence[MeasurementRow], reviews: Sequence[Review] = ()
) -> Findings:
    portraits = [Portrait(i.portrait_id, Path(i.portrait_id), i.subject_id) for i in items]
    loaded = LoadedPlan(PLAN, Path("plan.yaml"), "", Path("m.csv"))
    nothing = cast(Any, None)
    run = Run(
        loaded, Path(), nothing, nothing, portraits, {"inr": PLAN.tools[0]}, frozenset(), {}, 0
    )
    instrument = [
        InstrumentRow(i.portrait_id, i.subject_id, i.attributes, True, True, None) for i in items
    ]
    return draw(run, items, figures, instrument, clean(items, figures, PLAN, reviews))


def verdict(findings: Findings, metric: str = "flrr") -> Verdict:
    (one,) = [v for v in findings.verdicts if v.metric == metric and v.details["family"] == "named"]
    return one


def test_a_conflict_leaves_the_statistics_and_the_verdict_says_what_it_would_be_with_it() -> None:
    items, figures = audit(30, 18)
    assert verdict(found(items, figures)).verdict is VerdictKind.DISPARITY
    other = {"second_engine": {"engine": "dlib", "flrr": 90.0, "reason": None}}
    items = [
        replace(i, evidence=other) if i.attributes["gender"] == "men" and n < 20 else i
        for n, i in enumerate(items)
    ]
    v = verdict(found(items, figures))
    assert v.n == {"men": 21, "women": 41}
    assert v.verdict is not VerdictKind.DISPARITY
    assert v.details["verdict_with_the_excluded"] == "disparity"
    assert "95 %" in str(v.details["with_the_excluded"])


def test_without_exclusions_nothing_is_said_of_them() -> None:
    assert "verdict_with_the_excluded" not in verdict(found(*audit(30, 18))).details


def test_what_people_excluded_is_out_of_figures_and_of_outcomes() -> None:
    items, figures = audit(30, 18)
    reviews = [Review(f"men{k}", "ann", False, "not this person") for k in range(5)]
    v = verdict(found(items, figures, reviews))
    assert v.n == {"men": 36, "women": 41}
    (men,) = [e for e in v.estimates if e.group == "men"]
    assert men.items == 36
    assert men.estimate is not None and abs(men.estimate - 25 / 36) < 1e-9


def test_the_adversarial_set_changes_no_figure() -> None:
    items, figures = audit(30, 18)
    plain = found(items, figures)
    more = [
        item("men", 100 + k, attributes={"gender": "men", "set": "adversarial"}) for k in range(9)
    ]
    both = found([*items, *more], [*figures, *(figure(i, 0.0) for i in more)])
    assert both.verdicts == plain.verdicts


def test_a_failure_leaves_the_figures_and_stays_in_the_rate_of_outcomes() -> None:
    items, figures = audit(30, 18)
    items = [replace(i, outcome=Outcome.FAILED) if i.item_id == "men40" else i for i in items]
    figures = [m for m in figures if m.item_id != "men40"]
    findings = found(items, figures)
    assert verdict(findings).n["men"] == 40
    assert "worst_case_low" in verdict(findings).details
    assert verdict(findings, "outcome:failed").n == {"men": 41, "women": 41}


def test_nothing_left_to_count_is_no_finding() -> None:
    items, figures = audit(3, 3)
    away = [replace(i, attributes={**i.attributes, "set": "adversarial"}) for i in items]
    findings = found(away, figures)
    assert (findings.verdicts, findings.paired, findings.controls) == ([], [], [])
