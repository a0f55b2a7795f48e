"""Alive, ready, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert

from domain.errors import StoreUnavailable
from preprocess import models
from service.api.app import create_app
from service.limits import Limits
from service.store.database import Database
from service.store.service_tables import batches, jobs


def ready(service: Any) -> httpx.Response:
    service.app.state.readiness.__init__()  # what was found a moment ago does not count here
    return service.bearer(None).get("/readyz")  # type: ignore[no-any-return]


def test_the_process_tells_that_it_is_alive_to_anybody(service: Any) -> None:
    assert service.bearer(None).get("/healthz").json() == {"status": "ok"}


def test_a_service_with_everything_is_ready(service: Any) -> None:
    told = ready(service).json()
    assert told["status"] == "ready"
    assert set(told["checks"]) == {"database", "blobs", "models", "disk"}


def test_a_service_without_its_database_is_alive_but_not_ready(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_self: Database) -> None:
        raise StoreUnavailable("PostgreSQL at db.internal: password refused")

    monkeypatch.setattr(Database, "ping", gone)
    response = ready(service)
    assert response.status_code == 503
    assert response.json()["type"] == "/problems/not-ready"
    assert response.json()["missing"] == ["database"]
    assert int(response.headers["retry-after"]) > 0
    assert "db.internal" not in response.text
    assert service.client.get("/healthz").status_code == 200


def test_a_missing_model_is_named(
    service: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = models.state
    name = next(iter(models.manifest()))
    monkeypatch.setattr(
        models, "state", lambda n: replace(state(n), path=None) if n == name else state(n)
    )
    response = ready(service)
    assert response.json()["missing"] == ["models"]
    assert name in response.json()["detail"]
    assert str(tmp_path) not in response.text


def test_a_full_disk_is_not_ready(start_service: Any) -> None:
    service = start_service(limits=Limits(min_free_bytes=2**62))
    assert ready(service).json()["missing"] == ["disk"]


def test_a_blob_store_that_is_gone_is_not_ready(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_self: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(service.context.blobs), "ping", gone)
    assert ready(service).json()["missing"] == ["blobs"]


def test_nobody_can_make_it_look_all_the_time(start_service: Any) -> None:
    now = [1.8e9]
    service = start_service(clock=lambda: now[0], limits=Limits(min_free_bytes=0))
    asked = []
    Watched = type("Watched", (Database,), {"ping": lambda _self: asked.append(1)})
    service.context.database.__class__ = Watched
    nobody = service.bearer(None)
    for _ in range(5):
        assert nobody.get("/readyz").status_code == 200
    assert len(asked) == 1
    now[0] += 2.1
    nobody.get("/readyz")
    assert len(asked) == 2


# -- counts -------------------------------------------------------------------------------------


def counts(service: Any) -> dict[str, dict[tuple[str, ...], float]]:
    text = service.client.get("/metrics").text
    return {
        sample.name: {
            tuple(s.labels.values()): s.value for s in family.samples if s.name == sample.name
        }
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_the_template_of_their_route(service: Any) -> None:
    service.client.get("/problems/anna")
    service.client.get("/problems/not-found")
    service.client.get("/who/is/anna")
    service.client.get("/v1/batches/anna")
    service.client.get("/v1/tools")
    service.client.request("BREW", "/healthz")
    text = service.client.get("/metrics").text
    assert "anna" not in text and "BREW" not in text
    requests = counts(service)["likeness_requests_total"]
    assert requests["GET", "/problems/{slug}", "404"] == 1
    assert requests["GET", "/problems/{slug}", "200"] == 1
    assert requests["GET", "unmatched", "404"] == 1
    assert requests["GET", "/v1/batches/{batch_id}", "422"] == 1
    assert requests["GET", "/v1/tools", "200"] == 1
    assert ("other", "/healthz", "405") in requests


def test_work_is_counted_by_state(service: Any) -> None:
    batch = {"batch_id": "b_0", "created": "x", "owner": "o", "state": "ready"}
    job = {"batch_id": "b_0", "owner": "o", "created": "x", "plan_text": ""}
    with service.context.database.begin() as link:
        link.execute(insert(batches), [batch])
        for number, (state, lease) in enumerate(
            [("queued", None), ("queued", None), ("running", 1.0), ("running", 9e9), ("done", None)]
        ):
            row = {**job, "run_id": f"r_{number}", "state": state, "lease_until": lease}
            link.execute(insert(jobs), [row])
    found = counts(service)
    assert found["likeness_runs"] == {("queued",): 2, ("running",): 2, ("done",): 1}
    assert found["likeness_queue_depth"][()] == 2
    assert found["likeness_leases_alive"][()] == 1
    assert found["likeness_leases_run_out"][()] == 1
    assert found["likeness_database_up"][()] == 1


def test_counts_come_without_a_database_too(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(Database, "rows", gone)
    text = service.bearer(None).get("/metrics").text
    assert "likeness_database_up 0.0" in text


def test_counts_are_for_this_machine_and_for_readers(service: Any) -> None:
    nobody = service.bearer(None)
    assert nobody.get("/metrics").status_code == 200
    assert nobody.get("/metrics", headers={"X-Forwarded-For": "10.0.0.1"}).status_code == 401
    assert service.with_scopes("submit").get("/metrics").status_code == 403
    assert service.with_scopes("read").get("/metrics").status_code == 200


def test_two_services_in_one_process_count_for_themselves(service: Any) -> None:
    other = create_app(service.context)
    service.client.get("/healthz")
    samples = [s for m in other.state.metrics.registry.collect() for s in m.samples]
    assert not [s for s in samples if s.name == "likeness_requests_total"]


def test_a_database_that_goes_and_comes_back_needs_nobodys_hands(
    start_service: Any, postgres: str, postgres_server: Any
) -> None:
    service = start_service(database=postgres)
    assert service.client.get("/v1/access").status_code == 200
    postgres_server.stop()
    try:
        response = service.client.get("/v1/access")
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert response.json()["type"] == "/problems/store-unavailable"
        assert ready(service).json()["missing"] == ["database"]
        assert service.client.get("/healthz").status_code == 200
        assert "likeness_database_up 0.0" in service.bearer(None).get("/metrics").text
    finally:
        postgres_server.start()
    assert service.client.get("/v1/access").status_code == 200
    assert ready(service).status_code == 200
