"""How long a server wants us to wait, in every form that makers use."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from domain.retry import RETRYABLE, duration, is_retryable, named_wait, retry_after


def wait_of(body: Any = None, text: str = "", **headers: str) -> float | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return named_wait(httpx.Headers(named), body, text)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("20", 20.0), ("1.5", 1.5), ("0", 0.0), ("250ms", 0.25), ("1s", 1.0), ("1m30s", 90.0),
        ("6m0s", 360.0), ("8.64s", 8.64), ("1h2m3s", 3723.0), ("1d", 86400.0), (" 7 ", 7.0),
        (None, None), ("", None), ("soon", None), ("1x", None), ("s", None), ("1m 30s", None),
        ("nan", None), ("inf", None), ("1e400", None),
    ],
)  # fmt: skip
def test_a_duration_is_read_or_is_none(value: str | None, seconds: float | None) -> None:
    assert duration(value) == (pytest.approx(seconds) if seconds is not None else None)


def test_retry_after_in_seconds() -> None:
    assert wait_of(retry_after="120") == 120
    assert wait_of(retry_after="0") == 0
    assert wait_of(retry_after="-5") is None
    assert wait_of(retry_after="soon") is None


@pytest.mark.parametrize(
    "form",
    [
        "%a, %d %b %Y %H:%M:%S GMT",  # IMF-fixdate
        "%A, %d-%b-%y %H:%M:%S GMT",  # RFC 850
        "%a %b %d %H:%M:%S %Y",  # asctime, which is GMT though it does not say so
    ],
)
def test_retry_after_as_any_of_the_three_http_dates(form: str) -> None:
    server_now = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
    later = (server_now + timedelta(seconds=90)).strftime(form)
    assert wait_of(retry_after=later, date=format_datetime(server_now, usegmt=True)) == 90


def test_a_date_is_measured_on_the_servers_clock_not_on_ours() -> None:
    server_now = datetime.now(UTC) + timedelta(hours=3)
    later = format_datetime(server_now + timedelta(seconds=30), usegmt=True)
    wait = wait_of(retry_after=later, date=format_datetime(server_now, usegmt=True))
    assert wait == pytest.approx(30, abs=1)


def test_without_the_servers_clock_ours_will_do() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after(later) == pytest.approx(60, abs=3)


def test_a_date_that_has_passed_means_now() -> None:
    assert wait_of(retry_after="Wed, 21 Oct 2015 07:28:00 GMT") == 0


def test_milliseconds_come_before_seconds() -> None:
    assert wait_of(retry_after_ms="1500", retry_after="2") == 1.5


def test_the_quota_that_is_used_up_decides() -> None:
    assert (
        wait_of(
            x_ratelimit_remaining_requests="12",
            x_ratelimit_reset_requests="1s",
            x_ratelimit_remaining_images="0",
            x_ratelimit_reset_images="1m12s",
        )
        == 72
    )


def test_of_two_quotas_that_are_used_up_the_longer_wait_counts() -> None:
    assert (
        wait_of(
            x_ratelimit_remaining_requests="0",
            x_ratelimit_reset_requests="1s",
            x_ratelimit_remaining_tokens="0",
            x_ratelimit_reset_tokens="8.64s",
        )
        == 8.64
    )


def test_a_quota_that_is_not_used_up_says_nothing() -> None:
    assert wait_of(x_ratelimit_remaining_requests="1", x_ratelimit_reset_requests="1h") is None


def test_a_bare_reset_is_seconds_or_a_moment() -> None:
    assert wait_of(x_ratelimit_reset="20") == 20
    assert wait_of(ratelimit_reset="20") == 20
    assert wait_of(x_ratelimit_reset=str(int(time.time()) + 40)) == pytest.approx(40, abs=3)
    iso = (datetime.now(UTC) + timedelta(seconds=50)).isoformat()
    assert wait_of(x_ratelimit_reset=iso) == pytest.approx(50, abs=3)
    assert wait_of(x_ratelimit_reset="tomorrow") is None


def test_the_draft_rate_limit_header() -> None:
    assert wait_of(ratelimit='"default";r=0;t=30') == 30


def test_googles_retry_info() -> None:
    body = {
        "error": {
            "code": 429,
            "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"},
            ],
        }
    }
    assert wait_of(body) == 34.07


@pytest.mark.parametrize(
    "body",
    [
        {"retry_after": 4},
        {"error": {"retryAfter": "4"}},
        {"retry-after-seconds": 4.0},
        {"parameters": {"retry_after_ms": 4000}},
    ],
)
def test_keys_of_a_body_named_like_the_header(body: Any) -> None:
    assert wait_of(body) == 4


@pytest.mark.parametrize("body", [{"retry_after": None}, {"retry_after": {"x": 1}}, [], "x", None])
def test_a_body_that_names_no_wait(body: Any) -> None:
    assert wait_of(body) is None


def test_a_body_of_any_depth_is_survived() -> None:
    deep: Any = {"retry_after": 3}
    for _ in range(5000):
        deep = [deep]
    assert wait_of(deep) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20s.", 20),
        ("Limit 3 / min. Please try again in 6m0s. Contact us", 360),
        ("Rate limit reached for 5 requests per minute. Try again in 120ms.", 0.12),
        ("Request was throttled. Your rate limit resets in ~30s.", 30),
        ("Request was throttled. Expected available in 1 second.", 1),
        ("Please retry in 34.074824224s.", 34.074824224),
        ("Wait 2 minutes and 5 seconds before the next call", 125),
        ("retry after 250 milliseconds", 0.25),
        ("You can TRY AGAIN IN 1 HOUR", 3600),
        ("resets in 1 day", 86400),
        ("Try again later", None),
        ("The retry limit is 5 requests", None),
        ("It took 20s", None),
        ("", None),
    ],
)
def test_a_sentence_in_the_body_names_the_wait(text: str, seconds: float | None) -> None:
    assert wait_of(text=text) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_header_counts_before_the_body_and_the_body_before_a_sentence() -> None:
    assert wait_of({"retry_after": 2}, "try again in 3s", retry_after="1") == 1
    assert wait_of({"retry_after": 2}, "try again in 3s") == 2


@pytest.mark.parametrize("status", sorted(RETRYABLE))
def test_passing_faults_are_worth_another_try(status: int) -> None:
    assert is_retryable(status, {})
    assert not is_retryable(status, {"x-should-retry": "false"})


@pytest.mark.parametrize("status", [200, 301, 400, 401, 402, 403, 404, 409, 413, 415, 422, 501])
def test_lasting_faults_are_not(status: int) -> None:
    assert not is_retryable(status, {})
    assert not is_retryable(status, {"x-should-retry": "maybe"})
    assert is_retryable(status, {"x-should-retry": " True "})
