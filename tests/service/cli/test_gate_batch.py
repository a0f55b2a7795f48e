"""``likeness gate --batch``: every row ends with its reason, and the exit code tells the heaviest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import cv2
import numpy as np
import pytest

from domain.errors import LikenessError
from service.cli.gate import gate
from service.gate import ExitCode, heaviest
from service.pair_list import Defaults, PairRow, read_pair_list

REPO = Path(__file__).resolve().parents[3]
FACES = REPO / "samples" / "portraits" / "images"
HEAD = "original,edited,name,mask,profile,min_score\n"
ROWS = """\
a.jpg,a.jpg,same,,,
a.jpg,blur.png,blurred,mask.png,,99.5
a.jpg,blank.png,blank,,even,
blank.png,a.jpg,\x1b[31mred,,,

a.jpg,bad.jpg,,,,
a.jpg,absent.jpg,,,,
a.jpg,a.jpg,small mask,small.png,,
a.jpg,a.jpg,no mask,a.jpg,,
a.jpg,a.jpg,same,,,
"""
DECISIONS = [
    "pass", "fail", "fail", "inconclusive", "could-not-run", "could-not-run", "could-not-run",
    "could-not-run", "pass",
]  # fmt: skip


def likeness(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service.cli.main", *map(str, arguments)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pairs")
    pixels = cv2.imread(str(FACES / "id01_base.jpg"))
    (made / "a.jpg").write_bytes((FACES / "id01_base.jpg").read_bytes())
    cv2.imwrite(str(made / "blur.png"), cv2.GaussianBlur(pixels, (0, 0), 4))
    cv2.imwrite(str(made / "blank.png"), pixels * 0)
    mask = np.zeros(pixels.shape[:2], np.uint8)
    mask[300:500, 200:400] = 255
    cv2.imwrite(str(made / "mask.png"), mask)
    cv2.imwrite(str(made / "small.png"), mask[:90, :80])
    (made / "bad.jpg").write_bytes(b"<html>")
    (made / "pairs.csv").write_text(HEAD + ROWS)
    return made


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    return likeness(
        "gate", "--batch", folder / "pairs.csv", "--json", "--junit", folder / "new" / "junit.xml"
    )


@pytest.fixture(scope="module")
def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_row_ends_in_its_place_and_a_bad_one_stops_no_other(
    lines: list[dict[str, Any]],
) -> None:
    assert [a["decision"] for a in lines] == DECISIONS
    assert [a["line"] for a in lines] == [2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert all((a["reason"] is None) == (a["decision"] == "pass") for a in lines)
    reasons = {a["line"]: a["reason"] for a in lines}
    assert reasons[7] == "edited: not an image: looks like HTML"
    assert reasons[8] == "edited: absent.jpg: no such file"
    assert reasons[9] == "mask: 80 x 90 pixels where the original has 720 x 960"
    assert reasons[10] == "mask: not a black-and-white picture"


def test_a_row_has_its_own_profile_threshold_and_mask(lines: list[dict[str, Any]]) -> None:
    assert lines[1]["health"]["min_score"] == 99.5
    assert lines[1]["metrics"]["outside_mask_drift"]["value"] > 0
    assert lines[0]["metrics"]["outside_mask_drift"]["value"] is None
    assert lines[2]["health"]["profile"] == "even"


def test_a_row_is_the_answer_about_the_pair_alone(
    lines: list[dict[str, Any]], folder: Path
) -> None:
    alone = likeness("gate", folder / "a.jpg", folder / "blank.png", "--profile", "even", "--json")
    assert alone.returncode == ExitCode.FAILED
    assert {**lines[2], **json.loads(alone.stdout)} == lines[2]


def test_a_failure_outweighs_what_could_not_run_whatever_the_format(
    done: subprocess.CompletedProcess[str], folder: Path
) -> None:
    assert done.returncode == ExitCode.FAILED
    assert "9 pairs: 2 pass, 2 fail, 4 could-not-run, 1 inconclusive" in done.stderr
    for_people = likeness("gate", "--batch", folder / "pairs.csv")
    assert for_people.returncode == ExitCode.FAILED
    shown = for_people.stdout.splitlines()
    assert [line.split(":")[0] for line in shown] == DECISIONS
    assert shown[4] == "could-not-run: bad.jpg: edited: not an image: looks like HTML (line 7)"
    assert "\x1b[31m" not in for_people.stdout


def test_junit_says_of_each_pair_what_the_answer_says(
    lines: list[dict[str, Any]], folder: Path
) -> None:
    (suite,) = ET.parse(folder / "new" / "junit.xml").getroot()
    tags = {
        "pass": "pass", "fail": "failure", "could-not-run": "error", "inconclusive": "skipped"
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert [c[0].tag if len(c) else "pass" for c in cases] == [tags[d] for d in DECISIONS]
    assert "health 0.0, at least 85 (profile even)" in cases[2][0].attrib["message"]
    assert "blank image" in cases[2][0].attrib["message"]
    assert cases[4][0].attrib["message"] == lines[4]["reason"]
    assert "flrr" in str(cases[1][0].text)
    properties = {p.attrib["name"] for p in suite.findall("properties/property")}
    assert {"version: likeness-audit", "version: engine", "min_score"} <= properties


def test_the_exit_code_is_that_of_the_heaviest_row() -> None:
    passed, failed, not_run, open_ = ExitCode
    assert heaviest([passed, passed]) is passed
    assert heaviest([open_, passed]) is open_
    assert heaviest([passed, not_run, open_]) is not_run
    assert heaviest([open_, not_run, failed, passed]) is failed


def test_inconclusive_pairs_alone_are_3_and_a_failure_when_asked(
    folder: Path, tmp_path: Path
) -> None:
    row = f"original,edited\n{folder}/blank.png,{folder}/a.jpg\n"
    (tmp_path / "open.csv").write_text(row)
    assert likeness("gate", "--batch", tmp_path / "open.csv", "--json").returncode == 3
    strict = likeness(
        "gate", "--batch", tmp_path / "open.csv", "--fail-on", "inconclusive",
        "--junit", tmp_path / "j.xml",
    )  # fmt: skip
    assert strict.returncode == 1
    failure = ET.parse(tmp_path / "j.xml").getroot().find("testsuite/testcase/failure")
    assert failure is not None and "inconclusive, which was to fail" in failure.attrib["message"]


def test_rows_that_cannot_run_alone_are_2(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("original,edited\nx.jpg,y.jpg\n")
    done = likeness("gate", "--batch", tmp_path / "p.csv", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["decision"] == "could-not-run"


def test_calls_that_make_no_sense_are_one_line_each(tmp_path: Path) -> None:
    a, pairs = tmp_path / "a.jpg", tmp_path / "absent.csv"
    for call, said in (
        (lambda: gate(batch=pairs), "absent.csv: cannot be read: No such file"),
        (lambda: gate(a, a, batch=pairs), "either two pictures or --batch"),
        (lambda: gate(a, a, junit=tmp_path / "x.xml"), "--junit goes with --batch"),
        (lambda: gate(a), "give ORIGINAL and EDITED"),
    ):
        with pytest.raises(LikenessError) as caught:
            call()
        assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_place_where_no_report_can_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("original,edited\nx.jpg,y.jpg\n")
    (tmp_path / "file").write_text("")
    with pytest.raises(LikenessError, match="cannot make folder"):
        gate(batch=tmp_path / "p.csv", junit=tmp_path / "file" / "junit.xml")
    with pytest.raises(LikenessError, match="a folder, not a file"):
        gate(batch=tmp_path / "p.csv", junit=tmp_path)


# The list of pairs -----------------------------------------------------------------------------


def rows(folder: Path, text: str | bytes, defaults: Defaults | None = None) -> list[PairRow]:
    path = folder / "list.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_pair_list(path, defaults or Defaults())


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ("a.jpg,,,,,", "edited: the cell is empty"),
        ("a.jpg,.,,,,", "edited: .: a folder, not a file"),
        ("a.jpg,a.jpg,,x.png,,", "mask: x.png: no such file"),
        ("a.jpg,a.jpg,,,evn,", "profile: 'evn' is not one of document, even; did you mean 'even'?"),
        ("a.jpg,a.jpg,,,,101", "min_score: '101' is not a number from 0 to 100"),
        ("a.jpg,a.jpg,,,,nan", "min_score: 'nan' is not a number from 0 to 100"),
        ("a.jpg,a.jpg,,,,,7", "7 cells where the header has 6"),
        ("a.jpg", "edited: the cell is empty"),
    ],
)
def test_a_bad_row_says_what_is_wrong_with_it(folder: Path, cells: str, problem: str) -> None:
    (row,) = read_pair_list_of(folder, cells)
    assert row.problem == problem and row.line == 2


def read_pair_list_of(folder: Path, cells: str) -> list[PairRow]:
    path = folder / "one.csv"
    path.write_text(f"{HEAD}{cells}\n")
    return read_pair_list(path, Defaults())


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    text = 'original,edited,name\r\n\r\nx,y,"two\nlines"\r\nx,y,\r\n'
    assert [(r.line, r.name) for r in rows(tmp_path, text)] == [(3, "two\nlines"), (5, "y")]


def test_a_cell_that_breaks_the_reader_is_a_row_with_a_problem(tmp_path: Path) -> None:
    broken = rows(tmp_path, f"original,edited\nx,{'y' * 200_000}\nx,y\n")
    assert [r.line for r in broken] == [2, 3]
    assert "cannot be read as CSV" in broken[0].problem


def test_what_a_row_leaves_out_the_command_line_decides(folder: Path) -> None:
    path = folder / "defaults.csv"
    path.write_text("\ufefforiginal, Edited ,min_score,note\na.jpg,a.jpg,,x\na.jpg,a.jpg,50,x\n")
    first, second = read_pair_list(path, Defaults("dlib", "even", 70.0))
    assert (first.engine, first.profile, first.min_score) == ("dlib", "even", 70.0)
    assert second.min_score == 50.0 and not second.problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: column 'original' is missing (found: none)"),
        ("original,edit\n", "line 1: column 'edited' is missing (found: original, edit)"),
        ("original;edited\na;b\n", "cells are separated by commas"),
        ("original,edited,min-score\na,b,1\n", "'min-score' is unknown; did you mean 'min_score'?"),
        ("original,edited,mask,mask\na,b,,\n", "column 'mask' is there twice"),
        ("original,edited\n\n", "no pairs under the header"),
        (b"original,edited\n\xff,b\n", "is not UTF-8 text (byte 16)"),
    ],
)
def test_a_file_that_is_no_list_of_pairs_is_one_clear_line(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    with pytest.raises(LikenessError) as caught:
        rows(tmp_path, text)
    assert said in str(caught.value) and "list.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
