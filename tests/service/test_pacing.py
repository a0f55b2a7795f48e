"""A tool is called no faster than it allows, waited for as it asks, and left alone when it says stop."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from domain.edits import Failed
from domain.plan import ToolChoice
from domain.tools import RateLimit
from service.pacing import Pacing
from tests.service.scripted import SPEC, Time


def paced(rate: str | None = None, chance: float = 1.0, **limits: object) -> tuple[Pacing, Time]:
    time = Time()
    limit = RateLimit.parse(rate) if rate else None
    return Pacing(
        limit, wait=time.wait, clock=time.clock, chance=lambda: chance, **limits  # type: ignore[arg-type]
    ), time  # fmt: skip


def most_in_a_window(begun: list[float], seconds: float) -> int:
    """By counting: the most calls whose beginnings lie less than ``seconds`` apart."""
    return max(sum(1 for other in begun if start <= other < start + seconds) for start in begun)


def test_calls_within_the_limit_do_not_wait() -> None:
    pacing, time = paced("3/10s")
    assert all(pacing.enter() for _ in range(3))
    assert time.waits == []


def test_no_window_of_the_limits_length_holds_more_calls_than_allowed() -> None:
    pacing, time = paced("3/10s")
    begun = []
    for pause in [0.0, 4.0, 5.9, 0.0, 0.0, 3.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0]:
        time.now += pause
        assert pacing.enter()
        begun.append(time.now)
    assert most_in_a_window(begun, 10.0) == 3


def test_threads_share_one_limit() -> None:
    pacing, time = paced("4/10s")
    begun: list[float] = []
    lock = threading.Lock()

    def one(_: int) -> None:
        assert pacing.enter()
        with lock:
            begun.append(time.now)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(40)))
    assert len(begun) == 40
    assert time.now - 1000.0 >= 90.0, "forty calls of four in ten seconds take nine full windows"


def test_a_wait_that_the_server_names_holds_every_thread_of_the_tool() -> None:
    pacing, time = paced(chance=0.0)
    pacing.heed(Failed("slow down", retryable=True, retry_after=30.0))
    assert pacing.enter()
    assert time.waits == [30.0]
    pacing.heed(Failed("slow down", retryable=True, retry_after=5.0))
    pacing.heed(Failed("slow down", retryable=True, retry_after=2.0))
    assert pacing.enter()
    assert time.waits == [30.0, 5.0], "the longest wait counts, not the last"


def test_jitter_never_makes_a_named_wait_shorter_and_stays_small() -> None:
    pacing, time = paced(chance=0.999)
    pacing.heed(Failed("slow down", retryable=True, retry_after=100.0))
    assert pacing.enter()
    assert 100.0 < time.waits[0] <= 101.0


def test_without_a_named_wait_the_back_off_doubles_from_one_second_to_sixty() -> None:
    pacing, time = paced(chance=1.0)
    for tries in range(1, 10):
        assert pacing.rest(Failed("busy", retryable=True), tries)
    assert time.waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_the_jitter_of_a_back_off_is_full() -> None:
    pacing, time = paced(chance=0.0)
    pacing.rest(Failed("busy", retryable=True), 5)
    assert time.waits == [0.0]


@pytest.mark.parametrize("wait", [None, -1.0, float("nan"), float("inf")])
def test_a_wait_that_is_no_time_counts_as_none_named(wait: float | None) -> None:
    pacing, time = paced(chance=1.0)
    failure = Failed("busy", retryable=True, retry_after=wait)
    pacing.heed(failure)
    assert pacing.enter() and time.waits == []
    assert pacing.rest(failure, 1) and time.waits == [1.0]


def test_a_wait_longer_than_the_plan_bears_is_said_and_holds_off_the_calls_to_come() -> None:
    pacing, time = paced(max_wait_s=120.0)
    failure = Failed("HTTP 429", retryable=True, retry_after=3600.0)
    assert pacing.too_long(failure) == "the tool asks to wait 3600 s, more than max_wait_s 120"
    pacing.heed(failure)
    time.now += 600
    assert pacing.why_not() == (
        "not sent: the tool asks to wait another 3000 s, more than max_wait_s 120"
    )
    assert not pacing.enter() and time.waits == []
    time.now += 2900
    assert pacing.why_not() == "" and pacing.enter()


def test_after_a_stop_nothing_is_sent_and_the_first_cause_is_named() -> None:
    pacing, _ = paced()
    pacing.heed(Failed("HTTP 401: wrong key", meta={"stop": True}))
    pacing.heed(Failed("HTTP 402: no credit", meta={"stop": True}))
    assert not pacing.enter()
    assert pacing.why_not() == "not sent: HTTP 401: wrong key"


def test_the_end_of_the_run_interrupts_every_wait() -> None:
    stopping = Pacing(RateLimit(1, 60.0), wait=lambda _seconds: True, clock=lambda: 0.0)
    assert stopping.enter()
    assert not stopping.enter() and stopping.why_not() == ""
    assert not stopping.rest(Failed("busy", retryable=True), 3)


def test_the_plan_comes_before_what_the_tool_says_of_itself() -> None:
    spec = replace(SPEC, remote=True, rate=RateLimit(1, 60.0))
    own = Pacing.of(ToolChoice(id="scripted"), spec)
    assert own.max_attempts == 5
    assert Pacing.of(ToolChoice(id="scripted"), SPEC).max_attempts == 3
    chosen = ToolChoice(id="scripted", rate_limit="2/s", max_attempts=7, max_wait_s=9.0)
    pacing = Pacing.of(chosen, spec, wait=lambda _seconds: True)
    assert (pacing.max_attempts, pacing.max_wait_s) == (7, 9.0)
    assert [pacing.enter() for _ in range(3)] == [True, True, False]
