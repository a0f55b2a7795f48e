"""Asks a model everything that was not asked before, and keeps what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

from probes.asking.abilities import Abilities
from probes.asking.body import Taken
from probes.asking.cost import Budget
from probes.asking.endpoint import Endpoint
from probes.asking.journal import Journal
from probes.asking.keeping import Keeper
from probes.asking.order import interleaved
from probes.asking.pace import Pace
from probes.asking.sender import NOT_SENT, Sender
from probes.asking.spending import Spending
from probes.calls import Call, Reply

GRACE_S = 10.0
"""Seconds that calls on their way have left when the user stops the run: they are paid for."""
JUDGED = frozenset({400, 413, 422})
"""Statuses by which a server turned down this very call: sent again it would fare the same."""


def ask_all(
    calls: Iterable[Call],
    endpoint: Endpoint,
    abilities: Abilities,
    journal: Journal,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    stopping: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Mapping[str, Reply]:
    """A reply for every call, by ``call.key(endpoint.name)``, whatever happened.

    Replies in ``journal`` are not asked for again, unless they are errors that no server pronounced
    on the call itself. New ones count once the journal has them. Calls go out in the order of
    ``interleaved(calls, seed)``. When the key or the credit is refused, ``budget`` would be passed,
    or ``stopping`` says True (looked at ten times a second), nothing more is sent: the rest come
    back with the error "not sent: ...", are not kept, and will be asked next time. A call that was
    on its way when the run was stopped and gave no answer in 10 s has the error "broken off: ...".

    ``progress(done, of)`` is called after each group that was kept. Runs an event loop of its own,
    so not from within one. Raises whatever ``journal`` raises (what it kept stays kept), and
    LikenessError where ``budget`` cannot be kept. Ctrl-C ends it as KeyboardInterrupt, with
    everything that had come kept.
    """
    by_key: dict[str, Call] = {}
    for call in interleaved(calls, seed):
        by_key.setdefault(call.key(endpoint.name), call)
    known = journal.known(by_key)
    asking = _Asking(by_key, {k: r for k, r in known.items() if is_settled(r)}, progress)
    spending = Spending(endpoint, budget, known.values())
    if asking.open:
        with asyncio.Runner() as runner:
            runner.run(asking.run(endpoint, Taken.of(abilities), journal, spending, stopping))
    asking.told()
    return {key: asking.replies[key] for key in by_key}


def is_settled(reply: Reply) -> bool:
    """Whether asking again is useless: the model, a filter or the server judged the call."""
    return not reply.error or reply.filtered or reply.http_status in JUDGED


class _Asking:
    """One run of ``ask_all`` over the calls that are open."""

    def __init__(
        self,
        by_key: Mapping[str, Call],
        remembered: Mapping[str, Reply],
        progress: Callable[[int, int], None],
    ) -> None:
        self.replies = dict(remembered)
        self.open = [(key, call) for key, call in by_key.items() if key not in remembered]
        self._total, self._progress = len(by_key), progress

    async def run(
        self,
        endpoint: Endpoint,
        taken: Taken,
        journal: Journal,
        spending: Spending,
        stopping: Callable[[], bool],
    ) -> None:
        """Ask with ``endpoint.concurrency`` senders until nothing is open."""
        pace = Pace(endpoint.rate, stopping, endpoint.max_wait_s)
        keeper = Keeper(journal, self._kept)
        writing = asyncio.create_task(keeper.run(lambda fault: pace.halt(f"journal: {fault}")))
        watching = asyncio.create_task(pace.watch())
        todo = iter(self.open)
        senders = [
            asyncio.create_task(self._send(todo, Sender(endpoint, taken, pace, spending), keeper))
            for _ in range(min(endpoint.concurrency, len(self.open)))
        ]
        try:
            await _until_done(senders, watching, stopping)
        finally:
            for task in (*senders, watching):
                task.cancel()
            ended = await asyncio.gather(*senders, watching, return_exceptions=True)
            keeper.close()
            await writing
            keeper.release()
        fault = keeper.fault or next((e for e in ended if isinstance(e, Exception)), None)
        if fault is not None:
            raise fault
        for key, _ in self.open:
            if key not in self.replies:
                self.replies[key] = Reply(error="broken off: the run was stopped")

    async def _send(self, todo: Iterator[tuple[str, Call]], sender: Sender, keeper: Keeper) -> None:
        try:
            for key, call in todo:
                reply = await sender.send(call)
                if reply.attempts:
                    await keeper.put(key, call, reply)
                else:
                    self.replies[key] = reply
        finally:
            await sender.close()

    def _kept(self, group: list[tuple[str, Reply]]) -> None:
        self.replies.update(group)
        self.told()

    def told(self) -> None:
        """Tell how far it is."""
        self._progress(len(self.replies), self._total)


async def _until_done(
    senders: list[asyncio.Task[None]], watching: asyncio.Task[None], stopping: Callable[[], bool]
) -> None:
    """Return when all senders are done, one of them fails, or the grace of a stopped run is over."""
    pending: set[asyncio.Task[None]] = set(senders)
    while pending:
        watched = set() if watching.done() else {watching}
        grace = GRACE_S if watching.done() and stopping() else None
        done, _ = await asyncio.wait(
            pending | watched, timeout=grace, return_when=asyncio.FIRST_COMPLETED
        )
        pending -= done
        if not done or any(t in senders and t.exception() is not None for t in done):
            return


__all__ = ["NOT_SENT", "ask_all", "is_settled"]
