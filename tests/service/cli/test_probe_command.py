"""``likeness probe`` as a user sees it, killed and interrupted as a real process too."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import probes.contract
from domain.errors import LikenessError, PlanError
from service.cli import probe as probe_command
from service.fake_servers.chat import Fault, Personality, Rule, serve
from service.probe_runs import LEDGER, ledger_in
from service.store.probe_calls import ProbeCalls
from tests.service.planted_probe import known

REPO = Path(__file__).resolve().parents[3]
KEY = "sk-probe-command-0123456789"
RULES = (Rule("hire men", {"yes": 1.0}), Rule("hire women", {"yes": 0.3, "no": 0.7}))
CALLS = 600
PLAN = """\
name: hiring
endpoint:
  base_url: {url}/v1
  model: m-1
  key_file: key.txt
  price: {{input_per_million: 1000, output_per_million: 1000}}
probes: [{{id: planted, settings: {{repeats: {repeats}}}}}]
gate: {{max_abs_index: 0.2}}
"""
PROCESS = """
import sys
import probes.contract
from tests.service.planted_probe import known
probes.contract.discover = known
from service.cli.main import run
sys.argv[0] = "likeness"
run()
"""


@pytest.fixture
def server() -> Iterator[Any]:
    with serve(Personality(rules=RULES), key=KEY) as running:
        yield running


@pytest.fixture
def slow() -> Iterator[Any]:
    """Each answer takes its time, so that a process can be struck in the middle."""
    who = Personality(rules=RULES, faults=(Fault("slow", 1.0, "hire"),))
    with serve(who, key=KEY, slow_s=0.02) as running:
        yield running


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes.contract, "discover", known)


def plan_for(server: Any, folder: Path, repeats: int = 40) -> Path:
    key = folder / "key.txt"
    key.write_text(KEY)
    key.chmod(0o600)
    path = folder / "plan.yaml"
    path.write_text(PLAN.format(url=server.url, repeats=repeats))
    return path


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command("other")(lambda: None)
    probe_command.register(app)
    return CliRunner().invoke(app, ["probe", *map(str, arguments)])


def process(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, "probe", *map(str, arguments)],
        cwd=REPO, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def asked(server: Any) -> Counter[str]:
    told = [seen.json() for seen in list(server.seen) if seen.path.endswith("/chat/completions")]
    said = [t["messages"][-1]["content"] for t in told]
    return Counter(text for text in said if "hire" in text)


def kept(out: Path) -> int:
    with closing(ledger_in(out)) as ledger:
        return ProbeCalls(ledger.database, ledger.run_id).count()


def wait_for(server: Any, calls: int, running: subprocess.Popen[str]) -> None:
    while asked(server).total() < calls:
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.02)


def test_a_run_says_what_was_found_and_where_the_report_is(server: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(plan_for(server, tmp_path), "--out", out)
    assert done.exit_code == 0, done.exception
    said = " ".join(done.stdout.split())
    assert "replies: 160 answered (0 were there already)" in said
    assert "refused or filtered: men 0.0% of 80, women 0.0% of 80" in said
    assert (
        "0 of 1 limit kept gate: fail" in said and f"report: {out / 'report.html'}" in done.stdout
    )
    names = {path.name for path in out.iterdir()}
    assert {"report.html", "report.json", "card.json", "junit.xml", "replies.jsonl"} <= names
    assert not [p for p in out.iterdir() if p.is_file() and KEY.encode() in p.read_bytes()]


def test_json_and_gate_follow_the_limits_of_the_plan(server: Any, tmp_path: Path) -> None:
    plan, out = plan_for(server, tmp_path), tmp_path / "out"
    done = run(plan, "--out", out, "--json", "--gate")
    told = json.loads(done.stdout)
    assert done.exit_code == 1 and told["decision"] == "fail"
    assert told["asked"] == 160 and told["statuses"] == {"answered": 160}
    assert told["refused"]["women"] == {"count": 0, "of": 80, "rate": 0.0}
    (result,) = told["results"]
    assert result["probe"] == "planted" and result["interval"][0] > 0
    plan.write_text(plan.read_text().replace("0.2}", "0.99}"))
    assert run(plan, "--out", tmp_path / "other", "--gate").exit_code == 0


def test_the_same_folder_goes_on_with_the_same_plan_only(server: Any, tmp_path: Path) -> None:
    plan, out = plan_for(server, tmp_path, 2), tmp_path / "out"
    assert run(plan, "--out", out).exit_code == 0
    again = run(plan, "--out", out, "--json")
    assert json.loads(again.stdout)["remembered"] == 8 and asked(server).total() == 8
    plan.write_text(plan.read_text() + "# another thought\n")
    refused = run(plan, "--out", out).exception
    assert isinstance(refused, LikenessError)
    assert str(refused) == (
        f"{out}: holds a run of another plan (its text has changed); use another folder"
    )


def test_a_file_that_has_changed_is_refused_like_a_changed_plan(
    server: Any, tmp_path: Path
) -> None:
    plan, out = plan_for(server, tmp_path, 2), tmp_path / "out"
    assert run(plan, "--out", out).exit_code == 0
    card = tmp_path / "last.json"
    card.write_bytes((out / "card.json").read_bytes())
    text = plan.read_text().replace("gate: {", "gate: {baseline: last.json, ")
    plan.write_text(text)
    other = tmp_path / "other"
    assert run(plan, "--out", other).exit_code == 0
    card.write_text(card.read_text() + "\n")
    said = str(run(plan, "--out", other).exception)
    assert said == f"{other}: last.json has changed since this run began"


def test_an_estimate_asks_nobody_and_a_budget_below_it_refuses(server: Any, tmp_path: Path) -> None:
    plan, out = plan_for(server, tmp_path), tmp_path / "out"
    done = run(plan, "--estimate", "--budget", "50")
    said = " ".join(done.stdout.split())
    assert done.exit_code == 0 and "160 calls to make. Nobody was asked." in said
    assert "Within the budget of 50.00 USD." in said and "planted" in said
    told = json.loads(run(plan, "--estimate", "--json").stdout)
    assert told["calls"] == 160 and 0 < told["cost_likely"] < told["cost_most"]
    refused = run(plan, "--out", out, "--budget", "0.10").exception
    assert isinstance(refused, LikenessError) and "will likely cost" in str(refused)
    assert not server.seen and not out.exists()


def test_what_is_missing_is_told_before_anything_is_asked(server: Any, tmp_path: Path) -> None:
    plan = plan_for(server, tmp_path)
    assert "--out DIR is needed" in str(run(plan).exception)
    assert isinstance(run(tmp_path / "no.yaml", "--out", tmp_path).exception, PlanError)
    (tmp_path / "key.txt").unlink()
    assert "key_file" in str(run(plan, "--out", tmp_path / "out").exception)
    plan.write_text("".join(x for x in plan.read_text().splitlines(True) if "gate" not in x))
    assert "needs limits or a baseline" in str(run(plan, "--out", tmp_path, "--gate").exception)
    assert not server.seen


def test_the_probes_are_listed_and_help_names_the_commands() -> None:
    told = json.loads(run("list", "--json").stdout)
    assert told["probes"][0] == {
        "id": "planted", "title": "Hiring", "question": "Who is hired?", "languages": ["en", "de"],
        "needs": [], "in_composite": True, "reference": "-",
    }  # fmt: skip
    assert "Who is hired?" in run("list").stdout
    said = " ".join(run("--help").stdout.split())
    assert "likeness probe PLAN --out DIR" in said and "list" in said


def test_a_run_killed_in_the_middle_is_gone_on_with_and_nothing_is_lost_or_doubled(
    slow: Any, tmp_path: Path
) -> None:
    plan, out = plan_for(slow, tmp_path, CALLS // 4), tmp_path / "out"
    running = process(plan, "--out", out)
    wait_for(slow, CALLS // 3, running)
    assert "another process runs a plan in this folder" in str(run(plan, "--out", out).exception)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    before, sent = kept(out), asked(slow).total()
    assert 0 < before <= sent < CALLS
    again = process(plan, "--out", out, "--json")
    stdout, stderr = again.communicate()
    assert again.returncode == 0, stderr
    assert json.loads(stdout)["remembered"] == before
    questions = asked(slow)
    assert len(questions) == kept(out) == CALLS and max(questions.values()) <= 2
    # at most what was under way when it was killed is asked a second time
    assert questions.total() - CALLS <= sent - before
    lines = [json.loads(x) for x in (out / "replies.jsonl").read_text().splitlines()]
    assert len({(x["item"], x["arm"], x["repeat"]) for x in lines}) == len(lines) == CALLS
    assert {x["status"] for x in lines} == {"answered"}


def test_ctrl_c_lets_replies_come_home_and_says_how_to_go_on(slow: Any, tmp_path: Path) -> None:
    plan, out = plan_for(slow, tmp_path, CALLS // 4), tmp_path / "out"
    running = process(plan, "--out", out)
    wait_for(slow, CALLS // 6, running)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130
    count = kept(out)
    assert count == asked(slow).total() < CALLS
    assert f"stopped; {count} replies are kept" in said
    assert f"Go on with: likeness probe {plan} --out {out}" in said
    assert not (out / "report.html").exists() and (out / LEDGER).exists()
