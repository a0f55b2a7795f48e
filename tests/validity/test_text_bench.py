"""The bench of the text probes: its server, its truths, and that every status is counted as played."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from docs.validity.text_bench import Promise, promises
from docs.validity.text_probes.drawing import apart, expit, mean_share
from docs.validity.text_probes.running import ENDS, Outcome, Scenario, run
from docs.validity.text_probes.scenarios import scenarios
from docs.validity.text_probes.server import ChatServer
from probes.calls import Status
from service.fake_servers.chat_personality import Fault, Personality


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def scenario(name: str) -> Scenario:
    return next(s for s in scenarios() if s.id == name)


@pytest.mark.parametrize(("name", "seeds"), [("resume", 4), ("association, stated shares", 2)])
def test_every_status_of_every_arm_is_counted_as_the_server_played_it(
    name: str, seeds: int, server: ChatServer, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(seeds):
        for planted in (True, False):
            outcome = run(scenario(name), seed, planted, server, tmp_path)
            assert outcome.wrong == ""
            seen += outcome.played
    for behaviour in ("ok", "wrong_model", "refuse_en", "refuse_field", "empty_reply", "no_retry"):
        assert seen[behaviour] > 0
    assert {ENDS[b] for b in seen if b in ENDS} > {Status.ANSWERED, Status.REFUSED, Status.FILTERED}


def test_a_status_that_is_counted_wrongly_is_told_with_both_counts(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENDS, "refuse_en", Status.FILTERED)  # type: ignore[arg-type]
    always = replace(scenario("narrative"), faults=(Fault("refuse_en", 1.0),))
    wrong = run(always, 0, False, server, tmp_path).wrong
    assert "played" in wrong and "counted 0" in wrong


def test_the_server_speaks_http_and_records_what_it_played(server: ChatServer) -> None:
    server.becomes(
        Personality(rules=(), otherwise=lambda text, chance: "yes", faults=(Fault("429_soon", 1.0, "wait"),))
    )  # fmt: skip
    body = {"model": "asked-for", "messages": [{"role": "user", "content": "well?"}]}
    with httpx.Client(trust_env=False) as client:
        told = client.post(f"{server.url}/chat/completions", json=body)
        body["messages"] = [{"role": "user", "content": "wait"}]
        busy = client.post(f"{server.url}/chat/completions", json=body)
    assert told.json()["choices"][0]["message"]["content"] == "yes"
    assert busy.status_code == 429 and busy.headers["retry-after-ms"] == "20"
    assert server.played == {("well?", "ok"): 1, ("wait", "429_soon"): 1}


def test_the_truth_is_the_mean_over_all_names_that_could_have_been_drawn() -> None:
    chance = random.Random(1)
    drawn = [expit(0.7 + chance.gauss(0, 0.8)) for _ in range(40_000)]
    assert mean_share(0.7, 0.8) == pytest.approx(sum(drawn) / len(drawn), abs=0.003)
    assert mean_share(0.0, 0.8) == pytest.approx(0.5)


def test_the_naive_interval_is_that_of_independent_replies() -> None:
    low, high = apart([1.0, 0.0] * 50, [1.0, 0.0, 0.0, 0.0] * 25)
    assert (low + high) / 2 == pytest.approx(0.25)
    assert high - low == pytest.approx(2 * 1.96 * (0.25 / 99 + 0.1875 / 99) ** 0.5)


def test_a_promise_that_is_missed_or_was_never_tried_is_not_kept() -> None:
    assert Promise("covers", 186, 200, 0.93).kept
    assert not Promise("covers", 185, 200, 0.93).kept
    assert not Promise("covers", 0, 0, 0.93).kept
    assert Promise("covers", 185, 200, 0.93).line().startswith("BAD  92.5 %")


def test_a_false_alarm_and_a_wrong_count_break_their_promises() -> None:
    one = Outcome(
        {"proceed_difference": True, "score_difference": True}, True,
        {"proceed_difference": 0.3, "score_difference": 0.0}, {"proceed_difference": True}, "",
        False, Counter(),
    )  # fmt: skip
    broken = [p.text for p in promises(scenario("resume"), [one], [replace(one, wrong="x")]) if not p.kept]  # fmt: skip
    assert any("any disparity although there is none" in text for text in broken)
    assert any("every status" in text for text in broken)
