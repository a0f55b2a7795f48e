"""Step 6 of an audit: from the ledger to verdicts, control findings and the report's files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from domain.measurements import FACE_REGION, Decision, Health, Outcome, Status
from domain.verdicts import Verdict, VerdictKind
from service.cleaning import clean
from service.findings import draw
from service.report.files import write_all
from service.report.model import (
    Cleaning,
    InstrumentRow,
    ItemRow,
    MeasurementRow,
    RunData,
    controls_ok,
)
from service.report.probe_reading import KEPT_PROBES, read_probe_report
from service.reviews import KEPT_AS, check_reviews, read_reviews
from service.runs import Run
from service.store.ledger import now
from service.tool_calls import skew_lines, tool_calls

TABLE_ROWS = 14
"""Verdicts printed at the end of a run; all of them are in the report."""
HEALTH_UNIT = "points"


@dataclass(frozen=True, slots=True)
class Finished:
    """What a finished run has to show. ``table`` is the verdicts worth printing first."""

    run_id: str
    files: Mapping[str, Path]
    verdicts: Sequence[Verdict]
    table: Sequence[Verdict]
    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]
    """Why items have no figures, the most frequent first."""
    controls_ok: bool | None
    standings: Mapping[str, int]
    """Items by their place in the statistics; they add up to all items."""
    to_review: int


def finish(
    run: Run,
    say: Callable[[str], None],
    reviews: Path | None = None,
    probes: Path | None = None,
) -> Finished:
    """Clean, draw the verdicts and write the report. Can be run again on the same ledger.

    ``reviews`` is a CSV of decisions made by people; without it the ones that an earlier run of
    this ledger took in are kept. Raises LikenessError for reviews that do not fit the run.
    ``probes`` is the folder of a run of text probes to be shown in the same report, kept likewise.
    """
    say("drawing verdicts and writing the report")
    items = [_item_row(run, row) for row in _with_subjects(run)]
    figures = _figures(run, items)
    instrument = [_instrument_row(r) for r in run.ledger.portraits()]
    cleaning = _clean(run, items, figures, reviews, say)
    found = draw(run, items, figures, instrument, cleaning)
    calls = tool_calls([t.label for t in run.plan.tools], run.ledger.items(), run.ledger.calls())
    for line in skew_lines(calls):
        say(line)
    row = run.ledger.run()
    assert row is not None
    finished = row["finished"] or now()
    seconds = float(row["seconds"]) + time.monotonic() - run.began
    run.ledger.set_run(finished=finished, seconds=seconds)
    data = RunData(
        run_id=row["run_id"],
        plan=run.plan,
        plan_text=run.loaded.text,
        started=row["started"],
        finished=finished,
        items=items,
        measurements=figures,
        instrument=instrument,
        verdicts=found.verdicts,
        paired=found.paired,
        controls=found.controls,
        versions=row["versions"],
        inputs=row["inputs"] | {i.portrait_id: i.sha256 for i in instrument},
        seconds=seconds,
        load_picture=run.blobs.get,
        cleaning=cleaning,
        calls=calls,
        probes=_probes(run, probes),
    )
    return Finished(
        run_id=row["run_id"],
        files=write_all(data, run.out),
        verdicts=[*found.paired, *found.verdicts],
        table=worth_printing([*found.paired, *found.verdicts]),
        outcomes=Counter(i.outcome.value for i in items),
        reasons=dict(
            Counter(f"{i.outcome.value}: {i.reason}" for i in items if i.reason).most_common()
        ),
        controls_ok=controls_ok(found.controls),
        standings=Counter(cleaning.of(i.item_id).place.value for i in items),
        to_review=len(cleaning.review),
    )


def _probes(run: Run, chosen: Path | None) -> dict[str, Any] | None:
    kept = run.out / KEPT_PROBES
    source = chosen or (kept if kept.exists() else None)
    return read_probe_report(source) if source else None


def _clean(
    run: Run,
    items: Sequence[ItemRow],
    figures: Sequence[MeasurementRow],
    reviews: Path | None,
    say: Callable[[str], None],
) -> Cleaning:
    kept = run.out / KEPT_AS
    source = reviews or (kept if kept.exists() else None)
    if source is None:
        return clean(items, figures, run.plan)
    decisions, text = read_reviews(source)
    check_reviews(source, decisions, items)
    out = len({r.item_id for r in decisions if not r.keep})
    say(f"{source}: decisions by people: {len(decisions)}; items excluded by them: {out}")
    return clean(items, figures, run.plan, decisions, text)


# From the ledger's rows ----------------------------------------------------------------------


def _with_subjects(run: Run) -> list[dict[str, Any]]:
    seen = {r["portrait_id"]: r for r in run.ledger.portraits()}
    declared = {p.portrait_id: p for p in run.portraits}
    return [
        dict(row)
        | {
            "subject_id": seen[row["portrait_id"]]["subject_id"],
            "attributes": seen[row["portrait_id"]]["attributes"],
            "pair_base": declared[row["portrait_id"]].pair_base_file,
            "varied_attribute": declared[row["portrait_id"]].varied_attribute,
        }
        for row in run.ledger.items()
    ]


def _item_row(run: Run, row: Mapping[str, Any]) -> ItemRow:
    if row["outcome"] is None:
        raise LikenessError(f"{run.out}: the run is not complete; go on with --resume")
    return ItemRow(
        item_id=row["item_id"],
        portrait_id=row["portrait_id"],
        subject_id=row["subject_id"],
        attributes=row["attributes"],
        pair_base=row["pair_base"],
        varied_attribute=row["varied_attribute"] if row["pair_base"] else "",
        tool=row["tool"],
        tool_id=row["tool_id"],
        control=bool(row["control"]),
        task=row["task"],
        perturbation=row["perturbation"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        seconds=row["seconds"],
        model=row["model"],
        attempts=row["attempts"],
        health={name: _health(h) for name, h in row["health"].items()},
        warnings=row["warnings"],
        evidence=row["evidence"],
        original=row["original"],
        edited=row["edited"],
    )


def _health(h: Mapping[str, Any]) -> Health:
    return Health(
        h["profile"], h["score"], Decision(h["decision"]), h["threshold"], tuple(h["reasons"])
    )


def _figures(run: Run, items: Sequence[ItemRow]) -> list[MeasurementRow]:
    """Every figure, with the health scores as figures of their own, in the items' order."""
    by_item: dict[str, list[MeasurementRow]] = {}
    names = ("item_id", "metric", "region", "value", "unit", "status", "reason")
    for row in run.ledger.measurements():
        by_item.setdefault(row["item_id"], []).append(
            MeasurementRow(**{name: row[name] for name in names})
        )
    for item in items:
        for name, h in item.health.items():
            missing = h.score is None
            status = Status.NOT_MEASURABLE if missing else Status.MEASURED
            reason = h.reasons[0] if missing and h.reasons else None
            by_item.setdefault(item.item_id, []).append(
                MeasurementRow(
                    item.item_id, f"health_{name}", FACE_REGION, h.score, HEALTH_UNIT,
                    status.value, reason,
                )
            )  # fmt: skip
    return [m for item in items for m in by_item.get(item.item_id, [])]


def _instrument_row(row: Mapping[str, Any]) -> InstrumentRow:
    return InstrumentRow(
        portrait_id=row["portrait_id"],
        subject_id=row["subject_id"],
        attributes=row["attributes"],
        accepted=bool(row["accepted"]),
        face_found=bool(row["face_found"]),
        reason=row["reason"],
        facts=row["facts"],
        warnings=row["warnings"],
        sha256=row["sha256"],
    )


def worth_printing(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """One verdict a tool and named claim: its two groups that differ most, disparities first."""
    order = {VerdictKind.DISPARITY: 0, VerdictKind.EQUIVALENT: 1, VerdictKind.INCONCLUSIVE: 2}

    def rank(v: Verdict) -> tuple[int, float]:
        return order[v.verdict], 1.0 if v.p_adjusted is None else v.p_adjusted

    chosen: dict[tuple[object, ...], Verdict] = {}
    for v in sorted(verdicts, key=rank):
        if v.details.get("family") in ("named", "paired"):
            chosen.setdefault((v.tool, v.task, v.metric, v.details.get("region"), v.attribute), v)
    return list(chosen.values())[:TABLE_ROWS]
