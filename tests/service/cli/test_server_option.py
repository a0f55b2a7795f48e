"""``--server URL``: the same commands, the same answers and exit codes, the work done elsewhere."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import pytest

from docs.soak.serving import RealServer
from domain.errors import LikenessError
from service.cli.remote import NOTE, Counted, RemoteRun, code_of, portraits_of
from service.cli.remote_report import finished, verdict_of
from service.client import LikenessClient
from service.engine.progress import Silent
from service.gate import ExitCode

REPO = Path(__file__).resolve().parents[3]
FACES = REPO / "samples" / "portraits" / "images"
PLAN = """\
name: Two people
portraits: {manifest: portraits/manifest.csv}
tools:
  - {id: uniform_harm, name: soft, settings: {strength: 0.5}}
controls: false
groups: [gender]
claims: [{metric: detail_change, attribute: gender}]
"""
WAIT_S = 280


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with RealServer(tmp_path_factory.mktemp("server") / "home") as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plan")
    (made / "portraits").mkdir()
    for name in ("id01_base.jpg", "id02_base.jpg"):
        (made / "portraits" / name).write_bytes((FACES / name).read_bytes())
    rows = "id01_base.jpg,s1,male\nid02_base.jpg,s2,female\n"
    (made / "portraits" / "manifest.csv").write_text("file,subject_id,gender\n" + rows)
    (made / "plan.yaml").write_text(PLAN)
    (made / "blur.png").write_bytes(_blurred())
    (made / "bad.jpg").write_bytes(b"<html>")
    pairs = f"original,edited,name\n{FACES}/id01_base.jpg,{FACES}/id01_base.jpg,same\n"
    pairs += (
        f"{FACES}/id01_base.jpg,blur.png,blurred\nbad.jpg,blur.png,bad\ngone.jpg,blur.png,gone\n"
    )
    (made / "pairs.csv").write_text(pairs)
    return made


def _blurred() -> bytes:
    pixels = cv2.imread(str(FACES / "id01_base.jpg"))
    return bytes(cv2.imencode(".png", cv2.GaussianBlur(pixels, (0, 0), 4))[1])


def likeness(*arguments: str | Path, token: str = "") -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("LIKENESS_TOKEN")}
    return subprocess.run(
        [sys.executable, "-m", "service.cli.main", *map(str, arguments)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=WAIT_S,
        env=env | ({"LIKENESS_TOKEN": token} if token else {}),
    )  # fmt: skip


def both(server: RealServer, *arguments: str | Path) -> Sequence[subprocess.CompletedProcess[str]]:
    """The same command here and there."""
    there = likeness(*arguments, "--server", server.url, token=server.key)
    assert server.key not in there.stdout + there.stderr
    return likeness(*arguments), there


def figures(path: Path) -> dict[tuple[str, ...], str]:
    """Figures by what they are of; portraits by the end of their names."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (r["portrait_id"][-13:], r["tool"], r["metric"], r["region"]): r["value"]
            for r in csv.DictReader(file)
        }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_audit_elsewhere_ends_with_the_files_figures_and_exit_code_of_one_here(
    server: RealServer, folder: Path, tmp_path: Path
) -> None:
    plan = folder / "plan.yaml"
    here = likeness("audit", plan, "--out", tmp_path / "here", "--gate")
    there = likeness(
        "audit",
        plan,
        "--out",
        tmp_path / "there",
        "--gate",
        "--server",
        server.url,
        token=server.key,
    )
    assert (here.returncode, there.returncode) == (3, 3), there.stderr[-500:]
    files = {p.name for p in (tmp_path / "here").iterdir() if p.is_file()} - {"ledger.sqlite3"}
    assert {p.name for p in (tmp_path / "there").iterdir()} == files | {NOTE}
    assert figures(tmp_path / "here" / "measurements.csv") == figures(
        tmp_path / "there" / "measurements.csv"
    )
    for line in ("sending portraits: 2 of 2", "measuring: 2 of 2"):
        assert line in there.stderr
    assert here.stdout.splitlines()[:-2] == there.stdout.splitlines()[:-2]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_elsewhere_can_be_followed_again_but_not_begun_twice_in_one_folder(
    server: RealServer, folder: Path, tmp_path: Path
) -> None:
    with LikenessClient(server.url, server.key) as client:
        begun = RemoteRun(client, tmp_path / "out", Silent()).begin(folder / "plan.yaml")
        again = RemoteRun(client, tmp_path / "out", Silent())
        with pytest.raises(LikenessError, match="already holds a run; use --resume"):
            again.begin(folder / "plan.yaml")
        assert again.again() == begun
        client.cancel(begun)
        client.wait(begun)
        assert again.again() == begun  # a cancelled run goes on where it stood
        found = finished(again.to_the_end(begun))
    assert found.outcomes == {"measured": 2} and found.run_id == begun


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pairs_are_decided_on_elsewhere_as_they_are_here(server: RealServer, folder: Path) -> None:
    good, blurred = FACES / "id01_base.jpg", folder / "blur.png"
    here, there = both(server, "gate", good, blurred, "--json")
    assert (here.returncode, there.returncode) == (1, 1), there.stderr
    assert json.loads(here.stdout) == json.loads(there.stdout)
    measured = likeness(
        "measure", good, blurred, "--json", "--server", server.url, token=server.key
    )
    assert measured.stdout == there.stdout and measured.returncode == 0
    here, there = both(server, "gate", good, folder / "bad.jpg")
    assert here.returncode == there.returncode == 2
    assert here.stderr == there.stderr
    here, there = both(server, "gate", "--batch", folder / "pairs.csv")
    assert here.stdout == there.stdout and here.returncode == there.returncode == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_a_server_does_not_do_is_its_own_one_line_and_nothing_stays_there(
    server: RealServer, folder: Path, tmp_path: Path
) -> None:
    plan = folder / "other.yaml"
    plan.write_text(PLAN.replace("uniform_harm", "openai_images"))
    done = likeness(
        "audit", plan, "--out", tmp_path / "out", "--server", server.url, token=server.key
    )
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("likeness: ")]
    assert len(said) == 1 and "does not offer 'openai_images'" in said[0]
    with LikenessClient(server.url, server.key) as client:
        newest = client._wire.ask("GET", "/v1/batches")["items"][0]
    assert newest["state"] == "deleted"
    done = likeness("gate", plan, plan, "--server", server.url, token="lk_000000000000_wrong")
    assert done.returncode == 2 and "lk_" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_server_does_no_estimates_and_takes_no_reviews(folder: Path, tmp_path: Path) -> None:
    done = likeness(
        "audit", folder / "plan.yaml", "--out", tmp_path, "--budget", "5", "--server", "http://localhost:1"
    )  # fmt: skip
    assert done.returncode == 2
    assert "--server goes with --out, --resume, --gate and --json only" in done.stderr


def test_a_tool_that_is_not_known_here_is_for_the_server_to_judge(folder: Path) -> None:
    plan = folder / "ready_made.yaml"
    plan.write_text(PLAN.replace("uniform_harm", "the operator's own"))
    text, portraits = portraits_of(plan)
    assert "the operator's own" in text
    assert [p.portrait_id for p in portraits] == ["id01_base.jpg", "id02_base.jpg"]


def test_a_plan_without_portraits_is_told_with_its_line(folder: Path) -> None:
    plan = folder / "broken.yaml"
    plan.write_text(PLAN.replace("manifest:", "manifst:"))
    with pytest.raises(LikenessError, match=r"broken.yaml:2: portraits.manif.*required"):
        portraits_of(plan)


class Scripted:
    """A server of strangers."""

    url = "http://127.0.0.1:1"

    def __init__(self, *names: str) -> None:
        self.saved: list[Path] = []
        self._files = [SimpleNamespace(name=name) for name in names]

    def wait(self, _run: str, _watch: Any) -> Any:
        return SimpleNamespace(state="done", error=None)

    def files(self, _run: str) -> Any:
        return self._files

    def save_file(self, _run: str, _file: Any, target: Path) -> Path:
        self.saved.append(target)
        return target


@pytest.mark.parametrize("name", ["../out.txt", "/etc/motd", ".bashrc", "a/b", "..", ""])
def test_a_server_cannot_name_a_file_outside_the_folder(tmp_path: Path, name: str) -> None:
    there: Any = Scripted("report.json", name)
    with pytest.raises(LikenessError, match="names a file that is none"):
        RemoteRun(there, tmp_path, Silent()).to_the_end("r_1")
    assert there.saved == []


def test_a_run_of_another_server_is_not_followed_here(tmp_path: Path) -> None:
    note = {"url": "https://other.example", "run_id": "r_1", "batch_id": "b_1"}
    (tmp_path / NOTE).write_text(json.dumps(note))
    there: Any = Scripted()
    with pytest.raises(LikenessError, match=r"its run is at https://other\.example"):
        RemoteRun(there, tmp_path, Silent()).again()
    with pytest.raises(LikenessError, match="holds no run of a server"):
        RemoteRun(there, tmp_path / "empty", Silent()).again()


def test_an_upload_that_begins_again_takes_no_step_twice() -> None:
    steps: list[int] = []
    counted = Counted(lambda: steps.append(1))
    for count in (1, 2, 1, 2, 3):
        counted(count)
    assert len(steps) == 3


@pytest.mark.parametrize("answer", [{}, {"health": None}, {"health": {"decision": "maybe"}}])
def test_an_answer_without_a_decision_never_passes_a_gate(answer: dict[str, Any]) -> None:
    with pytest.raises(LikenessError, match="no decision"):
        code_of(answer)
    assert code_of({"health": {"decision": "inconclusive"}}) is ExitCode.INCONCLUSIVE


def test_a_report_that_is_none_is_told_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"items": []}')
    with pytest.raises(LikenessError, match=r"report\.json: is not a report"):
        finished({"report.json": tmp_path / "report.json"})
    with pytest.raises(LikenessError, match=r"has no report\.json"):
        finished({})
    with pytest.raises(KeyError):
        verdict_of({})
