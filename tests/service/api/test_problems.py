"""Every failure is a problem of RFC 9457 that says what happened and repeats nothing."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, File, UploadFile
from pydantic import BaseModel, Field, field_validator

from domain.errors import LedgerError, LikenessError, PictureRejected, StoreUnavailable
from service.api import app as application
from service.api.problem_kinds import KINDS
from service.api.problems import Problem

API = Path(application.__file__).parent
CANARY = "canary-5f0c2d9e"


class Inner(BaseModel):
    count: Annotated[int, Field(ge=1)]


class Body(BaseModel):
    name: str
    parts: list[Inner] = []

    @field_validator("name")
    @classmethod
    def _no_spaces(cls, value: str) -> str:
        if " " in value:
            raise ValueError("a name without spaces is needed")
        return value


def with_routes(app: FastAPI) -> None:
    """Operations that fail in each way."""

    def fails(error: Exception) -> Any:
        def fail() -> None:
            raise error

        return fail

    for path, error in {
        "teapot": Problem(409, "conflict", "not now", state="busy"),
        "likeness": LikenessError("plan.yaml: no tool 'x'"),
        "picture": PictureRejected("truncated image", "truncated"),
        "ledger": LedgerError("the ledger is damaged"),
        "store": StoreUnavailable("the database at db.internal is gone"),
        "fault": RuntimeError(CANARY),
    }.items():
        app.get(f"/v1/{path}")(fails(error))

    @app.post("/v1/json")
    def take_json(body: Body) -> str:
        return body.name

    @app.post("/v1/files")
    def take_files(files: Annotated[list[UploadFile], File()]) -> int:
        return len(files)

    @app.get("/v1/number")
    def take_number(n: int) -> int:
        return n


@pytest.fixture
def client(start_service: Any) -> httpx.Client:
    return start_service(change=with_routes).client  # type: ignore[no-any-return]


def problem(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The problem in ``response``, which must be one of this status and kind, and well formed."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    assert told["type"] == f"/problems/{slug}"
    assert told["status"] == status
    assert told["title"] and told["detail"]
    assert told["instance"] == f"urn:likeness:request:{response.headers['x-request-id']}"
    return told


def test_an_address_that_does_not_exist_is_a_problem(client: httpx.Client) -> None:
    problem(client.get("/v1/nothing"), 404, "not-found")
    problem(client.get("/"), 404, "not-found")


def test_a_method_that_is_not_taken_is_told_with_those_that_are(client: httpx.Client) -> None:
    response = client.delete("/v1/json")
    problem(response, 405, "method-not-allowed")
    assert "POST" in response.headers["allow"]


def test_a_problem_raised_by_an_operation_keeps_its_own_members(client: httpx.Client) -> None:
    assert problem(client.get("/v1/teapot"), 409, "conflict")["state"] == "busy"


def test_expected_failures_tell_their_one_line(client: httpx.Client) -> None:
    assert (
        problem(client.get("/v1/likeness"), 400, "rejected")["detail"] == "plan.yaml: no tool 'x'"
    )
    assert problem(client.get("/v1/picture"), 422, "picture-rejected")["code"] == "truncated"


def test_a_store_that_is_gone_is_a_503_that_says_when_to_come_back(client: httpx.Client) -> None:
    response = client.get("/v1/store")
    told = problem(response, 503, "store-unavailable")
    assert response.headers["retry-after"] == "5"
    assert "db.internal" not in str(told)


def test_a_damaged_ledger_is_our_fault_and_not_the_callers(client: httpx.Client) -> None:
    problem(client.get("/v1/ledger"), 500, "internal")


def test_a_fault_of_ours_tells_nothing_and_is_logged_without_its_message(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        response = client.get("/v1/fault")
    problem(response, 500, "internal")
    assert CANARY not in response.text
    facts = [r.facts for r in caplog.records if r.levelname == "ERROR"]  # type: ignore[attr-defined]
    assert facts[0]["kind"] == "RuntimeError"
    assert any("test_problems.py" in frame for frame in facts[0]["where"])
    assert CANARY not in caplog.text + str(facts)


def test_invalid_input_lists_every_mistake_by_its_place_in_the_body(client: httpx.Client) -> None:
    body = {"name": f"{CANARY} x", "parts": [{"count": 3}, {"count": 0}, {"count": CANARY}]}
    response = client.post("/v1/json", json=body)
    errors = problem(response, 422, "invalid")["errors"]
    assert [e["pointer"] for e in errors] == ["#/name", "#/parts/1/count", "#/parts/2/count"]
    assert errors[0]["detail"] == "a name without spaces is needed"


def test_invalid_input_is_never_repeated(client: httpx.Client) -> None:
    for body in ({"name": [CANARY]}, {"name": f"{CANARY} b"}, CANARY, [CANARY], {"parts": CANARY}):
        assert CANARY not in client.post("/v1/json", json=body).text
    assert CANARY not in client.get("/v1/number", params={"n": CANARY}).text
    assert CANARY not in client.get(f"/v1/{CANARY}").text


def test_a_wrong_parameter_is_named(client: httpx.Client) -> None:
    [error] = problem(client.get("/v1/number?n=x"), 422, "invalid")["errors"]
    assert (error["parameter"], error["in"]) == ("n", "query")


NO_JSON = [
    "{", "", '{"name": }', "\ufeff{}", '{"name": "\ud800"}', r'{"name": "\ud800"}',
    r'{"name": "\u0000"}', '{"name": NaN}', '{"n": ' + "9" * 5000 + "}", "'name'",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_JSON)
def test_text_that_is_no_json_is_a_problem(client: httpx.Client, text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    headers = {"Content-Type": "application/json"}
    response = client.post("/v1/json", content=content, headers=headers)
    assert response.status_code in (400, 422)
    assert response.headers["content-type"] == "application/problem+json"


def test_a_whole_character_written_as_two_halves_is_one(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    response = client.post("/v1/json", content=rb'{"name": "\ud83d\ude00"}', headers=headers)
    assert response.json() == "\U0001f600"


def test_an_address_with_a_nul_is_refused(client: httpx.Client) -> None:
    problem(client.get("/v1/number?n=%00"), 400, "bad-request")
    problem(client.get("/problems/a%00"), 400, "bad-request")


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", "image/png", ""])
def test_another_kind_of_body_is_told_which_is_taken(client: httpx.Client, media_type: str) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    told = problem(client.post("/v1/json", content=b"x", headers=headers), 415, "media-type")
    assert "application/json" in told["detail"]
    told = problem(client.post("/v1/files", json={"files": []}), 415, "media-type")
    assert "multipart/form-data" in told["detail"]


def test_resources_of_the_service_tell_which_kind_of_body_they_take(service: Any) -> None:
    headers = {"Content-Type": "text/plain"}
    for path in ("/v1/runs", "/v1/gate", "/v1/batches", "/v1/receipts/verify"):
        response = service.client.post(path, content=b"x", headers=headers)
        problem(response, 415, "media-type")


MULTIPART = "multipart/form-data"


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        (MULTIPART, b"--x\r\n"),
        (f"{MULTIPART}; boundary=x", b"no boundary in it"),
        (f"{MULTIPART}; boundary=x", b"--x\r\nno header\r\n\r\nbody\r\n--x--\r\n"),
        (f"{MULTIPART}; boundary=x", b'--x\r\nContent-Disposition: form-data; name="files"'),
        (f"{MULTIPART}; boundary={'y' * 300}", b"--x\r\n"),
        (f"{MULTIPART}; boundary=\xff", b"--x\r\n"),
        (f"{MULTIPART}; charset=nonsense; boundary=x", b"--x--\r\n"),
    ],
)
def test_a_damaged_form_is_a_problem(client: httpx.Client, media_type: str, content: bytes) -> None:
    headers = [(b"Content-Type", media_type.encode("latin-1"))]
    response = client.post("/v1/files", content=content, headers=headers)
    assert response.status_code in (400, 422), response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_the_request_id_of_a_caller_is_kept_when_it_is_one(client: httpx.Client) -> None:
    kept = client.get("/healthz", headers={"X-Request-Id": "build-17.3"})
    assert kept.headers["x-request-id"] == "build-17.3"
    for bad in ("a b", "x" * 65, "<script>", '"'):
        made = client.get("/healthz", headers={"X-Request-Id": bad}).headers["x-request-id"]
        assert re.fullmatch("[0-9a-f]{32}", made)


def test_every_kind_of_problem_in_the_code_is_explained() -> None:
    used = set()
    for path in API.glob("*.py"):
        used |= set(re.findall(r'Problem\(\s*\d{3},\s*"([a-z-]+)"', path.read_text("utf-8")))
    list(application.modules())
    assert used - set(KINDS) == set()
    assert len(used) > 10


def test_a_problems_type_leads_to_what_it_means(client: httpx.Client) -> None:
    told = problem(client.get("/v1/nothing"), 404, "not-found")
    meaning = client.get(told["type"])
    assert meaning.status_code == 200
    assert meaning.json()["title"] == told["title"]
    page = client.get(told["type"], headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert told["title"] in page.text


def test_every_kind_of_problem_has_its_page(client: httpx.Client) -> None:
    kinds = client.get("/problems").json()
    assert {k["type"] for k in kinds} == {f"/problems/{slug}" for slug in KINDS}
    problem(client.get("/problems/no-such-kind"), 404, "not-found")
