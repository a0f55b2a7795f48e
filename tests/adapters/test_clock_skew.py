"""A date proves a wrong clock only where it lies outside the time of the call."""

from __future__ import annotations

from email.utils import formatdate

import httpx
import pytest

from adapters.over_http.reply import clock_skew

BEGAN = 1_800_000_000.4


@pytest.mark.parametrize(
    ("date", "took", "skew"),
    [
        (BEGAN, 0.1, 0.0),
        (BEGAN + 30, 60.0, 0.0),  # dated in the middle of a slow answer
        (BEGAN - 0.4, 60.0, 0.0),  # dated at its start, cut to the second
        (BEGAN + 600, 1.0, 598.6),
        (BEGAN - 600, 1.0, -599.4),
    ],
)
def test_the_least_difference_that_the_date_proves_is_told(
    date: float, took: float, skew: float
) -> None:
    headers = httpx.Headers({"date": formatdate(int(date), usegmt=True)})
    assert clock_skew(headers, BEGAN, BEGAN + took) == pytest.approx(skew, abs=0.05)


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_no_date_is_no_skew(date: str | None) -> None:
    headers = httpx.Headers({} if date is None else {"date": date})
    assert clock_skew(headers, BEGAN, BEGAN + 1) is None
