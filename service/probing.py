"""A run of text probes, readable from top to bottom: ask, read, ask again where that is called for,
score, compare, tell. No folder and no screen is known here: whoever runs it hands in the plan, the
endpoint and a journal of replies, and is handed the run with its files.

1. ``probe_plans`` has loaded the plan and built its probes. 2. ``probe_endpoint.opened`` gives the
endpoint. 3. ``find_abilities`` sees what it takes. 4. ``probe_questions`` builds every call. 5.
``ask_all`` asks them, all probes mixed, and keeps each reply. 6. Probes read and score. 7.
``probe_findings`` puts results together. 8. ``probe_replies`` and the report write them down.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

from domain.errors import LikenessError
from probes.asking.abilities import Abilities, find_abilities
from probes.asking.ask import NOT_SENT, ask_all, is_settled
from probes.asking.cost import Budget
from probes.asking.endpoint import Endpoint
from probes.asking.journal import Journal
from probes.asking.notices import model_notices, parameter_notices
from probes.calls import Reply
from probes.results import ProbeResult
from service import probe_findings, secrets
from service.probe_plans import LoadedProbePlan
from service.probe_questions import Answer, Question, able, follow_ups, questions, read
from service.probe_replies import call_stats, replies_jsonl
from service.report.probe_files import probe_files
from service.report.probe_model import CallStats, ProbeRun
from service.store.ledger import now
from service.versions import OF_PROBES, versions_of

MAIN, SECOND = "calls", "second calls"
"""Stages of asking, for whoever shows progress."""


class Progress(Protocol):
    """Is told how far a stage is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` replies are there."""
        ...


class Watch(Protocol):
    """Is told of stages and their steps, as those who watch an audit are."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""
        ...

    def step(self, name: str) -> None:
        """One step of the stage is done."""
        ...


class Steps:
    """Turns "so many of so many" into the stages and steps of a run that is watched."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._done = watch, dict[str, int]()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` replies are there."""
        if stage not in self._done:
            self._watch.stage(stage, total)
            self._done[stage] = 0
        for _ in range(done - self._done[stage]):
            self._watch.step(stage)
        self._done[stage] = max(done, self._done[stage])


class Stopped(LikenessError):
    """Somebody asked for an end before every call was answered. What was answered is kept."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is beside its plan. ``seconds`` are those of earlier sessions of the same run."""

    run_id: str
    started: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ways:
    """How to ask. ``stopping`` ends it between calls; ``say`` is told what is worth a line."""

    budget: Budget | None = None
    stopping: Callable[[], bool] = lambda: False
    progress: Progress = lambda stage, done, total: None
    say: Callable[[str], object] = lambda _text: None


@dataclass(frozen=True, slots=True)
class Done:
    """A run that ended. ``files`` are everything it has to show, by name; ``faults`` name probes
    that could not score what they were told."""

    run: ProbeRun
    files: Mapping[str, bytes]
    faults: tuple[str, ...] = field(default=())


def run_probes(
    loaded: LoadedProbePlan, endpoint: Endpoint, journal: Journal, this: Run, ways: Ways
) -> Done:
    """Ask the endpoint everything that the plan holds and ``journal`` does not, and say what was
    found. Raises Stopped when ``ways.stopping`` ended it, LikenessError in one line when the
    endpoint cannot be asked at all."""
    began = time.monotonic()
    abilities = find_abilities(endpoint)
    parts, notices = able(loaded.parts, abilities)
    if not parts:
        raise LikenessError(f"{loaded.path}: no probe of this plan can be run: {' '.join(notices)}")
    for notice in notices:
        ways.say(notice)
    asking = _Asking(loaded, endpoint, abilities, journal, ways)
    answers = asking.ask(MAIN, questions(loaded, parts))
    answers += asking.ask(SECOND, follow_ups(answers, loaded.plan))
    results, faults = score(loaded, answers)
    run = ProbeRun(
        run_id=this.run_id,
        name=loaded.plan.name,
        purpose=loaded.plan.purpose,
        started=this.started,
        finished=now(),
        seconds=this.seconds + time.monotonic() - began,
        seed=loaded.plan.seed,
        alpha=loaded.plan.alpha,
        plan_text=loaded.text,
        plan=loaded.shown(),
        endpoint=_told(loaded, endpoint),
        model=endpoint.model,
        abilities=asdict(abilities),
        results=results,
        stats=asking.stats(answers),
        notices=(*asking.notices(answers), *notices, *faults),
        versions=versions_of(OF_PROBES),
        inputs=inputs_of(loaded),
    )
    run = probe_findings.complete(run, loaded, answers)
    beside = {"replies.jsonl": replies_jsonl(answers), **probe_findings.cards(run, loaded)}
    return Done(run, probe_files(run, beside), tuple(faults))


def _told(loaded: LoadedProbePlan, endpoint: Endpoint) -> str:
    """Where the model is, as a reader may know it."""
    if loaded.plan.endpoint.local:
        return "this machine, started for the run"
    return loaded.offer or endpoint.name.removesuffix(f" {endpoint.model}")


def score(
    loaded: LoadedProbePlan, answers: Sequence[Answer]
) -> tuple[tuple[ProbeResult, ...], list[str]]:
    """What each probe finds in its readings, by language and condition, in the plan's order; and a
    sentence for each that failed at it: one probe's fault must not cost the others their replies."""
    groups: dict[tuple[str, str, str], list[Answer]] = {}
    for a in answers:
        call = a.question.asked
        groups.setdefault((call.probe, call.language, call.condition), []).append(a)
    results, faults = [], []
    for (label, language, condition), group in groups.items():
        part = group[0].question.part
        readings = [a.reading for a in group]
        try:
            found = part.probe.score(readings, language, loaded.plan.seed)
        except Exception as error:
            said = secrets.hide_keys(" ".join(str(error).split()))
            where = f"{label} ({language}, {condition})"
            faults.append(f"{where} could not be scored: {type(error).__name__}: {said}")
        else:
            if not found.usable and found.index.value is not None:
                none = replace(
                    found.index, value=None, interval=None, sd=None, reason=found.why_not
                )
                found = replace(found, index=none)
            results.append(replace(found, probe=label, condition=condition))
    return tuple(results), faults


def inputs_of(loaded: LoadedProbePlan) -> dict[str, str]:
    """sha256 of what the run is made from, by the name in the plan. Raises LikenessError for a file
    that cannot be read."""
    found = {loaded.path.name: loaded.sha256}
    for name in loaded.files():
        path = loaded.folder / name
        try:
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
    return found


class _Asking:
    """Asks in stages and remembers how much of it was there already."""

    def __init__(
        self,
        loaded: LoadedProbePlan,
        endpoint: Endpoint,
        abilities: Abilities,
        journal: Journal,
        ways: Ways,
    ) -> None:
        self._loaded, self._endpoint, self._abilities = loaded, endpoint, abilities
        self._journal, self._ways = journal, ways
        self._remembered, self._spent = 0, 0.0

    def ask(self, stage: str, asked: Sequence[Question]) -> list[Answer]:
        """Every question with its reply and reading, in the order given."""
        calls = [question.asked for question in asked]
        if not calls:
            return []
        there = self._journal.known([call.key(self._endpoint.name) for call in calls])
        self._remembered += sum(map(is_settled, there.values()))
        replies: Mapping[str, Reply] = ask_all(
            calls,
            self._endpoint,
            self._abilities,
            self._journal,
            seed=self._loaded.plan.seed,
            budget=self._left(),
            stopping=self._ways.stopping,
            progress=lambda done, total: self._tell(stage, done, total),
        )
        self._spent += sum(reply.cost or 0.0 for reply in replies.values())
        if self._ways.stopping():
            raise Stopped("stopped before every call was answered")
        return read(asked, self._endpoint.name, replies)

    def _left(self) -> Budget | None:
        """The budget less what the stages before have cost; a stage counts its own replies."""
        whole = self._ways.budget
        return whole and replace(whole, amount=max(0.0, whole.amount - self._spent))

    def _tell(self, stage: str, done: int, total: int) -> None:
        """Once it is stopped, calls that are not sent count as done: that would be no progress."""
        if not self._ways.stopping():
            self._ways.progress(stage, done, total)

    def stats(self, answers: Sequence[Answer]) -> CallStats:
        """What asking came to. Raises LikenessError when not one call was answered."""
        errors = Counter(a.reply.error for a in answers if a.reply.error and not a.reply.filtered)
        if errors.total() == len(answers):
            raise LikenessError(f"no call was answered: {errors.most_common(1)[0][0]}")
        unsent = [said.removeprefix(NOT_SENT) for said in errors if said.startswith(NOT_SENT)]
        price = self._endpoint.price
        return call_stats(
            answers, self._remembered, price.currency if price else "", unsent[0] if unsent else ""
        )

    def notices(self, answers: Sequence[Answer]) -> tuple[str, ...]:
        """What a reader must know of plan, endpoint and replies."""
        replies = [a.reply for a in answers]
        return (
            *self._loaded.notices,
            *probe_findings.condition_notices(self._loaded),
            *(f"The endpoint: {note}." for note in self._abilities.notes),
            *model_notices(replies, self._endpoint.model),
            *parameter_notices(replies),
        )
