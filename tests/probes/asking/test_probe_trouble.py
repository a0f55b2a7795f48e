"""What the errors of many makers mean, told from their bodies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.asking.replies import NoReply, read, top_logprobs
from probes.asking.trouble import Trouble, judge, one_line
from probes.calls import Call

SENT = {"max_tokens": 64, "temperature": 0.7, "top_p": 0.9, "seed": 1, "stop": ["x"],
        "response_format": {"type": "json_object"}, "logprobs": True, "top_logprobs": 3}  # fmt: skip
SECRET = "sk-abcdefghij0123456789"


def judged(status: int, found: Any, headers: dict[str, str] | None = None, **sent: Any) -> Trouble:
    return judge(status, headers or {}, found, str(found), sent or SENT, (SECRET,))


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (error("filtered", code="content_filter"), 400),
        (error("x", code="400", innererror={"code": "ResponsibleAIPolicyViolation"}), 400),
        (error("x", code="data_inspection_failed"), 400),
        ({"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}, 400),
        (error("Content Exists Risk", type="invalid_request_error"), 400),
        (error("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"), 400),
        (error("The request was rejected", type="content_filter"), 429),
        ({"error": {"code": "SensitiveContentDetected", "message": "x"}}, 400),
        (error("blocked", code="censorship_blocked"), 451),
        (error("anything"), 451),
    ],
)  # fmt: skip
def test_filters_of_many_makers_are_filters(found: Any, status: int) -> None:
    assert judged(status, found).kind == "filtered"


@pytest.mark.parametrize(
    ("status", "found", "headers"),
    [
        (429, error("Rate limit reached. Please try again in 1.2s."), {}),
        (429, error("You exceeded your current quota, please check your plan", status="RESOURCE_EXHAUSTED",
                    details=[{"@type": "RetryInfo", "retryDelay": "1.2s"}]), {}),
        (429, error("slow"), {"retry-after-ms": "1200"}),
        (503, error("busy"), {"retry-after": "1.2"}),
    ],
)  # fmt: skip
def test_a_limit_of_the_minute_is_waited_for_as_long_as_it_says(
    status: int, found: Any, headers: dict[str, str]
) -> None:
    trouble = judged(status, found, headers)
    assert (trouble.kind, trouble.wait) == ("retry", pytest.approx(1.2))


@pytest.mark.parametrize(
    ("status", "found"),
    [
        (429, error("You exceeded your current quota", code="insufficient_quota")),
        (429, error("You exceeded your current quota, please check your plan")),
        (402, error("Insufficient Balance")),
        (400, error("Access denied, please make sure your account is in good standing.", code="Arrearage")),
        (400, error("Billing hard limit has been reached", code="billing_hard_limit_reached")),
        (429, error("余额不足或无可用资源包,请充值", code="1113")),
        (401, error(f"Incorrect API key provided: {SECRET}")),
        (403, error("no access")),
        (404, error("The model does not exist", code="model_not_found")),
        (308, None),
    ],
)  # fmt: skip
def test_what_no_waiting_cures_stops(status: int, found: Any) -> None:
    assert judged(status, found).kind == "stop"


@pytest.mark.parametrize(
    ("found", "parameter", "status"),
    [
        (error("Unsupported value: 'temperature' does not support 0.7", param="temperature"), "temperature", 400),
        (error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), "max_tokens", 400),
        (error("Unsupported parameter", param="max_tokens"), "max_tokens", 400),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, "seed", 422),
        ([error('Invalid JSON payload received. Unknown name "seed": Cannot find field.')], "seed", 400),
        (error("response_format.type is invalid", param="response_format.type"), "response_format", 400),
        (error("`temperature` and `top_p` cannot both be specified for this model."), "top_p", 400),
        (error("This model does not support logprobs"), "logprobs", 400),
        (error("logprobs is not implemented"), "logprobs", 501),
        (error("Developer instruction is not enabled for this model"), "system_role", 400),
        (error("System role not supported"), "system_role", 400),
    ],
)  # fmt: skip
def test_the_parameter_to_leave_out_is_found(found: Any, parameter: str, status: int) -> None:
    trouble = judged(status, found)
    assert (trouble.kind, trouble.parameter) == ("parameter", parameter)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4097 tokens, however you requested 5000 (for max_tokens)",
        "max_tokens is too large: 64. This model supports at most 32 completion tokens",
        "please stop sending such things, and seed your data",
        "Invalid value",
    ],
)
def test_an_error_that_only_mentions_a_parameter_drops_none(message: str) -> None:
    assert judged(400, error(message)).kind == "fatal"


def test_a_parameter_that_was_not_sent_is_not_the_cause() -> None:
    assert judged(400, error("'seed' is not supported"), temperature=1.0).kind == "fatal"


def test_a_servers_own_word_on_asking_again_counts() -> None:
    assert judged(500, error("x"), {"x-should-retry": "false"}).kind == "fatal"
    assert judged(409, error("x"), {"x-should-retry": "true"}).kind == "retry"


def test_no_part_of_a_key_is_in_a_sentence() -> None:
    echoed = error(f"bad {SECRET} and sk-abcde***************6789 and ****6789")
    for status in (400, 401, 403, 500):
        sentence = judged(status, echoed).sentence
        assert "abcde" not in sentence and "6789" not in sentence
        assert "\n" not in sentence
    assert one_line("a\nb\x00c", ()) == "a b c"
    assert len(one_line("word " * 500, ())) == 300


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["error", "message", "code", "choices", "detail", "loc", "content", "usage", "logprobs",
                         "metadata", "top_logprobs", "content_filter_results", "text", "finish_reason"]),
        inner, max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@given(ANYTHING, st.sampled_from([200, 400, 422, 429, 500]))
def test_no_body_breaks_the_judge_or_the_reader(found: Any, status: int) -> None:
    assert judged(status, found).sentence.startswith(
        ("HTTP", "content filter", "no credit", "the model")
    )
    try:
        told = read(Call("p", "i", "a"), found)
    except NoReply:
        return
    assert isinstance(told["filtered"], bool)


def test_a_message_in_parts_and_half_a_surrogate_are_read() -> None:
    parts = [{"type": "text", "text": "sh"}, {"type": "text", "text": "e\ud83d"}]
    told = read(
        Call("p", "i", "a"), {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    )
    assert told["text"] == "she?" and told["prompt_tokens"] is None
    assert told["reasoning_tokens"] is None


def test_logprobs_are_read_in_both_forms() -> None:
    new = {"content": [{"token": "he", "logprob": -0.5, "top_logprobs": [
        {"token": "she", "logprob": -0.1}, {"token": "he", "logprob": -0.5}, {"token": "she", "logprob": -9}]}]}  # fmt: skip
    assert top_logprobs(new) == ({"she": -0.1, "he": -0.5},)
    assert top_logprobs({"top_logprobs": [{"she": -0.1}, None]}) == ({"she": -0.1},)
    assert top_logprobs(None) == () == top_logprobs({"content": None})
