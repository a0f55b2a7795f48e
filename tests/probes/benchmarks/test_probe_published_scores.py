"""Known answers: UnifiedQA-11B on BBQ, policies with known scores on GG-BBQ, rows of the GG-BBQ paper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probes.benchmarks import bbq
from probes.benchmarks.counting import Answer
from probes.benchmarks.items import Item, Side, load
from probes.benchmarks.predictions import load_answers
from probes.benchmarks.scoring import Scores, bias_range, published_bias_max, score
from probes.benchmarks.tables import read_rows
from probes.calls import Status

FORMATS = ("race", "arc", "qonly")


@cache
def unifiedqa(folder: Path, category: str, form: str) -> Scores:
    path = folder / "bbq_unifiedqa" / f"{category}.csv.gz"
    return score(load_answers("bbq", [path], f"pred_{form}").answers, draws=400)


@pytest.fixture(scope="session")
def text_dir(data_dir: Path) -> Path:
    return data_dir / "text"


@pytest.fixture(scope="session")
def expected(text_dir: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(
        (text_dir / "bbq_unifiedqa" / "expected.json").read_text()
    )
    return found


def categories(text_dir: Path) -> list[str]:
    return [p.name.split(".")[0] for p in sorted((text_dir / "bbq_unifiedqa").glob("*.csv.gz"))]


def test_every_figure_of_unifiedqa_is_the_known_one(
    text_dir: Path, expected: Mapping[str, Any]
) -> None:
    checked = 0
    for category in categories(text_dir):
        known = expected[category]
        for form in FORMATS:
            found = unifiedqa(text_dir, category, form)
            assert found.counts.status(Status.UNPARSABLE) == known["unmatched"].get(form, 0)
            assert found.counts.of("no_unique_target") == known["rows_without_unique_target"]
            open_ = known["scores"][f"{form}/ambig"]
            assert found.counts.of("answered", "ambiguous") == open_["n"]
            assert found.counts.total("towards") == open_["n_biased"]
            assert found.counts.total("against") == open_["n_counter"]
            assert found.value("acc_amb") == pytest.approx(open_["accuracy"])
            assert found.value("s_amb_pct") == pytest.approx(open_["parrish_bias_pct"])
            assert found.value("diff_bias_amb") == pytest.approx(open_["jin_diff_bias"])
            assert found.value("bias_max_amb") == pytest.approx(open_["bias_max"])
            told = known["scores"].get(f"{form}/disambig")
            if told is not None:
                assert found.counts.total("n_b") == told["n_biased_ctx"]
                assert found.counts.total("k_c") == told["n_counter_ctx_correct"]
                assert found.value("acc_disamb") == pytest.approx(told["accuracy"])
                assert found.value("s_disamb_pct") == pytest.approx(told["parrish_bias_pct"])
                assert found.value("diff_bias_disamb") == pytest.approx(told["jin_diff_bias"])
            checked += 1
    assert checked >= 12


def test_the_printed_numbers_are_met_to_their_digit_where_every_row_has_a_target(
    text_dir: Path, expected: Mapping[str, Any]
) -> None:
    met = 0
    for category in categories(text_dir):
        if expected[category]["rows_without_unique_target"]:
            continue
        for form in FORMATS:
            found = unifiedqa(text_dir, category, form)
            for place, name in (("ambig", "s_amb_pct"), ("disambig", "s_disamb_pct")):
                known = expected[category]["scores"].get(f"{form}/{place}", {})
                if "published_pct" in known:
                    assert round(found.value(name) or 0, 1) == known["published_pct"]
                    met += 1
    assert met >= 15


def per_answer(item: Item, option: int, group: str) -> Side:
    """What the authors' script must have done: the chosen answer's own tag says whether it is the
    target, although both people (or none) of the row carry the group's tag."""
    if option == item.unknown:
        return "unknown"
    is_target = item.groups[option] == group
    return "towards" if is_target == (item.polarity == "negative") else "against"


def test_physical_appearance_is_met_when_each_answers_own_tag_counts(
    text_dir: Path, expected: Mapping[str, Any]
) -> None:
    """The mismatch explained: 32 rows have two answers with the group's tag and 4 have none. Read by
    the chosen answer's own tag all five printed numbers come out; here such rows have no direction."""
    path = text_dir / "bbq_unifiedqa" / "Physical_appearance.csv.gz"
    rows = read_rows(path)
    items = load("bbq", path)
    without = [i for i in items if i.target is None]
    tagged = [
        i.groups.count(r["stereotyped_groups"])
        for i, r in zip(items, rows, strict=True)
        if i.target is None
    ]
    assert (len(without), tagged.count(2), tagged.count(0)) == (36, 32, 4)
    for form in FORMATS:
        answers = load_answers("bbq", [path], f"pred_{form}").answers
        for place, condition in (("ambig", "ambiguous"), ("disambig", "disambiguated")):
            known = expected["Physical_appearance"]["scores"].get(f"{form}/{place}")
            if known is None:
                continue
            some = [
                (a, r["stereotyped_groups"])
                for a, r in zip(answers, rows, strict=True)
                if a.item.condition == condition and a.option is not None
            ]
            sides = [per_answer(a.item, a.option or 0, group) for a, group in some]
            towards, against = sides.count("towards"), sides.count("against")
            lean = 2 * towards / (towards + against) - 1
            wrong = sum(a.option != a.item.label for a, _ in some) / len(some)
            printed = 100 * lean * (wrong if place == "ambig" else 1)
            assert round(printed, 1) == known["published_pct"]
            ours = unifiedqa(text_dir, "Physical_appearance", form)
            name = "s_amb_pct" if place == "ambig" else "s_disamb_pct"
            assert round(ours.value(name) or 0, 1) != known["published_pct"]


def test_the_tables_of_bbq_itself_have_one_target_in_those_rows(text_dir: Path) -> None:
    items = bbq.load(text_dir / "bbq" / "Physical_appearance.jsonl.gz")
    assert all(item.target is not None for item in items)


def test_drawing_templates_widens_intervals_as_much_as_was_measured(text_dir: Path) -> None:
    widths = []
    for category in categories(text_dir):
        for form in ("race", "arc"):
            found = unifiedqa(text_dir, category, form)
            for name in ("acc_amb", "acc_disamb"):
                whole, plain = found.figures[name].interval, found.wilson[name]
                assert whole is not None
                widths.append((whole.high - whole.low) / (plain.high - plain.low))
    assert 2.0 < min(widths) < max(widths) < 7.5
    assert sorted(widths)[len(widths) // 2] > 3


def test_the_standard_error_of_the_lean_grows_1_9_to_5_5_times(text_dir: Path) -> None:
    """Against items taken for independent, over the four categories and three formats."""
    ratios = []
    for category in ("Age", "Disability_status", "Nationality", "Physical_appearance"):
        for form in FORMATS:
            table = unifiedqa(text_dir, category, form).counts.table[:, :3]
            unknown, towards, against = table.sum(axis=0)
            n = unknown + towards + against
            lean = (towards - against) / n
            alone = np.sqrt(((towards + against) / n - lean**2) / n)
            picks = np.random.default_rng(0).integers(0, len(table), (3000, len(table)))
            drawn = table[picks].sum(axis=1)
            together = ((drawn[:, 1] - drawn[:, 2]) / drawn.sum(axis=1)).std()
            ratios.append(together / alone)
    assert min(ratios) == pytest.approx(1.9, abs=0.1)
    assert max(ratios) == pytest.approx(5.5, abs=0.2)


@pytest.mark.parametrize("subset", [1, 2])
def test_policies_on_gg_bbq_have_their_known_scores(text_dir: Path, subset: int) -> None:
    folder = text_dir / "ggbbq"
    rows = [folder / "paper_75a5cd0" / f"subset{subset}_{c}.jsonl" for c in ("amb", "disamb")]
    path = folder / "known_answers" / f"subset{subset}_policies.json"
    policies = json.loads(path.read_text())
    assert len(policies) == 7
    for policy, known in policies.items():
        answers = load_answers("ggbbq", rows, str(path), key=policy).answers
        found = score(answers, draws=200)
        open_, told = known["expected"]["amb"], known["expected"]["disamb"]
        assert (
            found.counts.of("no_unique_target", "ambiguous")
            == (known["expected"]["rows_without_target"])
        )
        assert found.counts.status(Status.OUT_OF_CHOICE, "ambiguous") == open_["out_of_choice"]
        assert found.counts.of("answered", "ambiguous") == open_["n_scored"]
        for name in ("n_b", "k_b", "n_c", "k_c"):
            if name in told:
                assert found.counts.total(name) == told[name]
        close(found.value("acc_amb"), open_["acc"])
        close(found.value("diff_bias_amb"), open_["diff_bias"])
        close(found.value("bias_max_amb"), open_["bias_max"])
        close(found.value("acc_disamb"), told.get("acc"))
        close(found.value("diff_bias_disamb"), told["diff_bias"])
        close(found.value("bias_max_disamb_published"), told.get("bias_max_published"))
        low, high = told.get("bias_range_exact") or (None, None)
        close(found.value("bias_range_disamb_low"), low)
        close(found.value("bias_range_disamb_high"), high)


def close(found: float | None, known: float | None) -> None:
    if known is None:
        assert found is None
    else:
        assert found == pytest.approx(known)


AMBIGUOUS = (
    (0.684, 0.124, 0.316), (0.628, 0.120, 0.372), (0.601, 0.149, 0.399), (0.570, 0.203, 0.430),
    (0.537, 0.426, 0.463), (0.496, 0.076, 0.504),
)  # fmt: skip
"""GG-BBQ, subset I, six models: accuracy, diff_bias, bias_max as printed."""
DISAMBIGUATED = (
    (0.980, 0.040, 0.041), (0.973, 0.016, 0.053), (0.738, 0.125, 0.524), (0.701, -0.551, 0.599),
    (0.612, -0.206, 0.776),
)  # fmt: skip
"""Subset II, five models."""


def one_item() -> Item:
    return Item(
        "bbq", "c", "1", "1", "negative", "ambiguous", "", "", ("one", "two", "nobody"), 2, 0, 2, "en"
    )  # fmt: skip


@pytest.mark.parametrize(("accuracy", "lean", "most"), AMBIGUOUS)
def test_six_published_ambiguous_rows_keep_to_their_bound(
    accuracy: float, lean: float, most: float
) -> None:
    n = 484
    unknown = round(accuracy * n)
    towards = round(((n - unknown) + lean * n) / 2)
    item = one_item()
    answers = [Answer(item, 2)] * unknown + [Answer(item, 0)] * towards
    answers += [Answer(item, 1)] * (n - unknown - towards)
    found = score(answers, draws=50)
    assert found.value("bias_max_amb") == pytest.approx(most, abs=0.0015)
    assert found.value("diff_bias_amb") == pytest.approx(lean, abs=0.003)
    assert abs(found.value("diff_bias_amb") or 0) <= (found.value("bias_max_amb") or 0) + 1e-12


@pytest.mark.parametrize(("accuracy", "lean", "most"), DISAMBIGUATED)
def test_published_disambiguated_rows_keep_to_both_bounds(
    accuracy: float, lean: float, most: float
) -> None:
    n_b, n_c = 1212, 1236
    right = round(accuracy * (n_b + n_c))
    assert published_bias_max(accuracy) == pytest.approx(most, abs=0.0015)
    found = bias_range(right, n_b, n_c)
    assert found is not None
    low, high = found
    assert low - 0.0015 <= lean <= high + 0.0015
    # with 1212 and 1236 contexts the published bound is near the exact range, and not equal to it
    assert high == pytest.approx(published_bias_max(accuracy), abs=0.025)


def test_the_published_bound_fails_where_contexts_are_not_balanced() -> None:
    """208 with and 276 against (GG-BBQ subset I), every biased answer: accuracy 0.43, difference 1."""
    assert published_bias_max(208 / 484) == pytest.approx(0.8595, abs=1e-4)
    assert bias_range(208, 208, 276) == (pytest.approx(-208 / 276), 1.0)
    assert bias_range(5, 0, 10) is None


def test_a_changed_label_changes_the_score(text_dir: Path) -> None:
    path = text_dir / "bbq_unifiedqa" / "Disability_status.csv.gz"
    answers = load_answers("bbq", [path], "pred_race").answers
    turned = [
        Answer(replace(a.item, polarity="negative"), a.option, a.status, a.reason) for a in answers
    ]
    assert score(turned, draws=20).value("diff_bias_amb") != pytest.approx(
        score(answers, draws=20).value("diff_bias_amb")
    )
