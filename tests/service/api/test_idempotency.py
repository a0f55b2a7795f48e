"""A request that is sent again does its work once."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from sqlalchemy import select

from domain.errors import StoreUnavailable
from service.api.idempotent import once_id
from service.api.problems import Problem
from service.limits import KB, Limits
from service.store.idempotency import Idempotency
from service.store.service_tables import idempotency as table

LIMITS = replace(Limits(min_free_bytes=0), max_kept_answer_bytes=64 * KB)


class Work:
    """Operations that count how often they were done."""

    def __init__(self) -> None:
        self.done = itertools.count(1)
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.fails: list[Exception] = []
        self.ids: list[str | None] = []

    def add_to(self, app: FastAPI) -> None:
        @app.post("/v1/made", status_code=201)
        def make(request: Request, body: dict[str, Any], response: Response) -> dict[str, Any]:
            self.ids.append(once_id(request, "r_"))
            if self.fails:
                raise self.fails.pop()
            number = next(self.done)
            response.headers["Location"] = f"/v1/made/{number}"
            return {"number": number, "got": body}

        @app.post("/v1/files")
        async def take(files: list[UploadFile]) -> dict[str, Any]:
            return {"number": next(self.done), "sizes": [f.size for f in files]}

        @app.post("/v1/slow")
        def slow(body: dict[str, Any]) -> int:
            self.entered.set()
            assert self.go_on.wait(30)
            return next(self.done)

        @app.post("/v1/large")
        def large() -> str:
            return f"{next(self.done)}" + "x" * 100 * KB

        @app.post("/v1/stream")
        def stream() -> Response:
            return StreamingResponse(iter(["a", "b"]), media_type="text/event-stream")


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: Any, start_service: Any, work: Work) -> Any:
    database = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return start_service(change=work.add_to, limits=LIMITS, database=database)


def post(
    client: httpx.Client, path: str = "/v1/made", key: str = "k1", **sent: Any
) -> httpx.Response:
    if not sent.keys() & {"files", "content"}:
        sent.setdefault("json", {"a": 1})
    headers = {"Idempotency-Key": key, **sent.pop("headers", {})}
    return client.post(path, headers=headers, **sent)


def slug(response: httpx.Response) -> str:
    return str(response.json()["type"]).removeprefix("/problems/")


def test_the_same_request_gets_the_same_answer_and_is_done_once(service: Any) -> None:
    first, second = post(service.client), post(service.client)
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    own = {"date", "x-request-id", "idempotent-replayed"}
    assert {n: v for n, v in first.headers.items() if n not in own} == {
        n: v for n, v in second.headers.items() if n not in own
    }
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert second.headers["x-request-id"] != first.headers["x-request-id"]


def test_another_body_under_the_same_key_is_refused(service: Any) -> None:
    post(service.client)
    response = post(service.client, json={"a": 2})
    assert (response.status_code, slug(response)) == (422, "repeat-differs")


def test_another_operation_under_the_same_key_is_refused(service: Any) -> None:
    post(service.client)
    assert post(service.client, "/v1/made?x=1").status_code == 422
    assert post(service.client, "/v1/files", files={"files": b"x"}).status_code == 422


def test_a_key_belongs_to_who_sent_it(service: Any) -> None:
    other = service.with_scopes("submit")
    assert post(service.client).json()["number"] == 1
    assert post(other).json()["number"] == 2


def test_without_a_key_every_request_is_done(service: Any) -> None:
    numbers = [service.client.post("/v1/made", json={}).json()["number"] for _ in range(2)]
    assert numbers == [1, 2]


def test_a_form_with_another_boundary_is_the_same_request(service: Any) -> None:
    def form(boundary: str, content: str = "face") -> dict[str, Any]:
        part = 'Content-Disposition: form-data; name="files"; filename="a.png"'
        body = f"--{boundary}\r\n{part}\r\n\r\n{content}\r\n--{boundary}--\r\n"
        media_type = f"multipart/form-data; boundary={boundary}"
        return {"content": body.encode(), "headers": {"Content-Type": media_type}}

    first = post(service.client, "/v1/files", **form("one"))
    second = post(service.client, "/v1/files", **form("another"))
    assert first.json() == second.json() == {"number": 1, "sizes": [4]}
    assert second.headers["idempotent-replayed"] == "true"
    assert post(service.client, "/v1/files", **form("third", "fact")).status_code == 422


def test_other_names_or_another_order_of_files_are_another_request(service: Any) -> None:
    a, b = ("files", ("a.png", b"1")), ("files", ("b.png", b"2"))
    assert post(service.client, "/v1/files", files=[a, b]).status_code == 200
    assert post(service.client, "/v1/files", files=[b, a]).status_code == 422
    renamed = ("files", ("c.png", b"1"))
    assert post(service.client, "/v1/files", files=[renamed, b]).status_code == 422


def test_the_same_request_while_the_first_is_under_way_is_told_to_wait(
    service: Any, work: Work
) -> None:
    answers: list[httpx.Response] = []
    client = service.bearer(service.key)
    first = threading.Thread(target=lambda: answers.append(post(client, "/v1/slow")))
    first.start()
    assert work.entered.wait(30)
    second = post(service.client, "/v1/slow")
    assert (second.status_code, slug(second)) == (409, "repeat-in-flight")
    assert int(second.headers["retry-after"]) >= 1
    work.go_on.set()
    first.join()
    assert answers[0].json() == 1
    assert post(service.client, "/v1/slow").json() == 1


def test_of_many_at_once_one_is_done(service: Any) -> None:
    clients = [service.bearer(service.key) for _ in range(8)]
    answers: list[httpx.Response] = []
    threads = [threading.Thread(target=lambda c=c: answers.append(post(c))) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status_code for a in answers} <= {201, 409}
    assert {a.json()["number"] for a in answers if a.status_code == 201} == {1}


@pytest.mark.parametrize(
    "failure",
    [Problem(404, "not-found", "no batch"), StoreUnavailable("gone"), RuntimeError("a fault")],
)
def test_after_a_failure_the_key_is_free_again(
    service: Any, work: Work, failure: Exception
) -> None:
    work.fails.append(failure)
    assert post(service.client).status_code >= 400
    mended = post(service.client, json={"a": "mended"})
    assert mended.status_code == 201
    assert "idempotent-replayed" not in mended.headers


def test_a_request_that_is_refused_as_invalid_leaves_the_key_free(service: Any) -> None:
    assert post(service.client, json=[1]).status_code == 422
    assert post(service.client).status_code == 201


def test_an_answer_is_kept_for_a_day(start_service: Any, work: Work) -> None:
    now = [0.0]
    service = start_service(change=work.add_to, limits=LIMITS, clock=lambda: 1.8e9 + now[0])
    post(service.client)
    now[0] = 86_399.0
    assert post(service.client).json()["number"] == 1
    now[0] = 86_401.0
    assert post(service.client, json={"b": 2}).json()["number"] == 2


def test_what_a_killed_process_left_in_flight_is_taken_up_after_its_lease(
    start_service: Any, work: Work
) -> None:
    now = [0.0]
    service = start_service(change=work.add_to, limits=LIMITS, clock=lambda: 1.8e9 + now[0])
    owner = service.key.split("_")[1]
    store = Idempotency(service.context.database, lasts_s=86_400.0, lease_s=60.0)
    killed = store.begin(owner, "k1", 1.8e9)
    assert post(service.client).status_code == 409
    now[0] = 61.0
    assert post(service.client).json()["number"] == 1
    assert post(service.client).headers["idempotent-replayed"] == "true"
    assert killed.state == "begun"


def test_what_is_made_anew_after_a_kill_gets_the_id_it_would_have_had(
    start_service: Any, work: Work
) -> None:
    now = [0.0]
    service = start_service(change=work.add_to, limits=LIMITS, clock=lambda: 1.8e9 + now[0])
    work.fails.append(RuntimeError("not released: the process is killed here"))
    real = Idempotency.release
    try:
        Idempotency.release = lambda *_: None  # type: ignore[method-assign,assignment]
        assert post(service.client).status_code == 500
    finally:
        Idempotency.release = real  # type: ignore[method-assign]
    now[0] = 61.0
    assert post(service.client).status_code == 201
    assert work.ids[0] == work.ids[1]
    assert str(work.ids[0]).startswith("r_") and len(str(work.ids[0])) == 26
    post(service.client, key="k2")
    assert work.ids[2] != work.ids[1]
    service.client.post("/v1/made", json={})
    assert work.ids[3] is None


def test_an_answer_too_large_to_keep_is_not_done_again(service: Any) -> None:
    first = post(service.client, "/v1/large")
    assert first.status_code == 200 and len(first.content) > 100 * KB
    second = post(service.client, "/v1/large")
    assert (second.status_code, slug(second)) == (409, "answer-not-kept")


def test_a_stream_is_passed_on_as_it_comes(service: Any) -> None:
    assert post(service.client, "/v1/stream").text == "ab"
    assert slug(post(service.client, "/v1/stream")) == "answer-not-kept"


@pytest.mark.parametrize("key", ["", "x" * 201, "\xe9"])
def test_a_key_must_be_printable_and_short(start_service: Any, work: Work, key: str) -> None:
    service = start_service(change=work.add_to, limits=LIMITS)
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    response = service.client.post("/v1/made", json={}, headers=headers)
    assert (response.status_code, slug(response)) == (400, "repeat-key")


def test_a_body_larger_than_allowed_leaves_no_entry(service: Any) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(600):
            yield b" " * 4 * KB

    headers = {"Content-Type": "application/json"}
    assert post(service.client, content=endless(), headers=headers).status_code == 413
    assert service.context.database.rows(select(table)) == []


def test_old_answers_are_swept_and_those_about_what_is_deleted_forgotten(service: Any) -> None:
    store = Idempotency(service.context.database, lasts_s=100.0, lease_s=60.0)

    def keep(key: str, location: str, at: float) -> None:
        store.begin("me", key, at)
        store.finish(
            "me", key, "0" * 64, at, status=201, headers=[("location", location)], body=b"names"
        )

    keep("old", "/v1/batches/b_0", 0.0)
    keep("a", "/v1/batches/b_1", 150.0)
    keep("b", "/v1/batches/bx1", 150.0)
    assert store.sweep(151.0) == 1
    assert store.forget("b_1") == 1
    assert [r["key"] for r in service.context.database.rows(select(table.c.key))] == ["b"]


def test_nothing_of_a_body_is_kept_but_its_hash(service: Any) -> None:
    post(service.client, "/v1/files", files={"files": b"canary-77"})
    [row] = service.context.database.rows(select(table))
    assert "canary-77" not in json.dumps({**row, "body": row["body"].decode()})
