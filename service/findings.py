"""From an audit's figures to its findings: group verdicts, counterfactual pairs, controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from domain.measurements import FACE_REGION, Status
from domain.verdicts import Verdict, VerdictKind
from metrics.statistics import (
    CounterfactualPair,
    StatisticsError,
    adjusted_difference,
    analyse,
    check_controls,
    net_of_instrument,
    paired_analysis,
)
from service.partners import split
from service.report.model import (
    COUNTED,
    Cleaning,
    ControlFinding,
    InstrumentRow,
    ItemRow,
    MeasurementRow,
    Place,
    controls_ok,
)
from service.runs import Run

COVARIATES = ("mean_luma", "ied_px", "turn", "laplacian_variance")
"""Facts of the originals that could explain a difference by themselves."""
PUT_BACK = (*COUNTED, Place.CONFLICT, Place.REVIEWED_OUT)
"""Places whose items belong to the portraits under study, whether they count or not."""
NOT_CLEANED = Cleaning()
UNTRUSTED = "the controls did not come out as planted, so no finding is trusted"


@dataclass(frozen=True, slots=True)
class Findings:
    """``verdicts`` compare groups of people, ``paired`` the same face with one attribute changed."""

    verdicts: Sequence[Verdict]
    paired: Sequence[Verdict]
    controls: Sequence[ControlFinding]


def draw(
    run: Run,
    items: Sequence[ItemRow],
    figures: Sequence[MeasurementRow],
    instrument: Sequence[InstrumentRow],
    cleaning: Cleaning = NOT_CLEANED,
) -> Findings:
    """Everything the statistics say about a finished run, on the items that ``cleaning`` counts.

    Where conflicts or reviews took items of a tool out, each named verdict also tells what it would
    have been with them. Counterfactual partners are kept out of the group comparisons: there, a face counts once, as
    its base picture. They are compared with their base in ``paired``.
    """
    everything = analysis_rows(run, items, figures, instrument)
    rows = everything[[cleaning.counted(i) for i in everything["item_id"]]]
    alone, pairs = split(rows)
    ours = ~alone["tool"].isin(run.controls)
    controls = _controls(run, alone[~ours])
    verdicts = _groups(run, alone[ours], alone)
    verdicts = _with_the_excluded(run, verdicts, everything, cleaning)
    paired = _paired(run, rows[~rows["tool"].isin(run.controls)], pairs)
    if controls_ok(controls) is False:
        verdicts = [_untrusted(v) for v in verdicts]
        paired = [_untrusted(v) for v in paired]
    return Findings(verdicts, paired, controls)


def analysis_rows(
    run: Run,
    items: Sequence[ItemRow],
    figures: Sequence[MeasurementRow],
    instrument: Sequence[InstrumentRow],
) -> pd.DataFrame:
    """One row a figure with its item's facts and the original's. An item without figures keeps a
    missing row for each claimed (metric, region), so that its outcome is counted and its claim can
    be answered."""
    plan = run.plan
    claimed = [(c.metric, c.region) for c in plan.claims if not c.metric.startswith("outcome:")]
    facts = {i.portrait_id: i.facts for i in instrument}
    by_id = {i.item_id: _item_columns(i, facts, plan.groups) for i in items}
    rows = [
        by_id[m.item_id]
        | {"metric": m.metric, "region": m.region, "value": m.value, "status": m.status}
        for m in figures
    ]
    with_figures = {m.item_id for m in figures}
    for item in items:
        if item.item_id in with_figures:
            continue
        for metric, region in {("flrr", FACE_REGION): None, **dict.fromkeys(claimed)}:
            missing = {"metric": metric, "region": region, "value": None}
            rows.append(by_id[item.item_id] | missing | {"status": Status.NOT_MEASURABLE.value})
    return pd.DataFrame(rows)


def _item_columns(
    item: ItemRow, facts: Mapping[str, Mapping[str, float | None]], attributes: Sequence[str]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "item_id": item.item_id,
        "portrait_id": item.portrait_id,
        "subject_id": item.subject_id,
        "pair_base": item.pair_base,
        "varied_attribute": item.varied_attribute,
        "tool": item.tool,
        "task": item.task,
        "perturbation": item.perturbation,
        "outcome": item.outcome.value,
    }
    known = facts.get(item.portrait_id, {})
    row |= {name: known.get(name) for name in COVARIATES}
    return row | {name: item.attributes.get(name, "") for name in attributes}


# Groups --------------------------------------------------------------------------------------


def _groups(run: Run, ours: pd.DataFrame, everything: pd.DataFrame) -> list[Verdict]:
    if ours.empty:
        return []
    verdicts = _analyse(run, ours)
    net = _net(run, ours, everything)
    return [_beside(v, net.get(_key(v)), ours) for v in verdicts]


def _analyse(run: Run, rows: pd.DataFrame) -> list[Verdict]:
    """The statistics of the run's own plan. Where a tool works elsewhere it may have a policy of its
    own: without claims in the plan, whom it refuses is then a question named before the run."""
    plan = run.plan
    remote = any(run.specs[t.label].remote for t in plan.tools if t.label in run.specs)
    return analyse(
        rows, attributes=plan.groups, claims=plan.claims, margins=plan.margins,
        alpha=plan.alpha, seed=plan.seed, outcomes=("refused",) if remote else (),
    )  # fmt: skip


def _key(v: Verdict) -> tuple[Any, ...]:
    return v.tool, v.task, v.metric, v.details.get("region"), v.event, v.attribute, v.groups


def _with_the_excluded(
    run: Run, verdicts: list[Verdict], everything: pd.DataFrame, cleaning: Cleaning
) -> list[Verdict]:
    """Named verdicts with what they would be, had conflicts and reviews taken nothing out: whoever
    excludes items must show that the finding does not hang on it."""
    back = everything[[cleaning.of(i).place in PUT_BACK for i in everything["item_id"]]]
    back, _ = split(back[~back["tool"].isin(run.controls)])
    if all(cleaning.counted(i) for i in back["item_id"].unique()):
        return verdicts
    other = {_key(v): v for v in _analyse(run, back)}
    return [_beside_put_back(v, other.get(_key(v))) for v in verdicts]


def _beside_put_back(v: Verdict, other: Verdict | None) -> Verdict:
    if v.details.get("family") != "named" or other is None:
        return v
    more: dict[str, float | str | None] = {"verdict_with_the_excluded": other.verdict.value}
    if other.effect is not None and other.interval is not None:
        more["with_the_excluded"] = _spelt(other.effect, *other.interval)
    return replace(v, details={**v.details, **more})


def _net(run: Run, ours: pd.DataFrame, everything: pd.DataFrame) -> dict[tuple[Any, ...], Verdict]:
    """The named claims again, on figures less what the benign copy measures for the same person."""
    plan = run.plan
    copy = next((label for label in run.controls if run.tools[label].id == "reencode"), None)
    if copy is None:
        return {}
    rows = pd.concat([ours, everything[everything["tool"] == copy]])
    net = net_of_instrument(
        rows, control=copy, attributes=plan.groups, claims=plan.claims,
        margins=plan.margins, alpha=plan.alpha, seed=plan.seed,
    )  # fmt: skip
    return {_key(v): v for v in net}


def _beside(v: Verdict, net: Verdict | None, rows: pd.DataFrame) -> Verdict:
    """A named verdict with the same difference net of the instrument's own, and adjusted."""
    if v.details.get("family") != "named" or v.effect is None:
        return v
    more: dict[str, float | str | None] = {}
    if net is not None and net.effect is not None and net.interval is not None:
        more["net_of_the_instrument"] = _spelt(net.effect, *net.interval)
        more["net_verdict"] = net.verdict.value
    if v.event is None and not v.metric.startswith("outcome:"):
        more["adjusted_for_brightness_eye_distance_pose_and_detail"] = _adjusted(v, rows)
    return replace(v, details={**v.details, **more})


def _adjusted(v: Verdict, rows: pd.DataFrame) -> str:
    try:
        found = adjusted_difference(
            rows, tool=v.tool, task=v.task, attribute=v.attribute, groups=v.groups,
            metric=v.metric, region=str(v.details.get("region") or FACE_REGION),
            covariates=COVARIATES,
        )  # fmt: skip
    except StatisticsError as error:
        return f"cannot be told: {error}"
    return _spelt(found.effect, found.low, found.high)


def _spelt(effect: float, low: float, high: float) -> str:
    return f"{effect:+.3g} (95 % {low:+.3g} to {high:+.3g})"


# Pairs and controls --------------------------------------------------------------------------


def _paired(run: Run, ours: pd.DataFrame, found: Sequence[CounterfactualPair]) -> list[Verdict]:
    pairs = [p for p in found if p.attribute in run.plan.groups]
    if not pairs or ours.empty:
        return []
    plan = run.plan
    return paired_analysis(
        ours, pairs, claims=plan.claims, margins=plan.margins, alpha=plan.alpha, seed=plan.seed
    )


def _controls(run: Run, rows: pd.DataFrame) -> list[ControlFinding]:
    if rows.empty:
        return []
    planted = next((t for t in run.tools.values() if t.id == "group_harm"), None)
    found = check_controls(
        rows,
        kinds={label: run.tools[label].id for label in run.controls},
        attributes=run.plan.groups,
        planted=(planted.settings["attribute"], planted.settings["value"]) if planted else None,
        alpha=run.plan.alpha,
        seed=run.plan.seed,
    )
    return [ControlFinding(c.control, c.expected, c.found, c.ok) for c in found]


def _untrusted(verdict: Verdict) -> Verdict:
    """What an instrument that failed its controls says is settled neither way."""
    return replace(
        verdict,
        verdict=VerdictKind.INCONCLUSIVE,
        reason=UNTRUSTED,
        sentence=f"{verdict.sentence} Inconclusive: {UNTRUSTED}.",
    )
