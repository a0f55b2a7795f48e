"""``likeness audit``: run a plan and write the report."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from domain.errors import LikenessError
from service import settings
from service.cli.server_option import ServerUrl
from service.gate import decide_audit

if TYPE_CHECKING:
    from service.finishing import Finished

CONTROLS = {
    True: "as planted",
    False: "NOT as planted: verdicts cannot be trusted",
    None: "not run, or too few portraits for them to show anything",
}
NAMES = {
    "sent": "sending portraits",
    "portraits": "looking at portraits",
    "edited": "tools editing",
    "measured": "measuring",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit")(audit)


def audit(
    plan: Annotated[Path, typer.Argument(help="The audit plan, a YAML file.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for ledger, pictures and report.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run that is in --out.")] = False,
    retry_failed: Annotated[
        bool, typer.Option(help="With --resume: call the tools again for items they had failed.")
    ] = False,
    reviews: Annotated[
        Path | None,
        typer.Option(
            help="CSV of people's decisions on review.csv: item_id,reviewer,decision,reason."
        ),
    ] = None,
    probes: Annotated[
        Path | None,
        typer.Option(help="Folder of a `likeness probe` run, to be shown in the same report."),
    ] = None,
    gate: Annotated[
        bool, typer.Option(help="Exit 1 when a disparity was found, 3 when nothing was settled.")
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option(help="Only tell what the run would ask, cost and send away. Calls no tool."),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(help="Begin only if the run cannot cost more than this: 20 or '20 EUR'."),
    ] = None,
    server: ServerUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Give the plan's portraits to its tools, measure every face and say what was found.

    Cleaning (docs/cleaning.md) writes review.csv, the results that people should look at; their
    decisions come back with --resume --reviews FILE.

    Exit 0 when the audit ended, 2 when it could not run; with --gate also 1 and 3.
    """
    if reviews is not None and not resume:
        raise LikenessError("--reviews go back into a run that is there: use --resume with them")
    if retry_failed and not resume:
        raise LikenessError("--retry-failed goes on with a run that is there: use --resume with it")
    if out is None and (resume or not estimate):
        raise LikenessError("--out DIR is needed: the folder for ledger, pictures and report")
    began = time.monotonic()
    if server is not None:
        if estimate or budget is not None or reviews or probes or retry_failed:
            said = "--server goes with --out, --resume, --gate and --json only"
            raise LikenessError(f"{said}; a server's runs are estimated and reviewed there")
        assert out is not None
        _end(_on_server(server, plan, out, resume), began, gate, as_json)
        return
    # pandas and the statistics take a second to load, which only this command should pay
    from service.engine.local import Machine, run_audit
    from service.plans import load_plan

    loaded = load_plan(plan)
    if estimate or budget is not None:
        from service.cli.estimates import reckon

        ledger = out / "ledger.sqlite3" if resume and out else None
        reckon(
            loaded, ledger, retry_failed=retry_failed, budget=budget, quiet=not estimate,
            as_json=as_json,
        )  # fmt: skip
    if estimate or out is None:
        return
    chosen = settings.load()
    machine = Machine.this(chosen.models, chosen.workers)
    with Bars() as bars:
        done = run_audit(
            loaded, out, resume=resume, retry_failed=retry_failed, machine=machine, progress=bars,
            reviews=reviews, probes=probes,
        )  # fmt: skip
    _end(done, began, gate, as_json)


def _end(done: Finished, began: float, gate: bool, as_json: bool) -> None:
    """Show what was found; raises typer.Exit where an exit code was asked for."""
    seconds = time.monotonic() - began
    if as_json:
        print(json.dumps(_answer(done, seconds)))
    else:
        _show(done, seconds)
    if gate:
        raise typer.Exit(decide_audit(done.verdicts))


def _on_server(url: str, plan: Path, out: Path, resume: bool) -> Finished:
    from service.cli.remote import RemoteRun, client
    from service.cli.remote_report import finished

    with client(url) as server, Bars() as bars:
        audit = RemoteRun(server, out, bars)
        files = audit.to_the_end(audit.again() if resume else audit.begin(plan))
    return finished(files)


class Bars:
    """Progress bars on stderr."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description:22}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def stage(self, name: str, total: int) -> None:
        """Begin a bar."""
        self._tasks[name] = self._bars.add_task(NAMES.get(name, name), total=total)

    def step(self, name: str) -> None:
        """One more of ``name`` is done. Where there is no terminal, a line a tenth instead."""
        task = self._bars.tasks[self._tasks[name]]
        self._bars.advance(task.id)
        done, total = int(task.completed), int(task.total or 0)
        if (
            not self._console.is_terminal
            and total
            and done * 10 // total > (done - 1) * 10 // total
        ):
            print(f"{task.description}: {done} of {total}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._console.print(Text(text))


def _answer(done: Finished, seconds: float) -> dict[str, object]:
    return {
        "run_id": done.run_id,
        "files": {name: str(path) for name, path in done.files.items()},
        "outcomes": dict(done.outcomes),
        "standings": dict(done.standings),
        "to_review": done.to_review,
        "verdicts": [
            {
                "tool": v.tool,
                "metric": v.metric,
                "attribute": v.attribute,
                "groups": list(v.groups),
                "verdict": v.verdict.value,
                "effect": v.effect,
                "interval": v.interval,
                "p_adjusted": v.p_adjusted,
                "n": dict(v.n),
                "needed_n": v.needed_n,
                "sentence": v.sentence,
            }
            for v in done.verdicts
        ],
        "controls_ok": done.controls_ok,
        "seconds": round(seconds, 1),
    }


def _show(done: Finished, seconds: float) -> None:
    console = Console(file=sys.stdout)
    table = Table("verdict", "finding", title="Claims made before the run", show_lines=True)
    table.columns[0].no_wrap = True
    for v in done.table:
        table.add_row(Text(v.verdict.value), Text(v.sentence))
    console.print(table)
    if len(done.table) < len(done.verdicts):
        left = len(done.verdicts) - len(done.table)
        console.print(Text(f"{left} more comparisons are in the report."))
    outcomes = ", ".join(f"{count} {name}" for name, count in done.outcomes.items())
    console.print(Text(f"items: {outcomes}"))
    for reason, count in list(done.reasons.items())[:5]:
        console.print(Text(f"  {count} x {reason}"))
    standings = ", ".join(f"{count} {name}" for name, count in done.standings.items())
    console.print(Text(f"standing: {standings}; {done.to_review} listed in review.csv"))
    console.print(Text(f"controls: {CONTROLS[done.controls_ok]}"))
    print(f"report: {done.files['report.html']}")
    print(f"total time: {seconds:.0f} s")
