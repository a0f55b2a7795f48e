"""What is asked of a model and what comes back: a call is one isolated conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, Self

Kind = Literal["chat", "completion"]
Role = Literal["system", "user", "assistant"]
PLAIN = "plain"
"""The condition in which nothing is added to the prompts."""


class Status(StrEnum):
    """How a reply ended. Only ``ANSWERED`` has a label or a value; none of the others is a score."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """The model declined in words, or in the field its maker has for that."""
    FILTERED = "filtered"
    """A content filter stood between: before the model or after it."""
    TRUNCATED = "truncated"
    """The budget of tokens was used up (by hidden reasoning perhaps) before the answer was whole."""
    UNPARSABLE = "unparsable"
    """Text came that does not have the form that was asked for."""
    OUT_OF_CHOICE = "out_of_choice"
    """It has the form, and names none of the choices that were given."""
    ERRORED = "errored"
    """No reply came: network, server, refusal of a parameter, budget of money."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters wished for. None leaves one to the server; what a server does not take is left out
    and recorded as such. ``top_logprobs`` asks for the log-probabilities (natural logarithm) of that
    many most likely tokens at each place. ``open_ended`` is for continuations: one that fills
    ``max_tokens`` is whole."""

    temperature: float | None = 0.7
    top_p: float | None = 0.9
    max_tokens: int = 256
    seed: int | None = None
    stop: tuple[str, ...] = ()
    json_object: bool = False
    top_logprobs: int = 0
    open_ended: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model. No two calls share a conversation.

    ``item`` names what is compared (a template with its cell, a resume, a benchmark's item): calls
    of one item differ in ``arm`` alone, and are sent close together in random order. ``repeat``
    counts from 0. ``condition`` is "plain", or what was added to every prompt. ``stage`` is "main",
    or "fallback" for a question that is asked because the first was declined. ``facts`` are what
    the analysis needs to know (template, occupation, name, ...); they are kept with the reply and
    never sent. ``prompt`` is for kind "completion", ``messages`` for kind "chat".
    """

    probe: str
    item: str
    arm: str
    repeat: int = 0
    language: str = "en"
    messages: tuple[Message, ...] = ()
    prompt: str = ""
    kind: Kind = "chat"
    sampling: Sampling = Sampling()
    condition: str = PLAIN
    stage: str = "main"
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str, str, str, str, str, int]:
        """What tells this call from every other of a run."""
        return (
            self.probe, self.language, self.item, self.arm, self.condition, self.stage, self.repeat,
        )  # fmt: skip

    def key(self, endpoint: str) -> str:
        """Hex digest under which its reply is kept. It covers ``endpoint`` (address and model),
        every word sent, every parameter wished for, and the place with the repeat: a repeat is
        never answered from another's reply."""
        sent: dict[str, Any] = {
            "endpoint": endpoint,
            "place": self.place,
            "kind": self.kind,
            "messages": [asdict(m) for m in self.messages],
            "prompt": self.prompt,
            "sampling": asdict(self.sampling),
        }
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()

    def under(self, condition: str, system: str = "", **sampling: Any) -> Self:
        """The same question with ``system`` before it and ``sampling`` changed."""
        first = (Message("system", system),) if system else ()
        prompt = (
            f"{system}\n\n{self.prompt}" if system and self.kind == "completion" else self.prompt
        )
        return replace(
            self,
            condition=condition,
            messages=first + self.messages if self.kind == "chat" else (),
            prompt=prompt,
            sampling=replace(self.sampling, **sampling),
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one call, as raw as it came; plain data that JSON can hold.

    ``text`` is the model's own words ("" where none came), ``refusal`` those in the field that a
    maker has for declining. ``finish_reason`` is the server's word. ``error`` is one line without
    keys, "" where a reply came; ``filtered`` that it (or the reply) was a content filter's doing.
    ``requested``, ``sent`` and ``returned`` are the parameters wished for, those in the body as
    sent, and those the reply tells of. ``model`` and ``fingerprint`` are what the reply names.
    ``top_logprobs`` has, for each generated token, the most likely tokens with their natural
    log-probabilities. ``latency_s`` is of the last attempt, ``waited_s`` what all took. ``cost`` is
    an estimate from the plan's price, None without one.
    """

    text: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    filtered: bool = False
    error: str = ""
    http_status: int | None = None
    model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    requested: Mapping[str, Any] = field(default_factory=dict)
    sent: Mapping[str, Any] = field(default_factory=dict)
    returned: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    top_logprobs: tuple[Mapping[str, float], ...] = ()
    attempts: int = 1
    latency_s: float | None = None
    waited_s: float | None = None
    cost: float | None = None
    at: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a probe made of a reply. ``label`` and ``value`` are None exactly when ``status`` is not
    ANSWERED, unless the probe reads only one of the two; ``reason`` says why in one sentence then.
    ``extras`` are further figures of the same reply."""

    call: Call
    status: Status
    label: str | None = None
    value: float | None = None
    reason: str = ""
    extras: Mapping[str, float | str] = field(default_factory=dict)
    model: str | None = None


def in_order(
    readings: Sequence[Reading], rank: Callable[[Call], int] = lambda call: 0
) -> list[Reading]:
    """The readings by ``rank``, within a rank by place: figures that are drawn by chance (bootstraps),
    tables and quotes must not depend on the order in which replies came."""
    return sorted(readings, key=lambda reading: (rank(reading.call), reading.call.place))
