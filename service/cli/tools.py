"""``likeness tools``: which tools this installation can audit."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import adapters.contract
from domain.edits import Task
from service.cli.escape import printable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tools")(tools)


def tools(as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False) -> None:
    """List every tool with its tasks, size rule, masks and price."""
    found = [spec for spec, _ in adapters.contract.discover().values()]
    for name, why in adapters.contract.BROKEN.items():
        print(f"tool '{name}' could not be loaded: {printable(why)}", file=sys.stderr)
    if as_json:
        for spec in found:
            print(json.dumps(_facts(spec)))
        return
    table = Table("tool", "what it is", "tasks", "cost")
    table.columns[0].no_wrap = True
    for spec in found:
        tasks = "any" if len(spec.tasks) == len(Task) else ", ".join(spec.tasks)
        table.add_row(spec.id, spec.name, tasks, spec.price_note)
    Console(file=sys.stdout).print(table)


def _facts(spec: adapters.contract.ToolSpec) -> dict[str, object]:
    return {
        "id": spec.id,
        "name": spec.name,
        "tasks": [str(t) for t in spec.tasks],
        "control": spec.control,
        "mask_support": spec.mask_support,
        "takes_prompt": spec.takes_prompt,
        "seedable": spec.seedable,
        "deterministic": spec.deterministic,
        "multiple": spec.size.multiple,
        "sizes": [list(s) for s in spec.size.sizes],
        "price_note": spec.price_note,
        "rate_limit": str(spec.rate) if spec.rate else "none",
        "remote": spec.remote,
        "concurrency": spec.concurrency,
        "key_env": spec.key_env,
        "licence": spec.licence,
        "extra": spec.extra,
    }
