"""What an answer that is no reply means: ask again, change the question, or stop asking.

Sources: the error codes that OpenAI, Azure, DashScope, DeepSeek, Zhipu, Moonshot, Mistral, OpenRouter
and Google's compatible endpoint document, and the shapes of FastAPI (vLLM) and llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from domain.redaction import redact
from domain.retry import is_retryable, named_wait
from probes.asking.body import TOGETHER, TOKENS

TEXT_BYTES = 20_000
LINE = 300
_FILTER_CODES = re.compile(
    r"content_?filter(?:ed)?|content_?policy_?violation|responsible_?ai_?policy_?violation"
    r"|moderation_?blocked|moderation_?error|data_?inspection_?failed|sensitive_?content(?:_?detected)?"
    r"|input_?text_?sensitive\w*|output_?text_?sensitive\w*|prohibited_?content|censorship_?blocked"
    r"|guardrail\w*|safety_?violation|content_?blocked|\b1301\b|blocked_by_safety|unsafe_?content",
    re.IGNORECASE,
)
_FILTER_WORDS = re.compile(
    r"content exists risk|content management policy|inappropriate content|data inspection"
    r"|rejected (?:as a result of|by) (?:our|the) safety system|flagged (?:as|by|for|under) "
    r"|(?:prompt|request|input|response|output) (?:was |is )?blocked (?:due to|by|because of)[^.]{0,40}"
    r"(?:safety|content|prohibited|policy|moderation)|triggered[^.]{0,40}content (?:filter|management)"
    r"|requires moderation|violat\w+[^.]{0,30}(?:content|usage) polic|内容(?:存在|包含)?(?:安全)?风险|敏感内容|不安全或敏感",
    re.IGNORECASE,
)
_SPENT_CODES = re.compile(
    r"insufficient_?quota|billing_hard_limit_reached|insufficient_?(?:balance|credits?|funds)"
    r"|arrearage|payment_?required|account_?deactivated|billing_not_active|\b1113\b",
    re.IGNORECASE,
)
_SPENT_WORDS = re.compile(
    r"insufficient (?:balance|credit|funds)|exceeded your current quota|credit balance is too low"
    r"|out of credits|billing hard limit|余额不足|欠费",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model_?not_?found|unknown_?model|model_?not_?exist|invalid_?model\b", re.I
)
_TOO_LONG = re.compile(
    r"context_?length|maximum context|context (?:size|window)|too many tokens|prompt is too long"
    r"|exceeds? the (?:available|maximum) context",
    re.IGNORECASE,
)
_CUT = re.compile(r"could not finish the message because max_tokens", re.IGNORECASE)
"""A reasoning model's way to say that its reasoning took all."""
_SYSTEM_ROLE = re.compile(
    r"(?:system|developer)['\"`]? (?:role|message|instruction|prompt)s?|role[^.]{0,30}['\"`]system"
    r"|system role|roles must alternate|['\"`]system['\"`] (?:is )?not",
    re.IGNORECASE,
)
_MASKED = re.compile(r"[\w-]{2,}\*{3,}[\w*-]*|\*{4,}[\w-]+")
"""A key of which a maker shows the ends: they are ends of a key all the same."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """``kind``: "filtered" is an outcome; "stop" would meet every call alike; "parameter" names one
    to leave out; "cut" tells that the budget of tokens ended before any word; "retry" may go better after ``wait`` seconds (None: the server names none);
    "fatal" is this call's own. ``sentence`` is one line without keys."""

    kind: Literal["filtered", "stop", "parameter", "cut", "retry", "fatal"]
    sentence: str
    parameter: str = ""
    wait: float | None = None


def judge(
    status: int, headers: Mapping[str, str], found: Any, text: str, sent: Mapping[str, Any],
    secrets: tuple[str, ...],
) -> Trouble:  # fmt: skip
    """The trouble in an answer of ``status`` whose body is ``text`` (as JSON ``found``, None where
    it is none). ``sent`` are the parameters of the request."""
    text = text[:TEXT_BYTES]
    codes, message = " ".join(_codes(found)), _message(found) or _title(text)
    words = f"{codes} {message}"
    sentence = one_line(f"HTTP {status}: {message}".rstrip(": "), secrets)
    wait = named_wait(headers, found, text)
    if (
        status == 451
        or _FILTER_CODES.search(codes)
        or _FILTER_WORDS.search(words)
        or _flagged(found)
    ):
        # Before the status: one gateway's filter is a 429, another's a 403
        return Trouble("filtered", f"content filter: {sentence}")
    if stopped := _stop(status, codes, message, wait):
        return Trouble("stop", f"{stopped} ({sentence})" if status != 401 else stopped)
    if status == 400 and _CUT.search(message):
        return Trouble("cut", sentence)
    if status in (400, 404, 422, 501) and not _TOO_LONG.search(words):
        name = _parameter(found, words, sent)
        if name:
            return Trouble("parameter", sentence, name)
    if is_retryable(status, headers):
        return Trouble("retry", sentence, wait=wait)
    return Trouble("fatal", sentence)


def one_line(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` in one line of at most 300 characters, without keys."""
    clean = _MASKED.sub("[key]", redact(text[:TEXT_BYTES], secrets))
    flat = " ".join("".join(c if c.isprintable() else " " for c in clean).split())
    return flat if len(flat) <= LINE else flat[: LINE - 1] + "…"


def _stop(status: int, codes: str, message: str, wait: float | None) -> str:
    if status == 401:  # its message may show parts of the key
        return "HTTP 401: the key is not accepted"
    if 300 <= status < 400:
        return "the address leads elsewhere, and redirects are not followed"
    # One maker says "exceeded your current quota" of a minute's quota too, and names the wait then
    if (
        status == 402
        or _SPENT_CODES.search(codes)
        or (_SPENT_WORDS.search(message) and wait is None)
    ):
        return "no credit is left"
    if status == 403:
        return "access is denied"
    if _UNKNOWN_MODEL.search(codes):
        return "the model is not known there"
    return ""


def _error(found: Any) -> Mapping[str, Any]:
    if isinstance(found, list) and found:  # one maker wraps its errors in a list
        found = found[0]
    if not isinstance(found, Mapping):
        return {}
    error = found.get("error")
    return error if isinstance(error, Mapping) else found


def _codes(found: Any) -> Iterator[str]:
    """Every code and type in the error, inner ones included."""
    error: Any = _error(found)
    for _ in range(4):
        if not isinstance(error, Mapping):
            return
        yield from (str(error[n]) for n in ("code", "type", "status", "reason") if error.get(n))
        error = error.get("innererror") or error.get("inner_error") or error.get("metadata")


def _message(found: Any) -> str:
    error = _error(found)
    if isinstance(found, Mapping) and isinstance(found.get("error"), str):
        return str(found["error"])
    for name in ("message", "msg", "detail", "error_msg"):
        value = error.get(name)
        if value:
            return str(value)
    return ""


def _title(text: str) -> str:
    title = re.search(r"<title[^>]*>(.{1,200}?)</title>", text, re.IGNORECASE | re.DOTALL)
    return title[1] if title else text


def _flagged(found: Any) -> bool:
    """A router's moderation: it tells what it flagged beside its code."""
    metadata = _error(found).get("metadata")
    return isinstance(metadata, Mapping) and bool(
        metadata.get("flagged_input") or metadata.get("reasons")
    )


def _parameter(found: Any, words: str, sent: Mapping[str, Any]) -> str:
    """The parameter to change: one that was sent and that the error names. The name of the budget
    of tokens counts only where the error tells the other name or does not know this one: a budget
    that is too large must not become none at all."""
    named = str(_error(found).get("param") or "").split(".")[0].partition("[")[0]
    place = _places(found)
    tokens = next((name for name in TOKENS if name in sent), "")
    if tokens:
        unknown = re.search(
            r"unsupported param|not supported|unknown|unrecognized|unrecognised|not permitted|unexpected"
            r"|cannot find field|no such|extra_forbidden|not allowed|use ['\"`]?max", words, re.IGNORECASE
        )  # fmt: skip
        mentions = tokens in (named, place) or re.search(rf"(?<!\w){tokens}(?!\w)", words)
        if mentions and unknown:
            return tokens
    others = [name for name in sent if name not in TOKENS and name != "system_role"]
    for name in (named, place):
        if name in others:
            return name
    by_words = [name for name in others if _names(name, words)]
    if by_words:
        # "temperature and top_p cannot both be given": the second is the one to leave out
        return by_words[-1] if not set(by_words) <= set(TOGETHER) else by_words[0]
    if "system_role" not in sent and _SYSTEM_ROLE.search(words):
        return "system_role"
    return ""


def _names(parameter: str, words: str) -> bool:
    """Whether ``words`` speak of it; "stop" and "seed" are words of any sentence as well."""
    plain = re.escape(parameter)
    if parameter in ("stop", "seed"):
        return bool(
            re.search(rf"['\"`]{plain}['\"`]|(?<!\w){plain} param|param\w*:? {plain}\b", words)
        )
    return bool(re.search(rf"(?<!\w){plain}(?!\w)", words))


def _places(found: Any) -> str:
    """Where a validator found fault: [{"loc": ["body", "seed"]}]."""
    details = found.get("detail") if isinstance(found, Mapping) else None
    if isinstance(found, Mapping) and not isinstance(details, list):
        inner = _error(found).get("message")
        details = inner.get("detail") if isinstance(inner, Mapping) else None
    if not isinstance(details, list):
        return ""
    for detail in details:
        place = detail.get("loc") if isinstance(detail, Mapping) else None
        if isinstance(place, list) and len(place) > 1:
            return str(place[1])
    return ""
