"""Figures of a run over REST: while it goes on and afterwards, as JSON, CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from service import run_figures
from service.api import measurements
from service.plans import AuditPlan
from service.report.csv_files import CSV_HEAD, measurements_csv
from service.report.groups import grouping
from service.report.model import ItemRow, MeasurementRow, RunData
from service.run_figures import RunFigures, Wanted, places_in
from service.store.database import Database
from service.store.ledger import Ledger
from service.store.readings import Readings
from service.tabular import csv_chunks
from tests.service.api.conftest import Service
from tests.service.api.seeded import (
    a_batch,
    a_run,
    finish_item,
    finish_run,
    item_id,
    lease,
    refuse_item,
    write_items,
)

HOSTILE = ("<script>alert(1)</script>", "=cmd|' /C calc'!A1", "a\u202egpj.exe", "@SUM(1)")


def a_measured_run(
    service: Service,
    count: int = 6,
    people: Sequence[Mapping[str, str]] = ({"gender": "female"}, {"gender": "male"}),
) -> tuple[str, Ledger]:
    """Even items measured, item 1 refused, 3 without a figure, the others not there yet."""
    run_id = a_run(service.context, batch_id=a_batch(service.context, people=people))
    ledger = write_items(service.context, run_id, count, people=people)
    for number in range(0, count, 2):
        finish_item(ledger, number)
    if count > 1:
        refuse_item(ledger, 1)
    if count > 3:
        finish_item(ledger, 3, None)
    return run_id, ledger


def pages(service: Service, run_id: str, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        page = service.client.get(f"/v1/runs/{run_id}/measurements", params=query).json()
        rows += page["items"]
        if page["next"] is None:
            return rows
        query["cursor"] = page["next"]


def table(service: Service, run_id: str, media_type: str, **query: Any) -> httpx.Response:
    answer = service.client.get(
        f"/v1/runs/{run_id}/measurements", params=query, headers={"Accept": media_type}
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].split(";")[0] == media_type
    return answer


def csv_rows(service: Service, run_id: str, **query: Any) -> list[dict[str, str]]:
    text = table(service, run_id, "text/csv", **query).text
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_what_is_measured_so_far_is_there_and_said_not_to_be_all(service: Service) -> None:
    run_id, ledger = a_measured_run(service)
    page = service.client.get(f"/v1/runs/{run_id}/measurements").json()
    assert page["complete"] is False
    assert {r["item_id"] for r in page["items"]} == {item_id(n) for n in (0, 1, 2, 3, 4)}
    finish_item(ledger, 5)
    assert {r["item_id"] for r in pages(service, run_id)} == {item_id(n) for n in range(6)}


def test_a_missing_figure_is_null_with_its_reason_and_never_nought(service: Service) -> None:
    run_id, _ = a_measured_run(service)
    rows = [r for r in pages(service, run_id) if r["item_id"] == item_id(3)]
    assert {r["metric"] for r in rows} == {"flrr", "pdl", "health_document"}
    assert all(r["value"] is None and r["status"] == "not_measurable" for r in rows)
    assert {r["reason"] for r in rows} == {"too small", "a part is missing"}
    found = pq.read_table(
        io.BytesIO(table(service, run_id, "application/vnd.apache.parquet").content)
    )
    assert found.column("value").null_count == 4
    assert 0.0 not in found.column("value").to_pylist()
    assert str(found.schema.field("value").type) == "double"
    assert found.schema.metadata[b"likeness.complete"] == b"false"


def test_an_item_without_figures_has_one_row_that_says_why_whatever_is_asked_for(
    service: Service,
) -> None:
    run_id, _ = a_measured_run(service)
    for query in ({}, {"metric": "flrr"}, {"region": "mouth"}, {"metric": "no such"}):
        rows = [r for r in pages(service, run_id, **query) if r["outcome"] == "refused"]
        assert [(r["metric"], r["value"], r["status"], r["reason"]) for r in rows] == [
            (None, None, "refused", "the tool refused")
        ]


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_pages_give_the_same_rows_as_the_whole_table(service: Service, limit: int) -> None:
    run_id, _ = a_measured_run(service)
    rows = pages(service, run_id, limit=limit)
    keys = [(r["item_id"], r["metric"] or "", r["region"] or "") for r in rows]
    assert keys == sorted(set(keys))
    assert keys == [(r["item_id"], r["metric"], r["region"]) for r in csv_rows(service, run_id)]


def test_rows_that_come_in_neither_double_nor_hide_others(service: Service) -> None:
    run_id, ledger = a_measured_run(service, 40)
    there = {(r["item_id"], r["metric"]) for r in pages(service, run_id)}
    seen: list[tuple[str, str]] = []
    query: dict[str, Any] = {"limit": 7}
    late = iter(range(5, 40, 2))
    while True:
        page = service.client.get(f"/v1/runs/{run_id}/measurements", params=query).json()
        seen += [(r["item_id"], r["metric"]) for r in page["items"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
        if (number := next(late, None)) is not None:
            finish_item(ledger, number)
    assert len(seen) == len(set(seen))
    assert there <= set(seen)


def test_figures_can_be_asked_for_by_tool_metric_region_and_outcome(service: Service) -> None:
    run_id, _ = a_measured_run(service)
    assert {r["metric"] for r in pages(service, run_id, metric="pdl") if r["metric"]} == {"pdl"}
    assert {r["region"] for r in pages(service, run_id, region="face") if r["region"]} == {"face"}
    assert {r["outcome"] for r in pages(service, run_id, outcome="refused")} == {"refused"}
    assert pages(service, run_id, tool="another") == []
    assert len(pages(service, run_id, tool="copy")) == len(pages(service, run_id))
    answer = service.client.get(f"/v1/runs/{run_id}/measurements?outcome=wonderful")
    assert answer.status_code == 422


def test_a_cursor_goes_with_its_filters(service: Service) -> None:
    run_id, _ = a_measured_run(service)
    there = f"/v1/runs/{run_id}/measurements"
    cursor = service.client.get(there, params={"limit": 1}).json()["next"]
    answer = service.client.get(there, params={"cursor": cursor, "metric": "pdl"})
    assert answer.status_code == 400


def test_columns_are_those_of_measurements_csv(service: Service) -> None:
    run_id, _ = a_measured_run(service)
    head = table(service, run_id, "text/csv").text.splitlines()[0].split(",")
    assert head[: len(CSV_HEAD)] == [name for name, _ in CSV_HEAD]
    assert head[len(CSV_HEAD) :] == ["gender"]
    found = pq.read_table(
        io.BytesIO(table(service, run_id, "application/vnd.apache.parquet").content)
    )
    assert found.column_names == head


def test_the_form_goes_by_accept(service: Service) -> None:
    run_id, _ = a_measured_run(service)
    there = f"/v1/runs/{run_id}/measurements"
    for accept, found in (
        ("*/*", "application/json"),
        ("text/csv;q=0.5, application/json;q=0.4", "text/csv"),
        ("text/*", "text/csv"),
        ("text/html, */*;q=0.1", "application/json"),
    ):
        answer = service.client.get(there, headers={"Accept": accept})
        assert answer.headers["content-type"].split(";")[0] == found
        assert "Accept" in answer.headers["vary"]
    assert service.client.get(there, headers={"Accept": "image/png"}).status_code == 406


def test_a_finished_run_is_complete_and_knows_where_items_stand(service: Service) -> None:
    run_id, _ = a_measured_run(service, 2)
    head = ",".join(name for name, _ in CSV_HEAD)
    line = f"{item_id(0)},p,s,'=base,gender,copy,identity,0,retouch,none,7,measured,conflict,,,,,,"
    finish_run(
        service.context, lease(service.context), {"measurements.csv": f"{head}\n{line}\n".encode()}
    )
    page = service.client.get(f"/v1/runs/{run_id}/measurements").json()
    assert page["complete"] is True
    row = next(r for r in page["items"] if r["item_id"] == item_id(0))
    assert (row["standing"], row["pair_base"], row["varied_attribute"]) == (
        "conflict", "=base", "gender",
    )  # fmt: skip


def test_partners_are_named_as_the_run_names_their_base_while_it_goes_on(service: Service) -> None:
    people = (
        {"gender": "female", "file": "base, one.png"},
        {"gender": "male", "file": "b.png", "pair_base_file": "base, one.png",
         "varied_attribute": "gender"},
    )  # fmt: skip
    run_id, _ = a_measured_run(service, 4, people)
    rows = {r["portrait_id"]: r for r in pages(service, run_id)}
    assert sorted(rows) == ["00000-base_one.png", "b.png"]
    assert rows["b.png"]["pair_base"] == "00000-base_one.png"
    assert rows["b.png"]["varied_attribute"] == "gender"
    assert rows["00000-base_one.png"]["pair_base"] is None


def test_hostile_attributes_are_data_everywhere(service: Service) -> None:
    people = [{"gender": text, "=1+1": "x"} for text in HOSTILE]
    run_id, ledger = a_measured_run(service, len(people), people)
    refuse_item(ledger, 1, '=HYPERLINK("x")\r=1')
    rows = csv_rows(service, run_id)
    assert {r["gender"].removeprefix("'") for r in rows} == set(HOSTILE)
    for row in rows:
        for name, cell in row.items():
            assert name[:1] not in "=+-@"
            assert cell[:1] not in ("=", "@", "\t", "\r")
    assert {r["attributes"]["gender"] for r in pages(service, run_id)} == set(HOSTILE)
    found = pq.read_table(
        io.BytesIO(table(service, run_id, "application/vnd.apache.parquet").content)
    )
    assert set(found.column("gender").to_pylist()) == set(HOSTILE)


# Against the table that a finished run writes ---------------------------------------------------


def test_the_table_is_byte_for_byte_that_of_the_report(service: Service, tmp_path: Any) -> None:
    people = [
        {"gender": text, "age": str(30 + n), "standing": "x"} for n, text in enumerate(HOSTILE)
    ]
    run_id, _ledger = a_measured_run(service, 9, people)
    for number in (5, 7):
        finish_item(_ledger, number, -0.0 if number == 5 else 123456789.123)
    plan = AuditPlan.model_validate(
        {
            "name": "x", "seed": 7, "portraits": {"manifest": "m"}, "tools": [{"id": "identity"}],
            "groups": ["gender", "gender × age"],
        }
    )  # fmt: skip
    written = measurements_csv(*_as_finished(service, run_id, plan))
    figures = RunFigures(
        Readings(service.context.database, run_id), plan, places_in(written.encode())
    )
    assert b"".join(csv_chunks(figures.columns(), figures.rows(Wanted()))).decode() == written


def _as_finished(service: Service, run_id: str, plan: AuditPlan) -> Any:
    ledger = Ledger(service.context.database, run_id)
    known = {p["portrait_id"]: p for p in ledger.portraits()}
    items, rows = [], []
    for i in ledger.items():
        names = ("item_id", "portrait_id", "tool", "tool_id", "task", "perturbation", "reason")
        portrait = known[i["portrait_id"]]
        items.append(
            ItemRow(
                **{n: i[n] for n in names}, control=bool(i["control"]), outcome=i["outcome"],
                subject_id=portrait["subject_id"], attributes=portrait["attributes"],
            )
        )  # fmt: skip
        for profile, h in (i["health"] or {}).items():
            status = "measured" if h["score"] is not None else "not_measurable"
            reason = h["reasons"][0] if h["reasons"] else None
            health = (f"health_{profile}", "face", h["score"], "points", status, reason)
            rows.append(MeasurementRow(i["item_id"], *health))
    named = ("item_id", "metric", "region", "value", "unit", "status", "reason")
    rows += [MeasurementRow(**{n: m[n] for n in named}) for m in ledger.measurements()]
    data = RunData(
        run_id=run_id, plan=plan, plan_text="", started="", finished="", items=items,
        measurements=rows, instrument=[], verdicts=[], paired=[], controls=[], versions={},
        inputs={}, seconds=0.0, load_picture=service.context.blobs.get,
    )  # fmt: skip
    return data, grouping(data)


def test_a_long_run_is_read_piece_by_piece(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_figures, "ITEMS_AT_ONCE", 4)
    asked: list[int] = []
    whole = Readings.ended_items

    def counted(self: Readings, at_least: str, limit: int, **how: Any) -> Any:
        found = whole(self, at_least, limit, **how)
        asked.append(len(found))
        return found

    monkeypatch.setattr(Readings, "ended_items", counted)
    run_id, _ = a_measured_run(service, 30)
    rows = csv_rows(service, run_id)
    assert len({r["item_id"] for r in rows}) == 17
    assert len(rows) == len({(r["item_id"], r["metric"], r["region"]) for r in rows})
    assert max(asked) == 4


def test_the_places_of_a_finished_run_are_read_once(service: Service) -> None:
    run_id, _ = a_measured_run(service, 2)
    head = ",".join(name for name, _ in CSV_HEAD)
    finish_run(service.context, lease(service.context), {"measurements.csv": f"{head}\n".encode()})
    job = {"run_id": run_id, "state": "done", "plan_text": "name: x\ntools: [{id: identity}]\n"}
    job["batch_id"] = "b"
    first = measurements.figures_of(service.context, job).places
    assert measurements.figures_of(service.context, job).places is first


def test_figures_are_read_from_postgresql_alike(service: Service, postgres: str) -> None:
    run_id, _ = a_measured_run(service, 12)
    lite = Readings(service.context.database, run_id)
    database = Database(postgres)
    database.migrate()
    try:
        other = replace(service.context, database=database)
        ledger = write_items(other, run_id, 12)
        for number in range(0, 12, 2):
            finish_item(ledger, number)
        refuse_item(ledger, 1)
        finish_item(ledger, 3, None)
        plan = measurements.plan_of("name: x\ntools: [{id: identity}]\n")
        big = Readings(database, run_id)
        assert list(RunFigures(big, plan).rows(Wanted())) == list(
            RunFigures(lite, plan).rows(Wanted())
        )
        assert big.counts() == lite.counts()
        assert [i["seq"] for i in big.items(3, 4)] == [4, 5, 6, 7]
    finally:
        database.close()
