"""Finds out what an endpoint takes, by asking small things."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from domain.errors import LikenessError
from probes.asking.abilities import Abilities
from probes.asking.body import SYSTEM, Taken
from probes.asking.endpoint import Endpoint
from probes.asking.pace import Pace
from probes.asking.sender import Sender
from probes.asking.spending import Spending
from probes.calls import Call, Message, Reply, Sampling

TOKENS_ASKED = 16
JSON_QUESTION = 'Reply in JSON, with the object {"answer": "ok"} and nothing else.'


def look(endpoint: Endpoint) -> Abilities:
    """See ``abilities.find_abilities``."""
    with asyncio.Runner() as runner:
        return runner.run(_find(endpoint))


async def _find(endpoint: Endpoint) -> Abilities:
    looking = _Looking(endpoint)
    try:
        await looking.plain()
        await looking.parameters()
        completion = await looking.completion()
        seed = await looking.seed()
    finally:
        await looking.sender.close()
    dropped, first = looking.taken.dropped, looking.first
    return Abilities(
        temperature="temperature" not in dropped,
        top_p="top_p" not in dropped,
        seed=seed,
        logprobs=looking.logprobs,
        completion=completion,
        json_object="response_format" not in dropped,
        system_role=SYSTEM not in dropped,
        tokens_parameter=looking.taken.tokens_parameter,
        model=first.model,
        fingerprint=first.fingerprint,
        notes=tuple(looking.notes),
    )


class _Looking:
    """Small calls, and what was learnt from each."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.taken = Taken.of(Abilities())
        self.notes: list[str] = []
        self.logprobs = False
        self.first = Reply()
        pace = Pace(endpoint.rate, lambda: False)
        self.sender = Sender(endpoint, self.taken, pace, Spending(endpoint, None, ()))

    async def plain(self) -> None:
        """The plainest question there is: without an answer to it there is nothing to audit."""
        self.first = reply = await self._ask(
            "Reply with the word OK.", Sampling(None, None, TOKENS_ASKED)
        )
        if reply.error and not reply.filtered:
            raise LikenessError(f"the endpoint cannot be asked: {reply.error}")
        if reply.reasoning_tokens:
            self.notes.append(
                f"the model reasons in hiding ({reply.reasoning_tokens} tokens of a one-word answer): "
                "'max_tokens' must leave room for that"
            )

    async def parameters(self) -> None:
        """All parameters at once: the sender leaves out what is refused by name. Where a refusal
        names none, each alone."""
        everything = Sampling(0.7, 0.9, TOKENS_ASKED, seed=1, json_object=True, top_logprobs=2)
        reply = await self._ask(JSON_QUESTION, everything, system="You are brief.")
        self.logprobs = bool(reply.top_logprobs)
        if reply.error and not reply.filtered:
            await self._one_by_one()
        elif "logprobs" not in self.taken.dropped and not self.logprobs:
            self.notes.append("'logprobs' is taken in silence, and none came")
        dropped = self.taken.dropped.items()
        self.notes += [f"{name}: {why}" for name, why in dropped if name != "top_logprobs"]

    async def _one_by_one(self) -> None:
        none = Sampling(None, None, TOKENS_ASKED)
        singles = {
            "temperature": replace(none, temperature=0.7),
            "top_p": replace(none, top_p=0.9),
            "seed": replace(none, seed=1),
            "response_format": replace(none, json_object=True),
            "logprobs": replace(none, top_logprobs=2),
            SYSTEM: none,
        }
        for name, sampling in singles.items():
            if name in self.taken.dropped:
                continue
            system = "You are brief." if name == SYSTEM else ""
            reply = await self._ask(JSON_QUESTION, sampling, system=system)
            if reply.error and not reply.filtered:
                self.taken.drop(name, reply.error)
            elif name == "logprobs":
                self.logprobs = bool(reply.top_logprobs)

    async def completion(self) -> bool:
        """Whether a text is continued without a conversation."""
        call = Call("abilities", "completion", "-", kind="completion", prompt="The nurse said that")
        reply = await self.sender.send(replace(call, sampling=Sampling(None, None, TOKENS_ASKED)))
        return not reply.error

    async def seed(self) -> bool:
        """Whether a seed can be sent without turning every sample into the same one."""
        if "seed" in self.taken.dropped:
            return False
        texts = [await self._vary(seed) for seed in (11, 11, 22, 33)]
        if texts[0] != texts[1]:
            self.notes.append("seed: taken, but one seed gave two different answers")
        if None in texts or len(set(texts)) > 1:
            return True
        texts += [await self._vary(seed) for seed in (44, 55)]
        free = {await self._vary(None) for _ in range(6)}
        if len(free | set(texts)) == 1:
            self.notes.append(
                "answers do not vary at temperature 1: a cache or a fixed sampler may turn "
                "repeats into one sample"
            )
        # A model of few words may give one answer to five seeds by chance; not one of many words
        if len(set(texts)) > 1 or len(free) < 4:
            return True
        self.notes.append(
            "seed: five seeds gave one answer and no seed gave others: a seed fixes the sample, "
            "so none is sent"
        )
        return False

    async def _vary(self, seed: int | None) -> str | None:
        question = "Write a random word and a random number of six digits, nothing else."
        reply = await self._ask(question, Sampling(1.0, None, TOKENS_ASKED, seed=seed))
        return None if reply.error else reply.text

    async def _ask(self, question: str, sampling: Sampling, system: str = "") -> Reply:
        first = (Message("system", system),) if system else ()
        messages = (*first, Message("user", question))
        return await self.sender.send(
            Call("abilities", question, "-", messages=messages, sampling=sampling)
        )
