"""``/metrics``: counts for Prometheus, of this process and of the work in the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy import Column, Select, func, select

from domain.errors import LikenessError
from service.api.context import Context, ContextOf
from service.api.metrics import Metrics
from service.api.problems import Problem, problems
from service.api.security import CHALLENGE, address_of, caller_of, forwarded, lacks
from service.destinations import is_loopback
from service.store.service_tables import batches, jobs
from service.store.tables import items

root_router = APIRouter(tags=["health"])
EXAMPLE = 'likeness_runs{state="queued"} 0.0\nlikeness_database_up 1.0\n'


@root_router.get(
    "/metrics",
    summary="Counts for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"example": EXAMPLE}}, "description": "Counts and times."},
        **problems(401, 403),
    },
)
def metrics(request: Request, context: ContextOf) -> Response:
    """Requests by route and status, runs by state, items by outcome, the queue, leases. Needs the
    scope 'read', unless asked from this very machine. Whatever the database says, it answers."""
    caller = caller_of(request.scope)
    near = is_loopback(address_of(request.scope)) and not forwarded(request.scope)
    if caller is None and not near:
        raise Problem(401, "key-missing", "this operation needs a key", headers=CHALLENGE)
    if caller is not None and not caller.may("read"):
        raise lacks("read")
    held: Metrics = request.app.state.metrics
    return Response(generate_latest(held.registry), media_type=CONTENT_TYPE_LATEST)


class Work:
    """What the database says of batches, runs and items, asked anew at every scrape."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def describe(self) -> list[Metric]:
        """Nothing: being registered must not ask the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges; without a database only that it is down."""
        up = GaugeMetricFamily("likeness_database_up", "Whether the database answers")
        try:
            found = list(self._of_database())
            up.add_metric([], 1)
        except LikenessError:
            found = []
            up.add_metric([], 0)
        yield up
        yield from found

    def _of_database(self) -> Iterator[Metric]:
        database = self._context.database
        for name, says, label, column in (
            ("likeness_runs", "Runs by state", "state", jobs.c.state),
            ("likeness_batches", "Batches by state", "state", batches.c.state),
            (
                "likeness_items",
                "Items by outcome; without one yet: open",
                "outcome",
                items.c.outcome,
            ),
        ):
            family = GaugeMetricFamily(name, says, labels=[label])
            counts = {r["what"]: r["many"] for r in database.rows(_counted(column))}
            for value, many in sorted((str(k or "open"), v) for k, v in counts.items()):
                family.add_metric([value], many)
            yield family
        yield from self._queue()

    def _queue(self) -> Iterator[Metric]:
        query = select(jobs.c.state, jobs.c.lease_until).where(
            jobs.c.state.in_(("queued", "running"))
        )
        rows, now = self._context.database.rows(query), time.time()
        held = [r["lease_until"] for r in rows if r["lease_until"] is not None]
        queued = sum(r["state"] == "queued" for r in rows)
        yield _gauge("likeness_queue_depth", "Runs that wait for a worker", queued)
        yield _gauge(
            "likeness_leases_alive",
            "Runs whose worker shows signs of life",
            sum(t > now for t in held),
        )
        yield _gauge(
            "likeness_leases_run_out", "Runs whose worker fell silent", sum(t <= now for t in held)
        )


def _counted(column: Column[Any]) -> Select[Any]:
    return select(column.label("what"), func.count().label("many")).group_by(column)


def _gauge(name: str, says: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, says)
    family.add_metric([], value)
    return family
