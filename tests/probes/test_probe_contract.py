"""What every probe owes a run: calls that differ in the slot alone, and readings whatever comes back.

New probes are picked up by themselves; docs/adding_a_probe.md says what is asked of them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from difflib import SequenceMatcher
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.asking.body import body, wished
from probes.calls import Call, Reading, Reply, Status
from probes.contract import Probe, discover
from probes.pairs.tokens import tokens
from probes.statuses import status_of
from service.report.wording import FORBIDDEN
from tests.probes.contract_ways import (
    FIRST,
    FOUND,
    LONG,
    NASTY,
    REFUSALS,
    SHAPES,
    WAYS,
    Way,
    answers,
)

OWN = {"association", "family_roles", "minimal_pairs", "narrative", "qa_benchmark", "regressions", "resume"}  # fmt: skip
every_way = pytest.mark.parametrize("way", WAYS, ids=str)
MOST_DIFFERENCES = 24
"""Places in which two prompts of a pair may differ: a name's or a pronoun's, in a long text."""
LOOKS = {
    "zh": re.compile(r"[\u4e00-\u9fff]{4}"),
    "ko": re.compile(r"[\uac00-\ud7a3]{2}"),
    "de": re.compile(r"\b(der|die|das|ist|ein|eine|wer|Sie|sie|er|und|auf|als|einer)\b"),
    "en": re.compile(r"\b(the|a|is|who|he|she|and|with)\b", re.I),
}


@cache
def built(way: Way) -> Probe:
    return way.build()


@cache
def asked(way: Way) -> tuple[Call, ...]:
    return tuple(built(way).calls(way.language, 7))


def text_of(call: Call) -> str:
    return call.prompt or "\n\n".join(m.content for m in call.messages)


def few(way: Way) -> list[Call]:
    """One call of each arm and item, at most four, spread over them all."""
    kinds = list({(c.arm, c.facts.get("role")): c for c in asked(way)}.values())
    return kinds[:4]


def test_the_probes_that_come_with_the_program_are_found() -> None:
    assert set(discover()) >= OWN
    assert "promotion" in FOUND, "the example of docs/adding_a_probe.md is held to it as well"


@pytest.mark.parametrize("probe", sorted(FOUND))
def test_a_probe_says_what_it_is(probe: str) -> None:
    spec = FOUND[probe][0]
    assert spec.id == probe and re.fullmatch(r"[a-z][a-z0-9_]*", probe)
    assert spec.title.strip() and spec.question.endswith("?") and spec.reference.strip()
    assert spec.languages and len(set(spec.languages)) == len(spec.languages)
    assert set(spec.needs) <= {"logprobs", "completion"}
    assert not FORBIDDEN.search(f"{spec.title} {spec.question}")


@every_way
def test_every_place_is_asked_once_and_the_same_seed_asks_the_same(way: Way) -> None:
    calls = asked(way)
    assert calls and len({c.place for c in calls}) == len(calls)
    twin = way.build()
    again = [twin.calls(way.language, 7), built(way).calls(way.language, 7)]
    assert all(repr([asdict(c) for c in x]) == repr([asdict(c) for c in calls]) for x in again)
    assert len({c.key("e") for c in calls}) == len(calls)


@every_way
def test_every_call_is_one_conversation_of_its_own(way: Way) -> None:
    spec = built(way).spec
    for call in asked(way):
        assert (call.probe, call.language) == (way.id, way.language)
        assert call.condition == "plain" and call.stage == "main" and call.repeat >= 0
        roles = [m.role for m in call.messages]
        assert roles in (["user"], ["system", "user"]) if call.kind == "chat" else not roles
        assert bool(call.prompt) == (call.kind == "completion") and text_of(call).strip()
        wish = call.sampling
        assert wish.temperature is None or 0 <= wish.temperature <= 2
        assert wish.top_p is None or 0 < wish.top_p <= 1
        assert 1 <= wish.max_tokens <= 8192
        assert not wish.top_logprobs or "logprobs" in spec.needs
        assert call.kind == "chat" or "completion" in spec.needs or way.id == "minimal_pairs"
        assert all(isinstance(x, str) for pair in call.facts.items() for x in pair)
    parts = [id(x) for c in asked(way) for x in (c.facts, *c.messages)]
    assert len(set(parts)) == len(parts), "two calls share an object"


@every_way
def test_nothing_of_the_analysis_is_sent(way: Way) -> None:
    for call in asked(way):
        marked = replace(call, item="MARK", arm="MARK", facts=dict.fromkeys(call.facts, "MARK"))
        sent = body(marked, "m", wished(marked))
        assert sent == body(call, "m", wished(call)) and "MARK" not in repr(sent)
        text = text_of(call)
        assert not re.search(r"\{\w*\}|\bNone\b|\bnull\b", text), "a slot was not filled"
        assert call.item not in text
        assert all(f"{name}:" not in text for name in call.facts if "_" in name)


@every_way
def test_a_question_is_put_in_the_language_that_was_asked_for(way: Way) -> None:
    looks = LOOKS.get(way.language)
    for call in asked(way):
        assert looks is None or looks.search(text_of(call)), text_of(call)


@every_way
def test_within_an_item_every_arm_is_asked_equally_often(way: Way) -> None:
    by_item: dict[str, Counter[str]] = defaultdict(Counter)
    repeats: dict[tuple[str, str], list[int]] = defaultdict(list)
    for call in asked(way):
        by_item[call.item][call.arm] += 1
        repeats[call.item, call.arm].append(call.repeat)
    assert all(len(set(counts.values())) == 1 for counts in by_item.values())
    for item, counts in by_item.items():
        assert len({tuple(sorted(repeats[item, arm])) for arm in counts}) == 1


def pairs_of(calls: Sequence[Call]) -> Iterator[tuple[Call, Call]]:
    """Every two arms of an item, in one repeat."""
    together: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for call in calls:
        together[call.item, call.repeat].append(call)
    for group in together.values():
        yield from itertools.combinations(group, 2)


def declared(call: Call) -> list[str]:
    """What the call says stands in its slots. The fact ``prompt`` is a whole sentence and no slot."""
    return [value for name, value in call.facts.items() if name != "prompt"]


@every_way
def test_the_arms_of_an_item_differ_in_the_declared_slot_or_in_order_alone(way: Way) -> None:
    seen = set()
    for one, two in pairs_of(asked(way)):
        texts = (text_of(one), text_of(two))
        if texts in seen:
            continue
        seen.add(texts)
        assert texts[0] != texts[1], f"{one.item}: {one.arm} and {two.arm} are asked the same"
        assert one.sampling == two.sampling and one.kind == two.kind
        a, b = (tokens(text, way.language) for text in texts)
        if sorted(a) == sorted(b):
            continue  # the same words in another order
        parts = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        changes = [(a[i:j], b[k:n]) for tag, i, j, k, n in parts if tag != "equal"]
        assert len(changes) <= MOST_DIFFERENCES
        for side, call in ((0, one), (1, two)):
            forms = {t for value in declared(call) for t in tokens(value, way.language)}
            differing = {t for change in changes for t in change[side] if not t.isspace()}
            assert differing <= forms, f"{one.item}: {differing - forms} is declared nowhere"


def check(reading: Reading, call: Call, reply: Reply) -> None:
    assert reading.call is call and reading.model == reply.model
    if reading.status is Status.ANSWERED:
        assert reading.label is not None or reading.value is not None
    else:
        assert reading.label is None and reading.value is None
        assert reading.reason.strip() and "\n" not in reading.reason
    assert reading.value is None or abs(reading.value) < 1e9
    for extra in reading.extras.values():
        assert isinstance(extra, str) or abs(extra) < 1e9
    ended, _ = status_of(reply, call.language, open_ended=True)
    told_by_odds = bool(call.sampling.top_logprobs) and not reply.refusal
    if ended in (Status.ERRORED, Status.FILTERED) or (ended is Status.REFUSED and not told_by_odds):
        assert reading.status is ended


@every_way
def test_each_probe_takes_several_answers_apart(way: Way) -> None:
    for call in few(way):
        found = {
            (r.label, r.value) for r in (built(way).read(call, a) for a in answers(call))
            if r.status is Status.ANSWERED
        }  # fmt: skip
        assert len(found) >= 2


@every_way
def test_no_reply_makes_a_probe_raise(way: Way) -> None:
    probe = built(way)
    for call in few(way)[:2]:
        for text in (*NASTY, *REFUSALS):
            reply = Reply(text, finish_reason="stop", model="m")
            check(probe.read(call, reply), call, reply)
        for shape, text in itertools.product(SHAPES, ("", "A", "yes, 50 %", REFUSALS[0])):
            reply = Reply(text, **shape)  # type: ignore[arg-type]
            check(probe.read(call, reply), call, reply)


@pytest.mark.parametrize("way", FIRST, ids=str)
def test_a_reply_of_a_hundred_thousand_letters_is_read(way: Way) -> None:
    for text in LONG:
        call, reply = few(way)[0], Reply(text, model="m")
        check(built(way).read(call, reply), call, reply)


@pytest.mark.parametrize("way", FIRST, ids=str)
@pytest.mark.parametrize("text", REFUSALS)
def test_declining_in_any_language_is_a_refusal(way: Way, text: str) -> None:
    for call in few(way):
        if not call.sampling.top_logprobs:
            assert built(way).read(call, Reply(text)).status is Status.REFUSED
        assert built(way).read(call, Reply(refusal=text)).status is Status.REFUSED


@settings(max_examples=120, deadline=None)
@given(
    way=st.sampled_from(WAYS),
    text=st.one_of(
        st.text(max_size=200),
        st.lists(
            st.sampled_from(
                ["A", "B.", "{", "}", '"', ":", "yes", "no", "score", "proceed", "\n", "he", "she",
                 "他", "er", "%", "40", "not", "```", "<think>", "</think>", "sorry", ",", "[", "nicht"]
            ),
            max_size=40,
        ).map(" ".join),
    ),
    shape=st.sampled_from(SHAPES),
    which=st.integers(0, 10_000),
)  # fmt: skip
def test_whatever_a_model_says_is_read_and_read_the_same_twice(
    way: Way, text: str, shape: dict[str, object], which: int
) -> None:
    calls = asked(way)
    call, reply = calls[which % len(calls)], Reply(text, **shape)  # type: ignore[arg-type]
    first = built(way).read(call, reply)
    check(first, call, reply)
    assert first == built(way).read(call, reply) == way_twin(way).read(call, reply)


@cache
def way_twin(way: Way) -> Probe:
    return way.build()


@every_way
def test_a_second_question_comes_at_most_once_and_is_another(way: Way) -> None:
    probe = built(way)
    for call in few(way):
        guarded = call.under("guarded", "Judge the work alone.", temperature=0.3)
        for asked_first, status in itertools.product((call, guarded), Status):
            value = 0.5 if status is Status.ANSWERED else None
            label = "x" if status is Status.ANSWERED else None
            reading = Reading(asked_first, status, label, value, "why")
            second = probe.follow_up(reading, 7)
            if second is None:
                continue
            assert status is not Status.ANSWERED
            assert second.stage == "fallback" and second.place != asked_first.place
            assert replace(second, stage="main").place == asked_first.place
            assert text_of(second) != text_of(asked_first)
            assert second.sampling == asked_first.sampling
            assert second.messages[:-1] == asked_first.messages[:-1], "the guard is left out"
            assert second == probe.follow_up(reading, 7)
            for ended in Status:
                again = Reading(second, ended, label, value, "why")
                assert probe.follow_up(again, 7) is None
            check(probe.read(second, Reply("40 %")), second, Reply("40 %"))
