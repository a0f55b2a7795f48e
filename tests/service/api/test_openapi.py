"""The description of the service says what is so, and enough to use it by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from service.api.app import create_app
from service.api.context import Context
from service.api.problems import MEDIA_TYPE
from service.limits import Limits
from service.settings import Server
from service.store.access_log import AccessLog
from service.store.blobs import Blobs
from service.store.database import Database

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def drawn(fresh_database: Path) -> Iterator[dict[str, Any]]:
    database = Database(f"sqlite:///{fresh_database}")
    server = Server(fresh_database.parent, "", "", fresh_database)
    context = Context(database, Blobs(str(fresh_database.parent)), Limits(), server, b"s" * 32)
    yield json.loads(json.dumps(create_app(context).openapi()))
    context.close()


def operations(drawn: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in drawn["paths"].items():
        for method, operation in methods.items():
            assert method in METHODS
            yield f"{method.upper()} {path}", operation


def test_it_is_openapi_3_1_with_a_server_and_a_key(drawn: dict[str, Any]) -> None:
    assert drawn["openapi"].startswith("3.1")
    assert drawn["servers"] == [{"url": "/", "description": "This service"}]
    [scheme] = drawn["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_every_operation_has_a_name_a_summary_and_a_known_tag(drawn: dict[str, Any]) -> None:
    known, names = {t["name"] for t in drawn["tags"]}, []
    for where, operation in operations(drawn):
        assert re.fullmatch("[a-z]+(_[a-z]+)*", operation["operationId"]), where
        assert 5 < len(operation["summary"]) < 80, where
        assert set(operation["tags"]) <= known, where
        names.append(operation["operationId"])
    assert len(names) == len(set(names))


def test_every_operation_tells_its_problems(drawn: dict[str, Any]) -> None:
    for where, operation in operations(drawn):
        responses = operation["responses"]
        assert {"403", "500", "503"} <= set(responses), where
        if operation.get("security"):
            assert {"401", "429"} <= set(responses), where
        for status, response in responses.items():
            if status >= "400":
                assert list(response["content"]) == [MEDIA_TYPE], f"{where} {status}"
                assert response["content"][MEDIA_TYPE]["example"]["status"] == int(status)


def test_every_operation_under_v1_but_the_public_key_asks_for_a_key(drawn: dict[str, Any]) -> None:
    for where, operation in operations(drawn):
        if "/v1/" in where and "/v1/signing-key" not in where:
            assert operation.get("security"), where


def test_every_answer_has_a_schema_or_an_example(drawn: dict[str, Any]) -> None:
    for where, operation in operations(drawn):
        for status, response in operation["responses"].items():
            assert response["description"], f"{where} {status}"
            for media_type, content in response.get("content", {}).items():
                assert {"schema", "example"} & set(content), f"{where} {media_type}"


def test_every_parameter_is_described_or_named_by_an_example(drawn: dict[str, Any]) -> None:
    for where, operation in operations(drawn):
        for one in operation.get("parameters", []):
            told = one.get("description") or one.get("example") or one["schema"].get("examples")
            assert told, f"{where} {one['name']}"


def test_every_post_takes_an_idempotency_key(drawn: dict[str, Any]) -> None:
    for where, operation in operations(drawn):
        names = [p["name"] for p in operation.get("parameters", [])]
        assert ("Idempotency-Key" in names) == where.startswith("POST"), where


def test_every_problem_example_fits_the_schema_of_problems(drawn: dict[str, Any]) -> None:
    problem = jsonschema_rs.validator_for(drawn["components"]["schemas"]["Problem"])
    for _, operation in operations(drawn):
        for status, response in operation["responses"].items():
            if status >= "400":
                assert problem.is_valid(response["content"][MEDIA_TYPE]["example"])


def test_every_reference_leads_somewhere(drawn: dict[str, Any]) -> None:
    for name in set(re.findall(r'"#/components/(\w+/[\w.-]+)"', json.dumps(drawn))):
        kind, _, which = name.partition("/")
        assert which in drawn["components"][kind], name


def test_the_frameworks_own_shape_of_errors_is_gone(drawn: dict[str, Any]) -> None:
    assert "HTTPValidationError" not in json.dumps(drawn)


def test_it_is_the_same_at_every_start(service: Any, drawn: dict[str, Any]) -> None:
    assert service.bearer(None).get("/openapi.json").json() == drawn


def test_the_page_lists_every_operation_and_fetches_nothing_from_elsewhere(
    service: Any, drawn: dict[str, Any]
) -> None:
    page = service.bearer(None).get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for _, operation in operations(drawn):
        assert f'id="{operation["operationId"]}"' in page.text
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", page.text)
    assert "<script" not in page.text and "style=" not in page.text
    assert service.client.get("/docs.css").headers["content-type"].startswith("text/css")


# -- small resources -----------------------------------------------------------------------------


def test_tools_are_told_as_the_command_line_tells_them(service: Any) -> None:
    told = service.with_scopes("read").get("/v1/tools").json()
    tools = {t["id"]: t for t in told["tools"]}
    assert tools["identity"]["usable_here"] is True
    assert tools["command"]["usable_here"] is False, "no plan from outside runs programs here"
    assert tools["openai_images"]["key_env"] == "OPENAI_API_KEY"
    assert "identity" in {o["name"] for o in told["offered"]}


def test_the_access_log_is_for_administrators_and_comes_in_pages(service: Any) -> None:
    log = AccessLog(service.context.database)
    for number in range(5):
        log.add("key", "read report", f"r_{number % 2}", {"n": number})
    assert service.with_scopes("read").get("/v1/access").status_code == 403
    first = service.client.get("/v1/access?limit=2").json()
    assert [e["detail"]["n"] for e in first["entries"]] == [4, 3]
    rest = service.client.get(f"/v1/access?before={first['next']}").json()
    assert [e["detail"]["n"] for e in rest["entries"]] == [2, 1, 0]
    assert rest["next"] is None
    of_one = service.client.get("/v1/access?target=r_1").json()["entries"]
    assert [e["detail"]["n"] for e in of_one] == [3, 1]
