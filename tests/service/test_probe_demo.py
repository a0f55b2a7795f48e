"""The plan of make probe-demo: it loads without a key, and stays small enough for a few minutes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from service.probe_plans import load_probe_plan
from service.probe_questions import questions


def test_the_demo_asks_what_one_core_answers_within_minutes(samples_dir: Path) -> None:
    loaded = load_probe_plan(samples_dir / "probes" / "demo.yaml")
    asked = [q.asked for q in questions(loaded, loaded.parts)]
    calls = Counter(call.probe for call in asked)
    assert calls == {
        "association": 1220,
        "minimal_pairs": 72,
        "family_roles": 84,
        "resume": 4,
        "qa_benchmark": 36,
    }
    # a next-token question costs 40 ms; a character of prompt 1.5 ms, a token written 16 ms
    drawn = [call for call in asked if call.probe != "association"]
    seconds = 0.04 * calls["association"]
    for call in drawn:
        words = call.prompt + "".join(message.content for message in call.messages)
        seconds += 0.0015 * len(words) + 0.016 * call.sampling.max_tokens
    assert seconds < 240
