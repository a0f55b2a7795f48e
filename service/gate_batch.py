"""Many pairs through the gate: each ends as pass, fail, inconclusive or could-not-run, in order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from service.engine.gate_process import GateAnswer, Pair
from service.gate import WORDS, ExitCode, heaviest
from service.pair_list import PairRow
from service.report.junit import Case, Ending, Suite

ENDINGS: dict[ExitCode, Ending] = {
    ExitCode.PASS: "pass",
    ExitCode.FAILED: "failure",
    ExitCode.COULD_NOT_RUN: "error",
    ExitCode.INCONCLUSIVE: "skipped",
}
Submit = Callable[[PairRow], "Future[GateAnswer]"]
"""Begins to measure a row somewhere: in a process here, or on a server."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One row and how it ended. ``answer`` is that of ``service.answers.of_pair``, empty where
    nothing was measured; ``reason`` is one line, "" for a pass."""

    row: PairRow
    code: ExitCode
    answer: dict[str, Any]
    reason: str
    cause: str = ""
    seconds: float = 0.0


def pair_of(row: PairRow) -> Pair:
    """What the measuring process is told of a row; it reads the files itself."""
    return Pair(
        row.folder / row.original,
        row.folder / row.edited,
        row.folder / row.mask if row.mask else None,
        row.engine,
        row.profile,
        row.min_score,
    )


def run_rows(rows: Iterable[PairRow], submit: Submit, ahead: int) -> Iterator[Ended]:
    """Measure rows, ``ahead`` of them at a time; they end in their order. A row with a problem is
    not measured and keeps its place."""
    flying: deque[tuple[PairRow, Future[GateAnswer] | None]] = deque()
    for row in rows:
        flying.append((row, None if row.problem else submit(row)))
        if len(flying) >= ahead:
            yield _ended(*flying.popleft())
    while flying:
        yield _ended(*flying.popleft())


def _ended(row: PairRow, job: Future[GateAnswer] | None) -> Ended:
    if job is None:
        return Ended(row, ExitCode.COULD_NOT_RUN, {}, row.problem, "bad_row")
    got = job.result()
    answer = got.answer()
    if got.code is ExitCode.COULD_NOT_RUN:
        reason = f"{got.part}: {got.reason}" if got.part else got.reason
        return Ended(row, got.code, answer, reason, got.cause, got.seconds)
    reasons = answer["health"]["reasons"]
    reason = "" if got.code is ExitCode.PASS else answer["reason"] or " ".join(reasons)
    return Ended(row, got.code, answer, reason, "", got.seconds)


def code_of(ended: Sequence[Ended], fail_on_inconclusive: bool) -> ExitCode:
    """The exit code of the whole batch."""
    return heaviest(_counted(e.code, fail_on_inconclusive) for e in ended)


def _counted(code: ExitCode, fail_on_inconclusive: bool) -> ExitCode:
    strict = fail_on_inconclusive and code is ExitCode.INCONCLUSIVE
    return ExitCode.FAILED if strict else code


def row_json(ended: Ended) -> dict[str, Any]:
    """``{line, name, original, edited, decision, reason, ...}`` and, where the pair was looked at,
    everything of ``service.answers.of_pair``."""
    row = ended.row
    figures = {k: v for k, v in ended.answer.items() if k != "reason"}
    return {
        "line": row.line,
        "name": row.name,
        "original": row.original,
        "edited": row.edited,
        "decision": WORDS[ended.code],
        "reason": ended.reason or None,
        **figures,
    }


def counts(ended: Sequence[Ended]) -> str:
    """ "4 pairs: 2 pass, 1 fail, 1 could-not-run"."""
    found = Counter(e.code for e in ended)
    listed = ", ".join(f"{found[code]} {word}" for code, word in WORDS.items() if found[code])
    return f"{len(ended)} {'pair' if len(ended) == 1 else 'pairs'}: {listed}"


def figure_line(ended: Ended) -> str:
    """ "health 71.2, at least 85 (profile document)"; "" where nothing was measured."""
    if not ended.answer:
        return ""
    health = ended.answer["health"]
    score = "no score" if health["score"] is None else f"health {health['score']:.1f}"
    return f"{score}, at least {health['min_score']:g} (profile {health['profile']})"


# JUnit ------------------------------------------------------------------------------------------


def suite(
    name: str,
    ended: Sequence[Ended],
    properties: dict[str, str],
    at: str,
    fail_on_inconclusive: bool,
) -> Suite:
    """The batch as a suite, one case a row."""
    cases = [_case(e, fail_on_inconclusive) for e in ended]
    return Suite(f"likeness gate: {name}", cases, properties, at)


def _case(ended: Ended, fail_on_inconclusive: bool) -> Case:
    row, word = ended.row, WORDS[ended.code]
    counted = _counted(ended.code, fail_on_inconclusive)
    message, lines = ended.reason, [f"line {row.line}: {row.original} -> {row.edited}"]
    if ended.code is not ExitCode.COULD_NOT_RUN:
        said = _reasons(ended)
        message = ": ".join((figure_line(ended), *said[:1]))
        lines += [f"- {r}" for r in said] + _figures(ended)
    if counted is not ended.code:
        message = f"inconclusive, which was to fail: {message}"
    kind, text = ended.cause or word, "\n".join(lines)
    return Case(row.name, "likeness.gate", ENDINGS[counted], message, text, kind, ended.seconds)


def _reasons(ended: Ended) -> list[str]:
    said = ended.answer["reason"]
    return list(dict.fromkeys([*([said] if said else []), *ended.answer["health"]["reasons"]]))


def _figures(ended: Ended) -> list[str]:
    figures = ended.answer["metrics"].items()
    return [f"{n}: {f['value']:.4g} {f['unit']}" for n, f in figures if f["value"] is not None]
