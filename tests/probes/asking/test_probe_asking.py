"""Asking a model: what is sent, in what order, what is kept, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from domain.errors import StoreUnavailable
from domain.tools import RateLimit
from probes.asking.endpoint import TokenPrice
from probes.asking.journal import MemoryJournal
from probes.asking.order import interleaved
from probes.asking.pace import Pace
from probes.asking.wire import Answer, Wire
from probes.calls import Call, Reply, Sampling, Status
from probes.statuses import status_of
from service.fake_servers import chat
from service.fake_servers.chat import Fault, Personality
from service.fake_servers.contract import FakeServer
from tests.probes.asking.questions import ask, pairs, question


def sent_words(server: FakeServer) -> list[str]:
    return [seen.fields["messages"][-1]["content"] for seen in server.seen]


def test_every_call_is_a_conversation_of_its_own() -> None:
    calls = pairs(10)
    with chat.serve(Personality()) as server:
        replies = ask(server, calls)
    assert sorted(sent_words(server)) == sorted(c.messages[0].content for c in calls)
    assert all(len(seen.fields["messages"]) == 1 for seen in server.seen)
    assert not any("cookie" in seen.headers for seen in server.seen)
    assert {r.text for r in replies} <= {"she", "he", "they"}


def test_a_reply_tells_all_there_is_to_know() -> None:
    sampling = Sampling(0.7, 0.9, 32, seed=5, stop=("\n\n",), json_object=True, top_logprobs=3)
    with chat.serve(Personality(echoes=True, reasoning=0)) as server:
        (reply,) = ask(server, [question(sampling=sampling)], price=TokenPrice(1.0, 2.0))
    assert reply.http_status == 200 and reply.attempts == 1 and reply.finish_reason == "stop"
    assert (reply.model, reply.fingerprint) == ("m-1", "fp_fake")
    assert reply.requested == {
        "max_tokens": 32, "temperature": 0.7, "top_p": 0.9, "seed": 5, "stop": ["\n\n"],
        "response_format": {"type": "json_object"}, "logprobs": True, "top_logprobs": 3,
    }  # fmt: skip
    assert reply.sent == reply.requested
    assert reply.returned == {"temperature": 0.7, "top_p": 0.9, "seed": 5}
    assert reply.prompt_tokens and reply.completion_tokens == 1 and reply.reasoning_tokens == 0
    assert reply.cost == pytest.approx((reply.prompt_tokens * 1.0 + 1 * 2.0) / 1e6)
    assert reply.top_logprobs[0]["she"] == pytest.approx(-0.2231, abs=1e-3)
    assert reply.latency_s and reply.waited_s and reply.at.endswith("+00:00")


def test_a_text_is_continued_without_a_conversation() -> None:
    call = Call("demo", "i", "-", kind="completion", prompt="The nurse said that",
                sampling=Sampling(0.0, None, 1, top_logprobs=2))  # fmt: skip
    with chat.serve(Personality()) as server:
        (reply,) = ask(server, [call])
    assert server.seen[0].path == "/v1/completions" and reply.text == "she"
    assert list(reply.top_logprobs[0]) == ["she", "he"]


def test_arms_go_out_interleaved_in_an_order_that_only_the_seed_decides() -> None:
    calls = pairs(50, repeats=2)
    order = interleaved(calls, 1)
    assert order == interleaved(reversed(calls), 1) != interleaved(calls, 2)
    blocks = [order[i : i + 2] for i in range(0, len(order), 2)]
    assert all({a.arm, b.arm} == {"men", "women"} for a, b in blocks)
    assert all((a.item, a.repeat) == (b.item, b.repeat) for a, b in blocks)
    assert 30 < sum(a.arm == "men" for a, _ in blocks) < 70
    assert [a.item for a, _ in blocks] != sorted(a.item for a, _ in blocks)
    with chat.serve(Personality()) as server:
        ask(server, calls[:20], options={"seed": 3}, concurrency=1)
    assert sent_words(server) == [c.messages[0].content for c in interleaved(calls[:20], 3)]


def test_no_more_calls_run_at_once_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, post = 0, 0, Wire.post

    async def counted(wire: Wire, path: str, body: Any) -> Answer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await post(wire, path, body)
        finally:
            running -= 1

    monkeypatch.setattr(Wire, "post", counted)
    with chat.serve(Personality(), slow_s=0.02) as server:
        server.next(*["slow"] * 12)
        ask(server, pairs(6), concurrency=3)
    assert (most, running) == (3, 0)


def test_a_rate_limit_is_shared_by_all_senders() -> None:
    async def starts() -> list[float]:
        loop = asyncio.get_running_loop()
        pace, came = Pace(RateLimit(3, 0.2), lambda: False), []

        async def one() -> None:
            for _ in range(2):
                assert await pace.turn()
                came.append(loop.time())

        await asyncio.gather(*(one() for _ in range(4)))
        return came

    came = asyncio.run(starts())
    assert len(came) == 8
    assert all(later - early >= 0.2 for early, later in zip(came, came[3:], strict=False))


def test_what_was_answered_is_not_asked_again_and_what_failed_is() -> None:
    calls, journal = pairs(5), MemoryJournal()
    who = Personality(faults=(Fault("500", 1.0, r"nurse 3"),))
    with chat.serve(who) as server:
        first = ask(server, calls, journal, max_attempts=1)
        assert sum(bool(r.error) for r in first) == 2
        who.faults = ()
        second = ask(server, calls, journal)
        again = sent_words(server)[10:]
    assert len(again) == 2 and all("nurse 3" in words for words in again)
    assert not any(r.error for r in second)
    assert [r for r in second if r in first] == [r for r in first if not r.error]


def test_what_the_server_judged_is_not_asked_again() -> None:
    judged = {
        "filter_azure": Status.FILTERED, "too_long": Status.ERRORED, "refuse": Status.REFUSED,
    }  # fmt: skip
    journal, calls = MemoryJournal(), [question(name) for name in judged]
    with chat.serve(
        Personality(faults=tuple(Fault(b, 1.0, f"the {b} ") for b in judged))
    ) as server:
        first = ask(server, calls, journal)
        assert [status_of(r, "en")[0] for r in first] == list(judged.values())
        assert ask(server, calls, journal) == first
    assert len(server.seen) == 3


class Groups(MemoryJournal):
    """Tells how it was written; breaks at the group it is told to."""

    def __init__(self, breaks_at: int = -1) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.threads: set[int] = set()
        self._breaks_at = breaks_at

    def keep(self, entries: Sequence[tuple[str, Call, Reply]]) -> None:
        if len(self.sizes) == self._breaks_at:
            raise StoreUnavailable("disk is full")
        self.sizes.append(len(entries))
        self.threads.add(threading.get_ident())
        super().keep(entries)


def test_replies_are_kept_in_groups_by_one_thread_that_is_not_the_askers() -> None:
    journal = Groups()
    with chat.serve(Personality()) as server:
        ask(server, pairs(60), journal, concurrency=16)
    assert sum(journal.sizes) == 120 == len(journal.replies)
    assert len(journal.sizes) < 30
    assert len(journal.threads) == 1 and threading.get_ident() not in journal.threads


def test_a_reply_counts_only_once_it_is_kept() -> None:
    journal, told = Groups(), []
    with chat.serve(Personality()) as server:
        ask(server, pairs(20), journal, options={
            "progress": lambda done, of: told.append((done, of, len(journal.replies)))
        })  # fmt: skip
    assert all(done == kept for done, _, kept in told)
    assert told[-1] == (40, 40, 40)


def test_a_journal_that_breaks_ends_asking_with_its_own_words() -> None:
    journal = Groups(breaks_at=1)
    with (
        chat.serve(Personality()) as server,
        pytest.raises(StoreUnavailable, match="disk is full"),
    ):
        ask(server, pairs(400), journal, concurrency=2)
    assert len(server.seen) < 800
    assert len(journal.replies) == sum(journal.sizes) > 0


def test_ask_all_has_a_reply_for_each_call_even_for_none_and_for_doubles() -> None:
    with chat.serve(Personality()) as server:
        assert ask(server, []) == []
        one = question()
        assert len({id(r) for r in ask(server, [one, one])}) == 1
        assert len(server.seen) == 1


class Missing(MemoryJournal):
    def known(self, keys: Iterable[str]) -> Mapping[str, Reply]:
        raise StoreUnavailable("no such table")


def test_a_journal_that_cannot_be_read_is_said_before_anything_is_sent() -> None:
    with chat.serve(Personality()) as server:
        with pytest.raises(StoreUnavailable):
            ask(server, pairs(2), Missing())
        assert server.seen == []


def test_statuses_are_counted_right_under_every_fault_at_once() -> None:
    shares = {"429_soon": 0.1, "refuse_zh": 0.1, "refuse_de": 0.1, "filter_azure": 0.1, "cut": 0.1,
              "reasoning_ate_it": 0.1, "error_in_200": 0.05}  # fmt: skip
    who = Personality(
        faults=tuple(Fault(name, share) for name, share in shares.items()),
        otherwise={"a whole sentence about her": 1.0},
        rules=(),
    )
    with chat.serve(who) as server:
        replies = ask(server, pairs(60), concurrency=8, max_attempts=6)
        played = [seen.played for seen in server.seen]
    found = [status_of(r, "en")[0] for r in replies]
    assert found.count(Status.REFUSED) == played.count("refuse_zh") + played.count("refuse_de")
    assert found.count(Status.FILTERED) == played.count("filter_azure")
    assert found.count(Status.TRUNCATED) == played.count("cut") + played.count("reasoning_ate_it")
    assert found.count(Status.ANSWERED) == played.count("ok")
    assert sum(r.attempts for r in replies) == len(played) > 120
    assert found.count(Status.ERRORED) == 0
