"""The body of a request, from what a call wishes for and what the endpoint is known to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probes.asking.abilities import Abilities, TokensParameter
from probes.calls import Call, Reply

CHAT, COMPLETION = "chat/completions", "completions"
TOKENS: tuple[TokensParameter, TokensParameter] = ("max_tokens", "max_completion_tokens")
SYSTEM = "system_role"
"""Name under which the role "system" is dropped: its text then opens the user's first message."""
TOGETHER: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprobs", "top_logprobs"),
    "top_logprobs": ("logprobs", "top_logprobs"),
}
"""Parameters that mean nothing without each other."""


@dataclass(slots=True)
class Taken:
    """What the endpoint takes, as it is learnt on the way. Shared by all calls of a run."""

    tokens_parameter: TokensParameter
    dropped: dict[str, str] = field(default_factory=dict)
    """Parameters that are no longer sent, with the reason in one sentence."""

    @classmethod
    def of(cls, abilities: Abilities) -> Taken:
        """As ``abilities`` found it."""
        names = {
            "temperature": abilities.temperature,
            "top_p": abilities.top_p,
            "seed": abilities.seed,
            "logprobs": abilities.logprobs,
            "response_format": abilities.json_object,
            SYSTEM: abilities.system_role,
        }
        taken = cls(abilities.tokens_parameter)
        for name, able in names.items():
            if able is False:
                taken.drop(name, f"the endpoint does not take '{name}'")
        return taken

    def drop(self, name: str, reason: str) -> None:
        """Send ``name`` no more, nor what means nothing without it."""
        for each in TOGETHER.get(name, (name,)):
            self.dropped.setdefault(each, reason)

    def other_tokens_parameter(self) -> TokensParameter:
        """The name that is not in use."""
        return TOKENS[1 - TOKENS.index(self.tokens_parameter)]


def path_of(call: Call) -> str:
    """Where ``call`` is sent, below the endpoint's address."""
    return CHAT if call.kind == "chat" else COMPLETION


def wished(call: Call) -> dict[str, Any]:
    """The parameters that ``call`` wishes for, under their names in the protocol."""
    wish = call.sampling
    found: dict[str, Any] = {"max_tokens": wish.max_tokens}
    for name in ("temperature", "top_p", "seed"):
        if (value := getattr(wish, name)) is not None:
            found[name] = value
    if wish.stop:
        found["stop"] = list(wish.stop)
    if wish.json_object and call.kind == "chat":
        found["response_format"] = {"type": "json_object"}
    if wish.top_logprobs and call.kind == "chat":
        found |= {"logprobs": True, "top_logprobs": wish.top_logprobs}
    elif wish.top_logprobs:
        found["logprobs"] = wish.top_logprobs
    return found


def parameters(call: Call, wish: Mapping[str, Any], taken: Taken) -> dict[str, Any]:
    """Those of ``wish`` that are sent. ``system_role`` False tells that the text of the system
    message went into the user's."""
    sent = {name: value for name, value in wish.items() if name not in taken.dropped}
    if "max_tokens" in sent and call.kind == "chat":
        sent[taken.tokens_parameter] = sent.pop("max_tokens")
    if SYSTEM in taken.dropped and any(m.role == "system" for m in call.messages):
        sent[SYSTEM] = False
    return sent


def body(call: Call, model: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """What goes over the wire: the conversation of ``call`` and nothing of any other."""
    told = {name: value for name, value in sent.items() if name != SYSTEM}
    if call.kind == "completion":
        return {"model": model, "prompt": call.prompt, **told}
    messages = [{"role": m.role, "content": m.content} for m in call.messages]
    if sent.get(SYSTEM) is False:
        messages = _without_system(messages)
    return {"model": model, "messages": messages, **told}


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    said = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    rest = [dict(m) for m in messages if m["role"] != "system"]
    first = next((m for m in rest if m["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": said}, *rest]
    first["content"] = f"{said}\n\n{first['content']}"
    return rest


def not_sent(reply: Reply) -> tuple[str, ...]:
    """The parameters that ``reply``'s call wished for and that were not sent, by name."""
    if not reply.sent:
        return ()
    names = [n for n in reply.requested if n not in reply.sent and n not in TOKENS]
    if not any(name in reply.sent for name in TOKENS):
        names += [name for name in TOKENS if name in reply.requested]
    return (*names, SYSTEM) if reply.sent.get(SYSTEM) is False else tuple(names)
