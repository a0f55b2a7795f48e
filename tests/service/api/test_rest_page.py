"""docs/rest.md and the README's walk-through are true: held to the OpenAPI document, the problems and
the limits, and run as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from service.api.problem_kinds import KINDS
from service.limits import DEFAULT
from tests.service.api.conftest import Service

REPO = Path(__file__).resolve().parents[3]
PAGE = (REPO / "docs" / "rest.md").read_text("utf-8")
MB = 1024 * 1024


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_page_names_every_operation_as_the_document_has_it(service: Service) -> None:
    found = service.client.get("/openapi.json").json()["paths"]
    known = {
        (operation["operationId"], f"{method.upper()} {path}")
        for path, methods in found.items()
        for method, operation in methods.items()
    }
    assert set(re.findall(r"\| `(\w+)` \| `([^`]+)` \|", section("Operations"))) == known


def test_the_page_names_every_kind_of_problem_beside_its_status() -> None:
    told = {}
    for statuses, kinds in re.findall(r"^\| ([\d, ]+) \| (.+) \|$", section("Problems"), re.M):
        told |= dict.fromkeys(re.findall(r"`([a-z-]+)`", kinds), statuses)
    assert set(told) == set(KINDS)
    assert [k for k in told if str(KINDS[k].status) not in told[k]] == []


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| .+ \| (\d+)( MB)? \| `(\w+)` \|$", section("Limits"), re.M)
    assert len(rows) >= 12
    for number, unit, name in rows:
        assert int(number) * (MB if unit else 1) == getattr(DEFAULT, name), name


def test_the_page_names_every_scope_and_state() -> None:
    from service.store.api_keys import SCOPES
    from service.store.jobs import OVER, QUEUED, RUNNING

    assert set(re.findall(r"^\| `(\w+)` \|", section("Keys"), re.M)) == set(SCOPES)
    states = re.findall(r"^\| `(\w+)` \|", section("Runs"), re.M)
    assert set(states) == {QUEUED, RUNNING, *OVER}


def walk_through() -> str:
    text = (REPO / "README.md").read_text("utf-8")
    return re.findall(r"^```sh\n(.+?)^```$", text.split("\n## The service\n", 1)[1], re.M | re.S)[0]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_walk_through_in_the_readme_works_as_written(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in (".venv", "samples"):
        (tmp_path / name).symlink_to(REPO / name)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LIKENESS_T", "LIKENESS_H"))}
    # a port of its own, in case somebody uses the usual one, is all that is changed; -m: jobs as typed
    script = "set -em\n" + walk_through().replace("8600", str(port)) + "wait\n"
    process = subprocess.Popen(
        ["bash", "-c", script], cwd=tmp_path, env=kept | {"LIKENESS_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        out, errors = process.communicate(timeout=800)
    finally:
        _end_server(tmp_path / "home")
    log = (tmp_path / "serve.log").read_text("utf-8")
    assert '"decision":"fail"' in out.replace(" ", ""), out[:500] + errors
    assert "event: done" in out, out[-500:] + errors + log
    assert '"metric":"flrr"' in out.replace(" ", "")
    batch = json.loads((tmp_path / "batch.json").read_text("utf-8"))
    assert (batch["accepted"], batch["rejected"], batch["without_row"]) == (2, 0, 0)
    assert (tmp_path / "measurements.csv").read_text("utf-8").startswith("item_id,")
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!")
    assert json.loads((tmp_path / "verdicts.json").read_text("utf-8"))["run_id"] in out
    assert json.loads((tmp_path / "receipt.json").read_text("utf-8"))["signature"]
    assert (tmp_path / "key.txt").stat().st_mode & 0o077 == 0
    key = (tmp_path / "key.txt").read_text("utf-8").strip()
    assert key.startswith("lk_") and key not in out + errors + log


def _end_server(home: Path) -> None:
    """Only where the walk-through broke off before it ended the server itself."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("LIKENESS_HOME") == str(home):
                process.send_signal(signal.SIGTERM)
