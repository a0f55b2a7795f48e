"""What an endpoint takes: found by a few small calls, since none of them says so reliably."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probes.asking.endpoint import Endpoint

TokensParameter = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class Abilities:
    """True: taken; False: refused, or taken and not done; None: not known, so it is sent.

    ``completion`` is the endpoint that continues a text without a conversation. ``logprobs`` True
    means that they came. ``seed`` is False where a seed makes every sample the same one.
    ``model`` and ``fingerprint`` are what the replies named. ``notes`` are one sentence each.
    """

    temperature: bool | None = None
    top_p: bool | None = None
    seed: bool | None = None
    logprobs: bool | None = None
    completion: bool | None = None
    json_object: bool | None = None
    system_role: bool | None = None
    tokens_parameter: TokensParameter = "max_tokens"
    model: str | None = None
    fingerprint: str | None = None
    notes: tuple[str, ...] = ()


def find_abilities(endpoint: Endpoint) -> Abilities:
    """Ask ``endpoint`` about ten small things (16 tokens each). Runs an event loop of its own.

    Raises LikenessError in one line where the plainest question gets no reply."""
    from probes.asking.looking import look  # it asks with what is built upon this file

    return look(endpoint)
