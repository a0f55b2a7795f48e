"""One tool of a run with the threads that call it: one adapter, one pacing, one list of items."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import adapters.contract
from service import calling
from service.calling import Called
from service.engine.progress import Progress
from service.pacing import Pacing
from service.runs import Run, close_tool

Item = Mapping[str, Any]


class Lane:
    """``width`` threads run ``work`` at once. The first makes the tool and warms it up, each takes
    the next item in the order planned, the last one out closes the tool. A tool that cannot even be
    made fails its items."""

    def __init__(
        self,
        run: Run,
        label: str,
        todo: Sequence[Item],
        stop: threading.Event,
        watch: Progress,
        pacing: Pacing | None = None,
    ) -> None:
        """``stop`` is set when the run is to end early; it also ends every wait."""
        tool, spec = run.tools[label], run.specs[label]
        self.label, self.remote = label, spec.remote
        self.width = min(tool.concurrency or spec.concurrency, len(todo))
        self._run, self._stop, self._watch = run, stop, watch
        self._pacing = pacing or Pacing.of(tool, spec, stop.wait)
        self._portraits = {row["portrait_id"]: row for row in run.ledger.portraits()}
        self._first = todo[0] if todo else None
        self._todo = iter(todo)
        self._adapter: adapters.contract.Adapter | None = None
        self._why = ""
        self._opened, self._inside = False, self.width
        self._taking, self._opening = threading.Lock(), threading.Lock()

    def work(self, ready: Callable[[str], object]) -> None:
        """Call the tool on item after item; ``ready`` is told of each that can be measured."""
        try:
            if not self._stop.is_set():
                self._open()
            while not self._stop.is_set() and (item := self._take()) is not None:
                self._one(item, ready)
        finally:
            self._leave()

    def _one(self, item: Item, ready: Callable[[str], object]) -> None:
        called = Called.FINISHED
        if self._adapter is None:
            reason = f"the tool could not be started: {self._why}"
            calling.give_up(self._run, item, reason)
        else:
            portrait = self._portraits[item["portrait_id"]]
            called = calling.call_tool(self._run, self._adapter, item, portrait, self._pacing)
        if called is Called.INTERRUPTED:
            return
        self._watch.step("edited")
        if called is Called.MEASURABLE:
            ready(item["item_id"])
        else:
            self._watch.step("measured")

    def _open(self) -> None:
        with self._opening:
            if self._opened or self._first is None:
                return
            self._opened = True
            self._adapter, self._why = calling.try_build(self._run, self.label)
            if self._adapter is None:
                self._watch.say(f"{self.label}: {self._why}")
                return
            portrait = self._portraits[self._first["portrait_id"]]
            calling.warm_up(
                self._run, self._adapter, self._first, portrait, self._pacing, self._watch.say
            )

    def _take(self) -> Item | None:
        with self._taking:
            return next(self._todo, None)

    def _leave(self) -> None:
        with self._taking:
            self._inside -= 1
            last = self._inside == 0
        said = close_tool(self._adapter) if last and self._adapter is not None else ""
        if said:
            self._watch.say(f"{self.label}: could not be closed: {said}")
