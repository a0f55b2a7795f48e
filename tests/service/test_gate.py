"""One decision function: what passes, fails or stays open, and what that is as an exit code."""

from __future__ import annotations

import pytest

from domain.measurements import Decision, Health, Outcome, PairResult
from domain.verdicts import Verdict, VerdictKind
from service.gate import OF_DECISION, ExitCode, decide, decide_audit


def health(profile: str, score: float | None) -> Health:
    decision = Decision.INCONCLUSIVE
    if score is not None:
        decision = Decision.PASS if score >= 85 else Decision.FAIL
    return Health(profile, score, decision, 85.0, ("a reason",))


def pair(document: float | None, even: float | None, profile: str = "document") -> PairResult:
    scores = {"document": health("document", document), "even": health("even", even)}
    return PairResult(Outcome.MEASURED, None, "mediapipe", (), scores, profile)


def verdict(kind: VerdictKind, family: str = "named") -> Verdict:
    details = {"family": family}
    return Verdict("t", "flrr", "gender", ("a", "b"), kind, None, None, None, None, details=details)


@pytest.mark.parametrize(
    ("score", "code"),
    [(85.0, ExitCode.PASS), (84.99, ExitCode.FAILED), (None, ExitCode.INCONCLUSIVE)],
)
def test_the_score_decides_and_a_missing_one_decides_nothing(
    score: float | None, code: ExitCode
) -> None:
    assert OF_DECISION[decide(pair(score, score)).decision] is code


def test_profiles_on_different_sides_of_the_threshold_are_said_to_be() -> None:
    apart = decide(pair(90.0, 60.0))
    assert apart.decision is Decision.PASS and len(apart.reasons) == 2
    assert "even" in apart.reasons[-1]
    assert decide(pair(90.0, 95.0)).reasons == ("a reason",)


def test_the_chosen_profile_decides() -> None:
    assert decide(pair(90.0, 60.0, profile="even")).decision is Decision.FAIL


def test_an_audit_fails_by_its_named_claims_alone() -> None:
    found, same, open_ = VerdictKind.DISPARITY, VerdictKind.EQUIVALENT, VerdictKind.INCONCLUSIVE
    assert decide_audit([verdict(same), verdict(found)]) is ExitCode.FAILED
    assert decide_audit([verdict(same), verdict(found, "exploratory")]) is ExitCode.PASS
    assert decide_audit([verdict(found, "paired")]) is ExitCode.FAILED
    assert decide_audit([verdict(open_)]) is ExitCode.INCONCLUSIVE
    assert decide_audit([]) is ExitCode.INCONCLUSIVE
