"""``likeness audit --estimate`` and ``--budget`` as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from domain.errors import LikenessError
from service.cli import audit as audit_command

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "plan.yaml"
    path.write_text(
        f"name: e\nportraits: {{manifest: {REPO}/samples/portraits/manifest.csv, limit: 6}}\n"
        "controls: false\ntools:\n"
        "  - {id: openai_images, name: hosted, max_attempts: 2, rate_limit: 2/min,"
        " price: {per_call: 0.25}}\n"
        "  - {id: identity, name: local}\n"
    )
    return path


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    audit_command.register(app)
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_an_estimate_names_calls_money_time_and_whose_faces_leave(plan: Path) -> None:
    before = sorted(plan.parent.iterdir())
    done = run(plan, "--estimate")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    for part in (
        "6 portraits of 1 person", "No tool was called", "6 to 12", "0.25 USD", "1.50 to 3.00 USD",
        "Money: 1.50 USD expected, at most 3.00 USD.", "Time: at least 2 min 0 s (hosted",
        "6 portraits of 1 person, in 6 pictures, to api.openai.com:443 (hosted).",
        "only once the audit has looked at them",
    ):  # fmt: skip
        assert part in said, part
    assert sorted(plan.parent.iterdir()) == before


def test_json_holds_the_same_figures(plan: Path) -> None:
    told = json.loads(run(plan, "--estimate", "--json", "--budget", "2").stdout)
    hosted, local = told["tools"]
    assert (hosted["calls"], hosted["calls_at_most"]) == (6, 12)
    assert hosted["faces_sent"] == {"pictures": 6, "portraits": 6, "people": 1}
    assert hosted["destination"] == "api.openai.com:443" and local["faces_sent"] is None
    assert told["totals"]["USD"] == {"spent": 0.0, "expected": 1.5, "at_most": 3.0}
    assert "up to 3.00 USD" in told["over_budget"]


def test_what_may_cost_more_than_the_budget_does_not_begin(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(plan, "--out", out, "--budget", "2.99")
    assert isinstance(done.exception, LikenessError)
    assert "up to 3.00 USD" in str(done.exception) and "\n" not in str(done.exception)
    assert not out.exists() and done.stdout == ""


def test_a_price_that_nobody_named_cannot_be_held_to_a_budget(plan: Path, tmp_path: Path) -> None:
    plan.write_text(
        plan.read_text().replace(", price: {per_call: 0.25}", ", settings: {model: x1}")
    )
    done = run(plan, "--out", tmp_path / "out", "--budget", "2")
    assert "price of 'hosted' is unknown" in str(done.exception)


def test_a_run_within_its_budget_goes_on_to_ask_for_its_key(plan: Path, tmp_path: Path) -> None:
    done = run(plan, "--out", tmp_path / "out", "--budget", "3 USD")
    assert "OPENAI_API_KEY is not set" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--out DIR is needed"),
        (["--estimate", "--resume"], "--out DIR is needed"),
        (["--estimate", "--budget", "lots"], "write an amount such as 20"),
        (["--estimate", "--resume", "--out", "nowhere"], "holds no run to resume"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(
    plan: Path, arguments: list[str], said: str
) -> None:
    done = run(plan, *arguments)
    assert isinstance(done.exception, LikenessError) and said in str(done.exception)
