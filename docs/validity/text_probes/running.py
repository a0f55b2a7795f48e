"""One simulated run of a probe: asked over HTTP, read and scored by the probe itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.validity.text_probes.server import ChatServer, Played
from domain.verdicts import VerdictKind
from probes.asking.abilities import Abilities
from probes.asking.ask import ask_all
from probes.asking.endpoint import Endpoint
from probes.asking.journal import MemoryJournal
from probes.calls import Call, Reading, Status
from probes.contract import Probe
from probes.results import Figure, ProbeResult
from service.fake_servers.chat_personality import Fault, Personality

Say = Callable[[random.Random], str]
Minds = Mapping[str, Say]
"""What is said to each conversation."""
OTHER_MODEL = "another-model-0613"
ENDS: Mapping[str, Status] = {
    "ok": Status.ANSWERED,
    "fenced": Status.ANSWERED,
    "prefixed": Status.ANSWERED,
    "malformed": Status.ANSWERED,
    "wrong_model": Status.ANSWERED,
    "refuse_en": Status.REFUSED,
    "refuse_de": Status.REFUSED,
    "refuse_zh": Status.REFUSED,
    "refuse_field": Status.REFUSED,
    "filter_azure": Status.FILTERED,
    "filter_reply": Status.FILTERED,
    "filter_empty": Status.FILTERED,
    "reasoning_ate_it": Status.TRUNCATED,
    "cut": Status.TRUNCATED,
    "empty_reply": Status.UNPARSABLE,
    "no_retry": Status.ERRORED,
}
"""How a reply must be counted after each behaviour. Those that are not in it are sent again."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A probe and a model whose truth is known.

    ``minds(calls, chance, planted)`` is the model, ``truths`` the planted differences by figure,
    the first of which is the one that the power is told of. ``gap`` is a regular expression for the
    conversations that are declined more often in the planted runs. ``leaning`` and ``refusals`` are
    the tests that must see either. ``naive`` gives the interval of the first figure that takes replies as independent.
    ``faults`` are played beside refusals, ``arm_of`` names the tally that a call belongs to.
    ``level`` False: there are no runs without leanings.
    """

    id: str
    build: Callable[[Path], Probe]
    minds: Callable[[Sequence[Call], random.Random, bool], Minds]
    truths: Mapping[str, float]
    gap: Callable[[Sequence[Call]], str]
    leaning: str
    refusals: str
    naive: Callable[[Sequence[Reading]], tuple[float, float]]
    faults: tuple[Fault, ...]
    arm_of: Callable[[Call], str] = lambda call: call.arm
    language: str = "en"
    level: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run found. ``covered`` and ``found`` are by figure and test, None for
    a figure without an interval; ``wrong`` is "" where
    every status was counted as it was played, else the first that was not."""

    covered: Mapping[str, bool | None]
    naive: bool
    values: Mapping[str, float | None]
    found: Mapping[str, bool]
    wrong: str
    unusable: bool
    played: Counter[str]


def run(scenario: Scenario, seed: int, planted: bool, server: ChatServer, folder: Path) -> Outcome:
    """Ask, read and score once. ``planted`` False: nobody is treated otherwise, and everybody is
    declined equally often."""
    probe = scenario.build(folder)
    calls = list(probe.calls(scenario.language, seed))
    asked = [*calls, *_follow_ups(probe, calls, seed)]
    minds = scenario.minds(asked, random.Random(f"{scenario.id} {seed} {planted}"), planted)
    server.becomes(
        Personality(
            rules=(),
            otherwise=lambda text, chance: minds[text](chance),
            faults=faults_of(scenario, calls, planted),
            seed=seed,
        )
    )
    readings = _ask(probe, calls, server, seed)
    again = [c for r in readings if (c := probe.follow_up(r, seed)) is not None]
    readings += _ask(probe, again, server, seed)
    result = probe.score(readings, scenario.language, seed)
    truths = scenario.truths if planted else dict.fromkeys(scenario.truths, 0.0)
    first = next(iter(truths))
    figures = {name: figure_of(result, name) for name in truths}
    low, high = scenario.naive(readings)
    return Outcome(
        {name: _covers(figures[name], truth) for name, truth in truths.items()},
        low <= truths[first] <= high,
        {name: figure.value for name, figure in figures.items()},
        {t.id: t.verdict is VerdictKind.DISPARITY for t in result.tests},
        wrong_counts(scenario, asked, readings, result, server.played),
        not result.usable,
        _by_behaviour(server.played),
    )


def faults_of(scenario: Scenario, calls: Sequence[Call], planted: bool) -> tuple[Fault, ...]:
    """The scenario's faults, and refusals: 40 % against 5 % where a gap is planted, else 8 %."""
    if not planted:
        return (*scenario.faults, Fault("refuse_en", 0.08))
    where = scenario.gap(calls)
    return (*scenario.faults, Fault("refuse_en", 0.05), Fault("refuse_field", 0.35, where))


def figure_of(result: ProbeResult, name: str) -> Figure:
    """The index, a figure, or the effect of a test."""
    if name == "index":
        return result.index
    return result.figure(name) or next(t.effect for t in result.tests if t.id == name)


def wrong_counts(
    scenario: Scenario,
    asked: Sequence[Call],
    readings: Sequence[Reading],
    result: ProbeResult,
    played: Played,
) -> str:
    """The first count that is not what the server played, "" where all are: statuses by arm in the
    result's tallies, and replies that name another model than was asked for."""
    arms = {text_of(call): tally_of(scenario, call) for call in asked}
    expected: Counter[tuple[str, Status]] = Counter()
    for (text, behaviour), times in played.items():
        if behaviour in ENDS:
            expected[arms[text], ENDS[behaviour]] += times
    told = Counter(
        {(t.arm, status): n for t in result.tallies for status, n in t.counts.items() if n}
    )
    for place in sorted({*expected, *told}):
        if expected[place] != told[place]:
            return f"{place[0]}, {place[1]}: played {expected[place]}, counted {told[place]}"
    others = sum(r.model == OTHER_MODEL for r in readings)
    wrong = sum(n for (_, behaviour), n in played.items() if behaviour == "wrong_model")
    return "" if others == wrong else f"another model: played {wrong}, counted {others}"


def tally_of(scenario: Scenario, call: Call) -> str:
    """The tally's name; second questions have tallies of their own."""
    return scenario.arm_of(call) + (", asked again" if call.stage != "main" else "")


def text_of(call: Call) -> str:
    """A call's conversation as the server sees it."""
    return "\n".join(message.content for message in call.messages)


def _ask(probe: Probe, calls: Sequence[Call], server: ChatServer, seed: int) -> list[Reading]:
    endpoint = Endpoint(server.url, "asked-for", concurrency=4, max_attempts=12)
    replies = ask_all(calls, endpoint, Abilities(), MemoryJournal(), seed=seed)
    return [probe.read(call, replies[call.key(endpoint.name)]) for call in calls]


def _follow_ups(probe: Probe, calls: Sequence[Call], seed: int) -> list[Call]:
    declined = (Reading(call, Status.REFUSED, reason="declined") for call in calls)
    return [c for r in declined if (c := probe.follow_up(r, seed)) is not None]


def _covers(figure: Figure, truth: float) -> bool | None:
    span = figure.interval
    return None if span is None else span.low - 1e-12 <= truth <= span.high + 1e-12


def _by_behaviour(played: Played) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, behaviour), times in played.items():
        found[behaviour] += times
    return found
