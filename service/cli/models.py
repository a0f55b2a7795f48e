"""``likeness models``: fetch the model files, or list them with their state and licence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from domain.errors import ModelMissing
from preprocess import models


def register(app: typer.Typer) -> None:
    """Add ``models fetch`` and ``models list``."""
    group = typer.Typer(help="Model files: fetch them, or list what is here.", no_args_is_help=True)
    group.command("fetch")(fetch)
    group.command("list")(list_models)
    app.add_typer(group, name="models")


def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Models to fetch; all by default.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="Take the files from this folder (no network).")
    ] = None,
) -> None:
    """Download each missing model, check its size and sha256, and keep it only when both agree."""
    failed = []
    for name in names or list(models.manifest()):
        try:
            models.fetch(name, typer.echo, _folder_source(source, name))
        except ModelMissing as error:
            failed.append(str(error))
    for line in failed:
        typer.echo(line, err=True)
    if failed:
        typer.echo(
            f"bring the files by hand into one folder and run: {models.FETCH_COMMAND} --from FOLDER",
            err=True,
        )
        raise typer.Exit(2)


def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Show each model: where it is or what is wrong, what it is for, and its licence."""
    for name, model in models.manifest().items():
        state = models.state(name)
        row = {
            "name": name,
            "path": str(state.path) if state.path else None,
            "problem": state.problem,
            "size": model.size,
            "sha256": model.sha256,
            "purpose": model.purpose,
            "licence": model.licence,
            "note": model.note,
            "sources": [str(source) for source in model.sources],
        }
        if as_json:
            typer.echo(json.dumps(row))
            continue
        typer.echo(name)
        typer.echo(f"  {state.path or state.problem}")
        typer.echo(f"  {model.purpose}; {model.size / 1e6:.1f} MB, sha256 {model.sha256}")
        typer.echo(f"  licence: {model.licence}" + (f". {model.note}" if model.note else ""))


def _folder_source(folder: Path | None, name: str) -> tuple[models.Source, ...] | None:
    if folder is None:
        return None
    return (models.Source(kind="url", url=(folder.resolve() / name).as_uri()),)
