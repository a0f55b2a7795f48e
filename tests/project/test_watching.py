"""Prometheus and Grafana as provisioned: they ask for figures that the service has."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.api.app import create_app
from service.api.context import build
from service.settings import Server

DOCKER = Path(__file__).resolve().parents[2] / "docker"
DASHBOARD: dict[str, Any] = json.loads(
    (DOCKER / "grafana" / "dashboards" / "likeness.json").read_text("utf-8")
)
PROMETHEUS: dict[str, Any] = yaml.safe_load(
    (DOCKER / "prometheus" / "prometheus.yml").read_text("utf-8")
)
ALERTS: dict[str, Any] = yaml.safe_load((DOCKER / "prometheus" / "alerts.yml").read_text("utf-8"))
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}

QUESTIONS = {
    **{
        f"panel {p['title']} {t['refId']}": t["expr"]
        for p in DASHBOARD["panels"]
        for t in p["targets"]
    },
    **{f"alert {r['alert']}": r["expr"] for g in ALERTS["groups"] for r in g["rules"]},
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("home")
    context = build(
        Server(
            home=home,
            database=f"sqlite:///{home / 'service.sqlite3'}",
            blobs=str(home / "blobs"),
            secret_file=home / "secret.key",
        ),
        open_access=True,
    )
    yield create_app(context)
    context.close()


@pytest.fixture(scope="module")
def figures(app: Any) -> dict[str, set[str]]:
    """The names that /metrics answers with, and the labels of each, after one request of each kind."""
    app.state.metrics.answered("GET", "/v1/runs", 200, 0.1)
    found: dict[str, set[str]] = {}
    for family in app.state.metrics.registry.collect():
        labels = {name for sample in family.samples for name in sample.labels}
        for suffix in SUFFIXES[family.type]:
            found[f"{family.name}{suffix}"] = labels
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_figure_that_is_asked_for_is_one_of_the_service(
    question: str, figures: dict[str, set[str]]
) -> None:
    names = set(re.findall(r"\blikeness_[a-z_]+\b", QUESTIONS[question]))
    assert names <= set(figures)
    assert names or re.search(r"\bup\{", QUESTIONS[question])


@pytest.mark.parametrize("question", QUESTIONS)
def test_brackets_are_closed(question: str) -> None:
    text = QUESTIONS[question]
    for opening, closing in ("()", "{}", "[]"):
        assert text.count(opening) == text.count(closing)


def test_labels_that_are_asked_for_are_those_of_the_requests(figures: dict[str, set[str]]) -> None:
    asked = {
        label
        for text in QUESTIONS.values()
        for inside in re.findall(r"likeness_request\w*\{([^}]*)\}", text)
        for label in re.findall(r"(\w+)\s*(?:=|!)", inside)
    }
    assert asked <= figures["likeness_requests_total"] | figures["likeness_request_seconds_bucket"]


def test_routes_that_are_asked_for_are_there(app: Any) -> None:
    routes = set(app.openapi()["paths"])
    asked = {r for text in QUESTIONS.values() for r in re.findall(r'route=~"([^"]+)"', text)}
    assert len(asked) == 1
    assert re.fullmatch(asked.pop(), "/v1/gate")
    assert "/v1/gate" in routes
    assert any(route.endswith("/events") for route in routes)


async def _answered(app: Any, path: str) -> int:
    near = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=near, base_url="http://127.0.0.1") as client:
        return (await client.get(path)).status_code


def test_routes_are_counted_under_the_name_that_is_asked_for(app: Any) -> None:
    assert asyncio.run(_answered(app, "/v1/batches")) == 200
    counted = {
        sample.labels["route"]
        for family in app.state.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "likeness_requests_total"
    }
    (batches,) = [route for route in counted if route.endswith("/batches")]
    asked = {r for text in QUESTIONS.values() for r in re.findall(r'route=~"([^"]+)"', text)}
    assert all(re.fullmatch(route, batches.replace("batches", "gate")) for route in asked)


def test_the_dashboard_shows_what_a_person_on_call_looks_for() -> None:
    asked = " ".join(QUESTIONS.values())
    for name in (
        "likeness_requests_total", "likeness_request_seconds_bucket", "likeness_queue_depth", "likeness_runs",
        "likeness_items", "likeness_leases_alive", "likeness_leases_run_out", "likeness_database_up",
    ):  # fmt: skip
        assert name in asked
    assert "histogram_quantile(0.5," in asked
    assert "histogram_quantile(0.99," in asked


def test_no_panel_lies_over_another() -> None:
    cells: set[tuple[int, int]] = set()
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identities) == len(set(identities))
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        cells |= own


def test_every_panel_asks_the_provisioned_source() -> None:
    folder = DOCKER / "grafana" / "provisioning"
    sources = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text("utf-8"))
    source = sources["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    used = {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]}
    used |= {t["datasource"]["uid"] for panel in DASHBOARD["panels"] for t in panel["targets"]}
    assert used == {source["uid"]}


def test_grafana_looks_for_dashboards_where_compose_puts_them() -> None:
    folder = DOCKER / "grafana" / "provisioning"
    providers = yaml.safe_load((folder / "dashboards" / "likeness.yaml").read_text("utf-8"))
    place = providers["providers"][0]["options"]["path"]
    assert f"./grafana/dashboards:{place}:ro" in COMPOSE["services"]["grafana"]["volumes"]


def test_prometheus_asks_the_service_with_a_key_from_a_file() -> None:
    (job,) = PROMETHEUS["scrape_configs"]
    command = COMPOSE["services"]["service"]["command"]
    assert job["static_configs"][0]["targets"] == [
        f"service:{command[command.index('--port') + 1]}"
    ]
    assert job["job_name"] == "likeness"
    secret = job["authorization"]["credentials_file"].removeprefix("/run/secrets/")
    assert secret in COMPOSE["services"]["prometheus"]["secrets"]
    hosts = COMPOSE["services"]["service"]["environment"]["LIKENESS_HOSTS"].split(",")
    assert "service" in hosts, "the service answers only to names that it knows"
    for name in PROMETHEUS["rule_files"]:
        assert (DOCKER / "prometheus" / name).is_file()


def test_every_alert_says_in_a_sentence_what_is_wrong() -> None:
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["annotations"]["summary"].endswith(".")
        assert re.fullmatch(r"\d+m", rule["for"])
