"""Results made elsewhere are found by name, and never anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.contract import build
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError


def request(name: str, task: Task = Task.RESTYLE, perturbation: str = "none") -> EditRequest:
    return EditRequest("a", task, b"sent", original_name=name, perturbation=perturbation)


def put(folder: Path, **files: str) -> None:
    """Write small files; "__" in a key is "/", the content stands for a picture."""
    for key, content in files.items():
        path = folder / key.replace("__", "/").replace("_png", ".png").replace("_jpg", ".jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def from_folder(folder: Path, *args: object) -> EditOutcome:
    return build("precomputed", {"folder": str(folder)}).edit(request(*args))  # type: ignore[arg-type]


def from_list(folder: Path, text: str, *args: object) -> EditOutcome:
    (folder / "list.csv").write_text(text, encoding="utf-8-sig")
    tool = build("precomputed", {"csv": str(folder / "list.csv")})
    return tool.edit(request(*args))  # type: ignore[arg-type]


def content(outcome: EditOutcome) -> str:
    assert isinstance(outcome, Edited), outcome
    return outcome.picture.decode()


def test_the_same_name_or_the_same_stem_is_the_result(tmp_path: Path) -> None:
    put(tmp_path, a_jpg="A", b_png="B", images__c_jpg="C")
    assert content(from_folder(tmp_path, "a.jpg")) == "A"
    assert content(from_folder(tmp_path, "b.jpg")) == "B"
    assert content(from_folder(tmp_path, "images/c.jpg")) == "C"
    assert content(from_folder(tmp_path, "images/a.jpg")) == "A"


def test_a_perturbed_original_has_its_result_in_a_folder_of_that_name(tmp_path: Path) -> None:
    put(tmp_path, a_jpg="plain", noise__a_jpg="noisy", retouch__noise__a_jpg="both")
    assert content(from_folder(tmp_path, "a.jpg")) == "plain"
    assert content(from_folder(tmp_path, "a.jpg", Task.RESTYLE, "noise")) == "noisy"
    assert content(from_folder(tmp_path, "a.jpg", Task.RETOUCH, "noise")) == "both"
    outcome = from_folder(tmp_path, "a.jpg", Task.RESTYLE, "red_up")
    assert outcome == Failed("no result was supplied for a.jpg under 'red_up'")


def test_a_missing_result_is_a_failure_that_names_it(tmp_path: Path) -> None:
    assert from_folder(tmp_path, "a.jpg") == Failed("no result was supplied for a.jpg")


def test_two_results_for_one_original_are_not_guessed_between(tmp_path: Path) -> None:
    put(tmp_path, a_png="1")
    (tmp_path / "a.webp").write_text("2")
    assert from_folder(tmp_path, "a.jpg") == Failed("more than one result for a.jpg: a.png, a.webp")


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    put(tmp_path, secret_png="secret", results__x_png="x")
    (tmp_path / "results" / "link.png").symlink_to(tmp_path / "secret.png")
    for name in ("../secret.png", str(tmp_path / "secret.png"), "..\\secret.png"):
        outcome = from_folder(tmp_path / "results", name)
        assert isinstance(outcome, Failed)
        assert "no result was supplied" in outcome.reason
    outcome = from_folder(tmp_path / "results", "link.png")
    assert outcome == Failed("'link.png' leads outside the folder of results")


def test_an_empty_result_is_a_failure(tmp_path: Path) -> None:
    put(tmp_path, a_png="")
    assert from_folder(tmp_path, "a.png") == Failed("the result a.png is empty")


LIST = """original,edited,status,reason,task,perturbation
a.jpg,out/a.png,ok,,,
a.jpg,out/a_noise.png,ok,,,noise
a.jpg,out/a_retouch.png,ok,,retouch,
images/b.jpg,,refused,content policy,,
c.jpg,,failed,server error 500,,
d.jpg,../up.png,ok,,,
e.jpg,out/none.png,ok,,,
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    put(tmp_path / "case", out__a_png="A", out__a_noise_png="N", out__a_retouch_png="R")
    put(tmp_path, up_png="outside")
    return tmp_path / "case"


def test_a_list_gives_results_refusals_and_failures(results: Path) -> None:
    assert content(from_list(results, LIST, "a.jpg")) == "A"
    assert content(from_list(results, LIST, "a.jpg", Task.RESTYLE, "noise")) == "N"
    assert content(from_list(results, LIST, "a.jpg", Task.RETOUCH)) == "R"
    assert from_list(results, LIST, "images/b.jpg") == Refused(
        "policy", "supplied", "content policy"
    )
    assert from_list(results, LIST, "b.jpg") == Refused("policy", "supplied", "content policy")
    assert from_list(results, LIST, "c.jpg") == Failed("server error 500")
    assert from_list(results, LIST, "z.jpg") == Failed("no result was supplied for z.jpg")


def test_a_list_never_leads_outside_its_folder(results: Path) -> None:
    outcome = from_list(results, LIST, "d.jpg")
    assert outcome == Failed("'../up.png' leads outside the folder of the list")


def test_a_listed_file_that_is_not_there_is_named(results: Path) -> None:
    assert from_list(results, LIST, "e.jpg") == Failed(
        "the listed result 'out/none.png' was not found"
    )


def test_a_list_from_a_spreadsheet_with_semicolons_is_read(results: Path) -> None:
    assert content(from_list(results, LIST.replace(",", ";"), "a.jpg")) == "A"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orignal,edited,status\na,b,ok\n", "column 'original' is missing; is 'orignal' meant?"),
        ("original,edited\na,b\n", "column 'status' is missing; found: original, edited"),
        ("original,edited,status,reson\na,b,ok,x\n", "unknown column 'reson'; is 'reason' meant?"),
        (
            "original,edited,status\na,b,refusd\n",
            "line 2: unknown status 'refusd'; did you mean 'refused'?",
        ),
        ("original,edited,status\na,,ok\n", "line 2: 'edited' is empty"),
        ("original,edited,status\n,b,ok\n", "line 2: 'original' is empty"),
        ("original,edited,status\na,b,ok\na,c,ok\n", "line 3: a second row for 'a'"),
        ("original,edited,status,task\na,b,ok,restlye\n", "did you mean 'restyle'?"),
        ("original,edited,status\n", "the list has no rows"),
        ("", "column 'original' is missing"),
    ],
)
def test_a_wrong_list_is_refused_with_line_and_near_miss(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(LikenessError) as caught:
        from_list(tmp_path, text, "a")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "give either 'folder' or 'csv'"),
        ({"folder": "x", "csv": "y"}, "give either 'folder' or 'csv'"),
        ({"folder": "no/such"}, "folder 'no/such' was not found"),
        ({"csv": "no/such.csv"}, "list 'no/such.csv' was not found"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, str], words: str) -> None:
    with pytest.raises(LikenessError) as caught:
        build("precomputed", settings)
    assert words in str(caught.value)
