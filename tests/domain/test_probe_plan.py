"""A probe plan refuses what would be misunderstood, and never holds a key."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from domain.probe_plan import ProbePlan

GOOD: dict[str, Any] = {
    "name": "a plan",
    "endpoint": {"base_url": "https://api.example.com/v1", "model": "m"},
    "probes": [{"id": "resume"}],
}


def refusal(**changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        ProbePlan.model_validate({**GOOD, **changes})
    return str(caught.value)


def endpoint(**keys: Any) -> str:
    return refusal(endpoint={**GOOD["endpoint"], **keys})


def test_the_shortest_plan_has_the_plain_condition_and_no_limits() -> None:
    plan = ProbePlan.model_validate(GOOD)
    assert [c.id for c in plan.conditions] == ["plain"] and plan.gate.limits == {}
    assert plan.probes[0].label == "resume" and plan.probes[0].languages == ["en"]
    assert plan.repeats is None and plan.sampling.changes() == {}


def test_a_condition_may_be_a_word_or_a_mapping_and_each_stands_once() -> None:
    plan = ProbePlan.model_validate(
        {**GOOD, "conditions": ["plain", "unaligned", {"id": "guarded", "guard": "hiring"}]}
    )
    assert [c.told() for c in plan.conditions] == [
        {"id": "plain"}, {"id": "unaligned"}, {"id": "guarded", "guard": "hiring"},
    ]  # fmt: skip
    assert "stands twice" in refusal(conditions=["plain", {"id": "plain"}])
    assert "nothing is changed" in refusal(conditions=[{"id": "plain", "temperature": 0.3}])


def test_limits_stand_by_name_beside_the_baseline() -> None:
    plan = ProbePlan.model_validate({**GOOD, "gate": {"max_rms": 0.2, "baseline": "card.json"}})
    assert plan.gate.limits == {"max_rms": 0.2} and plan.gate.baseline == "card.json"


def test_the_model_is_somewhere_or_is_started_here_and_never_both() -> None:
    assert "one of them" in endpoint(local="smollm2")
    assert "one of them" in refusal(endpoint={"model": "m"})
    assert "'model' is needed" in refusal(endpoint={"base_url": "https://api.example.com/v1"})
    assert "leave 'model' out" in refusal(endpoint={"local": "smollm2", "model": "m"})
    assert "takes no key" in refusal(endpoint={"local": "smollm2", "key_env": "KEY"})


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://user:pw@api.example.com/v1", "no user name or password"),
        ("https://api.example.com/v1?api-key=abcdef", "no key in an address"),
        ("ftp://api.example.com", "begins with http"),
        ("api.example.com/v1", "begins with http"),
        ("http://[::1", "not a valid address"),
    ],
)
def test_an_address_is_http_and_holds_no_key(address: str, said: str) -> None:
    assert said in endpoint(base_url=address)


def test_a_key_has_no_place_but_the_name_of_where_it_lies() -> None:
    assert "not both" in endpoint(key_env="KEY", key_file="key.txt")
    assert "Extra inputs" in endpoint(key="sk-1")
    assert "names a variable" in endpoint(key_env="sk-a-key-itself")
