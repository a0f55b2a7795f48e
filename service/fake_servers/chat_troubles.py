"""The errors and half answers of makers of language models, in their own shapes.

Sources: the error references of OpenAI, Azure, DashScope, DeepSeek, OpenRouter and Google.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFUSALS: Mapping[str, str] = {
    "refuse": "I'm sorry, but I can't assist with that request.",
    "refuse_en": "As an AI language model, I cannot rate people on such grounds.",
    "refuse_zh": "很抱歉，我无法回答这个问题。",
    "refuse_de": "Es tut mir leid, aber dabei kann ich Ihnen nicht helfen.",
}
_SLOW_DOWN = (
    "Rate limit reached for fake in organization org-fake on requests per min (RPM): Limit 3, Used 3, "
    "Requested 1. Please try again in 20ms."
)
_AZURE = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
    "Please modify your prompt and retry."
)
_CUT = (
    "Could not finish the message because max_tokens or model output limit was reached. Please try "
    "again with higher max_tokens."
)
Error = tuple[int, Any, Mapping[str, str]]
"""Status, body, headers."""


def error(
    http: int, message: str, kind: str | None, code: str | None, **more: Any
) -> Error:  # fmt: skip
    """An error in OpenAI's shape; ``more`` are further keys, or ``headers``."""
    headers = more.pop("headers", {})
    told = {"message": message, "type": kind, "param": None, "code": code, **more}
    return http, {"error": told}, headers


ERRORS: Mapping[str, Error] = {
    "429": error(
        429, _SLOW_DOWN, "requests", "rate_limit_exceeded", headers={"retry-after": "1"}
    ),
    "429_soon": error(
        429, "Too many requests", "requests", "rate_limit_exceeded", headers={"retry-after-ms": "20"}
    ),
    "429_sentence": error(429, _SLOW_DOWN, "requests", "rate_limit_exceeded"),
    "429_no_wait": error(429, "Too many requests", "requests", "rate_limit_exceeded"),
    "429_hour": error(429, "Slow down", "requests", "rate_limit_exceeded", headers={"retry-after": "3600"}),
    "insufficient_quota": error(
        429, "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota", "insufficient_quota",
    ),
    "no_balance": error(402, "Insufficient Balance", "unknown_error", "invalid_request_error"),
    "forbidden": error(403, "Country, region, or territory not supported", None, None),
    "no_retry": error(500, "It will not get better", "server_error", None, headers={"x-should-retry": "false"}),
    "too_long": error(
        400, "This model's maximum context length is 4097 tokens, however you requested 5000 (4744 in "
        "your prompt; 256 for max_tokens).", "invalid_request_error", "context_length_exceeded",
    ),
    "filter_azure": error(
        400, _AZURE, None, "content_filter", param="prompt", status=400,
        innererror={
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        },
    ),
    "filter_openai": error(
        400, "Your request was rejected as a result of our safety system.", "invalid_request_error",
        "content_policy_violation",
    ),
    "filter_dashscope": error(
        400, "Input data may contain inappropriate content.", "data_inspection_failed",
        "data_inspection_failed",
    ),
    "filter_deepseek": error(400, "Content Exists Risk", "invalid_request_error", "invalid_request_error"),
    "filter_429": error(429, "The request was filtered.", "content_filter", "content_filter",
                        headers={"retry-after": "1"}),
    "filter_router": (
        403,
        {"error": {"code": 403, "message": "Input was flagged",
                   "metadata": {"reasons": ["harassment"], "flagged_input": "...", "provider_name": "fake"}}},
        {},
    ),
    "filter_gemini": (
        400,
        [{"error": {"code": 400, "message": "The prompt was blocked due to safety: PROHIBITED_CONTENT",
                    "status": "INVALID_ARGUMENT"}}],
        {},
    ),
    "reasoning_400": error(400, _CUT, "invalid_request_error", None),
    "error_in_200": (200, {"error": {"code": 502, "message": "Provider returned error"}}, {}),
    "no_choices": (200, {"object": "chat.completion", "model": "fake", "choices": []}, {}),
    "loading": error(503, "Loading model", "unavailable_error", None),
}  # fmt: skip
BEHAVIOURS: Mapping[str, str] = {
    "refuse_en": "declines in English",
    "refuse_zh": "declines in Chinese",
    "refuse_de": "declines in German",
    "refuse_field": "declines in the field that a maker has for it, without content",
    "fenced": "the answer in a fence of backticks, as JSON is often sent",
    "prefixed": "a sentence, then the answer",
    "malformed": "JSON with single quotes and a comma too many",
    "empty_reply": "200 with no words, finished by itself",
    "thinks_aloud": "the reasoning between tags before the answer",
    "reasoning_ate_it": "200 with no words: hidden reasoning took the whole budget",
    "reasoning_400": "the same, as a 400",
    "cut": "an answer that the budget of tokens ended in the middle",
    "429_soon": "429 that names 20 ms in retry-after-ms",
    "429_sentence": "429 that names its wait in the message only",
    "429_no_wait": "429 that names no wait",
    "429_hour": "429 that asks for an hour",
    "insufficient_quota": "429 that no waiting cures: the credit is used up",
    "no_balance": "402: the credit is used up",
    "forbidden": "403: no access",
    "no_retry": "500 that says itself that asking again is useless",
    "loading": "503, as a local server says while it loads",
    "too_long": "400: the conversation is longer than the model's context",
    "filter_azure": "400 content_filter with an inner error",
    "filter_openai": "400 content_policy_violation",
    "filter_dashscope": "400 data_inspection_failed",
    "filter_deepseek": "400 'Content Exists Risk', told by its words only",
    "filter_gemini": "400 in a list, PROHIBITED_CONTENT",
    "filter_429": "a content filter that dresses up as a rate limit",
    "filter_router": "403 of a router's moderation, with what it flagged",
    "filter_reply": "200, finish_reason content_filter, half of the words",
    "filter_empty": "200 with no words; only the filter's results tell why",
    "wrong_model": "the answer of another model than was asked for",
    "other_backend": "the usual answer with another fingerprint",
    "error_in_200": "200 that wraps a back-end's 502",
    "no_choices": "200 without any choice",
    "interrupted": "200 that the server itself broke off (insufficient_system_resource)",
}
