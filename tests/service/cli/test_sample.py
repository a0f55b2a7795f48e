"""``likeness sample``: a manifest that an audit reads, and what the user is told."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from domain.errors import LikenessError
from service.cli import sample
from service.portraits import read_manifest

HEAD = "file,subject_id,gender,age,set,notes\n"
ROWS = "".join(
    f'images/{g}{k}.jpg,{g}{k},{g},{a},{"adversarial" if k == 9 else ""},"a, b"\n'
    for k in range(10)
    for g, a in (("w", 20 + k), ("m", 50 + k))
)


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    sample.register(app)
    manifest = tmp_path / "set" / "manifest.csv"
    manifest.parent.mkdir()

    def run(*flags: str, table: str = HEAD + ROWS) -> Result:
        manifest.write_text(table, encoding="utf-8")
        return CliRunner().invoke(app, ["sample", str(manifest), *flags])

    return run


def refused(done: Result) -> str:
    assert isinstance(done.exception, LikenessError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


def test_the_sample_is_a_manifest_with_the_same_columns_and_valid_paths(
    ask: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out" / "deep" / "sample.csv"
    out.parent.mkdir(parents=True)
    done = ask("--n", "6", "--strata", "gender", "--out", str(out))
    assert done.exit_code == 0
    assert done.stdout == ""
    text = out.read_text()
    assert text.startswith(HEAD)
    portraits = read_manifest(out)
    assert len(portraits) == 6
    assert {p.attributes["gender"] for p in portraits} == {"w", "m"}
    images = (tmp_path / "set" / "images").resolve()
    assert all(p.path.resolve().parent == images for p in portraits)
    assert {r["notes"] for r in csv.DictReader(io.StringIO(text))} == {"a, b"}


def test_without_out_the_manifest_is_on_stdout_alone(ask: Any) -> None:
    done = ask("--n", "2", "--strata", "gender")
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == 2
    assert "sampled 2 of 2" in done.stderr


def test_short_cells_are_told_on_stderr_and_in_the_json(ask: Any) -> None:
    done = ask("--n", "40", "--strata", "gender,age_group", "--json")
    told = json.loads(done.stdout)
    assert told["sampled"] + told["short"] == 40
    assert sum(c["short"] for c in told["cells"]) == told["short"] == 22
    assert {"gender": "m", "age_group": "18-29"} in [c["cell"] for c in told["cells"]]
    assert "short by 10: gender m, age_group 18-29 (0 of 10, people: 0)" in done.stderr
    assert "bands of 'age'" in done.stderr


def test_the_adversarial_set_is_added_apart_in_its_column(ask: Any) -> None:
    done = ask("--n", "4", "--strata", "gender", "--adversarial", "1")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert sorted(r["set"] for r in rows) == ["", "", "", "", "adversarial"]
    assert "adversarial set, kept apart: 1 taken, 1 left" in done.stderr
    plain = ask("--n", "40", "--strata", "gender")
    assert {r["set"] for r in csv.DictReader(io.StringIO(plain.stdout))} == {""}
    assert "0 taken, 2 left" in plain.stderr


def test_partners_keep_naming_their_base_from_the_new_place(ask: Any, tmp_path: Path) -> None:
    table = (
        "file,subject_id,gender,pair_base_file,varied_attribute\n"
        "a.jpg,a,w,,\na2.jpg,a,w,a.jpg,beard\n"
    )
    out = tmp_path / "s.csv"
    ask("--n", "1", "--strata", "gender", "--partners", "--out", str(out), table=table)
    base, partner = read_manifest(out)
    assert partner.pair_base_file == base.portrait_id == "set/a.jpg"


@pytest.mark.parametrize(
    ("strata", "message"),
    [
        ("gendre", "no column 'gendre'; did you mean 'gender'?"),
        ("gender,skin_tone", "no column 'skin_tone'"),
        ("subject_id", "tells portraits apart"),
        (" , ", "name at least one column"),
    ],
)
def test_a_wrong_stratum_is_one_line(ask: Any, strata: str, message: str) -> None:
    assert message in refused(ask("--n", "2", "--strata", strata))


def test_nothing_to_sample_and_overwriting_the_manifest_are_refused(
    ask: Any, tmp_path: Path
) -> None:
    empty = ask("--n", "2", "--strata", "gender", table="file,subject_id,gender\na.jpg,a,\n")
    assert "none declares all of gender" in refused(empty)
    same = ask("--n", "2", "--strata", "gender", "--out", str(tmp_path / "set" / "manifest.csv"))
    assert "is the manifest itself" in refused(same)
    gone = ask("--n", "2", "--strata", "gender", "--out", str(tmp_path / "no" / "s.csv"))
    assert "cannot write" in refused(gone)
