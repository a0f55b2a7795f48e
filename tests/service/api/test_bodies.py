"""Bodies that are too large, too deep, too slow or too many."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, Request, UploadFile
from fastapi.responses import StreamingResponse

from service.api.json_bodies import depth
from service.api.protocol import send_at_once
from service.limits import KB, MB, Limits

SMALL = replace(
    Limits(min_free_bytes=0),
    max_json_bytes=10 * KB,
    max_file_bytes=100 * KB,
    max_batch_bytes=300 * KB,
    max_header_bytes=16 * KB,
    header_timeout_s=0.3,
    body_idle_s=0.3,
)
GATE, ENTERED = threading.Event(), threading.Semaphore(0)


def with_routes(app: FastAPI) -> None:
    @app.post("/v1/json")
    def take(body: dict[str, Any]) -> int:
        return len(body)

    @app.post("/v1/files")
    async def take_files(files: list[UploadFile]) -> int:
        return sum([len(await f.read()) for f in files])

    @app.post("/v1/raw")
    async def take_raw(request: Request) -> int:
        return len(await request.body())

    @app.get("/v1/slow")
    def slow() -> str:
        ENTERED.release()
        GATE.wait(30)
        return "done"

    @app.get("/v1/listen")
    def listen() -> StreamingResponse:
        def events() -> Iterator[str]:
            yield "begun"
            GATE.wait(30)
            yield "ended"

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/v1/twice")
    def twice(a: Annotated[int, "n"] = 0) -> int:
        return 2 * a


@pytest.fixture
def service(start_service: Any) -> Any:
    GATE.clear()
    return start_service(change=with_routes, limits=SMALL)


@pytest.fixture
def client(service: Any) -> httpx.Client:
    return service.client  # type: ignore[no-any-return]


def pieces(total: int, size: int = 4096) -> Iterator[bytes]:
    for _ in range(total // size):
        yield b"x" * size


def is_problem(response: httpx.Response, status: int, slug: str) -> bool:
    told = response.json()
    return (response.status_code, told["status"], told["type"]) == (
        status, status, f"/problems/{slug}",
    )  # fmt: skip


def test_a_declared_length_beyond_the_limit_is_refused_at_once(client: httpx.Client) -> None:
    response = client.post("/v1/json", json={"a": "x" * 20 * KB})
    assert is_problem(response, 413, "too-large")
    assert response.json()["limit"] == 10 * KB


def test_a_body_without_a_length_is_counted_while_it_is_read(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    response = client.post("/v1/json", content=pieces(200 * KB), headers=headers)
    assert is_problem(response, 413, "too-large")


def test_a_form_without_a_length_is_counted_while_it_is_read(client: httpx.Client) -> None:
    def form() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
        yield from pieces(400 * KB)
        yield b"\r\n--x--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert is_problem(client.post("/v1/files", content=form(), headers=headers), 413, "too-large")


def test_a_form_may_be_larger_than_json(client: httpx.Client) -> None:
    assert client.post("/v1/files", files={"files": b"x" * 200 * KB}).json() == 200 * KB


def test_a_body_of_no_declared_kind_is_held_to_the_limit_of_json(client: httpx.Client) -> None:
    assert is_problem(client.post("/v1/raw", content=b"x" * 20 * KB), 413, "too-large")


def test_json_nested_too_deeply_is_refused(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    deep = b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}"
    assert is_problem(client.post("/v1/json", content=deep, headers=headers), 413, "too-large")
    assert client.post("/v1/json", json={"a": [[[["[[[[[[" * 99]]]]}).json() == 1


@pytest.mark.parametrize(
    ("text", "deep"),
    [("1", 0), ("[]", 1), ('{"a":[1,{"b":2}]}', 3), (r'["[[\"[[",[]]', 2), ("[],[],[]", 1)],
)
def test_depth_counts_brackets_outside_of_strings(text: str, deep: int) -> None:
    assert depth(text.encode()) == deep


def raw(service: Any, *parts: bytes, timeout: float = 20.0) -> bytes:
    """What the server says to these bytes, to the end of the connection."""
    port = httpx.URL(service.url).port
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as link:
        for part in parts:
            link.sendall(part)
        told = b""
        while data := link.recv(65536):
            told += data
    return told


def head(service: Any, path: str = "/v1/json", *more: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {service.key}"]
    return "\r\n".join([*lines, "Content-Type: application/json", *more, "", ""]).encode()


def told(answer: bytes) -> dict[str, Any]:
    top, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in top
    return dict(json.loads(body))


def test_a_body_that_stops_coming_is_cut_off(service: Any) -> None:
    answer = raw(service, head(service, "/v1/json", "Content-Length: 100"), b'{"a":')
    assert answer.startswith(b"HTTP/1.1 408")
    assert told(answer)["type"] == "/problems/too-slow"


def test_headers_that_never_end_are_cut_off(service: Any) -> None:
    assert raw(service, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") == b""


def test_a_connection_that_says_nothing_is_cut_off(service: Any) -> None:
    assert raw(service) == b""


def test_a_kept_connection_that_trickles_its_next_headers_is_cut_off(service: Any) -> None:
    first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(service, first, b"GET /healthz HT")
    assert answer.count(b"HTTP/1.1 200") == 1


def test_what_is_no_http_is_told_so_as_a_problem(service: Any) -> None:
    answer = raw(service, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert told(answer)["type"] == "/problems/bad-request"


def test_headers_that_are_too_large_are_a_problem(service: Any) -> None:
    answer = raw(service, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40 * KB)
    assert told(answer)["type"] == "/problems/bad-request"


def test_two_lengths_are_refused(service: Any) -> None:
    both = head(service, "/v1/json", "Content-Length: 2", "Content-Length: 3")
    assert raw(service, both + b"{}").startswith(b"HTTP/1.1 400")


def test_a_client_that_leaves_in_the_middle_does_no_harm(service: Any) -> None:
    port = httpx.URL(service.url).port
    for path in ("/v1/json", "/v1/raw", "/v1/files"):
        with socket.create_connection(("127.0.0.1", port)) as link:
            link.sendall(head(service, path, "Content-Length: 100") + b"{")
    assert service.client.get("/v1/twice?a=4").json() == 8


def test_more_requests_than_there_is_room_for_are_told_to_come_back(start_service: Any) -> None:
    GATE.clear()
    limits = replace(SMALL, max_requests=2)
    service = start_service(change=with_routes, limits=limits)
    others = [
        threading.Thread(target=service.bearer(service.key).get, args=["/v1/slow"]) for _ in "ab"
    ]
    for one in others:
        one.start()
        assert ENTERED.acquire(timeout=30)
    refused = service.client.get("/v1/twice")
    assert is_problem(refused, 503, "busy")
    assert int(refused.headers["retry-after"]) >= 1
    assert service.client.get("/healthz").status_code == 200, "who watches is always let in"
    GATE.set()
    for one in others:
        one.join()
    assert service.client.get("/v1/twice?a=1").json() == 2


def test_who_listens_to_events_takes_no_place_of_those_who_work(start_service: Any) -> None:
    GATE.clear()
    service = start_service(change=with_routes, limits=replace(SMALL, max_requests=1))
    with service.client.stream("GET", "/v1/listen") as stream:
        events = stream.iter_text()
        assert next(events) == "begun"
        assert service.bearer(service.key).get("/v1/twice?a=2").json() == 4
        GATE.set()
        assert list(events) == ["ended"]
    assert service.client.get("/v1/twice?a=3").json() == 6


def test_more_connections_than_there_is_room_for_are_told_to_come_back(start_service: Any) -> None:
    service = start_service(limits=replace(SMALL, max_connections=3, header_timeout_s=20.0))
    port = httpx.URL(service.url).port
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    try:
        for link in held:  # each is known to be in once it was answered
            link.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert link.recv(4096).startswith(b"HTTP/1.1 200")
        answer = raw(service)
        assert told(answer)["type"] == "/problems/busy"
        assert b"Retry-After" in answer
    finally:
        for link in held:
            link.close()


def test_answers_leave_at_once() -> None:
    """Two pieces of one answer would wait 40 ms for each other on a socket without TCP_NODELAY."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as link,
    ):
        transport = SimpleNamespace(get_extra_info=lambda _name: link)
        send_at_once(transport)
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_limits_of_a_body_follow_what_it_is_and_where_it_goes() -> None:
    limits = Limits()
    assert limits.body("/v1/batches", "multipart/form-data") == limits.max_batch_bytes
    assert limits.body("/v1/batches", "application/zip") == limits.max_batch_bytes
    assert limits.body("/v1/gate", "multipart/form-data") == 3 * limits.max_file_bytes + MB
    assert limits.body("/v1/runs", "application/json") == limits.max_json_bytes
