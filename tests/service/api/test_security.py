"""Who comes in, and who does not."""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from sqlalchemy import select

from service.api.security import Caller, Door, needs
from service.limits import Limits
from service.store.api_keys import SCOPES, ApiKeys, digest, split
from service.store.service_tables import api_keys

LIMITS = Limits(min_free_bytes=0)


def with_routes(app: FastAPI) -> None:
    """One operation for each scope; it tells who asked."""

    def operation(scope: Any) -> Callable[..., str]:
        def tell(caller: Caller = Depends(needs(scope))) -> str:  # noqa: B008
            return caller.key_id

        return tell

    for scope in SCOPES:
        app.get(f"/v1/needs/{scope}", name=f"needs_{scope}")(operation(scope))


@pytest.fixture
def service(start_service: Any) -> Any:
    return start_service(change=with_routes)


def seconds(now: list[datetime]) -> float:
    return now[0].timestamp()


def slug(response: httpx.Response) -> str:
    return str(response.json()["type"]).removeprefix("/problems/")


def test_without_a_key_nothing_is_told(service: Any) -> None:
    response = service.bearer(None).get("/v1/needs/read")
    assert (response.status_code, slug(response)) == (401, "key-missing")
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_every_operation_under_v1_needs_a_key(service: Any) -> None:
    nobody = service.bearer(None)
    for path, methods in service.app.openapi()["paths"].items():
        for method in methods:
            if path.startswith("/v1") and path != "/v1/signing-key":
                sent = nobody.request(method, path.replace("{", "").replace("}", ""))
                assert sent.status_code == 401, f"{method} {path}"


def test_a_key_may_do_what_its_scopes_say_and_no_more(service: Any) -> None:
    for held in SCOPES:
        client = service.with_scopes(held)
        for asked in SCOPES:
            response = client.get(f"/v1/needs/{asked}")
            if held in (asked, "admin"):
                assert response.status_code == 200
            else:
                assert (response.status_code, slug(response)) == (403, "scope-missing")
                assert response.json()["scope"] == asked


def test_nothing_of_a_body_is_read_for_who_may_not_send_it(service: Any) -> None:
    """Who waits for leave (Expect) is refused without ever being given it."""
    reader = service.with_scopes("read").headers["Authorization"]
    for header in ("X-None: 1", f"Authorization: {reader}"):
        head = f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"
        head += "Content-Type: multipart/form-data; boundary=x\r\n"
        head += "Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"
        with socket.create_connection(("127.0.0.1", httpx.URL(service.url).port)) as link:
            link.sendall(head.encode())
            answer = link.recv(65536)
        assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 403"))


@pytest.mark.parametrize(
    "sent",
    [
        "Bearer", "Basic YTpi", "Bearer lk_", "Bearer lk_x_y", "lk_a_b",
        "Bearer lk_5f0c2d9e8b7a_" + "0" * 64, "Bearer " + "x" * 4000, "Bearer lk_\xe9_" + "0" * 64,
    ],
)  # fmt: skip
def test_what_is_no_good_key_is_refused(service: Any, sent: str) -> None:
    header = [(b"Authorization", sent.encode("latin-1"))]
    response = service.bearer(None).get("/v1/needs/read", headers=header)
    assert (response.status_code, slug(response)) == (401, "key-refused")
    assert "invalid_token" in response.headers["www-authenticate"]


def test_a_key_with_one_digit_changed_is_refused(service: Any) -> None:
    token = service.key
    other = token[:-1] + ("0" if token[-1] != "0" else "1")
    assert service.bearer(other).get("/v1/needs/read").status_code == 401


def test_two_keys_in_one_request_are_refused(service: Any) -> None:
    both = [("Authorization", f"Bearer {service.key}")] * 2
    assert service.bearer(None).get("/v1/needs/read", headers=both).status_code == 401


def test_a_key_in_the_address_is_no_key(service: Any) -> None:
    nobody = service.bearer(None)
    assert nobody.get(f"/v1/needs/read?key={service.key}").status_code == 401
    assert nobody.get(f"/v1/needs/read?access_token={service.key}").status_code == 401


def test_a_revoked_key_is_refused_at_once(service: Any) -> None:
    client = service.with_scopes("read", name="leaver")
    assert client.get("/v1/needs/read").status_code == 200
    ApiKeys(service.context.database).revoke("leaver")
    assert client.get("/v1/needs/read").status_code == 401


def test_a_key_ends_when_it_was_said_to(start_service: Any) -> None:
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    service = start_service(change=with_routes, clock=lambda: seconds(now))
    keys = ApiKeys(service.context.database)
    _, token = keys.add("short", ["read"], lasts=timedelta(days=1), now=now[0])
    client = service.bearer(token)
    assert client.get("/v1/needs/read").status_code == 200
    now[0] += timedelta(days=1)
    assert client.get("/v1/needs/read").status_code == 401


def test_of_a_key_only_a_hash_is_kept(service: Any) -> None:
    _, secret = split(service.key) or ("", "")
    [row] = service.context.database.rows(select(api_keys))
    assert secret not in str(row)
    assert row["secret_sha256"] == hashlib.sha256(secret.encode()).hexdigest() == digest(secret)
    files = [p for p in service.context.server.home.rglob("*") if p.is_file()]
    assert not any(secret.encode() in p.read_bytes() for p in files)


def test_no_key_and_no_query_comes_into_the_log(
    service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        service.client.get("/v1/needs/read?name=anna")
        service.bearer(service.key + "0").get("/v1/needs/read")
        service.client.get("/v1/anna/picture")
    ours = [
        r for r in caplog.records if not r.name.startswith("http")
    ]  # the client is no part of it
    logged = str([(r.name, r.getMessage(), getattr(r, "facts", "")) for r in ours])
    assert "/v1/needs/read" in logged
    for hidden in (service.key, service.key[-20:], "anna"):
        assert hidden not in logged


def test_last_use_is_written_once_a_minute(start_service: Any) -> None:
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    service = start_service(change=with_routes, clock=lambda: seconds(now))
    client = service.with_scopes("read", name="reader")

    def last() -> str | None:
        client.get("/v1/needs/read")
        return next(
            k.last_used for k in ApiKeys(service.context.database).all() if k.name == "reader"
        )

    assert last() == "2026-03-01T00:00:00+00:00"
    now[0] += timedelta(seconds=59)
    assert last() == "2026-03-01T00:00:00+00:00"
    now[0] += timedelta(seconds=1)
    assert last() == "2026-03-01T00:01:00+00:00"


# -- wrong keys ---------------------------------------------------------------------------------


def test_an_address_that_tries_wrong_keys_has_to_wait(start_service: Any) -> None:
    now = [0.0]
    limits = replace(LIMITS, failed_keys=3, failed_keys_s=60.0)
    service = start_service(change=with_routes, clock=lambda: 1e9 + now[0], limits=limits)
    assert service.client.get("/v1/needs/read").status_code == 200
    stranger = service.bearer("lk_5f0c2d9e8b7a_" + "0" * 64)
    assert [stranger.get("/v1/needs/read").status_code for _ in range(4)] == [401, 401, 401, 429]
    refused = stranger.get("/v1/needs/read")
    assert slug(refused) == "too-many-attempts"
    assert 0 < int(refused.headers["retry-after"]) <= 61
    assert service.client.get("/v1/needs/read").status_code == 200, (
        "a key known as good still passes"
    )
    now[0] += 60
    assert stranger.get("/v1/needs/read").status_code == 401


def test_the_door_forgets_addresses_rather_than_filling_the_memory() -> None:
    door = Door(1, 60.0)
    for number in range(30_000):
        door.wrong(f"10.0.{number // 256}.{number % 256}", 0.0)
    assert len(door._wrong) == 10_000


# -- without keys -------------------------------------------------------------------------------


def test_a_server_on_loopback_without_keys_lets_this_machine_in(start_service: Any) -> None:
    service = start_service(change=with_routes, open_access=True, keyed=False)
    assert service.client.get("/v1/needs/admin").json() == "open"


def test_what_a_proxy_passes_on_is_not_from_this_machine(start_service: Any) -> None:
    service = start_service(change=with_routes, open_access=True, keyed=False)
    for name in ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"):
        response = service.client.get("/v1/needs/read", headers={name: "127.0.0.1"})
        assert response.status_code == 401


def test_the_first_key_shuts_the_open_door_for_good(start_service: Any) -> None:
    service = start_service(change=with_routes, open_access=True, keyed=False)
    keys = ApiKeys(service.context.database)
    _, token = keys.add("first", ["read"])
    assert service.client.get("/v1/needs/read").status_code == 401
    assert service.bearer(token).get("/v1/needs/read").status_code == 200
    keys.revoke("first")
    assert service.client.get("/v1/needs/read").status_code == 401


def test_without_leave_a_server_without_keys_lets_nobody_in(start_service: Any) -> None:
    service = start_service(change=with_routes, keyed=False)
    assert service.client.get("/v1/needs/read").status_code == 401


# -- browsers -----------------------------------------------------------------------------------


HOSTS = [
        ("localhost", True), ("localhost:8600", True), ("127.0.0.1:1", True), ("[::1]:8600", True),
        ("audit.example", True), ("audit.example:443", True), ("AUDIT.example", True),
        ("10.0.0.5:8600", True), ("evil.example", False), ("localhost.evil.example", False),
        ("audit.example.evil", False), ("127.0.0.1.evil.example", False), ("", False),
        ("user@localhost", False), ("localhost/x", False), ("localhost:port", False),
        ("127.1", False), ("2130706433", False),
]  # fmt: skip


def test_the_service_answers_to_its_own_names_only(start_service: Any) -> None:
    """A page that points a name of its own at this machine (DNS rebinding) comes with that name."""
    service = start_service(change=with_routes, hosts=("audit.example",))
    for host, passes in HOSTS:
        response = service.client.get("/v1/needs/read", headers={"Host": host})
        assert response.status_code == (200 if passes else 403), host
        assert passes or slug(response) == "host-refused"


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost:3000", "file://", "http://127.0.0.1", "x"],
)
def test_a_page_of_another_origin_may_not_call(service: Any, origin: str) -> None:
    response = service.client.get("/v1/needs/read", headers={"Origin": origin})
    assert (response.status_code, slug(response)) == (403, "origin-refused")


def test_a_page_of_the_service_itself_may_call(service: Any) -> None:
    response = service.client.get("/v1/needs/read", headers={"Origin": service.url})
    assert response.status_code == 200


def test_no_answer_invites_other_origins(service: Any) -> None:
    sent = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    response = service.client.options("/v1/needs/read", headers=sent)
    assert not [n for n in response.headers if n.startswith("access-control")]


@pytest.mark.parametrize("path", ["/healthz", "/v1/needs/read", "/v1/nothing", "/docs", "/openapi.json"])  # fmt: skip
def test_every_answer_carries_the_headers_that_tie_a_browsers_hands(
    service: Any, path: str
) -> None:
    headers = service.client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert headers["x-request-id"]
