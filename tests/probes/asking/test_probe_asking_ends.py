"""How asking ends before everything was asked: the user, the budget, the endpoint."""

from __future__ import annotations

import signal

import pytest
from pydantic import SecretStr

from domain.errors import LikenessError
from probes.asking import ask as asking
from probes.asking.abilities import Abilities
from probes.asking.ask import ask_all
from probes.asking.cost import Budget
from probes.asking.endpoint import Endpoint, TokenPrice
from probes.asking.journal import MemoryJournal
from probes.calls import Reply, Sampling
from service.fake_servers import chat
from service.fake_servers.chat import Fault, Personality
from tests.probes.asking.questions import ask, endpoint, pairs


def test_a_wish_to_stop_leaves_what_came_and_says_so_of_the_rest() -> None:
    journal = MemoryJournal()
    calls = pairs(100)
    with chat.serve(Personality()) as server:
        server.desk.slow_s = 0.02
        server.next(*["slow"] * 200)
        replies = ask(
            server,
            calls,
            journal,
            concurrency=2,
            options={"stopping": lambda: len(server.seen) > 10},
        )
        asked = len(server.seen)
    came = [r for r in replies if not r.error]
    assert 10 < asked < 200 and len(came) == asked == len(journal.replies)
    assert {r.error for r in replies if r.error} == {"not sent: the run was stopped"}
    assert {r.attempts for r in replies if r.error} == {0}


def test_a_stopped_run_does_not_wait_for_ever_for_calls_on_their_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "GRACE_S", 0.1)
    with chat.serve(Personality(), slow_s=60.0) as server:
        server.next("slow")
        replies = ask(
            server, pairs(2), concurrency=1, timeout_s=60.0,
            options={"stopping": lambda: len(server.seen) > 0},
        )  # fmt: skip
    assert sorted(r.error for r in replies)[0] == "broken off: the run was stopped"


def test_ctrl_c_keeps_what_had_come() -> None:
    journal = MemoryJournal()

    def interrupt(done: int, of: int) -> None:
        if 0 < done < of:
            signal.raise_signal(signal.SIGINT)

    with chat.serve(Personality()) as server:
        with pytest.raises(KeyboardInterrupt):
            ask(server, pairs(150), journal, concurrency=1, options={"progress": interrupt})
        assert 0 < len(journal.replies) < 300
        assert len(server.seen) - len(journal.replies) in (0, 1)


def test_a_budget_is_not_passed_and_the_rest_says_why() -> None:
    price = TokenPrice(1000.0, 1000.0)
    calls = pairs(40, sampling=Sampling(max_tokens=50))
    with chat.serve(Personality()) as server:
        replies = ask(server, calls, price=price, options={"budget": Budget(1.0)})
        came = [r for r in replies if not r.error]
        assert 0 < len(came) == len(server.seen) < 80
    spent = sum(r.cost or 0.0 for r in came)
    assert 0.8 < spent <= 1.0
    assert {r.error for r in replies if r.error} == {"not sent: budget"}


def test_a_budget_counts_what_earlier_runs_spent_and_what_may_have_been_billed() -> None:
    price = TokenPrice(1000.0, 1000.0)
    calls = pairs(2, sampling=Sampling(max_tokens=50))
    with chat.serve(Personality(), slow_s=30.0) as server:
        where = endpoint(server)
        journal = MemoryJournal()
        journal.replies[calls[0].key(where.name)] = Reply(text="she", cost=0.95)
        replies = ask(server, calls, journal, price=price, options={"budget": Budget(1.0)})
        assert [r.error for r in replies] == ["", *["not sent: budget"] * 3]
        server.next("slow")
        (late,) = ask(server, calls[:1], price=price, timeout_s=0.1, max_attempts=1)
    assert late.cost is not None and late.cost > 0.05 and "no whole answer within" in late.error


def test_a_budget_without_a_price_cannot_be_kept_and_says_so() -> None:
    where = Endpoint("http://127.0.0.1:1/v1", "m")
    with pytest.raises(LikenessError, match="a budget needs a price"):
        ask_all(pairs(1), where, Abilities(), MemoryJournal(), budget=Budget(1.0))
    dear = Endpoint("http://127.0.0.1:1/v1", "m", price=TokenPrice(1, 1, "EUR"))
    with pytest.raises(LikenessError, match="the budget is in USD, the price in EUR"):
        ask_all(pairs(1), dear, Abilities(), MemoryJournal(), budget=Budget(1.0))


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("insufficient_quota", "no credit is left"),
        ("no_balance", "no credit is left"),
        ("forbidden", "access is denied"),
        ("429_hour", "asked to wait 3600 s, 3 s are allowed"),
    ],
)
def test_what_would_meet_every_call_ends_asking_with_one_reason(
    behaviour: str, reason: str
) -> None:
    with chat.serve(Personality(faults=(Fault(behaviour, 1.0),))) as server:
        replies = ask(server, pairs(30), concurrency=2)
        assert len(server.seen) <= 2
    unsent = [r for r in replies if r.error.startswith("not sent: ")]
    assert len(unsent) >= 58 and len({r.error for r in unsent}) == 1
    assert all(reason in r.error for r in replies)


def test_a_wrong_key_ends_asking_and_no_part_of_it_is_shown() -> None:
    with chat.serve(Personality()) as server:
        where = Endpoint(f"{server.url}/v1", "m", SecretStr("wrong-key-abcdefgh-12345678"))
        replies = ask_all(pairs(20), where, Abilities(), MemoryJournal()).values()
    told = " ".join(r.error for r in replies)
    assert "HTTP 401: the key is not accepted" in told
    assert not any(part in told for part in ("wrong-ke", "5678", "abcdefgh"))
    assert "wrong-key" not in repr(where) and "wrong-key" not in where.name


def test_a_wrong_address_ends_asking_with_a_hint() -> None:
    with chat.serve(Personality()) as server:
        where = Endpoint(server.url, "m")
        replies = list(ask_all(pairs(20), where, Abilities(), MemoryJournal()).values())
        assert len(server.seen) <= 8
    assert any("does 'base_url' end where /chat/completions begins?" in r.error for r in replies)


def test_a_dead_endpoint_is_given_up_after_many_calls_in_a_row() -> None:
    where = Endpoint("http://127.0.0.1:9/v1", "m", max_attempts=1, max_wait_s=0.0, concurrency=2)
    journal = MemoryJournal()
    replies = list(ask_all(pairs(200), where, Abilities(), journal).values())
    tried = [r for r in replies if r.attempts]
    assert 25 <= len(tried) <= 27
    assert all("127.0.0.1 cannot be reached" in r.error for r in replies)
    assert "25 calls in a row got no reply" in replies[-1].error
