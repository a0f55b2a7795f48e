"""Counts and times of the service for Prometheus. No label ever holds what a user sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0)


class Metrics:
    """One registry an application, so that two of them in one process do not count for each other."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "likeness_requests",
            "Requests answered",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "likeness_request_seconds",
            "Time to answer",
            ["method", "route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._open = Gauge(
            "likeness_requests_in_progress", "Requests being answered", registry=self.registry
        )

    @contextmanager
    def in_progress(self) -> Iterator[None]:
        """Count a request while it is being answered."""
        with self._open.track_inprogress():
            yield

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        method = method if method in METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
