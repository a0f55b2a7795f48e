"""The house rules that a machine can check: layers, sizes, names, words, packages."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest

from service import checkup

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("domain", "preprocess", "adapters", "metrics", "probes", "service")
MOST_LINES = 330


def project_files() -> list[Path]:
    """What git tracks; in a copy without git, everything outside hidden and built folders."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True
        ).stdout
        return [REPO / name for name in listed.split("\0") if name and (REPO / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        found = (p for p in REPO.rglob("*") if p.is_file())
        return [p for p in found if not _unlisted(p.relative_to(REPO))]


def _unlisted(path: Path) -> bool:
    return path.parts[0] in {"out", "build"} or any(
        part == "__pycache__" or part.endswith(".egg-info") or (part[0] == "." and part != ".ci")
        for part in path.parts
    )


def texts() -> dict[str, str]:
    found = {}
    for path in project_files():
        try:
            found[str(path.relative_to(REPO))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


def modules() -> list[Path]:
    return sorted(p for name in PACKAGES for p in (REPO / name).rglob("*.py"))


def test_nobody_imports_upwards_or_sideways() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [tool, "--no-cache"], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_every_module_stays_readable_in_one_sitting() -> None:
    long = {
        str(path.relative_to(REPO)): lines
        for path in modules()
        if (lines := len(path.read_text("utf-8").splitlines())) > MOST_LINES
    }
    assert long == {}


def test_every_module_has_a_name_of_its_own() -> None:
    vague = {"util", "utils", "helper", "helpers", "common", "misc", "manager"}
    assert [path for path in modules() if path.stem in vague] == []


def test_every_package_is_listed_for_installation() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    there = {
        ".".join(path.parent.relative_to(REPO).parts)
        for path in modules()
        if path.name == "__init__.py"
    }
    assert there - listed == set()


# The patterns are put together from pieces so that this file does not find itself.
FORBIDDEN = {
    "a path of somebody's machine": r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|tm" r"p/w)(?:/|\b)",
    "a package registry's address": r"py" r"pi\.org|pythonho" r"sted|registry\.np" r"mjs|deb\.deb" r"ian\.org"
    r"|archive\.ubu" r"ntu|(?:extra-)?index-u" r"rl\s*=?\s*http|download\.pyto" r"rch",
    "unfinished work": r"\bTO" r"DO\b|\bFIX" r"ME\b|NotImple" r"mentedError",
    "a word that judges instead of naming the harm": r"\bunbi" r"ased (?:tool|person|model|people)"
    r"|\bbi" r"ased (?:tool|person|model|people)|\bfa" r"ir (?:tool|person|model|people)\b",
    "talk of how it was written": r"\bCla" r"ude\b|\bChat" r"GPT\b|\bAI assi" r"stant|\bsub-?ag" r"ent",
}  # fmt: skip


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) < 2000 and pattern.search(line)
    ]
    assert found == []


def test_exactly_one_distribution_brings_cv2() -> None:
    assert checkup.cv2_distributions() == ["opencv-python-headless"]


def pins(name: str) -> dict[str, str]:
    lines = (REPO / name).read_text("utf-8").splitlines()
    rows = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {package.lower().replace("_", "-"): pin for package, pin in rows}


LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-diffusion.lock",
    "requirements-server.lock",
)
ALONE = ("requirements-super-resolution.lock", "requirements-local-llm.lock")
"""Installed without what they ask for themselves."""


def test_what_is_installed_is_what_is_locked() -> None:
    wrong = {}
    for package, pin in {k: v for lock in (*LOCKS, *ALONE) for k, v in pins(lock).items()}.items():
        try:
            installed = version(package).split("+")[0]
        except PackageNotFoundError:
            installed = "nothing"
        if installed != pin:
            wrong[package] = f"{installed} installed, {pin} locked"
    assert wrong == {}


def test_every_dependency_is_locked_with_all_it_needs_itself() -> None:
    locked = {k: v for lock in LOCKS for k, v in pins(lock).items()}
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    name_of = re.compile(r"[A-Za-z0-9._-]+")
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dev"], *extras["diffusion"], *extras["server"]]
    open_, seen = [name_of.match(r).group().lower().replace("_", "-") for r in wanted], set()  # type: ignore[union-attr]
    while open_:
        package = open_.pop()
        if package in seen:
            continue
        seen.add(package)
        open_ += [
            name_of.match(r).group().lower().replace("_", "-")  # type: ignore[union-attr]
            for r in requires(package) or []
            if ";" not in r
        ]
    assert seen - set(locked) == set()
