"""The calls of a probe run one by one, and what they come to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, TypeVar

from probes.asking.body import not_sent
from probes.calls import Status
from service import secrets
from service.probe_questions import Answer
from service.report.probe_model import CallStats

T = TypeVar("T")


def replies_jsonl(answers: Iterable[Answer]) -> bytes:
    """One line a call in the order in which they were built: where it stands, what was asked and
    sent, what came back and what was read in it. No line holds a key."""
    lines = [json.dumps(_line(a), ensure_ascii=True, separators=(",", ":")) for a in answers]
    return secrets.hide_keys("".join(f"{line}\n" for line in lines)).encode()


def _line(answer: Answer) -> dict[str, Any]:
    call, reply, reading = answer.question.asked, answer.reply, answer.reading
    return {
        "probe": call.probe,
        "language": call.language,
        "condition": call.condition,
        "item": call.item,
        "arm": call.arm,
        "stage": call.stage,
        "repeat": call.repeat,
        "facts": dict(call.facts),
        "status": str(reading.status),
        "label": reading.label,
        "value": reading.value,
        "reason": reading.reason,
        "extras": dict(reading.extras),
        "messages": [asdict(message) for message in call.messages],
        "prompt": call.prompt,
        "text": reply.text,
        "refusal": reply.refusal,
        "error": reply.error,
        "http_status": reply.http_status,
        "finish_reason": reply.finish_reason,
        "requested": dict(reply.requested),
        "sent": dict(reply.sent),
        "returned": dict(reply.returned),
        "model": reply.model,
        "fingerprint": reply.fingerprint,
        "request_id": reply.request_id,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "reasoning_tokens": reply.reasoning_tokens,
        "top_logprobs": [_finite(place) for place in reply.top_logprobs],
        "attempts": reply.attempts,
        "latency_s": reply.latency_s,
        "cost": reply.cost,
        "at": reply.at,
    }


def _finite(logprobs: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no word for minus infinity."""
    return {token: value if value > -1e300 else None for token, value in logprobs.items()}


def call_stats(
    answers: Sequence[Answer], remembered: int, currency: str, stopped_by: str
) -> CallStats:
    """What asking came to. ``remembered`` replies were there before; ``currency`` is the price's,
    "" where none is known."""
    replies = [a.reply for a in answers]
    took = [r.latency_s for r in replies if r.latency_s is not None]
    costs = [r.cost for r in replies if r.cost is not None]
    return CallStats(
        asked=len(answers),
        remembered=remembered,
        attempts=sum(r.attempts for r in replies),
        statuses=_counted(a.reading.status for a in answers),
        reasons=_counted(a.reading.reason for a in answers if a.reading.status != Status.ANSWERED),
        models=_counted(r.model for r in replies if r.model),
        fingerprints=_counted(r.fingerprint for r in replies if r.fingerprint),
        dropped=_counted(name for r in replies for name in not_sent(r)),
        prompt_tokens=sum(r.prompt_tokens or 0 for r in replies),
        completion_tokens=sum(r.completion_tokens or 0 for r in replies),
        reasoning_tokens=sum(r.reasoning_tokens or 0 for r in replies),
        latency_median_s=median(took) if took else None,
        cost={currency: sum(costs)} if currency and costs else {},
        stopped_by=stopped_by,
    )


def _counted(values: Iterable[T]) -> dict[T, int]:
    return dict(Counter(values).most_common())
