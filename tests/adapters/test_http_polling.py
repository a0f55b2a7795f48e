"""Waiting for a job: bounded, and patient with a poll that fails in passing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.guard import EditEnded
from adapters.over_http.polling import LONGEST, Patience, patiently
from domain.edits import Edited, EditOutcome, Failed, Refused


def turns(*given: EditOutcome | str) -> Callable[[], str]:
    left = list(given)

    def ask() -> str:
        turn = left.pop(0)
        if isinstance(turn, str):
            return turn
        raise EditEnded(turn)

    return ask


def ended(ask: Callable[[], str], patience: Patience) -> EditOutcome:
    with pytest.raises(EditEnded) as caught:
        patiently(ask, patience, {"request_id": "job-1", "http_status": 201})
    return caught.value.outcome


def test_waits_grow_from_poll_to_poll_up_to_a_longest() -> None:
    waits: list[float] = []
    patience = Patience(10_000, 1.0, waits.append)
    for _ in range(20):
        assert patience.pause()
    assert waits[:3] == pytest.approx([1.0, 1.3, 1.69])
    assert max(waits) == LONGEST


def test_a_first_pause_longer_than_that_is_not_shortened() -> None:
    waits: list[float] = []
    patience = Patience(1000, 30.0, waits.append)
    assert patience.pause()
    assert patience.pause()
    assert waits == [30.0, 30.0]


def test_no_wait_goes_beyond_the_end() -> None:
    waits: list[float] = []
    patience = Patience(5.0, 2.0, waits.append)
    while patience.pause():
        pass
    assert sum(waits) <= 5.0
    assert not patience.pause(3600)


def test_a_wait_that_the_server_names_is_taken_as_it_is() -> None:
    waits: list[float] = []
    patience = Patience(100, 1.0, waits.append)
    busy = Failed("HTTP 429", retryable=True, retry_after=7.0)
    assert patiently(turns(busy, busy, "done"), patience, {}) == "done"
    assert waits == [7.0, 7.0]


def test_a_lasting_failure_ends_it_at_once_with_the_facts_of_the_job() -> None:
    waits: list[float] = []
    failed = Failed("HTTP 401", meta={"stop": True, "http_status": 401, "request_id": "poll-9"})
    outcome = ended(turns(failed, "done"), Patience(100, 1.0, waits.append))
    assert isinstance(outcome, Failed)
    assert waits == []
    assert outcome.meta == {
        "request_id": "job-1",
        "http_status": 401,
        "stop": True,
        "maybe_billed": True,
    }


def test_a_failure_that_outlasts_the_time_is_not_to_be_bought_again() -> None:
    broken = Failed("HTTP 503", retryable=True, retry_after=60.0)
    outcome = ended(turns(broken, broken, broken), Patience(100, 1.0, lambda _: None))
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.meta["maybe_billed"] is True


@pytest.mark.parametrize("outcome", [Refused("input", "no"), Edited(b"x")])
def test_any_other_end_passes_through(outcome: EditOutcome) -> None:
    assert ended(turns(outcome), Patience(100, 1.0, lambda _: None)) is outcome
