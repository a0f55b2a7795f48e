"""``likeness serve`` and ``likeness worker`` as processes: they start, end and end together."""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from domain.errors import LikenessError, StoreUnavailable
from service.cli import serve as serving
from service.cli.worker import in_time
from service.engine.children import command

PORTRAITS = Path(__file__).resolve().parents[3] / "samples" / "portraits"
PATIENCE_S = 120.0


def until(true: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < ends, f"waited in vain: {what}"
        time.sleep(0.05)


class Served:
    """``likeness serve`` on a free port, with ``home`` as its home."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.log = home.parent / "serve.log"
        environment = {**os.environ, "LIKENESS_HOME": str(home), "LIKENESS_WORKERS": "1"}
        for name in ("LIKENESS_DATABASE", "LIKENESS_BLOBS", "LIKENESS_TOOLS"):
            environment.pop(name, None)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command("serve", "--port", "0", *arguments), env=environment,
                stdout=subprocess.PIPE, stderr=log, text=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        self.url = self.said.partition("likeness: ")[2].strip().removesuffix("/v1")

    def workers(self) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.process.pid).children()
            if "--with-parent" in child.cmdline()
        ]

    def text(self) -> str:
        return self.log.read_text()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def begin(*arguments: str) -> Served:
        made.append(Served(tmp_path / "home", *arguments))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def answer(url: str, path: str, **more: Any) -> httpx.Response:
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        return client.request(more.pop("method", "GET"), path, **more)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


@pytest.mark.slow
def test_it_serves_does_a_run_and_ends_in_order(start: Callable[..., Served]) -> None:
    served = start("--workers", "1")
    assert answer(served.url, "/healthz").status_code == 200
    assert "open to every program on this machine, and to no other machine" in served.text()
    with (PORTRAITS / "manifest.csv").open(newline="") as file:
        names = [row["file"] for row in csv.DictReader(file)][:2]
    files = [("files", (Path(n).name, (PORTRAITS / n).read_bytes(), "image/jpeg")) for n in names]
    batch = answer(served.url, "/v1/batches", method="POST", files=files).json()["batch_id"]
    plan = {"name": "x", "tools": [{"id": "identity", "name": "copy"}], "controls": False}
    begun = answer(served.url, "/v1/runs", method="POST", json={"batch_id": batch, "plan": plan})
    assert begun.status_code == 202
    place = begun.headers["location"]
    until(lambda: answer(served.url, place).json()["state"] == "done", "the run")
    assert "<html" in answer(served.url, f"{place}/report").text
    workers = served.workers()
    assert len(workers) == 1
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(PATIENCE_S) == 0
    until(lambda: gone(workers), "the worker's end")


@pytest.mark.slow
def test_its_workers_are_started_again_and_never_outlive_it(start: Callable[..., Served]) -> None:
    served = start("--workers", "2")
    until(lambda: served.text().count(": ready") == 2, "both workers")
    first = served.workers()
    assert len(first) == 2
    first[0].kill()
    until(lambda: served.text().count(": ready") == 3, "another worker in its place")
    assert "ended (signal 9); another takes its place" in served.text()
    second = served.workers()
    assert len(second) == 2
    served.process.kill()
    until(lambda: gone(second), "the workers' end after kill -9 of the service")


@pytest.mark.slow
def test_the_worker_command_ends_when_the_queue_is_empty(tmp_path: Path) -> None:
    environment = {**os.environ, "LIKENESS_HOME": str(tmp_path), "LIKENESS_WORKERS": "1"}
    done = subprocess.run(
        command("worker", "--until-idle"), env=environment, capture_output=True, text=True,
        check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.stderr.strip().endswith(": ready")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path))
    for name in ("LIKENESS_DATABASE", "LIKENESS_BLOBS", "LIKENESS_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def not_run(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The contexts that would have been served."""
    found: list[Any] = []
    monkeypatch.setattr(serving, "_run", lambda context, *_: found.append(context))
    return found


def serve(**how: Any) -> None:
    given = {"host": "127.0.0.1", "port": 0, "workers": 0, "open_to_everyone": False}
    serving.serve(**{**given, **how})


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_open_to_the_network_without_a_key(
    home: Path, not_run: list[Any], host: str
) -> None:
    if host == "::" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with pytest.raises(LikenessError, match="no key has been made: make one with 'likeness keys"):
        serve(host=host)
    assert not_run == []


def test_with_a_key_it_opens_to_the_network_and_to_nobody_without_one(
    home: Path, not_run: list[Any]
) -> None:
    from service.store.api_keys import ApiKeys
    from service.store.database import Database

    database = Database(f"sqlite:///{home / 'service.sqlite3'}")
    database.migrate()
    ApiKeys(database).add("admin", ["admin"])
    database.close()
    serve(host="0.0.0.0")
    assert not_run[0].open_access is False


def test_only_the_loud_flag_opens_it_to_everyone(
    home: Path, not_run: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    serve(host="0.0.0.0", open_to_everyone=True)
    assert not_run[0].open_access is True
    assert "WARNING: OPEN TO EVERYONE" in capsys.readouterr().err


def test_on_loopback_it_is_open_until_a_key_is_made_and_says_so(
    home: Path, not_run: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    serve()
    assert not_run[0].open_access is True
    assert "open to every program on this machine" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_in_a_line(home: Path, not_run: list[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LikenessError, match=f"cannot listen on 127.0.0.1 port {port}: "):
            serve(port=port)


def test_a_mistake_in_the_operators_tools_is_told_at_the_start(
    home: Path, not_run: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "tools.yaml").write_text("tools: [{name: x, id: nothing}]\n")
    monkeypatch.setenv("LIKENESS_TOOLS", str(home / "tools.yaml"))
    with pytest.raises(LikenessError, match="unknown tool 'nothing'"):
        serve()


def test_a_database_that_comes_up_later_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    waits: list[float] = []

    def step() -> None:
        if len(waits) < 3:
            raise StoreUnavailable("the database: connection refused")

    in_time(step, waits.append)
    assert waits == [1.0, 1.0, 1.0]
    assert capsys.readouterr().err.count("connection refused") == 1


def test_a_database_that_never_comes_up_is_told_after_a_minute() -> None:
    def step() -> None:
        raise StoreUnavailable("the database: connection refused")

    waits: list[float] = []
    with pytest.raises(StoreUnavailable, match="connection refused"):
        in_time(step, waits.append)
    assert sum(waits) == 60
