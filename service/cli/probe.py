"""``likeness probe``: put paired questions to a language model and write the report."""

from __future__ import annotations

import importlib
import json
import pkgutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from domain.errors import LikenessError
from service.cli.audit import Bars
from service.cli.server_option import ServerUrl
from service.gate import OF_DECISION, ExitCode

if TYPE_CHECKING:
    from service.budget import Budget
    from service.probe_plans import LoadedProbePlan
    from service.probing import Done
    from service.report.probe_model import ProbeRun

INTERRUPTED = 130
DEFAULT = "run"
HELP = """Put questions that differ in one word to a language model, and say what differs in the answers.

"likeness probe PLAN --out DIR" runs a plan (docs/probe_plan.md); the same again goes on with a run that was stopped or killed. "likeness probe run --help" lists its options, "likeness probe list" the probes.
"""


class PlanFirst(TyperGroup):
    """A group whose first word may be a plan: ``likeness probe PLAN`` is ``likeness probe run PLAN``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command first unless one is named, or help is wanted."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the group, with the commands of every ``probe_*`` module beside this one."""
    group = typer.Typer(cls=PlanFirst, help=HELP, no_args_is_help=True)
    group.command(DEFAULT)(run)
    group.command("list")(list_probes)
    package = importlib.import_module("service.cli")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        if info.name.startswith("probe_"):
            module = importlib.import_module(f"service.cli.{info.name}")
            if hasattr(module, "add"):
                module.add(group)
    app.add_typer(group, name="probe")


def list_probes(
    *, as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False
) -> None:
    """List the probes: name, languages, the question each answers."""
    from probes.contract import BROKEN, discover
    from service.cli.probe_words import show_probes

    specs = [spec for spec, _ in discover().values()]
    show_probes(sorted(specs, key=lambda s: s.id), BROKEN, as_json)


def run(
    plan: Annotated[Path, typer.Argument(help="The probe plan, a YAML file.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for ledger and report.")] = None,
    gate: Annotated[
        bool, typer.Option(help="Exit 1 when a limit of the plan is passed, 3 when that is open.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option(help="Only tell what the run would ask and cost. Asks nobody.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(help="Begin only if it will likely cost less, and stop there: 5 or '5 EUR'."),
    ] = None,
    server: ServerUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Put a plan's questions to its model and say what differs in the answers (the default command).

    The same command again goes on with a run that was stopped or killed: no reply is asked twice.

    Exit 0 when the run ended, 2 when it could not run, 130 when interrupted; with --gate also 1 and 3.
    """
    if out is None and not estimate:
        raise LikenessError("--out DIR is needed: the folder for ledger and report")
    if server is not None:
        if estimate or budget is not None or out is None:
            raise LikenessError("--server goes with --out, --gate and --json only")
        from service.cli.remote_probes import probe_on_server

        found = probe_on_server(server, plan, out, as_json)
        if gate:
            raise typer.Exit(ExitCode.INCONCLUSIVE if found is None else found)
        return
    # statistics take a second to load, which only this command should pay
    from service.budget import Budget
    from service.probe_plans import load_probe_plan

    loaded = load_probe_plan(plan)
    if gate and not loaded.plan.gate.limits and loaded.plan.gate.baseline is None:
        raise LikenessError(
            f"{plan}: --gate needs limits or a baseline under the plan's key 'gate'"
        )
    limit = None if budget is None else Budget.parse(budget)
    if estimate or limit is not None:
        _reckon(loaded, out, limit, quiet=not estimate, as_json=as_json)
    if estimate or out is None:
        return
    began = time.monotonic()
    done = _ask(loaded, out, limit)
    from service.cli import probe_words

    seconds = time.monotonic() - began
    files = {name: str(out / name) for name in sorted(done.files)}
    decision = _decision(done.run) if done.run.gate else None
    if as_json:
        print(json.dumps(probe_words.answer(done, files, decision, seconds)))
    else:
        probe_words.show(done, files, decision, seconds)
    if done.faults:
        raise LikenessError("; ".join(done.faults))
    if gate:
        raise typer.Exit(ExitCode.INCONCLUSIVE if decision is None else decision)


def _decision(run: ProbeRun) -> ExitCode:
    """By the limits of the plan. A run that was stopped has not passed: calls are left unasked."""
    from probes.card_gate import gate_decision

    found = OF_DECISION[gate_decision(run.gate)]
    open_still = found is ExitCode.PASS and bool(run.stats.stopped_by)
    return ExitCode.INCONCLUSIVE if open_still else found


def _reckon(
    loaded: LoadedProbePlan, out: Path | None, limit: Budget | None, *, quiet: bool, as_json: bool
) -> None:
    from service import probe_estimate
    from service.cli import probe_words
    from service.probe_endpoint import unasked
    from service.probe_runs import LEDGER, check_same, ledger_in
    from service.store.probe_calls import ProbeCalls

    endpoint = unasked(loaded)
    if out is not None and (out / LEDGER).exists():
        with closing(ledger_in(out)) as ledger:
            check_same(loaded, ledger.run() or {"plan_sha256": loaded.sha256}, out)
            journal = ProbeCalls(ledger.database, ledger.run_id)
            found = probe_estimate.reckon(loaded, endpoint, journal)
    else:
        found = probe_estimate.reckon(loaded, endpoint)
    reason = None if limit is None else probe_estimate.excess(found, limit)
    if not quiet:
        within = None if limit is None else reason is None
        probe_words.show_estimate(found, endpoint, limit, within, as_json)
    if reason is not None:
        raise LikenessError(reason)


def _ask(loaded: LoadedProbePlan, out: Path, limit: Budget | None) -> Done:
    from probes.asking import cost
    from service.probe_endpoint import opened
    from service.probe_runs import alone_in, begin, end, ledger_in
    from service.probing import Steps, Stopped, Ways, run_probes
    from service.report.files import write_atomically
    from service.store.probe_calls import ProbeCalls

    budget = None if limit is None else cost.Budget(limit.amount, limit.currency)
    with (
        Bars() as bars,
        opened(loaded, bars.say) as endpoint,
        alone_in(out),
        closing(ledger_in(out)) as ledger,
    ):
        this = begin(loaded, ledger, out)
        journal = ProbeCalls(ledger.database, ledger.run_id)
        with _interruptible(bars.say) as stopping:
            ways = Ways(budget, stopping, Steps(bars), bars.say)
            try:
                done = run_probes(loaded, endpoint, journal, this, ways)
            except Stopped:
                _tell_stopped(journal.count(), loaded.path, out)
        for name, content in done.files.items():
            write_atomically(out / name, content)
        end(ledger, done)
    return done


@contextmanager
def _interruptible(say: Callable[[str], object]) -> Iterator[Callable[[], bool]]:
    """Ctrl-C (or a polite end by the system) lets replies under way come home; a second one ends
    at once. Gives the question whether it came."""
    asked: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)
        say("stopping: replies under way are waited for; once more ends at once")

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_stopped(kept: int, plan: Path, out: Path) -> NoReturn:
    print(
        f"likeness: stopped; {kept} replies are kept in {out}. Go on with: likeness probe {plan} --out {out}",
        file=sys.stderr,
    )
    raise typer.Exit(INTERRUPTED)
