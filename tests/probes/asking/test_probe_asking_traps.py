"""Traps of language models that others fell into, each as a test of the client."""

from __future__ import annotations

import pytest

from domain.errors import LikenessError
from probes.asking.abilities import Abilities, find_abilities
from probes.asking.body import not_sent
from probes.asking.journal import MemoryJournal
from probes.asking.notices import model_notices, parameter_notices
from probes.calls import Call, Message, Sampling, Status
from probes.statuses import json_in, status_of
from service.fake_servers import chat
from service.fake_servers.chat import Fault, Personality
from tests.probes.asking.questions import ask, endpoint, pairs, question

WISH = Sampling(0.7, 0.9, 64, seed=3)


def test_temperature_rejected_by_reasoning_models_is_left_out_recorded_and_never_insisted_on() -> (
    None
):
    with chat.serve(Personality(reasoning=8)) as server:
        replies = ask(server, pairs(20, sampling=WISH), concurrency=1)
        assert len(server.seen) == 40 + 3  # temperature, top_p, max_tokens: once each, not per call
    assert not any(r.error for r in replies)
    assert all(r.requested["temperature"] == 0.7 and "temperature" not in r.sent for r in replies)
    assert not_sent(replies[0]) == ("temperature", "top_p")
    assert parameter_notices(replies) == (
        "'temperature' was wished for and not sent in 40 calls",
        "'top_p' was wished for and not sent in 40 calls",
    )


def test_max_tokens_renamed_is_sent_under_its_new_name() -> None:
    with chat.serve(Personality(rejects=frozenset({"max_tokens"}))) as server:
        replies = ask(server, pairs(5, sampling=WISH), concurrency=1)
        assert len(server.seen) == 11
    assert all(r.sent["max_completion_tokens"] == 64 for r in replies)
    assert not any("max_tokens" in r.sent for r in replies)


def test_the_new_name_unknown_to_an_old_server_is_sent_under_the_old_one() -> None:
    with chat.serve(Personality(rejects=frozenset({"max_completion_tokens"}))) as server:
        able = Abilities(tokens_parameter="max_completion_tokens")
        replies = ask(server, pairs(3, sampling=WISH), abilities=able, concurrency=1)
        assert len(server.seen) == 7
    assert all(r.sent["max_tokens"] == 64 for r in replies)


def test_a_server_that_takes_no_name_of_the_budget_is_an_error_not_a_loop() -> None:
    with chat.serve(
        Personality(rejects=frozenset({"max_tokens", "max_completion_tokens"}))
    ) as server:
        (reply,) = ask(server, [question(sampling=WISH)])
        assert len(server.seen) == 3
    assert "max_" in reply.error and status_of(reply, "en")[0] is Status.ERRORED


def test_a_parameter_refused_in_mid_run_is_dropped_once_for_all_calls_that_follow() -> None:
    who = Personality(rejects=frozenset({"seed"}), rejects_from=15)
    with chat.serve(who) as server:
        replies = ask(server, pairs(20, sampling=WISH), concurrency=1)
        assert len(server.seen) == 41
    assert not any(r.error for r in replies)
    assert sum("seed" in r.sent for r in replies) == 15
    assert sum(r.attempts == 2 for r in replies) == 1


def test_many_calls_that_meet_the_refusal_at_once_each_go_on() -> None:
    with chat.serve(Personality(reasoning=8)) as server:
        replies = ask(server, pairs(20, sampling=WISH), concurrency=16)
    assert not any(r.error for r in replies)
    assert {tuple(sorted(r.sent)) for r in replies} == {("max_completion_tokens", "seed")}


def test_a_system_role_that_is_refused_goes_into_the_users_first_words() -> None:
    call = Call(
        "demo", "i", "-", messages=(Message("system", "Be brief."), Message("user", "nurse?"))
    )
    with chat.serve(Personality(rejects=frozenset({"system"}))) as server:
        (reply,) = ask(server, [call])
        sent = server.seen[-1].fields["messages"]
    assert sent == [{"role": "user", "content": "Be brief.\n\nnurse?"}]
    assert not reply.error and reply.sent["system_role"] is False
    assert not_sent(reply) == ("system_role",)


def test_a_seed_dropped_in_silence_is_found_out() -> None:
    with chat.serve(Personality(seed_honoured=False)) as server:
        able = find_abilities(endpoint(server))
    assert able.seed is True
    assert able.notes == ("seed: taken, but one seed gave two different answers",)


def test_a_seed_forcing_one_sample_is_found_out_and_not_sent() -> None:
    with chat.serve(Personality(seed_fixes=True)) as server:
        able = find_abilities(endpoint(server))
        assert able.seed is False
        assert "a seed fixes the sample" in able.notes[-1]
        (reply,) = ask(server, [question(sampling=WISH)], abilities=able)
    assert "seed" not in reply.sent and not_sent(reply) == ("seed",)


def test_a_cache_that_turns_repeats_into_one_sample_is_found_out() -> None:
    with chat.serve(Personality(rules=(), otherwise={"she": 1.0})) as server:
        able = find_abilities(endpoint(server))
    assert any("turn repeats into one sample" in note for note in able.notes)


def test_repeats_are_asked_one_by_one_and_never_answered_from_each_other() -> None:
    calls = [question(repeat=n) for n in range(40)]
    journal = MemoryJournal()
    with chat.serve(Personality()) as server:
        replies = ask(server, calls, journal)
        assert len(server.seen) == 40 == len(journal.replies)
    assert {r.text for r in replies} == {"she", "he", "they"}


def test_a_wrong_model_in_the_reply_is_recorded_and_said() -> None:
    with chat.serve(Personality(faults=(Fault("wrong_model", 0.3),))) as server:
        replies = ask(server, pairs(20))
    wrong = sum(r.model == "another-model-0613" for r in replies)
    assert 0 < wrong < 40
    said = model_notices(replies, "m-1")
    assert said[0] == f"asked for m-1; {wrong} of 40 replies name another-model-0613 ({wrong})"
    assert "several back-ends answer" in said[1]


def test_a_router_mixing_back_ends_is_said() -> None:
    with chat.serve(Personality(fingerprints=("fp_a", "fp_b"))) as server:
        replies = ask(server, pairs(10), concurrency=1)
    (said,) = model_notices(replies, "m-1")
    assert said.startswith("replies name 2 fingerprints in turn (")


def test_a_budget_eaten_by_hidden_reasoning_is_truncated_and_its_tokens_are_counted() -> None:
    with chat.serve(Personality(reasoning=500)) as server:
        (reply,) = ask(server, [question(sampling=WISH)])
        server.next("reasoning_400")
        (said,) = ask(server, [question("other", sampling=WISH)])
    assert (reply.text, reply.reasoning_tokens, reply.finish_reason) == ("", 64, "length")
    assert "hidden reasoning took 64 tokens" in status_of(reply, "en")[1]
    assert status_of(said, "en")[0] is Status.TRUNCATED


@pytest.mark.parametrize(
    "behaviour",
    ["filter_azure", "filter_openai", "filter_dashscope", "filter_deepseek", "filter_gemini",
     "filter_429", "filter_router", "filter_reply", "filter_empty"],
)  # fmt: skip
def test_a_content_filter_is_not_shown_as_a_rate_limit_nor_as_an_empty_reply(
    behaviour: str,
) -> None:
    with chat.serve(Personality()) as server:
        server.next(behaviour)
        replies = ask(server, pairs(1), concurrency=1)
        assert len(server.seen) == 2  # asked once, and asking went on
    found = sorted(status_of(r, "en")[0] for r in replies)
    assert found == [Status.ANSWERED, Status.FILTERED]


def test_fenced_or_malformed_json_comes_as_it_was_written_and_is_read() -> None:
    who = Personality(rules=(), otherwise={'{"score": 7, "why": "solid"}': 1.0})
    with chat.serve(who) as server:
        server.next("fenced", "malformed", "prefixed", "thinks_aloud", "ok")
        replies = ask(server, [question(repeat=n) for n in range(5)], concurrency=1)
    assert len({r.text for r in replies}) == 5
    assert all(json_in(r.text) == {"score": 7, "why": "solid"} for r in replies)


@pytest.mark.parametrize(
    "behaviour", ["refuse_en", "refuse_zh", "refuse_de", "refuse_field", "refuse"]
)
def test_refusals_in_any_language_and_in_the_makers_field_are_refusals(behaviour: str) -> None:
    with chat.serve(Personality()) as server:
        server.next(behaviour)
        (reply,) = ask(server, [question()])
    assert status_of(reply, "en")[0] is Status.REFUSED


@pytest.mark.parametrize(
    "behaviour",
    ["429_soon", "429_sentence", "429_no_wait", "500", "loading", "html", "empty", "truncated",
     "error_in_200", "no_choices", "interrupted"],
)  # fmt: skip
def test_what_passes_is_tried_again(behaviour: str) -> None:
    with chat.serve(Personality()) as server:
        server.next(behaviour)
        (reply,) = ask(server, [question()])
        assert len(server.seen) == 2
    assert (reply.error, reply.attempts) == ("", 2)
    assert reply.waited_s is not None and reply.latency_s is not None
    assert reply.waited_s >= reply.latency_s


@pytest.mark.parametrize(
    ("behaviour", "attempts", "words"),
    [
        ("no_retry", 1, "HTTP 500: It will not get better"),
        ("too_long", 1, "maximum context length is 4097"),
        ("500", 2, "HTTP 500: Internal Server Error (2 attempts)"),
    ],
)
def test_what_does_not_pass_ends_with_its_own_words(
    behaviour: str, attempts: int, words: str
) -> None:
    with chat.serve(Personality(faults=(Fault(behaviour, 1.0),))) as server:
        (reply,) = ask(server, [question()], max_attempts=2)
    assert reply.attempts == attempts and words in reply.error
    assert status_of(reply, "en")[0] is Status.ERRORED


def test_a_wait_that_one_call_is_told_holds_all_others_too() -> None:
    with chat.serve(Personality()) as server:
        server.next(*["429_soon"] * 4)
        replies = ask(server, pairs(10), concurrency=4)
    assert not any(r.error for r in replies)
    assert max(r.attempts for r in replies) <= 3


def test_abilities_of_a_reasoning_model_are_found() -> None:
    with chat.serve(Personality(reasoning=5)) as server:
        able = find_abilities(endpoint(server))
    assert (able.temperature, able.top_p, able.logprobs) == (False, False, False)
    assert able.tokens_parameter == "max_completion_tokens"
    assert (able.system_role, able.json_object, able.completion) == (True, True, False)
    assert able.notes[0].startswith("the model reasons in hiding (5 tokens")
    assert (able.model, able.fingerprint) == ("m-1", "fp_fake")


def test_abilities_of_a_plain_model_are_found_with_few_calls() -> None:
    with chat.serve(Personality()) as server:
        able = find_abilities(endpoint(server))
        assert len(server.seen) <= 10
    flags = (able.temperature, able.top_p, able.seed, able.logprobs, able.completion,
             able.json_object, able.system_role)  # fmt: skip
    assert flags == (True,) * 7 and able.notes == ()


def test_logprobs_taken_in_silence_are_none() -> None:
    with chat.serve(Personality(sends_logprobs=False)) as server:
        able = find_abilities(endpoint(server))
        (reply,) = ask(server, [question(sampling=Sampling(top_logprobs=2))], abilities=able)
    assert able.logprobs is False
    assert able.notes == ("'logprobs' is taken in silence, and none came",)
    assert "top_logprobs" not in reply.sent and reply.top_logprobs == ()


def test_an_endpoint_that_cannot_be_asked_is_one_clear_line() -> None:
    with (
        chat.serve(Personality(faults=(Fault("no_balance", 1.0),))) as server,
        pytest.raises(LikenessError, match="the endpoint cannot be asked: no credit is left"),
    ):
        find_abilities(endpoint(server))
