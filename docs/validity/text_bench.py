"""Do the text probes say what the model does? Pretended models whose truth is known, over HTTP.

Run by ``make validity``: ``python docs/validity/text_bench.py [SEEDS] [PROBE]`` (default 200 runs a
scenario; ``QUICK=1`` in the environment: 20). Each run starts from settings, asks the pretended
server through the real client, and is read and scored by the probe itself. Prints one line a
promise and exits 1 when one is broken.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from docs.validity.text_probes.running import Outcome, Scenario, run
from docs.validity.text_probes.scenarios import scenarios
from docs.validity.text_probes.server import ChatServer
from probes.analysis.rates import wilson

SEEDS, QUICK_SEEDS = 200, 20
CHUNK = 10
"""Runs that share a server and a process's task."""
COVERED, ALARMS, POWER = 0.93, 0.05, 0.80
Job = tuple[int, bool, int, int]
"""Which scenario, planted or not, first seed, seeds."""


@dataclass(frozen=True, slots=True)
class Promise:
    """``hits`` of ``n`` runs, and the bounds that the share must keep; no bounds: told only."""

    text: str
    hits: int
    n: int
    low: float = 0.0
    high: float = 1.0

    @property
    def kept(self) -> bool:
        """Whether the share lies within the bounds, ends included."""
        return self.n > 0 and self.low <= self.hits / self.n <= self.high

    def line(self) -> str:
        """The promise for people, with Wilson's interval of the share."""
        told = self.low > 0 or self.high < 1
        mark = ("ok " if self.kept else "BAD") if told else "   "
        if not self.n:
            return f"{mark}   none          {self.text}"
        span = wilson(self.hits, self.n)
        assert span is not None
        ends = f"({100 * span.low:.1f} to {100 * span.high:.1f})"
        wanted = f", wanted {self.low:.0%} to {self.high:.0%}" if told else ""
        return f"{mark} {100 * self.hits / self.n:5.1f} % {ends:16} {self.text}{wanted}"


def simulate(job: Job) -> list[Outcome]:
    """The runs of ``job``, with a server of their own."""
    number, planted, first, seeds = job
    with ChatServer() as server, tempfile.TemporaryDirectory() as folder:
        scenario = scenarios()[number]
        return [
            run(scenario, seed, planted, server, Path(folder))
            for seed in range(first, first + seeds)
        ]


def promises(
    scenario: Scenario, planted: Sequence[Outcome], level: Sequence[Outcome]
) -> list[Promise]:
    """What is promised of one probe: ``planted`` and ``level`` are its runs with and without leanings."""
    name, found = scenario.id, []
    first = next(iter(scenario.truths))
    for figure, truth in scenario.truths.items():
        text = f"{name}: interval of {figure} holds the planted {truth:+.3f}"
        if figure != first and not truth:
            text = (
                f"{name}: interval of {figure}, where nothing is planted, holds 0 beside the rest"
            )
        found.append(_covered(text, figure, planted))
    text = f"{name}: the planted figure holds with replies taken as independent (naive)"
    found.append(Promise(text, sum(o.naive for o in planted), len(planted)))
    if level:
        text = f"{name}: interval of {first} holds 0 where nothing is planted"
        found.append(_covered(text, first, level))
        text = f"{name}: any disparity although there is none"
        alarms = sum(any(o.found.values()) for o in level)
        found.append(Promise(text, alarms, len(level), high=ALARMS))
        for test in sorted({t for o in level for t, hit in o.found.items() if hit}):
            hits = sum(o.found.get(test, False) for o in level)
            found.append(Promise(f"{name}: of these by {test}", hits, len(level)))
    text = f"{name}: planted difference called a disparity"
    lean = [o.found.get(scenario.leaning, False) for o in planted]
    found.append(Promise(text, sum(lean), len(lean)))
    text = f"{name}: refusals of 40 % against 5 % called a disparity"
    gap = [o.found.get(scenario.refusals, False) for o in planted]
    found.append(Promise(text, sum(gap), len(gap), POWER))
    every = [*planted, *level]
    text = f"{name}: every status and model counted as it was played"
    found.append(Promise(text, sum(not o.wrong for o in every), len(every), 1.0))
    if bare := sum(o.covered[first] is None for o in every):
        found.append(Promise(f"{name}: {first} has no interval", bare, len(every)))
    if unusable := sum(o.unusable for o in every):
        found.append(Promise(f"{name}: called unusable", unusable, len(every)))
    return found


def _covered(text: str, figure: str, outcomes: Sequence[Outcome]) -> Promise:
    """Over the runs that give the figure an interval: none says nothing wrong."""
    known = [held for o in outcomes if (held := o.covered[figure]) is not None]
    return Promise(text, sum(known), len(known), COVERED)


def by_scenario(
    seeds: int, chosen: Sequence[int], workers: int
) -> Mapping[int, tuple[list[Outcome], list[Outcome]]]:
    """All runs of the scenarios with these numbers: planted and level."""
    jobs = [
        (number, planted, first, min(CHUNK, seeds - first))
        for number in chosen
        for planted in ((True, False) if scenarios()[number].level else (True,))
        for first in range(0, seeds, CHUNK)
    ]
    found: dict[int, tuple[list[Outcome], list[Outcome]]] = {n: ([], []) for n in chosen}
    with ProcessPoolExecutor(workers) as pool:
        for job, outcomes in zip(jobs, pool.map(simulate, jobs), strict=True):
            found[job[0]][0 if job[1] else 1].extend(outcomes)
    return found


def bench(seeds: int, wanted: str, say: Callable[[str], None]) -> int:
    """Print every promise about the scenarios whose name begins with ``wanted``; 1 when one is broken."""
    known = scenarios()
    chosen = [n for n, s in enumerate(known) if s.id.startswith(wanted)]
    kept: list[Promise] = []
    played: Counter[str] = Counter()
    for number, (planted, level) in by_scenario(seeds, chosen, os.cpu_count() or 1).items():
        part = promises(known[number], planted, level)
        kept += part
        for promise in part:
            say(promise.line())
        for outcome in (*planted, *level):
            played += outcome.played
        for wrong in list(dict.fromkeys(o.wrong for o in (*planted, *level) if o.wrong))[:3]:
            say(f"       {wrong}")
    broken = [p for p in kept if not p.kept]
    say(
        f"{sum(played.values()):,} requests: {', '.join(f'{n:,} {b}' for b, n in played.most_common())}"
    )
    say(f"{len(kept) - len(broken)} of {len(kept)} promises kept over {seeds} runs of each kind")
    return 1 if broken or not kept else 0


def main() -> int:
    """Run the bench as told on the command line."""
    usual = QUICK_SEEDS if os.environ.get("QUICK") else SEEDS
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else usual
    return bench(seeds, sys.argv[2] if len(sys.argv) > 2 else "", print)


if __name__ == "__main__":
    sys.exit(main())
