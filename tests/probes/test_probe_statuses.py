"""Each way in which a reply ends has its own status, and none is taken for an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.calls import Reply, Status
from probes.statuses import json_in, spoken, status_of


def status(open_ended: bool = False, **told: Any) -> Status:
    return status_of(Reply(**told), "en", open_ended)[0]


def test_words_are_an_answer() -> None:
    assert status_of(Reply(text="she"), "en") == (Status.ANSWERED, "")


def test_an_error_says_its_own_sentence() -> None:
    assert status_of(Reply(error="HTTP 500: no"), "en") == (Status.ERRORED, "HTTP 500: no")


def test_a_filter_is_no_error_and_no_empty_reply() -> None:
    assert status(error="content filter: HTTP 400", filtered=True) is Status.FILTERED
    assert status(text="", finish_reason="content_filter") is Status.FILTERED
    assert status(text="half of", finish_reason="content_filter") is Status.FILTERED
    assert status(text="", finish_reason="sensitive") is Status.FILTERED
    assert status(text="", filtered=True) is Status.FILTERED


def test_the_field_for_refusals_counts_without_any_words() -> None:
    assert status(refusal="I can't do that.") is Status.REFUSED


def test_a_refusal_in_another_language_than_asked_is_one() -> None:
    assert status_of(Reply(text="很抱歉，我无法回答这个问题。"), "de")[0] is Status.REFUSED


def test_a_refusal_that_was_cut_off_is_a_refusal() -> None:
    text = "I'm sorry, but I can't assist with that request, since it"
    assert status(text=text, finish_reason="length") is Status.REFUSED


def test_a_full_budget_is_a_fault_unless_the_text_has_no_end() -> None:
    assert status(text="She went", finish_reason="length") is Status.TRUNCATED
    assert status(True, text="She went", finish_reason="length") is Status.ANSWERED
    assert status(True, text="", finish_reason="length") is Status.TRUNCATED


def test_a_budget_eaten_by_hidden_reasoning_is_truncated_not_an_empty_answer() -> None:
    eaten = Reply(finish_reason="length", reasoning_tokens=256, completion_tokens=256)
    assert status_of(eaten, "en") == (
        Status.TRUNCATED,
        "empty: hidden reasoning took 256 tokens of the budget",
    )
    # some servers say "stop" all the same
    sent = {"max_completion_tokens": 256}
    said_stop = {"finish_reason": "stop", "reasoning_tokens": 256, "completion_tokens": 256}
    assert status(sent=sent, **said_stop) is Status.TRUNCATED
    assert status(sent={"max_tokens": 4000}, **said_stop) is Status.UNPARSABLE


def test_reasoning_between_tags_is_not_what_was_said() -> None:
    text = "<think>\nI'm sorry, I can't help with that... or can I?\n</think>\n\nshe"
    assert spoken(text) == "she"
    assert status(text=text) is Status.ANSWERED
    assert spoken("first I weigh the two</think>he") == "he"
    assert status(text="<think>she or he", finish_reason="length") is Status.TRUNCATED


def test_nothing_at_all_is_unparsable() -> None:
    assert status_of(Reply(text=" \n"), "en") == (Status.UNPARSABLE, "the reply is empty")


@given(st.text(max_size=300), st.sampled_from(["stop", "length", None, "content_filter", "odd"]))
def test_every_reply_has_one_status_and_a_reason_exactly_when_it_is_no_answer(
    text: str, finish: str | None
) -> None:
    found, reason = status_of(Reply(text=text, finish_reason=finish), "zh")
    assert (found is Status.ANSWERED) == (reason == "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"score": 7}', {"score": 7}),
        ('```json\n{"score": 7}\n```', {"score": 7}),
        ('```\n{"score": 7,}\n```\nI hope this helps {smile}', {"score": 7}),
        ('Sure! Here it is: {"score": 7, "why": "x"} Anything else?', {"score": 7, "why": "x"}),
        ("{'score': 7, 'why': 'it's good', 'more': None}", {"score": 7, "why": "it's good", "more": None}),
        ("{“score”：7，“why”：“他说“好””}", {"score": 7, "why": "他说“好”"}),
        ("{score: 7.5, ok: True, // my view\n}", {"score": 7.5, "ok": True}),
        ('{"score": <number>} becomes {"score": 8}', {"score": 8}),
        ('{"why": "he said "hi" to me", "list": [1, 2,],}', {"why": "he said \"hi\" to me", "list": [1, 2]}),
        ('as in [1], {"a": {"b": [1]}}', {"a": {"b": [1]}}),
        ("[{'a': 1}]", [{"a": 1}]),
        ("{}", {}),
    ],
)  # fmt: skip
def test_fenced_or_malformed_json_is_read(text: str, found: Any) -> None:
    assert json_in(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "7", "she", '{"score": 7', '{"score": "go', '{"a": NaN}', '{"a": 1e999}', "{a b}", "{" * 9000,
     '{"a": ' * 3000, "see [1] and [2]", '__import__("os")', "{'a': __import__('os')}"],
)  # fmt: skip
def test_what_is_no_whole_json_is_none_and_nothing_is_evaluated(text: str) -> None:
    assert json_in(text) is None


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=6), PLAIN, min_size=1, max_size=3))
def test_json_that_is_right_comes_back_as_it_is(value: dict[str, Any]) -> None:
    assert json_in(json.dumps(value)) == value
    assert json_in(f"So:\n{json.dumps(value, ensure_ascii=False)}\nDone") == value


@given(st.text(alphabet="{}[]'\"“”:, \\ntrue0123abc`\n", max_size=120))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = json_in(text)
    assert found is None or isinstance(found, dict | list)
