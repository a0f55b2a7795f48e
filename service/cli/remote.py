"""What ``--server URL`` does: the same commands, with the work done by a service elsewhere.

The key comes from LIKENESS_TOKEN or the file that LIKENESS_TOKEN_FILE names, never from the command
line, where every user of the machine could read it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from domain.errors import LikenessError, PlanError
from domain.measurements import Decision, Outcome
from domain.plan import PortraitSource
from service import settings, yaml_lines
from service.client import LikenessClient, PairOptions, Run, ServerProblem, Submitted, Unreachable
from service.client_upload import files_named, manifest_of
from service.gate import OF_DECISION, ExitCode

if TYPE_CHECKING:
    from domain.portraits import Portrait
    from service.engine.gate_process import GateAnswer
    from service.engine.progress import Progress
    from service.gate_batch import Ended
    from service.measuring import Instrument
    from service.pair_list import PairRow

NOTE = "server.json"
"""Where the folder of a run says which run on which server it belongs to."""
AT_ONCE = 4
"""Pairs that a server is asked about at a time."""
MOST_TOLD = 10
UNREADABLE = {"original": Outcome.ORIGINAL_UNREADABLE, "edited": Outcome.EDITED_UNREADABLE}
OF_ONE_PAIR = ("unreadable-picture", "pair-not-measured", "picture-rejected", "too-large")
"""Problems that are about one pair of many."""


def client(url: str) -> LikenessClient:
    """A client of the server at ``url`` with the key that the settings name."""
    return LikenessClient(url, settings.token())


# -- pairs -------------------------------------------------------------------------------------


def pair(server: LikenessClient, original: Path, edited: Path, how: PairOptions) -> dict[str, Any]:
    """The server's answer about two files. Raises LikenessError, naming the file that it is about."""
    try:
        return server.gate(original, edited, how)
    except ServerProblem as problem:
        files = {"original": original, "edited": edited, "mask": how.mask}
        part, reason = about(problem)
        raise problem if files.get(part) is None else LikenessError(f"{files[part]}: {reason}") from None  # fmt: skip


def figures(
    server: LikenessClient, instrument: Instrument, original: Path, edited: Path, how: PairOptions
) -> dict[str, Any]:
    """The server's answer about one pair of many; a picture that it cannot read is an outcome."""
    from service.answers import of_pair

    try:
        return server.gate(original, edited, how)
    except ServerProblem as problem:
        if problem.slug not in OF_ONE_PAIR:
            raise
        part, reason = about(problem)
        outcome = UNREADABLE.get(part, Outcome.NOT_MEASURABLE)
        return of_pair(instrument.without(outcome, f"{part}: {reason}" if part else reason))


def about(problem: ServerProblem) -> tuple[str, str]:
    """Which picture of a pair a problem is about ("" for none), and the reason alone."""
    part = str(problem.more.get("part", ""))
    return part, str(problem).removeprefix(f"{part}: ")


def rows(server: LikenessClient, wanted: Sequence[PairRow]) -> Iterator[Ended]:
    """The rows of a list, each answered by the server; a row that cannot be judged keeps its place.
    Raises LikenessError for what concerns them all (no such server, no right)."""
    from service.gate_batch import run_rows

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="pairs") as pool:
        try:
            yield from run_rows(wanted, lambda row: pool.submit(_row, server, row), AT_ONCE)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _row(server: LikenessClient, row: PairRow) -> GateAnswer:
    from service.engine.gate_process import GateAnswer

    mask = row.folder / row.mask if row.mask else None
    how = PairOptions(row.engine, row.profile, row.min_score, mask)
    began = time.monotonic()
    try:
        answer = server.gate(row.folder / row.original, row.folder / row.edited, how)
    except ServerProblem as problem:
        if problem.slug not in OF_ONE_PAIR:
            raise
        part, reason = about(problem)
        cause = str(problem.more.get("cause", "unreadable"))
        return GateAnswer(ExitCode.COULD_NOT_RUN, b"", reason, cause, part)
    seconds = time.monotonic() - began
    return GateAnswer(code_of(answer), json.dumps(answer).encode(), seconds=seconds)


def code_of(answer: Mapping[str, Any]) -> ExitCode:
    """What a server's answer about a pair means. Raises LikenessError for one of another shape."""
    try:
        return OF_DECISION[Decision(answer["health"]["decision"])]
    except (KeyError, TypeError, ValueError):
        raise LikenessError("the server's answer has no decision in it") from None


# -- audits ------------------------------------------------------------------------------------


class RemoteRun:
    """One run that a server does, with its files in ``out``."""

    def __init__(self, server: LikenessClient, out: Path, watch: Progress) -> None:
        self._server, self._out, self._watch = server, out, watch

    def begin(self, plan: Path) -> str:
        """Send the plan's portraits and the plan. Returns the run's id. What was sent is deleted
        again when the server does not take the plan."""
        self._check_unused("use --resume, or another folder")
        text, portraits = portraits_of(plan)
        files = files_named(portraits)
        self._watch.stage("sent", len(files))
        batch = self._server.send_files(
            files, manifest=manifest_of(portraits), name=plan.stem,
            sent=Counted(lambda: self._watch.step("sent")),
        )  # fmt: skip
        try:
            self._tell(batch)
            run = self._server.start_run(batch.batch_id, text)
        except BaseException:
            with suppress(LikenessError):
                self._server.delete_batch(batch.batch_id)
            raise
        self._note(run)
        self._watch.say(f"run {run.run_id} over batch {batch.batch_id} at {self._server.url}")
        return run.run_id

    def begin_probes(self, plan: Path) -> str:
        """Send a plan of text probes, which the server judges. Returns the run's id."""
        self._check_unused("use another folder")
        run = self._server.start_probes(yaml_lines.read_text(plan))
        self._note(run)
        self._watch.say(f"run {run.run_id} at {self._server.url}")
        return run.run_id

    @property
    def there(self) -> bool:
        """Whether ``out`` belongs to a run on a server already."""
        return (self._out / NOTE).exists()

    def _check_unused(self, hint: str) -> None:
        if any((self._out / name).exists() for name in (NOTE, "ledger.sqlite3")):
            raise LikenessError(f"{self._out}: already holds a run; {hint}")

    def again(self) -> str:
        """Go on with the run that ``out`` belongs to. Returns its id."""
        try:
            note = json.loads((self._out / NOTE).read_text("utf-8"))
            url, run_id = note["url"], str(note["run_id"])
        except (OSError, ValueError, KeyError, TypeError):
            said = f"{self._out}: holds no run of a server; leave out --resume to begin one"
            raise LikenessError(said) from None
        if url != self._server.url:
            raise LikenessError(f"{self._out}: its run is at {url}")
        if self._server.run(run_id).state in ("failed", "cancelled"):
            self._server.resume(run_id)
        return run_id

    def to_the_end(self, run_id: str) -> dict[str, Path]:
        """Follow the run and fetch its files. Returns them by name."""
        try:
            run = self._server.wait(run_id, self._watch)
        except (KeyboardInterrupt, Unreachable):
            self._watch.say(
                f"run {run_id} goes on at {self._server.url}; --resume follows it again"
            )
            raise
        if run.state != "done":
            why = f": {run.error}" if run.error else "; --resume lets it go on"
            raise LikenessError(f"{self._server.url}: run {run_id} has {_ended(run)}{why}")
        listed = self._server.files(run_id)
        for file in listed:
            # a name is the server's word: nothing but a plain name may become a file here
            if not file.name or Path(file.name).name != file.name or file.name.startswith("."):
                raise LikenessError(f"{self._server.url}: names a file that is none: {file.name!r}")
        return {f.name: self._server.save_file(run_id, f, self._out / f.name) for f in listed}

    def _tell(self, batch: Submitted) -> None:
        refused = batch.refused
        for item in refused[:MOST_TOLD]:
            self._watch.say(f"{item.name}: not accepted: {item.reason}")
        if len(refused) > MOST_TOLD:
            self._watch.say(f"{len(refused) - MOST_TOLD} more were not accepted")

    def _note(self, run: Run) -> None:
        from service.report.files import to_json, write_atomically

        try:
            self._out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or error
            raise LikenessError(f"cannot make folder {self._out}: {why}") from error
        note = {"url": self._server.url, "run_id": run.run_id, "batch_id": run.batch_id}
        write_atomically(self._out / NOTE, to_json(note))


def _ended(run: Run) -> str:
    return "been cancelled" if run.state == "cancelled" else run.state


class Counted:
    """Turns "so many are sent" into steps; an upload that begins again takes none back."""

    def __init__(self, step: Callable[[], object]) -> None:
        self._step, self._count = step, 0

    def __call__(self, count: int) -> None:
        """``count`` are on their way by now."""
        for _ in range(count - self._count):
            self._step()
        self._count = max(count, self._count)


def portraits_of(plan: Path) -> tuple[str, list[Portrait]]:
    """The plan's text and the portraits that it asks for. The rest of it is for the server to judge:
    it may offer tools that are not known here."""
    from service.portraits import read_manifest, select

    try:
        text = plan.read_text(encoding="utf-8")
        found = yaml.safe_load(text)
        source = PortraitSource.model_validate(found["portraits"])
    except FileNotFoundError:
        raise PlanError(f"{plan}: no such plan") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{plan}: cannot be read as UTF-8 text: {error}") from None
    except (yaml.YAMLError, KeyError, TypeError, ValidationError):
        from service.plans import load_plan

        load_plan(plan)  # tells each mistake with its line
        raise PlanError(f"{plan}: portraits: cannot be read") from None
    portraits = select(read_manifest(plan.parent / source.manifest), source.where, source.limit)
    return text, portraits
