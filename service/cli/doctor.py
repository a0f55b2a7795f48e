"""``likeness doctor``: what is installed, what is missing, which command mends it, which licence binds."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from service import checkup

_MARKS = {"ok": "ok", "note": " -", "problem": "!!"}


def register(app: typer.Typer) -> None:
    """Add ``doctor``."""
    app.command("doctor")(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Check this machine. Exit code 0: all is well; 1: something needs mending."""
    checks = checkup.run_all()
    well = not any(check.status == "problem" for check in checks)
    if as_json:
        rows = [check.as_json() for check in checks]
        typer.echo(
            json.dumps({"ok": well, "checks": rows, "licences": checkup.licences()}, indent=1)
        )
    else:
        for check in checks:
            typer.echo(f"{_MARKS[check.status]} {check.name:<12} {check.found}")
            if check.mend:
                typer.echo(f"{'':<16} mend it: {check.mend}")
        typer.echo("licences that bind what you do with the results:")
        for name, licence in checkup.licences().items():
            typer.echo(f"    {name}: {licence}")
        typer.echo("all is well" if well else "something needs mending (lines marked !!)")
    raise typer.Exit(0 if well else 1)
