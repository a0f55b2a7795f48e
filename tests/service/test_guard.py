"""The guard: no stranger's package is ever taken for ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service import guard

REPO = Path(__file__).resolve().parents[2]


def start_with(first_on_path: Path) -> subprocess.CompletedProcess[str]:
    """Start a fresh interpreter where ``first_on_path`` comes before this product."""
    code = (
        f"import sys; sys.path[:0] = [{str(first_on_path)!r}, {str(REPO)!r}]\n"
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('guard', {str(REPO / 'service/guard.py')!r})\n"
        "guard = importlib.util.module_from_spec(spec); spec.loader.exec_module(guard)\n"
        "guard.check_packages(); print('started')"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )


def test_our_own_packages_are_let_in(tmp_path: Path) -> None:
    guard.check_packages()
    done = start_with(tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "started"), done.stderr


@pytest.mark.parametrize("name", guard.PACKAGES)
def test_a_stranger_is_named_and_nothing_of_it_runs(tmp_path: Path, name: str) -> None:
    stranger = tmp_path / name
    stranger.mkdir()
    (stranger / "__init__.py").write_text("print('the stranger ran')")
    done = start_with(tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"the package '{name}' is not this product's: {stranger.resolve()}" in line
    assert "delete or rename" in line


def test_a_stranger_that_is_a_single_file_is_found_too(tmp_path: Path) -> None:
    (tmp_path / "adapters.py").write_text("")
    done = start_with(tmp_path)
    assert done.returncode == 2
    assert "the package 'adapters' is not this product's" in done.stderr


def test_an_installed_stranger_comes_with_the_pip_command(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "adapters").mkdir(parents=True)
    (site / "adapters" / "__init__.py").write_text("")
    info = site / "adapters-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adapters\nVersion: 1.2\n")
    (info / "RECORD").write_text("adapters/__init__.py,,\n")
    (info / "top_level.txt").write_text("adapters\n")
    done = start_with(site)
    assert done.returncode == 2
    assert "pip uninstall adapters" in done.stderr


def test_the_guard_knows_every_package_that_the_project_lists() -> None:
    import tomllib

    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["setuptools"]["packages"]
    assert {name.split(".")[0] for name in packages} == set(guard.PACKAGES)
