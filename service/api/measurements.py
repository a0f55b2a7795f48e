"""Every figure of a run so far: pages of JSON, or the whole table as CSV or Parquet."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from threading import Lock
from typing import Annotated, Any, Literal

import yaml
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from domain.measurements import Outcome
from domain.plan import AuditPlan
from service.api.accepting import best_of
from service.api.context import Context, ContextOf
from service.api.own_runs import AuditToRead, RunId
from service.api.paging import Cursors, CursorText, PageSize, cut, link_next
from service.api.problems import problems
from service.engine.materialise import BASE, file_name
from service.run_figures import Place, RunFigures, Wanted, attributes_of, key_of, places_in
from service.store.artefacts import Artefacts
from service.store.jobs import DONE, Row
from service.store.readings import Readings, accepted_items
from service.tabular import CSV_TYPE, PARQUET_TYPE, csv_chunks, parquet_chunks

router = APIRouter(tags=["runs"])
JSON = "application/json"
TABLES = "measurements.csv"
_REMEMBERED_RUNS = 4


class Figure(BaseModel):
    """One figure of one item, or the reason why there is none."""

    model_config = ConfigDict(extra="forbid")

    item_id: str
    portrait_id: str
    subject_id: str
    pair_base: str | None = Field(description="The base picture of a counterfactual partner.")
    varied_attribute: str | None
    tool: str
    tool_id: str
    control: bool
    task: str
    perturbation: str
    seed: int
    outcome: Outcome
    standing: str | None = Field(
        description="The item's place in the statistics; null until the run is done."
    )
    metric: str | None = Field(description="null for an item that ended without figures.")
    region: str | None
    status: str
    value: float | None = Field(description="null where nothing was measured; never 0 instead.")
    unit: str | None
    reason: str | None
    attributes: dict[str, str]


class FigurePage(BaseModel):
    """Figures in the order item, metric, region."""

    run_id: str
    complete: bool = Field(description="false while the run can still add figures.")
    items: list[Figure]
    next: str | None = Field(description="`cursor` of the next page; null on the last.")


ToolName = Annotated[
    str | None, Query(max_length=200, description="Label of the tool in the plan.")
]
MetricName = Annotated[
    str | None,
    Query(max_length=60, description="Id of a metric. Items that ended without figures stay in."),
]
RegionName = Annotated[str | None, Query(max_length=40, description="Part of the face.")]
_FORMS = {
    "text/csv": {"schema": {"type": "string"}, "example": "item_id,portrait_id,...\n"},
    PARQUET_TYPE: {"schema": {"type": "string", "format": "binary"}},
}


@router.get(
    "/runs/{run_id}/measurements",
    summary="Figures of a run so far",
    response_model=FigurePage,
    responses={
        200: {
            "content": _FORMS,
            "description": "JSON in pages; CSV and Parquet whole, `cursor` and `limit` are not for them.",
        },
        **problems(400, 401, 403, 404, 406, 422, 503),
    },
)
def list_measurements(
    request: Request,
    response: Response,
    run_id: RunId,
    job: AuditToRead,
    context: ContextOf,
    *,
    tool: ToolName = None,
    metric: MetricName = None,
    region: RegionName = None,
    outcome: Annotated[Outcome | None, Query(description="How the item ended.")] = None,
    cursor: CursorText = None,
    limit: PageSize = 100,
) -> Any:
    """The rows of measurements.csv, available while the run goes on. A figure that could not be
    taken is null with its reason, and an item that ended without figures has one row that says why,
    whatever metric is asked for."""
    wanted = Wanted(tool, metric, region, outcome.value if outcome else None)
    figures = figures_of(context, job)
    complete = job["state"] == DONE
    headers = {"Likeness-Complete": str(complete).lower(), "Vary": "Accept"}
    form = best_of(request, (JSON, "text/csv", PARQUET_TYPE))
    if form != JSON:
        return _table(run_id, figures, wanted, form, headers)
    cursors = Cursors(context.secret, "measurements", run_id, tool, metric, region, wanted.outcome)
    after = cursors.read(cursor)
    found: list[dict[str, Any]] = []
    for row in figures.rows(wanted, (after[0], after[1], after[2]) if after else None):
        found.append(row)
        if len(found) > limit:
            break
    page, more = cut(found, limit, cursors, key_of)
    link_next(request, response, more)
    response.headers.update(headers)
    return FigurePage(run_id=run_id, complete=complete, items=[_figure(r) for r in page], next=more)


def _figure(row: dict[str, Any]) -> Figure:
    fixed = {name: value for name, value in row.items() if name in Figure.model_fields}
    return Figure(**fixed, attributes=attributes_of(row))


def _table(
    run_id: str,
    figures: RunFigures,
    wanted: Wanted,
    form: Literal["text/csv"] | str,
    headers: dict[str, str],
) -> Response:
    ending = "csv" if form == "text/csv" else "parquet"
    headers = headers | {
        "Content-Disposition": f'attachment; filename="{run_id}-measurements.{ending}"'
    }
    columns, rows = figures.columns(), figures.rows(wanted)
    if form == "text/csv":
        return StreamingResponse(csv_chunks(columns, rows), media_type=CSV_TYPE, headers=headers)
    about = {"likeness.run_id": run_id, "likeness.complete": headers["Likeness-Complete"]}
    return StreamingResponse(
        parquet_chunks(columns, rows, about), media_type=PARQUET_TYPE, headers=headers
    )


def figures_of(context: Context, job: Row) -> RunFigures:
    """The figures of a run with what is known of its items' places by now."""
    readings = Readings(context.database, job["run_id"])
    plan = plan_of(job["plan_text"])
    places = _places(context, job["run_id"]) if job["state"] == DONE else {}
    partners: dict[str, tuple[str, str]] = {}
    if not places:
        items = accepted_items(context.database, job["batch_id"])
        files = {str(item["name"]): file_name(item) for item in items}
        for item in items:
            known = item["attributes"] or {}
            base, varied = (str(known.get(n) or "").strip() for n in (BASE, "varied_attribute"))
            partners[file_name(item)] = files.get(base, base), varied
    return RunFigures(readings, plan, places, partners)


@cache
def _place_memory() -> tuple[OrderedDict[str, dict[str, Place]], Lock]:
    return OrderedDict(), Lock()


def _places(context: Context, run_id: str) -> dict[str, Place]:
    """Read from the table that the finished run wrote; the last few are remembered by their hash."""
    store = Artefacts(context.database, context.blobs)
    row = store.get(run_id, TABLES)
    if row is None:
        return {}
    memory, lock = _place_memory()
    with lock:
        if row["blob"] in memory:
            memory.move_to_end(row["blob"])
            return memory[row["blob"]]
    found = places_in(context.blobs.get(row["blob"]))
    with lock:
        memory[row["blob"]] = found
        while len(memory) > _REMEMBERED_RUNS:
            memory.popitem(last=False)
    return found


def plan_of(text: str) -> AuditPlan:
    """A plan that was checked when it came in. The batch stands in for its manifest."""
    data = yaml.safe_load(text)
    data.setdefault("portraits", {})["manifest"] = "manifest.csv"
    data.pop("workers", None)
    return AuditPlan.model_validate(data)
