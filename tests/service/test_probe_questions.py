"""Every call of every probe under each condition, and what asking them would cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from domain.errors import LikenessError
from probes.asking.abilities import Abilities
from probes.asking.journal import MemoryJournal
from probes.calls import Reply
from service.budget import Budget
from service.probe_endpoint import unasked
from service.probe_estimate import excess, reckon
from service.probe_plans import LoadedProbePlan, read_probe_plan
from service.probe_questions import able, follow_ups, questions, read
from tests.service.planted_probe import Planted, known

PLAN = """\
name: a plan
endpoint:
  base_url: http://127.0.0.1:1/v1
  model: m
  price: {input_per_million: 1000, output_per_million: 2000, currency: EUR}
probes:
  - {id: planted, languages: [en, de]}
  - {id: planted, name: again}
conditions: [plain, {id: guarded, guard: hiring}, {id: cold, temperature: 0.1}]
sampling: {max_tokens: 30}
"""


def load(text: str = PLAN, *modules: Planted) -> LoadedProbePlan:
    return read_probe_plan(Path("plan.yaml"), text, known(*modules))


def test_each_probe_is_asked_in_each_language_under_each_condition_once() -> None:
    asked = [q.asked for q in questions(load(), load().parts)]
    assert len(asked) == len({c.place for c in asked}) == 20 * 3 * 3
    assert {(c.probe, c.language) for c in asked} == {
        ("planted", "en"), ("planted", "de"), ("again", "en"),
    }  # fmt: skip


def test_a_condition_changes_what_it_says_and_the_plans_sampling_holds_in_all() -> None:
    by = {
        q.condition.id: q.asked for q in questions(load(), load().parts) if q.part.label == "again"
    }
    assert [m.role for m in by["plain"].messages] == ["user"]
    assert [m.role for m in by["guarded"].messages] == ["system", "user"]
    assert by["cold"].sampling.temperature == 0.1 and by["plain"].sampling.temperature == 0.7
    assert {c.sampling.max_tokens for c in by.values()} == {30}


def test_a_call_that_reads_log_probabilities_keeps_its_sampling() -> None:
    class Logs(Planted):
        def build(self, settings: Any, folder: Path) -> Planted:
            return Logs()

        def calls(self, language: str, seed: int) -> Any:
            for call in super().calls(language, seed):
                yield replace(call, sampling=replace(call.sampling, top_logprobs=5, max_tokens=1))

    loaded = load(PLAN, Logs())
    assert {q.asked.sampling.max_tokens for q in questions(loaded, loaded.parts)} == {1}


def test_a_call_that_differs_from_its_probes_usual_sampling_keeps_its_own() -> None:
    class Diagnosis(Planted):
        def build(self, settings: Any, folder: Path) -> Planted:
            return Diagnosis()

        def calls(self, language: str, seed: int) -> Any:
            for call in super().calls(language, seed):
                cold = call.repeat == 4
                yield replace(
                    call, sampling=replace(call.sampling, temperature=0.2 if cold else 0.7)
                )

    loaded = load(PLAN.replace("max_tokens: 30", "temperature: 1.0"), Diagnosis())
    asked = [q.asked for q in questions(loaded, loaded.parts) if q.condition.id == "plain"]
    assert {(c.repeat == 4, c.sampling.temperature) for c in asked} == {(True, 0.2), (False, 1.0)}


def test_a_probe_that_builds_one_call_twice_is_refused() -> None:
    class Twice(Planted):
        def build(self, settings: Any, folder: Path) -> Planted:
            return Twice()

        def calls(self, language: str, seed: int) -> Any:
            return [*super().calls(language, seed), *super().calls(language, seed)]

    loaded = load(PLAN, Twice())
    with pytest.raises(LikenessError, match="probe 'planted': builds a call twice"):
        questions(loaded, loaded.parts)


def test_what_an_endpoint_is_known_to_lack_is_left_out_with_its_reason() -> None:
    loaded = load("\n".join(PLAN.splitlines()[:6]) + "\n  - {id: planted}\n  - {id: other}\n",
                  Planted(), Planted("other", ("logprobs",)))  # fmt: skip
    can, notices = able(loaded.parts, Abilities(logprobs=False))
    assert [part.label for part in can] == ["planted"]
    assert notices == ["other was not run: the endpoint does not offer logprobs."]
    assert len(able(loaded.parts, Abilities(logprobs=None))[0]) == 2


def test_a_second_question_stands_under_the_same_condition_put_before_it_once() -> None:
    loaded = load()
    asked = questions(loaded, loaded.parts)
    replies = {q.asked.key("here"): Reply(refusal="I will not.") for q in asked}
    second = follow_ups(read(asked, "here", replies), loaded.plan)
    assert len(second) == len(asked)
    guarded = [q.asked for q in second if q.condition.id == "guarded"]
    assert {tuple(m.role for m in c.messages) for c in guarded} == {("system", "user")}
    assert {c.stage for c in guarded} == {"fallback"} and guarded[0].condition == "guarded"
    replies = {q.asked.key("here"): Reply(refusal="Never.") for q in second}
    assert follow_ups(read(second, "here", replies), loaded.plan) == []


def test_an_estimate_counts_what_is_left_and_what_was_spent() -> None:
    loaded = load()
    endpoint = unasked(loaded)
    asked = [q.asked for q in questions(loaded, loaded.parts)]
    journal = MemoryJournal()
    entries = [(c.key(endpoint.name), c, Reply(text="yes", cost=0.5)) for c in asked[:8]]
    journal.keep([*entries, (asked[9].key(endpoint.name), asked[9], Reply(error="down"))])
    whole, rest = reckon(loaded, endpoint), reckon(loaded, endpoint, journal)
    assert whole.left.calls == 180 and rest.left.calls == 172 and rest.remembered == 8
    assert rest.spent == 4.0 and whole.calls["planted", "de", "guarded"] == 20
    assert whole.left.cost_likely and whole.left.cost_most
    assert whole.left.cost_likely < whole.left.cost_most


def test_a_budget_refuses_what_will_likely_cost_more_and_another_currency() -> None:
    loaded = load()
    found = reckon(loaded, unasked(loaded))
    assert found.left.cost_likely is not None
    assert excess(found, Budget(found.left.cost_likely + 1, "EUR")) is None
    assert "will likely cost" in str(excess(found, Budget(0.01, "EUR")))
    assert "is in EUR" in str(excess(found, Budget(1e9, "USD")))
    unpriced = load("\n".join(line for line in PLAN.splitlines() if "price" not in line))
    told = excess(reckon(unpriced, unasked(unpriced)), Budget(1e9))
    assert "set endpoint.price in the plan" in str(told)
