"""``likeness tools``: which tools this installation can audit; ``tools check``: one picture through one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

import adapters.contract
from domain.edits import Task
from domain.errors import LikenessError
from domain.plan import ToolChoice
from service.cli.escape import printable
from service.gate import ExitCode

if TYPE_CHECKING:
    from service.plans import LoadedPlan
    from service.tool_check import Ready


def register(app: typer.Typer) -> None:
    """Add ``tools`` and ``tools check``."""
    group = typer.Typer(help="The tools under test.", invoke_without_command=True)
    group.callback()(tools)
    group.command("check")(check)
    app.add_typer(group, name="tools")


def tools(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """List every tool with its tasks, size rule, masks and price; ``check`` tries one."""
    if context.invoked_subcommand is not None:
        return
    found = [spec for spec, _ in adapters.contract.discover().values()]
    for name, why in adapters.contract.BROKEN.items():
        print(f"tool '{name}' could not be loaded: {printable(why)}", file=sys.stderr)
    if as_json:
        from service.tool_facts import spec_json

        for spec in found:
            print(json.dumps(spec_json(spec)))
        return
    table = Table("tool", "what it is", "tasks", "cost")
    table.columns[0].no_wrap = True
    for spec in found:
        tasks = "any" if len(spec.tasks) == len(Task) else ", ".join(spec.tasks)
        table.add_row(*(Text(printable(t)) for t in (spec.id, spec.name, tasks, spec.price_note)))
    Console(file=sys.stdout).print(table)


def check(
    name: Annotated[str, typer.Argument(help="A tool of `likeness tools`, or a label in --plan.")],
    *,
    plan: Annotated[
        Path | None, typer.Option(help="Take the tool's settings from this audit plan.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as KEY=YAML. May be repeated.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="The portrait to send; default: a rendered head.")
    ] = None,
    task: Annotated[Task | None, typer.Option(help="What to ask for; default: the first.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Text for a tool that takes one.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the answer here, as it came.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Send ONE picture to a tool, as an audit would, and tell what came back.

    Exit 0 when a picture came back, 1 when the tool refused or failed, 2 when it could not be tried.
    """
    from service import tool_check
    from service.cli.tool_answers import answer_json, show

    loaded, choice = _asked(name, plan, values or [], prompt)
    with tool_check.ready(loaded, choice, picture or tool_check.sample_picture(), task) as one:
        _tell_first(one, yes)
        answer = tool_check.call(one)
        if as_json:
            print(json.dumps(answer_json(one, answer)))
        else:
            show(one, answer)
    if save is not None and answer.picture is not None:
        _write(save, answer.picture)
    if answer.picture is None or answer.unreadable:
        raise typer.Exit(ExitCode.FAILED)


def _asked(
    name: str, plan: Path | None, values: list[str], prompt: str | None
) -> tuple[LoadedPlan, ToolChoice]:
    from service import tool_check
    from service.plans import load_plan

    loaded = load_plan(plan) if plan else None
    choice = tool_check.choice_in(loaded, name) if loaded else ToolChoice(id=name)
    changes: dict[str, Any] = {"settings": choice.settings | dict(map(_setting, values))}
    if prompt is not None:
        changes["prompt"] = prompt
    try:
        choice = ToolChoice.model_validate(choice.model_dump() | changes)
    except ValidationError as error:
        raise LikenessError(f"tool '{name}': {error.errors()[0]['msg']}") from None
    return loaded or tool_check.plan_of_one(choice), choice


def _setting(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise LikenessError("--set: write KEY=VALUE, such as --set strength=0.5")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise LikenessError(f"--set {key.strip()}: the value is not valid YAML") from None


def _tell_first(one: Ready, yes: bool) -> None:
    """What is about to leave this machine, and for how much, before it does."""
    from service.cli.tool_answers import price_line

    request = one.request
    said = f"sending {one.picture_name} ({request.width}x{request.height}, {request.task}"
    said += ", with a mask)" if request.mask is not None else ")"
    print(printable(f"{said} to {one.destination}"), file=sys.stderr)
    if not one.destination.remote:
        return
    print(printable(f"price: {price_line(one)}"), file=sys.stderr)
    unpriced = one.price is None and not yes and sys.stdin.isatty()
    question = "Nobody has named a price for this call. Send it?"
    if unpriced and not typer.confirm(question, err=True):
        raise LikenessError("not sent")


def _write(path: Path, picture: bytes) -> None:
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise LikenessError(f"{path}: cannot be written: {error.strerror or error}") from None
    print(f"saved: {path}", file=sys.stderr)
