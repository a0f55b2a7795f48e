"""``likeness gate``: pass or fail for one edited picture, or for a list of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import track

from domain.errors import LikenessError
from domain.measurements import Decision
from service import settings
from service.answers import of_pair
from service.cli.escape import printable
from service.cli.measure import AsJson, Engine, readable
from service.cli.server_option import ServerUrl
from service.gate import OF_DECISION, WORDS, ExitCode
from service.gate_batch import (
    Ended,
    code_of,
    counts,
    figure_line,
    pair_of,
    row_json,
    run_rows,
    suite,
)
from service.measuring import Instrument
from service.pair_list import Defaults, PairRow, read_pair_list

Profile = Literal["document", "even"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gate")(gate)


def gate(
    original: Annotated[Path | None, typer.Argument(help="The picture as it was sent.")] = None,
    edited: Annotated[Path | None, typer.Argument(help="What the tool returned.")] = None,
    *,
    batch: Annotated[
        Path | None,
        typer.Option(
            help="CSV with columns original, edited and, if you like, mask, name, profile,"
            " min_score; paths relative to it."
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="With --batch: write JUnit XML for a CI server here.")
    ] = None,
    min_score: Annotated[float, typer.Option(min=0, max=100, help="Least health to pass.")] = 85.0,
    engine: Engine = "mediapipe",
    profile: Annotated[Profile, typer.Option(help="The health profile that decides.")] = "document",
    fail_on: Annotated[
        Literal["inconclusive"] | None,
        typer.Option(help="Count an inconclusive pair as failed: exit 1 in place of 3."),
    ] = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Decide on one edited picture: exit 0 pass, 1 fail, 2 could not run, 3 inconclusive.

    With --batch a bad row is a line with its reason and the others go on. The exit code is then the
    heaviest found: 1 if any pair failed, else 2 if any could not run, else 3 if any stayed open.
    """
    options = Defaults(engine, profile, min_score)
    strict = fail_on == "inconclusive"
    if batch is not None:
        if original is not None:
            raise LikenessError("give either two pictures or --batch, not both")
        raise typer.Exit(_batch(batch, options, junit, strict, as_json, server))
    if junit is not None:
        raise LikenessError("--junit goes with --batch PAIRS.csv")
    if original is None or edited is None:
        raise LikenessError("give ORIGINAL and EDITED, or --batch PAIRS.csv")
    answer = measure_pair(original, edited, options, server)
    if as_json:
        print(json.dumps(answer))
    else:
        _show(answer)
    code = OF_DECISION[Decision(answer["health"]["decision"])]
    raise typer.Exit(ExitCode.FAILED if strict and code is ExitCode.INCONCLUSIVE else code)


def measure_pair(
    original: Path, edited: Path, options: Defaults, server: str | None = None
) -> dict[str, Any]:
    """The answer about one pair of files, from here or from ``server``. Raises LikenessError when a
    file cannot be read."""
    if server is not None:
        from service.cli import remote
        from service.client import PairOptions

        with remote.client(server) as there:
            how = PairOptions(options.engine, options.profile, options.min_score)
            return remote.pair(there, original, edited, how)
    instrument = Instrument(options.engine, options.profile, options.min_score)
    return of_pair(readable(instrument, original, edited))


def _show(answer: dict[str, Any]) -> None:
    health = answer["health"]
    score = "no score" if health["score"] is None else f"health {health['score']:.1f}"
    least = f"at least {health['min_score']:g}"
    print(f"{health['decision']}: {score} (profile {health['profile']}, {least})")
    for reason in health["reasons"]:
        print(f"  - {reason}")


def _batch(
    path: Path,
    options: Defaults,
    junit: Path | None,
    strict: bool,
    as_json: bool,
    server: str | None,
) -> ExitCode:
    """Measure every row in processes of their own; answers appear in the order of the rows."""
    from service.report.files import write_atomically
    from service.report.junit import to_xml

    rows = read_pair_list(path, options)
    if junit is not None:
        _make_folder(junit)
    began = datetime.now(UTC).isoformat()
    ended = []
    for one in track(
        _measured(rows, server), "measuring", total=len(rows), console=Console(stderr=True)
    ):  # fmt: skip
        ended.append(one)
        print(json.dumps(row_json(one)) if as_json else _line(one), flush=True)
    print(counts(ended), file=sys.stderr)
    if junit is not None:
        found = suite(path.name, ended, _properties(options, server), began, strict)
        write_atomically(junit, to_xml([found]))
    return code_of(ended, strict)


def _measured(rows: list[PairRow], server: str | None) -> Iterator[Ended]:
    if server is not None:
        from service.cli import remote

        with remote.client(server) as there:
            yield from remote.rows(there, rows)
        return
    from service.engine.gate_pool import GatePool, Room
    from service.engine.local import Machine

    chosen = settings.load()
    sound = sum(not row.problem for row in rows)
    size = min(Machine.this(chosen.models, chosen.workers).workers, sound)
    ahead = 4 * max(1, size)
    with GatePool(chosen.models, Room(size, waiting=ahead)) as pool:
        yield from run_rows(rows, lambda row: pool.submit(pair_of(row)).future, ahead)


def _line(one: Ended) -> str:
    """One row for people; names and reasons may hold anything."""
    head = f"{WORDS[one.code]}: {printable(one.row.name)}"
    if one.code is ExitCode.COULD_NOT_RUN:
        return f"{head}: {printable(one.reason)} (line {one.row.line})"
    reason = f": {printable(one.reason)}" if one.reason else ""
    return f"{head}: {figure_line(one)}{reason}"


def _make_folder(junit: Path) -> None:
    """Before an hour's work rather than after it."""
    try:
        junit.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LikenessError(f"cannot make folder {junit.parent}: {error.strerror}") from error
    if junit.is_dir():
        raise LikenessError(f"cannot write {junit}: a folder, not a file")


def _properties(options: Defaults, server: str | None) -> dict[str, str]:
    from service.versions import installed_versions

    told = {"profile": options.profile, "min_score": f"{options.min_score:g}"}
    if server is not None:
        return told | {"server": server}  # whose versions are not those of this machine
    versions = installed_versions(options.engine)
    return told | {f"version: {name}": version for name, version in versions.items()}
