"""The pretended language model has the leaning it was given, and turns away what makers turn away."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import httpx
import pytest
from statsmodels.stats.proportion import proportion_confint

from service.fake_servers import chat
from service.fake_servers.chat import BEHAVIOURS, Fault, Personality, Rule
from service.fake_servers.chat_troubles import ERRORS, REFUSALS
from service.fake_servers.contract import FakeServer, start


def post(
    server: FakeServer, body: Any, path: str = "chat/completions", **headers: str
) -> httpx.Response:
    with httpx.Client(trust_env=False, verify=False, timeout=10) as client:
        return client.post(
            f"{server.url}/v1/{path}",
            json=body,
            headers={"authorization": f"Bearer {server.key}", **headers},
        )


def asking(words: str = "The nurse said that", **wish: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": words}], **wish}


def said(answer: httpx.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def test_it_is_one_of_the_fake_servers_and_speaks_the_protocol() -> None:
    with start("chat") as server:
        answer = post(server, asking()).json()
        with httpx.Client(trust_env=False, verify=False) as client:
            models = client.get(
                f"{server.url}/v1/models", headers={"authorization": f"Bearer {server.key}"}
            )
    assert answer["object"] == "chat.completion" and answer["model"] == "m"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + 1
    assert models.json()["data"][0]["object"] == "model"


def test_a_wrong_key_and_wrong_bodies_are_turned_away() -> None:
    with chat.serve(Personality(key_by_header=True)) as server:
        assert post(server, asking(), authorization="Bearer no").status_code == 401
        assert (
            post(server, asking(), authorization="", **{"api-key": server.key}).status_code == 200
        )
        for wrong in (
            [], {}, {"model": "m"}, {"model": "m", "messages": []},
            {"model": "m", "messages": [{"role": "nobody", "content": "x"}]},
            asking(temperature=3), asking(top_logprobs=3), asking(logprobs=True, top_logprobs=21),
        ):  # fmt: skip
            answer = post(server, wrong)
            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_planted_leaning_has_the_size_it_was_given_in_nearly_every_run() -> None:
    inside = 0
    for seed in range(200):
        who = Personality(rules=(Rule("women", {"yes": 0.3, "no": 0.7}),), seed=seed)
        words = [who.answer("about women", {}, repeat) for repeat in range(50)]
        low, high = proportion_confint(words.count("yes"), 50, method="wilson")
        inside += low <= 0.3 <= high
    assert inside >= 186


def test_the_arm_of_the_question_decides_and_the_first_rule_that_matches_speaks() -> None:
    rules = (Rule(r"\bhe\b", {"engineer": 1.0}), Rule(r"\bshe\b", {"nurse": 1.0}))
    with chat.serve(Personality(rules=rules, otherwise={"person": 1.0})) as server:
        found = [said(post(server, asking(f"{p} works as"))) for p in ("he", "she", "the cat")]
    assert found == ["engineer", "nurse", "person"]


def test_repeats_differ_and_a_run_repeats_itself() -> None:
    def run() -> list[str]:
        with chat.serve(Personality(seed=4)) as server:
            return [said(post(server, asking())) for _ in range(12)]

    first = run()
    assert first == run()
    assert len(set(first)) > 1


def test_a_seed_fixes_the_answer_and_temperature_0_gives_the_likeliest() -> None:
    with chat.serve(Personality()) as server:
        assert len({said(post(server, asking(seed=3))) for _ in range(6)}) == 1
        assert {said(post(server, asking(temperature=0))) for _ in range(6)} == {"she"}


def test_log_probabilities_are_those_of_the_table() -> None:
    with chat.serve(Personality()) as server:
        told = post(server, asking(logprobs=True, top_logprobs=2)).json()["choices"][0]["logprobs"]
        old = post(
            server, {"model": "m", "prompt": "The nurse said that", "logprobs": 3}, "completions"
        ).json()
    top = {t["token"]: t["logprob"] for t in told["content"][0]["top_logprobs"]}
    assert top == {"she": pytest.approx(math.log(0.8)), "he": pytest.approx(math.log(0.15))}
    assert old["choices"][0]["logprobs"]["top_logprobs"][0]["they"] == pytest.approx(math.log(0.05))


def test_a_script_writes_what_no_table_can() -> None:
    def script(text: str, chance: random.Random) -> str:
        return f'{{"score": {chance.randint(6, 8)}}}'

    with chat.serve(Personality(rules=(Rule("rate", script),))) as server:
        assert said(post(server, asking("rate her"))) in {f'{{"score": {n}}}' for n in (6, 7, 8)}


def test_faults_strike_their_share_of_what_they_match_only() -> None:
    who = Personality(faults=(Fault("refuse_de", 0.25, "women"), Fault("429_soon", 0.25, "women")))
    drawn = Counter(who.fault("women", n) for n in range(2000))
    assert drawn["refuse_de"] == pytest.approx(500, abs=70)
    assert drawn["429_soon"] == pytest.approx(500, abs=70)
    assert {who.fault("men", n) for n in range(50)} == {""}


def test_every_behaviour_can_be_played_and_is_no_plain_answer() -> None:
    with chat.serve(Personality(rules=(), otherwise={'{"answer": "she"}': 1.0})) as server:
        plain = post(server, asking())
        for name in BEHAVIOURS:
            server.next(name)
            answer = post(server, asking())
            assert server.seen[-1].played == name
            if name in ERRORS:
                assert (answer.status_code, answer.json()) == ERRORS[name][:2]
            else:
                changed = ("model", "system_fingerprint", "choices")
                assert any(answer.json()[k] != plain.json()[k] for k in changed), name
    assert set(REFUSALS) - {"refuse"} <= set(BEHAVIOURS) and set(ERRORS) - {"429"} <= set(
        BEHAVIOURS
    )


def test_a_reasoning_model_turns_down_what_such_models_do() -> None:
    with chat.serve(Personality(reasoning=10)) as server:
        renamed = post(server, asking(max_tokens=9)).json()["error"]
        warm = post(server, asking(temperature=0.7)).json()["error"]
        assert "max_completion_tokens" in renamed["message"] and renamed["param"] == "max_tokens"
        assert (warm["param"], warm["code"]) == ("temperature", "unsupported_value")
        assert post(server, asking(temperature=1)).status_code == 200
        eaten = post(server, asking(max_completion_tokens=8)).json()
    assert eaten["choices"][0]["finish_reason"] == "length"
    assert eaten["usage"]["completion_tokens_details"] == {"reasoning_tokens": 8}


def test_a_rule_without_any_probability_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="sum to nothing"):
        Rule("x", {"a": 0.0})
