"""Reads an answer of the server as a reply: nothing is repaired, nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.calls import Call
from probes.statuses import FILTER_WORDS

ECHOED = (
    "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "service_tier", "provider",
    "reasoning_effort",
)  # fmt: skip
"""Parameters and facts that some servers tell at the top of their answers."""
INTERRUPTED = frozenset({"insufficient_system_resource", "error", "abort", "network_error"})
"""Finish reasons by which a server says that it broke off: no reply, and worth another try."""


class NoReply(Exception):
    """The answer does not have the form of a reply; its text says in what way."""


def read(call: Call, answer: Any) -> dict[str, Any]:
    """The fields of a Reply that ``answer`` (a 200's JSON) tells. Raises NoReply."""
    if not isinstance(answer, Mapping):
        raise NoReply("the answer is no JSON object")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        if _filter_struck(answer):
            return {**_about(answer), "filtered": True}
        raise NoReply("the answer has no choices")
    choice = choices[0]
    finish = _text(choice.get("finish_reason")) or None
    if (finish or "").lower() in INTERRUPTED:
        raise NoReply(f"the server broke off ({finish})")
    found = _about(answer)
    found["finish_reason"] = finish
    found["filtered"] = (finish or "").lower() in FILTER_WORDS or _filter_struck(choice)
    if call.kind == "completion":
        found["text"] = _text(choice.get("text"))
    else:
        message = choice.get("message")
        if not isinstance(message, Mapping):
            message = {}
        found["text"] = _content(message.get("content"))
        found["refusal"] = _text(message.get("refusal"))
    found["top_logprobs"] = top_logprobs(choice.get("logprobs"))
    return found


def _about(answer: Mapping[str, Any]) -> dict[str, Any]:
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("completion_tokens_details")
    details = details if isinstance(details, Mapping) else usage
    return {
        "model": _text(answer.get("model")) or None,
        "fingerprint": _text(answer.get("system_fingerprint")) or None,
        "prompt_tokens": _count(usage.get("prompt_tokens")),
        "completion_tokens": _count(usage.get("completion_tokens")),
        "reasoning_tokens": _count(details.get("reasoning_tokens")),
        "returned": {
            name: value
            for name in ECHOED
            if isinstance(value := answer.get(name), str | int | float) and value != ""
        },
    }


def top_logprobs(told: Any) -> tuple[Mapping[str, float], ...]:
    """The most likely tokens at each place, in the chat form or the older one of completions; ()
    where none came. Of two tokens of one spelling the likelier is kept."""
    if not isinstance(told, Mapping):
        return ()
    content, old = told.get("content"), told.get("top_logprobs")
    if isinstance(content, list):
        return tuple(_place(part) for part in content if isinstance(part, Mapping))
    if isinstance(old, list):
        return tuple(
            {str(t): float(p) for t, p in part.items() if isinstance(p, int | float)}
            for part in old
            if isinstance(part, Mapping)
        )
    return ()


def _place(part: Mapping[str, Any]) -> dict[str, float]:
    listed = part.get("top_logprobs")
    found: dict[str, float] = {}
    for entry in listed if isinstance(listed, list) and listed else [part]:
        if isinstance(entry, Mapping) and isinstance(entry.get("logprob"), int | float):
            token, value = _text(entry.get("token")), float(entry["logprob"])
            found[token] = max(value, found.get(token, value))
    return found


def _filter_struck(part: Mapping[str, Any]) -> bool:
    """One maker's cloud tells in the answer what its filter did: to the reply, or to the prompt."""
    told = [part.get("content_filter_results"), part.get("content_filter_result")]
    prompts = part.get("prompt_filter_results")
    if isinstance(prompts, list):
        told += [p.get("content_filter_results") for p in prompts if isinstance(p, Mapping)]
    return any(
        isinstance(verdict, Mapping) and verdict.get("filtered") is True
        for results in told
        if isinstance(results, Mapping)
        for verdict in results.values()
    )


def _content(told: Any) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(told, list):
        return "".join(_text(p.get("text")) for p in told if isinstance(p, Mapping))
    return _text(told)


def _text(told: Any) -> str:
    """Half a surrogate pair, which JSON can spell and no database takes, becomes a question mark."""
    return told.encode("utf-8", "replace").decode() if isinstance(told, str) else ""


def _count(told: Any) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) and told >= 0 else None
