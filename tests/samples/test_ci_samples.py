"""The samples for CI servers do what they say: their very steps, with the real command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import cv2
import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
CI = REPO / "samples" / "ci"
ACTION = yaml.safe_load((CI / "github-action" / "action.yml").read_text())
FACE = REPO / "samples" / "portraits" / "images" / "id01_base.jpg"
BIN = Path(sys.executable).parent
ROWS = {
    "pass": "a.jpg,a.jpg,same",
    "fail": "a.jpg,blank.png,<img src=x>|`blank`",
    "open": "blank.png,a.jpg,open",
    "absent": "a.jpg,absent.jpg,absent",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project with a face and a ruined one."""
    folder = tmp_path / "a project"
    folder.mkdir()
    shutil.copy(FACE, folder / "a.jpg")
    cv2.imwrite(str(folder / "blank.png"), cv2.imread(str(FACE)) * 0)
    return folder


def write_pairs(project: Path, *names: str) -> None:
    rows = [ROWS[n] for n in names]
    (project / "pairs.csv").write_text("\n".join(["original,edited,name", *rows, ""]))


# GitHub ------------------------------------------------------------------------------------------


class Job:
    """Runs the action's shell steps one after the other as a runner does."""

    def __init__(self, project: Path, temp: Path, **inputs: str) -> None:
        self.project, self.temp = project, temp
        self.inputs = {k: v.get("default", "") for k, v in ACTION["inputs"].items()}
        self.inputs |= {k.replace("_", "-"): v for k, v in inputs.items()}
        self.outputs: dict[str, dict[str, str]] = {"install": {"bin": str(BIN)}}
        self.summary, self._out = temp / "summary.md", temp / "output"
        self.log = ""

    def run(self, name: str) -> int:
        (step,) = [s for s in ACTION["runs"]["steps"] if s["name"] == name]
        self._out.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.project, env=self._env(step), capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.log += done.stdout + done.stderr
        said = (line.split("=", 1) for line in self._out.read_text().splitlines())
        self.outputs[step.get("id", name)] = dict(said)  # type: ignore[arg-type]
        return done.returncode

    def _env(self, step: dict[str, Any]) -> dict[str, str]:
        own = {k: self._value(v) for k, v in step.get("env", {}).items()}
        return {
            **os.environ, **own, "RUNNER_TEMP": str(self.temp), "GITHUB_OUTPUT": str(self._out),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_ACTION_PATH": str(CI / "github-action"),
        }  # fmt: skip

    def _value(self, text: str) -> str:
        given = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)
        if given:
            return self.inputs[given[1]]
        made = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}", text)
        assert made, text
        return self.outputs[made[1]][made[2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "inconclusive", "code", "ends", "says"),
    [
        (("pass",), "fail", "0", 0, "1 pair: 1 pass"),
        (("pass", "fail", "open", "absent"), "warn", "1", 1, "1 fail, 1 could-not-run, 1 inconc"),
        (("pass", "open"), "warn", "3", 0, "1 inconclusive, 1 pass"),
        (("open",), "fail", "1", 1, "1 inconclusive"),
        (("pass", "absent"), "warn", "2", 2, "absent.jpg&#58; no such file"),
    ],
)
def test_the_actions_steps_measure_summarise_and_decide(
    project: Path, tmp_path: Path, rows: tuple[str, ...], inconclusive: str, code: str,
    ends: int, says: str,
) -> None:  # fmt: skip
    write_pairs(project, *rows)
    job = Job(project, tmp_path, pairs="pairs.csv", inconclusive=inconclusive)
    assert job.run("Gate") == 0, job.log
    assert job.outputs["gate"]["exit-code"] == code
    page = job.summary.read_text()
    assert says in page and "<img" not in page
    suite = ET.parse(project / "likeness-junit.xml").getroot()[0]
    assert suite.attrib["tests"] == str(len(rows))
    assert (suite.attrib["failures"] != "0") == (code == "1")
    assert len((tmp_path / "likeness-gate.jsonl").read_text().splitlines()) == len(rows)
    assert job.run("Decision") == ends
    assert ("::warning::" in job.log) == (code == "3")


def test_an_input_is_never_run_as_a_command(project: Path, tmp_path: Path) -> None:
    hostile = '$(touch owned); `touch owned` "; touch owned; #'
    job = Job(project, tmp_path, pairs=hostile, junit="--help", min_score="85")
    assert job.run("Gate") == 0
    assert job.outputs["gate"]["exit-code"] == "2" and not (project / "owned").exists()
    assert "No pair was measured" in job.summary.read_text()
    wrong = Job(project, tmp_path, pairs="x", inconclusive="$(touch owned)")
    assert wrong.run("Gate") == 2 and not (project / "owned").exists()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), step["name"]


def test_the_action_is_whole() -> None:
    steps = ACTION["runs"]["steps"]
    assert ACTION["runs"]["using"] == "composite"
    assert all(("uses" in s) != ("run" in s and s["shell"] == "bash") for s in steps)
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", s["uses"]) for s in steps if "uses" in s)
    install = next(s["run"] for s in steps if s["name"] == "Install")
    assert "scripts/setup.sh" in install and os.access(REPO / "scripts" / "setup.sh", os.X_OK)
    assert (CI / "github-action" / ".." / ".." / ".." / "requirements.lock").exists()
    for text in re.findall(r"\$\{\{ (inputs\.[\w-]+|steps\.\w+)", str(ACTION)):
        kind, name = text.split(".")
        known = ACTION["inputs"] if kind == "inputs" else {s.get("id") for s in steps}
        assert name in known, text


def test_the_example_workflow_gives_the_action_inputs_it_has() -> None:
    workflow = yaml.safe_load((CI / "github-action" / "example-workflow.yml").read_text())
    used = [s for s in workflow["jobs"]["gate"]["steps"] if "samples/ci" in s.get("uses", "")]
    assert used and set(used[0]["with"]) <= set(ACTION["inputs"])
    assert workflow["permissions"] == {"contents": "read"}


# The others --------------------------------------------------------------------------------------


def hook_of(name: str) -> dict[str, Any]:
    text = yaml.safe_load((CI / "pre-commit" / name).read_text())
    hook: dict[str, Any] = text[0] if isinstance(text, list) else text["repos"][0]["hooks"][0]
    return hook


@pytest.mark.parametrize("name", [".pre-commit-hooks.yaml", "pre-commit-config.yaml"])
def test_the_pre_commit_hook_runs_for_pictures_and_their_list_alone(name: str) -> None:
    hook = hook_of(name)
    for changed in ("a.jpg", "deep/B.PNG", "pairs.csv", "x/pairs.csv", "c.heic"):
        assert re.search(hook["files"], changed), changed
    for changed in ("a.py", "jpg", "my_pairs.csv.txt", "unpairs.csv"):
        assert not re.search(hook["files"], changed), changed
    assert hook["pass_filenames"] is False


def test_the_pre_commit_hook_stops_at_a_pair_that_fails(project: Path) -> None:
    hook = hook_of(".pre-commit-hooks.yaml")
    command = [*shlex.split(hook["entry"]), *hook["args"]]
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    write_pairs(project, "pass", "fail")
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, check=False)
    assert done.returncode == 1


def test_the_git_hook_refuses_the_commit_of_a_ruined_face(project: Path) -> None:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": os.devnull}

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return subprocess.run(
            ["git", *who, *words], cwd=project, env=env, capture_output=True, text=True, check=False
        )

    git("init", "-q")
    hook = project / ".git" / "hooks" / "pre-commit"
    shutil.copy(CI / "pre-commit" / "git-hook.sh", hook)
    assert os.access(hook, os.X_OK)
    (project / "notes.txt").write_text("no picture")
    git("add", "notes.txt")
    assert git("commit", "-qm", "no list of pairs is needed for this").returncode == 0
    write_pairs(project, "fail")
    git("add", "pairs.csv", "a.jpg", "blank.png")
    refused = git("commit", "-qm", "ruined")
    assert refused.returncode == 1 and "fail: <img src=x>" in refused.stdout + refused.stderr
    write_pairs(project, "open")
    git("add", "pairs.csv")
    assert git("commit", "-qm", "open").returncode == 0


def test_the_gitlab_job_shows_its_pairs_and_lets_open_ones_through() -> None:
    job = yaml.safe_load((CI / "gitlab" / "likeness.gitlab-ci.yml").read_text())["likeness-gate"]
    (line,) = job["script"]
    written = shlex.split(line)[shlex.split(line).index("--junit") + 1]
    assert job["artifacts"]["reports"]["junit"] == written and job["artifacts"]["when"] == "always"
    assert job["allow_failure"]["exit_codes"] == 3
