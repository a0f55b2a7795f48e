"""Scores without a published answer: empty denominators, bounds, intervals, choice of items."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from probes.benchmarks.choosing import choose, kind_of
from probes.benchmarks.counting import Answer, count
from probes.benchmarks.items import Condition, Item, Polarity
from probes.benchmarks.scoring import FIGURES, bias_range, score
from probes.calls import Status


def item(
    n: int = 0,
    template: int = 0,
    condition: Condition = "ambiguous",
    polarity: Polarity = "negative",
    label: int = 2,
    target: int | None = 0,
) -> Item:
    return Item(
        "bbq", "c", str(n), str(template), polarity, condition, f"text {n // 2}", "who?",
        ("one", "two", "nobody"), 2, target, label, "en",
    )  # fmt: skip


def test_no_answer_gives_no_figure_and_a_reason_never_zero() -> None:
    found = score([Answer(item(), None, Status.REFUSED), Answer(item(), None, Status.UNPARSABLE)])
    for name in FIGURES:
        figure = found.figures[name]
        assert figure.value is None and figure.interval is None
        assert figure.reason
    assert found.counts.status(Status.REFUSED) == 1
    assert score([]).figures["acc_amb"].value is None


def test_texts_of_one_kind_alone_have_an_accuracy_and_no_difference() -> None:
    told = [item(condition="disambiguated", label=0)] * 5
    found = score([Answer(i, 0) for i in told])
    assert found.value("acc_disamb") == 1.0
    assert found.value("diff_bias_disamb") is None
    assert "with and against" in found.figures["diff_bias_disamb"].reason
    unknown = score([Answer(i, 2) for i in told])
    assert unknown.value("s_disamb_pct") is None
    assert "names a person" in unknown.figures["s_disamb_pct"].reason


def test_every_answer_is_in_exactly_one_count() -> None:
    answers = [
        Answer(item(), 0), Answer(item(polarity="non_negative"), 0), Answer(item(), 2),
        Answer(item(), None, Status.OUT_OF_CHOICE), Answer(item(target=None), 0),
        Answer(item(condition="disambiguated", label=1), 1), Answer(item(), None, Status.FILTERED),
    ]  # fmt: skip
    counts = count(answers)
    assert counts.of("asked") == 7
    assert counts.of("no_unique_target") == 1
    statuses = sum(counts.status(status) for status in Status)
    assert statuses + counts.of("no_unique_target") == 7
    cells = {(c.condition, c.polarity): c for c in counts.cells}
    negative = cells["ambiguous", "negative"]
    assert (negative.towards, negative.unknown, negative.against, negative.answered) == (1, 1, 0, 2)
    assert cells["ambiguous", "non_negative"].against == 1
    assert len(counts.cells) == 4


@examples(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_the_difference_lies_within_its_range_for_all_counts(
    n_b: int, n_c: int, data: st.DataObject
) -> None:
    k_b, k_c = data.draw(st.integers(0, n_b)), data.draw(st.integers(0, n_c))
    found = bias_range(k_b + k_c, n_b, n_c)
    assert found is not None
    assert found[0] - 1e-12 <= k_b / n_b - k_c / n_c <= found[1] + 1e-12
    # the ends are reached by some counts, so that no narrower range would do
    reached = [b / n_b - (k_b + k_c - b) / n_c for b in range(n_b + 1) if 0 <= k_b + k_c - b <= n_c]
    assert (min(reached), max(reached)) == (pytest.approx(found[0]), pytest.approx(found[1]))


def test_templates_that_are_all_alike_are_not_certainty() -> None:
    answers = [Answer(item(n, template=n % 10), 2) for n in range(100)]
    found = score(answers)
    accuracy, lean = found.figures["acc_amb"], found.figures["diff_bias_amb"]
    assert accuracy.interval is not None and accuracy.interval.low == pytest.approx(0.963, abs=1e-3)
    assert lean.interval is not None and lean.interval.high > 0.02
    one = score([Answer(item(n), n % 3) for n in range(30)])
    assert one.figures["acc_amb"].interval is not None
    assert "too few" in one.figures["acc_amb"].interval.method


def test_the_same_seed_gives_the_same_intervals() -> None:
    rng = random.Random(1)
    answers = [Answer(item(n, template=n % 12), rng.randrange(3)) for n in range(120)]
    assert score(answers, 4).figures == score(answers, 4).figures
    assert score(answers, 4).figures != score(answers, 5).figures


def test_a_lean_that_differs_between_templates_is_within_its_interval() -> None:
    """Planted: templates lean by 0.1 on average, with a spread of 0.3 between them."""
    hits = 0
    for seed in range(80):
        rng = random.Random(seed)
        answers = []
        for template in range(24):
            lean = min(0.9, max(-0.9, rng.gauss(0.1, 0.3)))
            for n in range(20):
                option = 0 if rng.random() < (1 + lean) / 2 else 1
                answers.append(Answer(item(n, template), option))
        span = score(answers, seed, draws=300).figures["diff_bias_amb"].interval
        assert span is not None
        hits += span.low <= 0.1 <= span.high
    assert hits >= 72


def pool() -> list[Item]:
    found = []
    for n in range(800):
        told = n % 4 >= 2
        polarity: Polarity = "negative" if n % 2 == 0 else "non_negative"
        with_it = (n // 4) % 10 == 0
        label = 2 if not told else int((polarity == "negative") != with_it)
        condition: Condition = "disambiguated" if told else "ambiguous"
        found.append(item(n, n // 40, condition, polarity, label))
    return found


def test_a_limit_takes_some_of_every_kind_question_and_template() -> None:
    chosen = choose(pool(), 80, 3)
    assert len(chosen) == len({i.id for i in chosen}) == 80
    assert Counter(kind_of(i) for i in chosen) == {"ambiguous": 40, "with": 20, "against": 20}
    assert Counter(i.polarity for i in chosen) == {"negative": 40, "non_negative": 40}
    assert len({i.template for i in chosen}) == 20
    assert choose(pool(), 80, 3) == chosen != choose(pool(), 80, 4)


def test_what_one_kind_lacks_is_filled_from_the_others() -> None:
    chosen = choose(pool(), 400, 0)
    assert len(chosen) == 400
    assert Counter(kind_of(i) for i in chosen)["with"] == 40


def test_items_without_a_direction_are_not_asked() -> None:
    assert choose([item(), item(target=None)], None, 0) == [item()]
