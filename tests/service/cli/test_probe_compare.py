"""``likeness probe compare`` from the command line: what it prints and how it exits."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from domain.errors import LikenessError
from probes.card import card_of
from service.cli import probe_compare
from service.report.files import to_json
from service.report.probe_model import ProbeRun
from tests.probes.card_cases import index, result, run


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    probe_compare.add(app)
    app.command("other")(lambda: None)  # with one command alone typer would take away its name
    return app


def card(folder: Path, name: str, of: ProbeRun) -> str:
    path = folder / f"{name}.json"
    path.write_bytes(to_json(card_of(of)))
    return str(path)


@pytest.mark.parametrize(
    ("after", "code", "end"),
    [
        (run(), 0, "No alarm."),
        (run(result(index(-0.3))), 1, "ALARM: look at this before the release."),
        (run(seed=8), 3, "Inconclusive: not everything could be compared."),
    ],
)
def test_the_exit_code_and_the_last_line_agree(
    tmp_path: Path, app: typer.Typer, after: ProbeRun, code: int, end: str
) -> None:
    told = CliRunner().invoke(
        app, ["compare", card(tmp_path, "a", run()), card(tmp_path, "b", after)]
    )
    assert told.exit_code == code
    assert told.stdout.rstrip().endswith(end)


def test_json_never_changes_the_exit_code_and_carries_each_line(
    tmp_path: Path, app: typer.Typer
) -> None:
    cards = [card(tmp_path, "a", run()), card(tmp_path, "b", run(result(index(-0.3))))]
    told = CliRunner().invoke(app, ["compare", *cards, "--json"])
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert found["decision"] == "fail"
    assert found["lines"][0]["state"] == "alarm"
    assert found["lines"][0]["change"] == pytest.approx(-0.6)
    assert [c["model"] for c in found["cards"]] == ["model-1", "model-1"]


def test_the_table_has_a_row_for_each_figure_and_reasons_below(
    tmp_path: Path, app: typer.Typer
) -> None:
    cards = [card(tmp_path, "a", run()), card(tmp_path, "b", run(seed=8, model="model-2"))]
    said = CliRunner().invoke(app, ["compare", *cards]).stdout
    assert "note: Another model was asked: model-1 then, model-2 now." in said
    row = next(r for r in said.splitlines() if r.startswith("resume ") and " index " in r)
    assert re.search(r"0\.30 \(0\.20 to 0\.40\)\s+-\s+not comparable$", row)
    assert (
        "not comparable: resume, en: index cannot be compared: the seed changed (7 then, 8 now)."
        in said
    )


def test_a_name_that_would_colour_the_terminal_is_printed_as_its_code(
    tmp_path: Path, app: typer.Typer
) -> None:
    cards = [card(tmp_path, n, run(name="evil \x1b[31m run")) for n in "ab"]
    said = CliRunner().invoke(app, ["compare", *cards]).stdout
    assert "\x1b" not in said
    assert "evil \\x1b[31m run" in said


def test_a_card_that_cannot_be_read_is_one_line(tmp_path: Path, app: typer.Typer) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{}", "utf-8")
    whole = card(tmp_path, "a", run())
    told = CliRunner().invoke(app, ["compare", whole, str(broken)])
    # service.cli.main prints it and exits with 2
    assert isinstance(told.exception, LikenessError)
    assert str(told.exception).endswith("broken.json: not a baseline card")


def test_a_missing_side_is_a_dash_and_not_a_nought(tmp_path: Path, app: typer.Typer) -> None:
    other = replace(result(), probe="narrative")
    cards = [card(tmp_path, "a", run(result(), other)), card(tmp_path, "b", run())]
    told = CliRunner().invoke(app, ["compare", *cards])
    row = next(r for r in told.stdout.splitlines() if r.startswith("narrative"))
    assert row.split()[-3:] == ["-", "-", "missing"]
    assert told.exit_code == 3
