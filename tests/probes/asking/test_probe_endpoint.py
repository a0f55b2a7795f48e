"""Where a model is asked, what that costs, and how replies are written down."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from domain.errors import LikenessError
from domain.tools import RateLimit
from probes.asking.cost import Budget, estimate, prompt_tokens
from probes.asking.endpoint import Endpoint, TokenPrice
from probes.asking.journal import MemoryJournal, reply_from_json, reply_json
from probes.asking.notices import is_asked, model_notices, parameter_notices
from probes.calls import Call, Message, Reply, Sampling

URL = "https://api.example.com/v1"


def test_a_name_has_address_and_model_and_nothing_secret() -> None:
    where = Endpoint(
        f"{URL}/?api-version=2026&sig=s3cr3t-value", "m-1", SecretStr("key-0123456789")
    )
    assert where.name == f"{URL} m-1"
    assert (
        where.url("chat/completions") == f"{URL}/chat/completions?api-version=2026&sig=s3cr3t-value"
    )
    assert where.headers() == {"authorization": "Bearer key-0123456789"}
    assert "key-0123456789" not in repr(where)
    assert {"key-0123456789", "s3cr3t-value"} <= set(where.secrets)


def test_one_makers_cloud_has_a_header_of_its_own() -> None:
    where = Endpoint("https://x.openai.azure.com/openai/v1", "m", SecretStr("key-0123456789"))
    assert where.headers() == {"api-key": "key-0123456789"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"base_url": "api.example.com"}, "'base_url' is an http or https address"),
        ({"base_url": "https://me:pw-secret@example.com"}, "no user name or password"),
        ({"base_url": "http://api.example.com/v1", "key": SecretStr("abcdefgh")}, "use https"),
        ({"key": SecretStr("two\nlines")}, "a character that no key has"),
        ({"model": " "}, "'model' is empty"),
        ({"concurrency": 0}, "'concurrency' is between 1 and 1024"),
        ({"timeout_s": math.nan}, "'timeout_s' is between"),
        ({"max_attempts": 0}, "'max_attempts' is between"),
    ],
)
def test_a_wrong_endpoint_is_one_clear_line(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(LikenessError, match=said) as told:
        Endpoint(**{"base_url": URL, "model": "m", **changed})
    assert "pw-secret" not in str(told.value) and "lines" not in str(told.value)


def test_a_local_server_needs_no_tls() -> None:
    assert Endpoint("http://127.0.0.1:8080/v1", "m", SecretStr("abcdefgh")).host == "127.0.0.1"


def test_an_estimate_is_what_the_price_makes_of_the_words() -> None:
    words = "a" * 400
    calls = [
        Call("p", str(i), "a", messages=(Message("user", words),), sampling=Sampling(max_tokens=90))
        for i in range(10)
    ]
    where = Endpoint(URL, "m", concurrency=2, price=TokenPrice(2.0, 10.0, "EUR"))
    found = estimate(calls, where)
    assert (found.calls, found.prompt_tokens, found.completion_tokens_most) == (10, 1080, 900)
    assert found.cost_likely == pytest.approx((1080 * 2 + 300 * 10) / 1e6)
    assert found.cost_most == pytest.approx((2080 * 2 + 900 * 10) / 1e6)
    assert found.currency == "EUR"
    assert found.seconds == pytest.approx((10 * 1.0 + 300 / 50) / 2)
    paced = Endpoint(URL, "m", rate=RateLimit(1, 60.0))
    assert estimate(calls, paced).seconds == 540.0
    assert estimate(calls, paced).cost_most is None
    assert estimate([], paced) == estimate(iter(()), paced)


def test_letters_of_wide_scripts_count_one_each() -> None:
    chinese = Call("p", "i", "a", messages=(Message("user", "护士说她累了"),))
    assert prompt_tokens(chinese) == 8 + 6


@pytest.mark.parametrize("amount", [-1.0, math.inf, math.nan])
def test_a_budget_is_an_amount(amount: float) -> None:
    with pytest.raises(LikenessError, match="a budget is an amount"):
        Budget(amount)
    with pytest.raises(LikenessError, match="a price for a million tokens"):
        TokenPrice(amount if amount != math.inf else -1.0, 1.0)


REPLIES = st.builds(
    Reply,
    text=st.text(max_size=20),
    filtered=st.booleans(),
    http_status=st.none() | st.integers(100, 599),
    sent=st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=2),
    top_logprobs=st.lists(
        st.dictionaries(st.text(max_size=3), st.floats(max_value=0, allow_nan=False), max_size=2), max_size=2
    ).map(tuple),
    attempts=st.integers(0, 9),
    cost=st.none() | st.floats(0, 9),
)  # fmt: skip


@given(REPLIES)
def test_a_reply_comes_back_from_the_journal_as_it_went(reply: Reply) -> None:
    assert reply_from_json(reply_json(reply)) == reply


def test_a_reply_of_a_later_version_can_be_read_and_nonsense_cannot() -> None:
    assert reply_from_json('{"text":"a","mood":"good"}') == Reply(text="a")
    with pytest.raises(ValueError, match="a reply is a JSON object"):
        reply_from_json("[1]")


def test_a_memory_journal_knows_what_it_kept_and_the_last_word_stands() -> None:
    journal, call = MemoryJournal(), Call("p", "i", "a")
    journal.keep([("k", call, Reply(error="x")), ("k", call, Reply(text="y"))])
    assert journal.known(["k", "other"]) == {"k": Reply(text="y")}


@pytest.mark.parametrize(
    ("came", "asked", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o-2024-08-06", "gpt-4o", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", False),
        ("gpt-4o-mini", "gpt-4o", False),
        ("Qwen/Qwen3-8B", "qwen3-8b", True),
        ("qwen3:latest", "qwen3", True),
        ("gpt-3.5-turbo-0125", "gpt-4o", False),
    ],
)
def test_a_models_dated_name_is_the_model_and_another_name_is_not(
    came: str, asked: str, same: bool
) -> None:
    assert is_asked(came, asked) is same


def test_a_model_string_that_changes_in_mid_run_is_told_with_the_moment() -> None:
    replies = [
        Reply(model="m-2026-01-01" if n < 7 else "m-2026-02-01", at=f"{n:02d}") for n in range(10)
    ]
    (said,) = model_notices(reversed(replies), "m")
    assert said.startswith(
        "the model changed during the run, from m-2026-01-01 to m-2026-02-01 after 7 of 10 replies"
    )


def test_a_steady_model_gives_no_notice() -> None:
    assert model_notices([Reply(model="m", fingerprint="f")] * 9, "m") == ()
    assert model_notices([], "m") == () == parameter_notices([Reply()])


def test_a_parameter_that_the_server_names_otherwise_is_told() -> None:
    reply = Reply(sent={"temperature": 0.7}, returned={"temperature": 0.0})
    assert parameter_notices([reply] * 3) == (
        "temperature: 0.7 sent, 0.0 named by the reply in 3 calls",
    )
