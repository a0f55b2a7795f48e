"""Text probes over REST: a plan names one of the operator's models, a worker asks it, the report comes
back; no address, key or file of the service's own ever does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.contract import discover
from service.cli.remote_probes import probe_on_server
from service.engine.worker import Worker
from service.fake_servers import chat
from service.fake_servers.contract import FakeServer
from service.gate import ExitCode
from service.limits import Limits
from service.store.probe_calls import ProbeCalls
from tests.service.api.conftest import Service, Start
from tests.service.engine.worker_bench import bench_at

KEY = "fake-key-0123456789"
PLAN = """\
name: Before the release
endpoint: {offer: house model}
probes:
  - id: association
    settings: {mode: choice, occupations: [nurse, engineer], repeats: 2}
conditions: [plain, {id: guarded, guard: hiring}]
gate: {max_refusal_rate: 0.5}
"""


@pytest.fixture
def model() -> Iterator[FakeServer]:
    with chat.serve(chat.Personality(), key=KEY) as server:
        yield server


@pytest.fixture
def tools(tmp_path: Path, model: FakeServer) -> Path:
    """The operator's file, with the key in a file beside it."""
    folder = tmp_path / "operator"
    folder.mkdir()
    (folder / "secret.txt").write_text(KEY + "\n")
    (folder / "secret.txt").chmod(0o600)
    (folder / "tools.yaml").write_text(
        "local: false\nmodels:\n  - {name: house model, about: The house's own account.,"
        f" base_url: '{model.url}/v1', model: fake-model, key_file: secret.txt, concurrency: 2}}\n"
    )
    return folder / "tools.yaml"


@pytest.fixture
def service(start_service: Start, tools: Path) -> Service:
    return start_service(tools=tools)


def work(service: Service, tmp_path: Path) -> list[str]:
    said: list[str] = []
    bench = bench_at(tmp_path, service.context.database, service.context.server.tools)
    Worker(bench, "w1", said.append).run(until_idle=True)
    return said


def submitted(service: Service, plan: Any = PLAN, **more: Any) -> dict[str, Any]:
    answer = service.client.post("/v1/probes", json={"plan": plan, **more})
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/runs/{answer.json()['run_id']}"
    found: dict[str, Any] = answer.json()
    return found


def test_a_plan_is_asked_of_the_houses_model_and_the_report_comes_back(
    service: Service, model: FakeServer, tmp_path: Path
) -> None:
    run = submitted(service)
    assert (run["kind"], run["batch_id"], run["state"]) == ("probes", None, "queued")
    said = work(service, tmp_path)
    done = service.client.get(f"/v1/runs/{run['run_id']}").json()
    assert done["state"] == "done", (said, done["error"])
    calls = done["progress"]["calls"]
    assert calls["done"] == calls["total"] > 0
    report = service.client.get(done["links"]["report"], headers={"accept": "application/json"})
    found = report.json()
    assert found["schema"] == "likeness-probe-report/1"
    assert {r["condition"] for r in found["results"]} == {"plain", "guarded"}
    assert found["gate"]
    page = service.client.get(done["links"]["report"])
    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    names = {f["name"] for f in service.client.get(done["links"]["files"]).json()["items"]}
    assert names >= {"report.html", "report.json", "replies.jsonl", "card.json", "junit.xml"}


def test_neither_address_nor_key_nor_path_of_the_service_is_told(
    service: Service, model: FakeServer, tmp_path: Path
) -> None:
    run = submitted(service)
    work(service, tmp_path)
    files = service.client.get(f"/v1/runs/{run['run_id']}/files").json()["items"]
    told = [service.client.get(f["href"]).text for f in files]
    told.append(service.client.get("/v1/probes").text)
    for text in told:
        assert KEY not in text
        assert model.url.removeprefix("http://") not in text
        assert str(tmp_path) not in text and "secret.txt" not in text


def test_probes_and_models_are_listed_by_what_a_plan_calls_them(service: Service) -> None:
    answer = service.client.get("/v1/probes").json()
    assert {p["id"] for p in answer["probes"]} == set(discover())
    assert answer["models"] == [{"name": "house model", "about": "The house's own account."}]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{offer: house model}", "{offer: house modle}", "did you mean 'house model'"),
        ("{offer: house model}", "{base_url: 'http://10.0.0.1/v1', model: m}", "names a model that it offers"),
        ("{offer: house model}", "{offer: house model, key_env: HOME}", "and nothing else"),
        ("id: association", "id: asociation", "did you mean 'association'"),
        ("repeats: 2", "reference: {file: /etc/passwd}", "names a file"),
        ("max_refusal_rate: 0.5", "baseline: ../card.json", "names a file"),
        ("repeats: 2", "repeats: two", "repeats"),
    ],
)  # fmt: skip
def test_a_plan_with_a_mistake_is_refused_with_its_place(
    service: Service, old: str, new: str, said: str
) -> None:
    answer = service.client.post("/v1/probes", json={"plan": PLAN.replace(old, new)})
    assert answer.status_code == 422
    assert said in json.dumps(answer.json(), ensure_ascii=False)


def test_a_plan_that_asks_too_much_is_refused_before_it_waits(
    start_service: Start, tools: Path
) -> None:
    service = start_service(tools=tools, limits=Limits(min_free_bytes=0, max_probe_calls=10))
    answer = service.client.post("/v1/probes", json={"plan": PLAN})
    assert answer.status_code == 422
    assert "limit 10" in answer.json()["detail"]


def test_a_run_of_probes_has_no_items_measurements_or_verdicts(service: Service) -> None:
    run = submitted(service)
    for part in ("items", "measurements", "verdicts"):
        assert part not in run["links"]
        answer = service.client.get(f"/v1/runs/{run['run_id']}/{part}")
        assert answer.status_code == 404 and "/report" in answer.json()["detail"]


def test_only_its_own_key_sees_a_run_and_submitting_needs_the_scope(service: Service) -> None:
    run = submitted(service)
    stranger = service.with_scopes("read", "submit")
    assert stranger.get(f"/v1/runs/{run['run_id']}").status_code == 404
    assert service.with_scopes("read").post("/v1/probes", json={"plan": PLAN}).status_code == 403


def test_the_same_key_twice_is_one_run(service: Service) -> None:
    headers = {"Idempotency-Key": "release-7"}
    first, again = (
        service.client.post("/v1/probes", json={"plan": PLAN}, headers=headers) for _ in range(2)
    )
    assert first.json()["run_id"] == again.json()["run_id"]
    assert again.headers["idempotent-replayed"] == "true"


def test_a_cancelled_run_goes_on_where_it_stood_and_asks_nothing_twice(
    service: Service, model: FakeServer, tmp_path: Path
) -> None:
    run = submitted(service)
    here = f"/v1/runs/{run['run_id']}"
    assert service.client.post(f"{here}/cancel").json()["state"] == "cancelled"
    assert service.client.post(f"{here}/resume").json()["state"] == "queued"
    work(service, tmp_path)
    asked = len(model.seen)
    kept = ProbeCalls(service.context.database, run["run_id"]).count()
    service.client.post(f"{here}/cancel")
    assert service.client.get(here).json()["state"] == "done"
    assert 0 < kept <= asked


def test_a_worker_that_is_stopped_leaves_the_run_to_the_next_with_its_replies(
    service: Service, model: FakeServer, tmp_path: Path
) -> None:
    run = submitted(service, PLAN.replace("repeats: 2", "repeats: 40"))
    bench = bench_at(tmp_path, service.context.database, service.context.server.tools)
    journal = ProbeCalls(service.context.database, run["run_id"])
    first = Worker(bench, "w1")
    thread = threading.Thread(target=first.run, kwargs={"until_idle": True})
    thread.start()
    while not journal.count():
        thread.join(0.005)
    first.stop()
    thread.join(60)
    kept, asked = journal.count(), len(model.seen)
    assert service.client.get(f"/v1/runs/{run['run_id']}").json()["state"] == "queued"
    work(service, tmp_path)
    done = service.client.get(f"/v1/runs/{run['run_id']}").json()
    assert done["state"] == "done"
    total = done["progress"]["calls"]["total"]
    assert journal.count() == total > kept > 0
    trials = asked - kept  # what tries out the server, and replies that were not yet kept
    assert len(model.seen) - asked <= total - kept + max(trials, 20)


def test_a_model_that_cannot_be_reached_ends_the_run_with_one_line(
    service: Service, model: FakeServer, tmp_path: Path
) -> None:
    run = submitted(service)
    model.close()
    work(service, tmp_path)
    done = service.client.get(f"/v1/runs/{run['run_id']}").json()
    assert done["state"] == "failed"
    assert done["error"] and "\n" not in done["error"] and KEY not in done["error"]


def test_the_command_line_lets_a_service_ask_and_fetches_what_it_wrote(
    service: Service, model: FakeServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("LIKENESS_TOKEN", service.key)
    (tmp_path / "plan.yaml").write_text(PLAN)
    bench = bench_at(tmp_path, service.context.database, service.context.server.tools)
    worker = Worker(bench, "w1", poll_s=0.05)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        out = tmp_path / "fetched"
        first = probe_on_server(service.url, tmp_path / "plan.yaml", out, False)
        said = capsys.readouterr().out
        again = probe_on_server(service.url, tmp_path / "plan.yaml", out, True)
    finally:
        worker.stop()
        thread.join(60)
    assert first is again is ExitCode.PASS
    assert "pass: " in said and f"report: {out / 'report.html'}" in said
    told = json.loads(capsys.readouterr().out)
    assert told["report"]["schema"] == "likeness-probe-report/1"
    assert (out / "card.json").exists()


def test_text_probes_run_over_postgres_too(
    start_service: Start, tools: Path, tmp_path: Path, postgres: str
) -> None:
    service = start_service(tools=tools, database=postgres)
    run = submitted(service)
    work(service, tmp_path)
    assert service.client.get(f"/v1/runs/{run['run_id']}").json()["state"] == "done"
