"""docs/tools.md is true: every tool, key, page and figure in it is the code's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

import adapters.contract
from adapters.over_http.wire import HttpSettings
from domain.plan import ToolChoice
from service.cli import audit as audit_command
from service.cli import tools as tools_command
from service.pacing import FIRST_BACK_OFF, LOCAL_ATTEMPTS, LONGEST_BACK_OFF, REMOTE_ATTEMPTS

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "tools.md").read_text(encoding="utf-8")
ROWS = {m[1]: m[0] for m in re.finditer(r"^\| \[?`(\w+)`.*$", PAGE, re.M)}


def test_every_tool_under_test_has_its_row_with_its_key() -> None:
    ours = {
        name: spec
        for name, (spec, module) in adapters.contract.discover().items()
        if not spec.control and getattr(module, "__name__", "adapters.").startswith("adapters.")
    }
    for name, spec in ours.items():
        assert name in ROWS, name
        key = ROWS[name].rpartition("|")[0].rpartition("|")[2].strip()
        wanted = {None: "no", "": "optional"}.get(spec.key_env, f"`{spec.key_env}`")
        assert key == wanted, name
        assert ("this machine" in ROWS[name] or "nowhere" in ROWS[name]) is not spec.remote, name


def test_every_page_of_a_tool_is_linked_and_every_link_leads_somewhere() -> None:
    linked = set(re.findall(r"\(tools/(\w+)\.md\)", PAGE))
    pages = {p.stem for p in (DOCS / "tools").glob("*.md")}
    assert linked == pages


def test_the_defaults_it_names_are_the_defaults() -> None:
    fields = ToolChoice.model_fields
    for name in ("concurrency", "rate_limit", "max_attempts", "max_wait_s", "warm_up", "price"):
        assert name in fields and f"| `{name}` |" in PAGE, name
    assert f"{REMOTE_ATTEMPTS} for remote tools, {LOCAL_ATTEMPTS} for local ones" in PAGE
    assert (
        f"at most {FIRST_BACK_OFF:.0f} s, doubled at each try up to {LONGEST_BACK_OFF:.0f} s"
        in (" ".join(PAGE.split()))
    )
    http = HttpSettings.model_fields
    for name in ("timeout_s", "total_s", "max_result_mb"):
        assert f"{http[name].default:g})" in PAGE and f"`{name}`" in PAGE, name
    assert f"| {fields['max_wait_s'].default:g} |" in PAGE


def test_the_options_it_shows_exist() -> None:
    app = typer.Typer()
    tools_command.register(app)
    audit_command.register(app)
    commands: Any = typer.main.get_command(app)
    tools = commands.commands["tools"]
    for name, command in (
        ("tools check", tools.commands["check"]),
        ("audit", commands.commands["audit"]),
    ):
        known = {option for parameter in command.params for option in parameter.opts}
        shown = [line.partition("#")[0] for line in PAGE.splitlines() if f"likeness {name}" in line]
        assert shown, name
        for line in shown:
            assert set(re.findall(r"--[a-z-]+", line)) <= known, line
