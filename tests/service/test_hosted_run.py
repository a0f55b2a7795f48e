"""Whole audits of a careless tool that is reached over HTTP: its key leaks from everywhere into
nothing, and a kill in the middle of a paid call is remembered."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from service.fake_servers.contract import start
from service.store.ledger import CALLING, Ledger

REPO = Path(__file__).resolve().parents[2]
CANARY = "sk-canary-7f3e9a51c0"
CARELESS = '''
"""Says in its outcomes whatever the server said, redacting nothing."""

import httpx

from adapters.contract import ToolSpec
from adapters.over_http.wire import HttpSettings
from adapters.guard import read_settings
from domain.edits import Edited, Failed, Refused, Task

SPEC = ToolSpec("careless", "A careless tool", (Task.RETOUCH,), remote=True, concurrency=1,
                key_env="CARELESS_KEY", key_needed=True)


class Careless:
    spec, model = SPEC, "careless 1"

    def __init__(self, settings):
        self.url, self.key = settings.base_url, settings.key.get_secret_value()
        self.client = httpx.Client(trust_env=False, timeout=120)

    def edit(self, request):
        said = self.client.post(self.url, content=request.picture, headers={"x-key": self.key})
        meta = {"http_status": said.status_code, "headers": dict(said.headers),
                "request_id": said.headers.get("x-request-id", ""), "sent": {"x-key": self.key},
                "model": said.headers.get("x-model", "")}
        if said.status_code == 200:
            return Edited(said.content, meta)
        if said.status_code == 400:
            return Refused("input", said.headers["x-request-id"], said.text, meta)
        if said.status_code == 418:
            raise RuntimeError(f"cannot make sense of {said.text} for {self.key}")
        return Failed(f"HTTP {said.status_code}: {said.text}", said.status_code == 503, meta=meta)

    def close(self):
        self.client.close()
        raise RuntimeError(f"{self.key} is still in use")


def build(settings):
    return Careless(read_settings(HttpSettings, settings, SPEC.id))
'''
PLAN = """\
name: careless tool
portraits: {{manifest: {manifest}, limit: {limit}}}
tools:
  - id: careless
    name: vendor A
    max_attempts: 2
    warm_up: 1
    settings: {{base_url: "http://127.0.0.1:{port}"{more}}}
controls: false
workers: 1
"""


class Server:
    """Plays ``script`` call by call, the last for ever; echoes the key it is given wherever it can.
    "hang" answers only when ``let_go`` is set."""

    def __init__(self, *script: str) -> None:
        self.script, self.keys, self.lock = list(script), list[str](), threading.Lock()
        self.hanging, self.let_go = threading.Event(), threading.Event()

    def next(self, key: str) -> str:
        with self.lock:
            self.keys.append(key)
            return self.script[min(len(self.keys), len(self.script)) - 1]


@contextmanager
def serving(server: Server) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"]))
            key = self.headers["x-key"]
            act = server.next(key)
            if act == "hang":
                server.hanging.set()
                server.let_go.wait(120)
            body, status = answer(act, sent, key)
            try:
                self.send_response(status, f"OK {key}")
                for name in ("x-request-id", "x-model", "content-type", "set-cookie"):
                    self.send_header(name, f"{name[:3]}-{key}")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # the client was killed

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield httpd.server_address[1]
        finally:
            server.let_go.set()
            httpd.shutdown()
            thread.join()


def answer(act: str, sent: bytes, key: str) -> tuple[bytes, int]:
    if act.isdigit():
        return json.dumps({"error": f"no good: {key}", "you": {"sent": [key]}}).encode(), int(act)
    picture = Image.open(io.BytesIO(sent))
    note = PngInfo()
    if act == "note":
        note.add_text("Comment", f"made for {key}")
    sink = io.BytesIO()
    picture.point(lambda v: v // 2 + 60).save(sink, "PNG", pnginfo=note, compress_level=1)
    return sink.getvalue(), 200


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The careless tool installed as a stranger's package, and fault files of this test's own."""
    site = tmp_path / "site"
    info = site / "careless-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "faults").mkdir()
    (site / "likeness_careless.py").write_text(CARELESS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: careless\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[likeness.adapters]\ncareless = likeness_careless\n")
    mine = {"PYTHONPATH": str(site), "TMPDIR": str(tmp_path / "faults"), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **mine}


def write_plan(folder: Path, port: int, limit: int, more: str = "") -> Path:
    plan = folder / "plan.yaml"
    manifest = REPO / "samples" / "portraits" / "manifest.csv"
    plan.write_text(PLAN.format(manifest=manifest, port=port, limit=limit, more=more))
    return plan


def command(plan: Path, *more: str) -> list[str]:
    out = str(plan.parent / "out")
    return [sys.executable, "-m", "service.cli.main", "audit", str(plan), "--out", out, *more]


def finished(command: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=REPO, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def holding(folder: Path, secret: str) -> list[str]:
    return [str(f) for f in folder.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]


@pytest.mark.slow
def test_a_key_that_the_server_echoes_everywhere_is_in_no_file_and_on_no_screen(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    key_file = tmp_path / "vendor.key"
    key_file.write_text(CANARY + "\n")
    server = Server("500", "ok", "note", "400", "418", "503", "ok")
    with serving(server) as port:
        plan = write_plan(tmp_path, port, 6, ", key_file: vendor.key")
        told = finished(command(plan), environment)
    assert set(server.keys) == {CANARY}, "the tool was given the key"
    key_file.unlink()
    assert holding(tmp_path, CANARY) == []
    assert CANARY not in told
    assert "others on this machine may read it" in told
    assert "vendor A: warm-up 1 of 1 failed: HTTP 500" in told
    assert "vendor A: could not be closed: RuntimeError: [key] is still in use" in told
    with closing(Ledger.at(tmp_path / "out" / "ledger.sqlite3")) as ledger:
        items = ledger.items()
    assert [i["outcome"] for i in items] == [
        "measured", "failed", "refused", "failed", "measured", "measured",
    ]  # fmt: skip
    assert "holds the key, so it was not kept" in items[1]["reason"]
    assert items[2]["reason"].startswith("input: x-r-[key]")
    assert "RuntimeError: cannot make sense" in items[3]["reason"]


@pytest.mark.slow
def test_a_kill_in_a_paid_call_is_resumed_and_shown_as_maybe_billed(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment["CARELESS_KEY"] = CANARY
    out = tmp_path / "out"
    server = Server("ok", "ok", "hang", "ok")
    with serving(server) as port:
        plan = write_plan(tmp_path, port, 3)
        process = subprocess.Popen(
            command(plan), cwd=REPO, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert server.hanging.wait(120), "the call that is to be cut off was never made"
        children = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert psutil.wait_procs(children, timeout=30)[1] == []
        with closing(Ledger.at(out / "ledger.sqlite3")) as ledger:
            [cut] = ledger.items(CALLING)
            before = ledger.calls()
        server.let_go.set()
        finished(command(plan, "--resume"), environment)
    with closing(Ledger.at(out / "ledger.sqlite3")) as ledger:
        calls = ledger.calls()
    assert calls[: len(before)] == before, "what is on record stays as it was"
    mine = [c for c in calls if c["item_id"] == cut["item_id"] and c["kind"] == "item"]
    assert [(c["attempt"], c["ended"] is None) for c in mine] == [(1, True), (2, False)]
    [facts] = json.loads((out / "report.json").read_text(encoding="utf-8"))["calls"]
    assert (facts["maybe_billed"], facts["calls"], facts["items_called"]) == (1, 4, 3)
    assert facts["retries"] == 1 and facts["warm_ups"] == 2
    assert "may have billed 1 call" in (out / "report.html").read_text(encoding="utf-8")
    told = finished(command(plan, "--resume"), {**environment, "CARELESS_KEY": ""})
    assert len(server.keys) == 6 and CANARY not in told, "nothing is left to call, so no key"
    assert holding(out, CANARY) == []


@pytest.mark.slow
def test_figures_are_the_same_bytes_whether_one_call_or_many_are_under_way(tmp_path: Path) -> None:
    figures = []
    for threads in (1, 3):
        folder = tmp_path / str(threads)
        folder.mkdir()
        with start("openai") as server:
            (folder / "key").write_text(server.key)
            server.next(*(["429", "ok", "500"] if threads > 1 else ["ok"]))
            settings = f"{{base_url: '{server.url}', key_file: key}}"
            tool = f"{{id: openai_images, concurrency: {threads}, settings: {settings}}}"
            manifest = REPO / "samples" / "portraits" / "manifest.csv"
            (folder / "plan.yaml").write_text(
                f"name: threads\nportraits: {{manifest: {manifest}, limit: 3}}\n"
                f"tools: [{tool}]\ntasks: [retouch]\ncontrols: false\nworkers: 1\n"
            )
            finished(command(folder / "plan.yaml"), {**os.environ, "OMP_NUM_THREADS": "1"})
            assert holding(folder / "out", server.key) == []
        report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
        assert report["calls"][0]["retries"] == (2 if threads > 1 else 0)
        figures.append((folder / "out" / "measurements.csv").read_bytes())
    assert figures[0] == figures[1] and b"measured" in figures[0]
