"""The one decision function, and what its answers mean as exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from domain.measurements import Decision, Health, Outcome, PairResult
from domain.verdicts import NAMED, Verdict, VerdictKind
from metrics.health import profiles_disagree


class ExitCode(IntEnum):
    """What every command of ours returns, whatever the output format."""

    PASS = 0
    FAILED = 1
    COULD_NOT_RUN = 2
    INCONCLUSIVE = 3


OF_DECISION = {
    Decision.PASS: ExitCode.PASS,
    Decision.FAIL: ExitCode.FAILED,
    Decision.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}
UNREADABLE = (Outcome.ORIGINAL_UNREADABLE, Outcome.EDITED_UNREADABLE)
WORDS = {
    ExitCode.PASS: "pass",
    ExitCode.FAILED: "fail",
    ExitCode.COULD_NOT_RUN: "could-not-run",
    ExitCode.INCONCLUSIVE: "inconclusive",
}
"""How one pair ended, in a word for machines."""
HEAVIEST_FIRST = (ExitCode.FAILED, ExitCode.COULD_NOT_RUN, ExitCode.INCONCLUSIVE)
"""A failure stands whatever else happened, so nothing hides it; what could not run may hide one."""


def decide(result: PairResult) -> Health:
    """The decision on one pair: the deciding profile's, with a reason added where the other
    profile falls on the other side of the threshold."""
    chosen = result.health[result.profile]
    for name, other in result.health.items():
        if name == result.profile:
            continue
        note = profiles_disagree(chosen, other)
        if note:
            reasons = (*chosen.reasons, note)
            return Health(chosen.profile, chosen.score, chosen.decision, chosen.threshold, reasons)
    return chosen


def exit_code(result: PairResult) -> ExitCode:
    """What one pair means to whoever called: a picture that cannot be read could not run."""
    if result.outcome in UNREADABLE:
        return ExitCode.COULD_NOT_RUN
    return OF_DECISION[decide(result).decision]


def heaviest(codes: Iterable[ExitCode]) -> ExitCode:
    """The code of many pairs: failed before could-not-run before inconclusive before pass."""
    found = set(codes)
    return next((code for code in HEAVIEST_FIRST if code in found), ExitCode.PASS)


def decide_audit(verdicts: Iterable[Verdict]) -> ExitCode:
    """The decision on a whole audit, by the claims named before the run: any disparity fails it;
    nothing settled is inconclusive. What was only explored cannot fail a gate."""
    kinds = {v.verdict for v in verdicts if v.details.get("family") in NAMED}
    if VerdictKind.DISPARITY in kinds:
        return ExitCode.FAILED
    if not kinds or kinds == {VerdictKind.INCONCLUSIVE}:
        return ExitCode.INCONCLUSIVE
    return ExitCode.PASS
