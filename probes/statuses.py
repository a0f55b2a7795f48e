"""How a reply ended: the first word of every probe's reading, the same for all of them."""

from __future__ import annotations

import re

from probes.calls import Reply, Status
from probes.loose_json import json_in
from probes.refusals import refusal_in

__all__ = ["json_in", "spoken", "status_of"]
FILTER_WORDS = frozenset(
    {"content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "spii",
     "sensitive", "risk", "moderation", "guardrail_intervened"}
)  # fmt: skip
"""Finish reasons by which makers say that a filter cut the reply."""
CUT_WORDS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
REFUSAL_WORDS = frozenset({"refusal"})
_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_THOUGHT_END = re.compile(r"\A.*?</(?:think|thinking|thought|reasoning)>", re.DOTALL)


def spoken(text: str) -> str:
    """``text`` without the reasoning that some servers leave in it between tags, stripped. A model
    whose template opens the tag itself sends only the closing one."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text)).strip()


def status_of(reply: Reply, language: str, open_ended: bool = False) -> tuple[Status, str]:
    """The status, and why in one sentence ("" for ANSWERED).

    Refusals are looked for in many languages whatever ``language`` is: models decline in English
    to questions in any other. ``open_ended`` (see ``Sampling``): filling the budget is no fault.
    ANSWERED means that there are words to read; whether they have the form asked for is the
    probe's to say.
    """
    finish = (reply.finish_reason or "").lower()
    if reply.filtered or finish in FILTER_WORDS:
        return Status.FILTERED, reply.error or f"a content filter ended it ({finish or 'flagged'})"
    if reply.error:
        return Status.ERRORED, reply.error
    words = spoken(reply.text)
    declined = _declined(reply, finish, words, language)
    if declined:
        return Status.REFUSED, declined
    if not words:
        return _without_words(reply, finish)
    if finish in CUT_WORDS and not open_ended:
        return Status.TRUNCATED, "the budget of tokens ended it"
    return Status.ANSWERED, ""


def _declined(reply: Reply, finish: str, words: str, language: str) -> str:
    if reply.refusal.strip() or finish in REFUSAL_WORDS:
        return "declined in the field for refusals"
    declined = refusal_in(words, language)
    return f"declined in words ({declined})" if declined else ""


def _without_words(reply: Reply, finish: str) -> tuple[Status, str]:
    hidden, written = reply.reasoning_tokens or 0, reply.completion_tokens or 0
    allowed = next(
        (
            reply.sent[name]
            for name in ("max_tokens", "max_completion_tokens")
            if name in reply.sent
        ),
        None,
    )
    used_up = isinstance(allowed, int) and max(hidden, written) >= 0.95 * allowed
    if hidden and (finish in CUT_WORDS or used_up):
        return Status.TRUNCATED, f"empty: hidden reasoning took {hidden} tokens of the budget"
    if _THOUGHT.search(reply.text) and (finish in CUT_WORDS or used_up):
        return Status.TRUNCATED, "empty: the budget of tokens ended it within its reasoning"
    if finish in CUT_WORDS:
        return Status.TRUNCATED, "empty: the budget of tokens ended it before any word"
    return Status.UNPARSABLE, "the reply is empty"
