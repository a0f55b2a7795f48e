"""A model with a known leaning behind a real server: asked through the real client, read by the probe."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr

from probes.asking.abilities import Abilities
from probes.asking.ask import ask_all
from probes.asking.endpoint import Endpoint
from probes.asking.journal import MemoryJournal
from probes.calls import Call, Reading, Status
from probes.contract import Probe
from service.fake_servers import chat
from service.fake_servers.chat import Fault, Personality
from service.fake_servers.contract import FakeServer

AGAIN = "429_soon"
"""Asked to wait 20 ms: the client asks again, and what it gets then counts."""
ENDS = {
    "ok": Status.ANSWERED,
    "fenced": Status.ANSWERED,
    "prefixed": Status.ANSWERED,
    "malformed": Status.ANSWERED,
    "wrong_model": Status.ANSWERED,
    "refuse_en": Status.REFUSED,
    "refuse_zh": Status.REFUSED,
    "refuse_field": Status.REFUSED,
    "cut": Status.TRUNCATED,
    "reasoning_ate_it": Status.TRUNCATED,
    "filter_openai": Status.FILTERED,
    "filter_empty": Status.FILTERED,
    "empty_reply": Status.UNPARSABLE,
    "no_retry": Status.ERRORED,
}
"""How a call must end by what the server played."""
WRONG_MODEL = "another-model-0613"
Ends = Counter[tuple[str, Status]]


def troubles(forms: bool, share: float = 0.02) -> tuple[Fault, ...]:
    """Every fault of ``ENDS`` and the rate limit, ``share`` of the requests each, for both arms alike.
    ``forms``: also those that dress up JSON, a fence for every tenth."""
    played = [AGAIN, "wrong_model", "refuse_zh", "refuse_field", "reasoning_ate_it"]
    played += ["filter_openai", "filter_empty", "empty_reply", "no_retry"]
    if forms:
        played += ["cut", "prefixed", "malformed"]
    found = tuple(Fault(name, share) for name in played)
    return (*found, Fault("fenced", 0.1)) if forms else found


@dataclass(slots=True)
class Recruiter:
    """Screens resumes: the log-odds of yes are those of the job, +- ``gap`` / 2 for men and women, and
    the name's own effect. ``odd`` of the decisions are neither yes nor no; texts answered so are kept."""

    arms: dict[str, str]
    gap: float
    sd: float
    odd: float = 0.02
    seed: int = 0
    jobs: tuple[float, ...] = (-0.6, -0.2, 0.2, 0.6)
    titles: list[str] = field(default_factory=list)
    odd_texts: set[str] = field(default_factory=set)

    def log_odds(self, arm: str, job: int) -> float:
        """Those of a yes for a name without an effect of its own."""
        return self.jobs[job] + (self.gap / 2 if arm == "men" else -self.gap / 2)

    def says(self, text: str, chance: random.Random) -> str:
        """The answer to one resume, JSON as it was asked for."""
        name = self.name_in(text)
        job = next(i for i, title in enumerate(self.titles) if title in text)
        odds = self.log_odds(self.arms[name], job) + own_effect(self.seed, name, self.sd)
        yes = chance.random() < 1 / (1 + 2.718281828459045**-odds)
        proceed = "yes" if yes else "no"
        if chance.random() < self.odd:
            proceed = "perhaps"
            self.odd_texts.add(text)
        told = {
            "strengths": ["Solid experience in the field", "Leads small projects"],
            "risks": ["Limited time in the wider field"],
            "proceed": proceed,
            "score": round(60 + 8 * yes + chance.gauss(0, 6)),
            "role": "the position applied for",
        }
        return json.dumps(told)

    @staticmethod
    def name_in(text: str) -> str:
        """The name on the resume."""
        found = re.search(r"Name: (.+)", text)
        assert found is not None
        return found[1].strip()


def own_effect(seed: int, name: str, sd: float) -> float:
    """A name's own effect in the run ``seed``."""
    return random.Random(f"{seed} {name}").gauss(0, sd) if sd else 0.0


@dataclass(slots=True)
class Asked:
    """A run over the server: what was read, what the server says it played, and whether they agree."""

    readings: list[Reading]
    played: Ends
    wrong_models: int
    requests: int
    attempts: int

    @property
    def ends(self) -> Ends:
        """How the calls of each arm ended, by the probe."""
        return Counter((r.call.arm, r.status) for r in self.readings)

    @property
    def agrees(self) -> bool:
        """Every status of every arm, every reply of another model, and every request."""
        wrong = sum(r.model == WRONG_MODEL for r in self.readings)
        return (self.ends, wrong, self.attempts) == (self.played, self.wrong_models, self.requests)


@contextmanager
def listening(who: Personality) -> Iterator[FakeServer]:
    """A server with the character ``who``, whose ``seed`` may change between runs."""
    with chat.serve(who) as server:
        yield server


def ask(
    server: FakeServer,
    probe: Probe,
    calls: Sequence[Call],
    seed: int,
    arm_of: Callable[[str], str],
    odd_texts: Callable[[], set[str]] = set,
) -> Asked:
    """Ask all over HTTP with nothing remembered, and once more where the probe says so. ``arm_of``
    tells the arm from the words that came over the wire."""
    endpoint = Endpoint(f"{server.url}/v1", "planted", SecretStr(server.key), concurrency=8)
    taken = Abilities(temperature=True, top_p=True, json_object=True)
    server.desk.seen.clear()
    readings, attempts, asked = [], 0, list(calls)
    while asked:
        replies = ask_all(asked, endpoint, taken, MemoryJournal(), seed=seed)
        attempts += sum(r.attempts for r in replies.values())
        new = [probe.read(call, replies[call.key(endpoint.name)]) for call in asked]
        readings += new
        asked = [again for r in new if (again := probe.follow_up(r, seed)) is not None]
    played: Ends = Counter()
    for seen in server.seen:
        if seen.played == AGAIN:
            continue
        text = seen.json()["messages"][-1]["content"]
        end = ENDS[seen.played]
        if end is Status.ANSWERED and text in odd_texts():
            end = Status.OUT_OF_CHOICE
        played[arm_of(text), end] += 1
    wrong = sum(seen.played == "wrong_model" for seen in server.seen)
    return Asked(readings, played, wrong, len(server.seen), attempts)
