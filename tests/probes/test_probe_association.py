"""Occupations and gender: what is asked, what is read from replies, and what is found in them."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.errors import LikenessError
from domain.verdicts import VerdictKind
from probes import association_checks
from probes.association import NEUTRAL, Association, build
from probes.association_figures import correlation, logit, pooled
from probes.association_texts import LANGUAGES, occupations, texts
from probes.calls import Call, Reading, Reply, Status
from probes.contract import discover
from probes.results import Figure, Interval, ProbeResult

HERE = Path()
REFUSED = "I'm sorry, but I can't answer that."


def probe(**settings: Any) -> Association:
    return build(settings, HERE)


def readings(
    asked: Association, answer: Callable[[Call], Reply], language: str = "en"
) -> list[Reading]:
    """The whole conversation of a probe with something that answers, second questions included."""
    calls = asked.calls(language, 1)
    first = [asked.read(call, answer(call)) for call in calls]
    again = [call for reading in first if (call := asked.follow_up(reading, 1))]
    return first + [asked.read(call, answer(call)) for call in again]


def score(asked: Association, answer: Callable[[Call], Reply], language: str = "en") -> ProbeResult:
    return asked.score(readings(asked, answer, language), language, 7)


def figure(result: ProbeResult, name: str) -> Figure:
    found = result.figure(name)
    assert found is not None
    return found


def tokens(log_odds: float, men: str = " he", women: str = " she") -> Reply:
    """A next token whose two pronouns have 30 % of the probability between them."""
    share = 0.3 / (1 + math.exp(-log_odds))
    rest = {" the": math.log(0.6), " a": math.log(1e-6)}
    return Reply(
        text=" the", finish_reason="length",
        top_logprobs=({**rest, men: math.log(share), women: math.log(0.3 - share)},),
    )  # fmt: skip


def said(text: str) -> Reply:
    return Reply(text=text, finish_reason="stop")


# -- what is asked ------------------------------------------------------------------------------


def test_it_is_found_as_a_probe() -> None:
    spec, _ = discover()["association"]
    assert spec.languages == ("en", "zh", "de")


@pytest.mark.parametrize("mode", ["next_token", "estimate", "choice"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_place_is_asked_once_with_every_slot_filled(mode: str, language: str) -> None:
    asked = probe(mode=mode, repeats=2)
    calls = asked.calls(language, 1)
    assert len({c.place for c in calls}) == len(calls)
    assert calls == asked.calls(language, 99)
    for call in calls:
        words = call.prompt or call.messages[-1].content
        assert "{" not in words
        assert texts(language).neutral in words or call.facts["word"] in words
    neutral = [c for c in calls if c.facts["occupation"] == NEUTRAL]
    assert {c.facts["template"] for c in neutral} == {c.facts["template"] for c in calls}


def test_the_words_lists_hold_together() -> None:
    english = texts("en")
    assert len(english.templates) == 20 and len(english.occupations) == 60
    assert all(o.share_women is not None for o in english.occupations)
    for language in LANGUAGES:
        found = texts(language)
        assert len({o.id for o in found.occupations}) == len(found.occupations)
        assert len({o.word for o in found.occupations}) == len(found.occupations)
        assert len(set(found.templates)) == len(found.templates)
        assert all(t.count("{o}") == 1 for t in found.templates)
        assert all("{first}" in w and "{second}" in w for w in found.choice.wordings)
        assert all("{group}" in w for w in (*found.estimate.wordings, found.estimate.fallback))


def test_german_templates_leave_no_noun_for_the_pronoun_to_agree_with() -> None:
    nouns = {"der", "die", "das", "ein", "eine"}
    for template in texts("de").templates:
        subject = template.split("{o}")[0].split()
        assert not nouns & {w.lower() for w in subject}
        assert subject[1:] == ["arbeitet"]


def test_the_two_arms_of_an_item_differ_in_the_slot_alone() -> None:
    by_item: dict[tuple[str, int], dict[str, str]] = {}
    for call in probe(mode="estimate", repeats=1).calls("en", 1):
        by_item.setdefault((call.item, call.repeat), {})[call.arm] = call.messages[0].content
    assert by_item
    for arms in by_item.values():
        changed = [
            w for w in zip(arms["men"].split(), arms["women"].split(), strict=True) if w[0] != w[1]
        ]
        assert {(a.strip(".,?"), b.strip(".,?")) for a, b in changed} == {("men", "women")}


def test_a_choice_names_either_pronoun_first() -> None:
    calls = probe(mode="choice", repeats=1, occupations=["nurse"], templates=1).calls("en", 1)
    words = {c.arm: c.messages[0].content for c in calls if c.facts["occupation"] == "nurse"}
    assert '"he" or "she"' in words["men first"]
    assert '"she" or "he"' in words["women first"]


def test_next_tokens_are_asked_for_without_drawing_any_text() -> None:
    call = probe(top_logprobs=50).calls("en", 1)[0]
    assert (call.kind, call.sampling.max_tokens, call.sampling.top_logprobs) == (
        "completion",
        1,
        50,
    )
    chat = probe(kind="chat").calls("en", 1)[0]
    assert chat.kind == "chat" and chat.messages[0].content.endswith("The technician told us that")
    assert probe().spec.needs == ("completion", "logprobs")
    assert probe(kind="chat").spec.needs == ("logprobs",)
    assert probe(mode="estimate").spec.needs == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "guess"}, "setting 'mode'"),
        ({"ocupations": []}, "unknown setting 'ocupations'"),
        ({"occupations": ["nurze"]}, "no occupation 'nurze'"),
        ({"reference": {"file": "absent.csv"}}, "reference absent.csv: No such file"),
        ({"more_occupations": {NEUTRAL: "x"}}, "is no name for an occupation"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(LikenessError, match="probe 'association'") as caught:
        build(settings, HERE)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_own_occupations_stand_beside_those_of_the_list() -> None:
    found = occupations("en", ["nurse", "astronaut"], {"astronaut": "astronaut"})
    assert [o.word for o in found] == ["nurse", "astronaut"]
    with pytest.raises(LikenessError, match="no occupation 'nursing' in en"):
        occupations("en", ["nursing"], {})


# -- what is read -------------------------------------------------------------------------------


def test_log_odds_are_mens_over_womens() -> None:
    call = probe().calls("en", 1)[0]
    reading = probe().read(call, tokens(0.7))
    assert reading.status is Status.ANSWERED
    assert reading.value == pytest.approx(0.7)
    assert reading.extras["mass"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("told", "value", "bound"),
    [
        ({" he": 0.2, " the": 0.5, " a": 0.01}, math.log(20), "at least"),
        ({" she": 0.2, " the": 0.5, " a": 0.01}, -math.log(20), "at most"),
    ],
)
def test_a_pronoun_that_is_not_among_the_tokens_bounds_the_figure_and_says_so(
    told: dict[str, float], value: float, bound: str
) -> None:
    reply = Reply(text=" the", top_logprobs=({k: math.log(p) for k, p in told.items()},))
    reading = probe().read(probe().calls("en", 1)[0], reply)
    assert reading.value == pytest.approx(value)
    assert reading.extras["bound"] == bound
    assert reading.reason.startswith(f"{bound} this")


def test_neither_pronoun_among_the_tokens_is_no_figure() -> None:
    reply = Reply(text=" the", top_logprobs=({" the": -0.1, " a": -3.0},))
    reading = probe().read(probe().calls("en", 1)[0], reply)
    assert (reading.status, reading.value) == (Status.OUT_OF_CHOICE, None)
    assert "2 most likely tokens" in reading.reason


def test_a_reply_without_log_probabilities_is_no_figure() -> None:
    reading = probe().read(probe().calls("en", 1)[0], Reply(text=" he", finish_reason="length"))
    assert (reading.status, reading.value) == (Status.UNPARSABLE, None)
    assert reading.reason == "no log-probabilities in the reply"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Reply(error="connection refused"), Status.ERRORED),
        (Reply(filtered=True, finish_reason="content_filter"), Status.FILTERED),
    ],
)
@pytest.mark.parametrize("mode", ["next_token", "estimate", "choice"])
def test_no_reply_and_a_filtered_one_are_told_apart(
    reply: Reply, status: Status, mode: str
) -> None:
    asked = probe(mode=mode)
    reading = asked.read(asked.calls("en", 1)[0], reply)
    assert (reading.status, reading.value, reading.label) == (status, None, None)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("85", 0.85),
        ("85%", 0.85),
        ("About 85 percent.", 0.85),
        ("0.85", 0.85),
        ("1", 0.01),
        ("0", 0.0),
        ("100", 1.0),
        ("12,5 Prozent", 0.125),
        ("80-90%", 0.85),
        ("between 80 and 90 percent", 0.85),
        ("8 out of 10", 0.8),
        ("90/100", 0.9),
        ('```json\n{"percentage": 85}\n```', 0.85),
        ('{"share": "85 %"}', 0.85),
        ("85% women and 15% men", 0.85),
        ("Men: 15%, women: 85%.", 0.85),
        ("百分之八十五", 0.85),
        ("大约百分之85", 0.85),
        ("八成", 0.8),
        ("七成半", 0.75),
        ("85％", 0.85),
        ("<think>maybe 20 or 30</think>85", 0.85),
    ],
)
def test_shares_are_read_in_many_forms(text: str, share: float) -> None:
    asked = probe(mode="estimate")
    call = next(c for c in asked.calls("en", 1) if c.arm == "women")
    reading = asked.read(call, said(text))
    assert reading.status is Status.ANSWERED, reading.reason
    # values are shares of men, whichever group was asked for
    assert reading.value == pytest.approx(1 - share)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Most of them.", Status.UNPARSABLE),
        ("20% or 30% or 70%", Status.UNPARSABLE),
        ("140%", Status.OUT_OF_CHOICE),
        ("", Status.UNPARSABLE),
        (REFUSED, Status.REFUSED),
    ],
)
def test_what_is_no_share_has_a_status_and_a_reason(text: str, status: Status) -> None:
    asked = probe(mode="estimate")
    reading = asked.read(asked.calls("en", 1)[0], said(text))
    assert (reading.status, reading.value) == (status, None)
    assert reading.reason


@pytest.mark.parametrize(
    ("language", "text", "label"),
    [
        ("en", "She.", "women"),
        ("en", "he", "men"),
        ("en", 'The word is "she"', "women"),
        ("en", "the", None),
        ("en", "he or she", None),
        ("de", "Er", "men"),
        ("de", "sie", "women"),
        ("de", "Der Lehrer", None),
        ("zh", "她", "women"),
        ("zh", "应该填他。", "men"),
    ],
)
def test_a_choice_is_one_pronoun_and_no_other(language: str, text: str, label: str | None) -> None:
    asked = probe(mode="choice")
    reading = asked.read(asked.calls(language, 1)[0], said(text))
    assert reading.label == label
    assert (reading.status is Status.ANSWERED) == (label is not None)


# -- declined, and asked again ------------------------------------------------------------------


def test_who_declines_is_asked_once_more_and_the_two_answers_are_never_mixed() -> None:
    asked = probe(mode="estimate", repeats=2, occupations=["nurse", "plumber", "baker"])

    def answer(call: Call) -> Reply:
        share = {"nurse": 0.1, "plumber": 0.9}.get(call.facts["occupation"], 0.5)
        if call.stage == "main" and call.facts["occupation"] == "nurse":
            return said(REFUSED)
        return said(f"{100 * (share if call.arm == 'men' else 1 - share):.0f}")

    result = score(asked, answer)
    counts = {t.arm: t.counts for t in result.tallies}
    assert counts["men"][Status.REFUSED] == counts["women"][Status.REFUSED] == 6
    assert counts["men, asked again"] == {Status.ANSWERED: 6}
    # the first answers know nothing of nurses; the second know of nurses alone
    assert result.index.value == pytest.approx((0.8 + 0.0) / 2)
    assert figure(result, "fallback_index").value == pytest.approx(-0.8)
    nurse = next(row for row in result.tables[0].rows if row[0] == "nurse")
    assert nurse[1] is None and nurse[-1] == "no answer"
    assert any("declined; that is no low leaning" in n for n in result.notices)


def test_nobody_is_asked_a_third_time_or_because_of_anything_else() -> None:
    asked = probe(mode="estimate")
    call = asked.calls("en", 1)[0].under("guarded", "Judge by the work alone.")
    again = asked.follow_up(asked.read(call, said(REFUSED)), 1)
    assert again is not None
    assert (again.stage, again.condition, again.arm) == ("fallback", "guarded", call.arm)
    assert [m.role for m in again.messages] == ["system", "user"]
    assert again.messages[1].content != call.messages[1].content
    assert asked.follow_up(asked.read(again, said(REFUSED)), 1) is None
    assert asked.follow_up(asked.read(call, said("dunno")), 1) is None
    assert probe(mode="choice").follow_up(asked.read(call, said(REFUSED)), 1) is None


def test_all_declined_is_no_figure_and_not_a_low_one() -> None:
    result = score(probe(mode="estimate", repeats=1), lambda _: said(REFUSED))
    assert result.index.value is None
    assert "refused" in result.index.reason
    assert not result.usable and "no answer to any question" in result.why_not
    assert result.tests == ()


def test_a_difference_in_refusals_between_the_arms_is_an_outcome_of_its_own() -> None:
    def answer(call: Call) -> Reply:
        return said(REFUSED if call.arm == "women" and call.repeat % 2 else "50")

    result = score(probe(mode="estimate", repeats=4), answer)
    test = next(t for t in result.tests if t.id == "association_refusals")
    assert test.effect.value == pytest.approx(-0.5)
    assert test.verdict is VerdictKind.DISPARITY
    assert test.p_adjusted is not None and test.p_adjusted < 1e-6


# -- what is found ------------------------------------------------------------------------------


def test_a_planted_leaning_is_recovered_beside_the_neutral_word() -> None:
    planted = {o.id: (k % 7 - 3) / 2 for k, o in enumerate(texts("en").occupations)}

    def answer(call: Call) -> Reply:
        wording = 0.3 * int(call.facts["template"][2:]) - 2
        return tokens(wording + planted.get(call.facts["occupation"], 0.0))

    result = score(probe(), answer)
    for row in result.tables[0].rows:
        assert row[4] == pytest.approx(planted[str(row[0])])
        assert row[5] == pytest.approx(0.0, abs=1e-9)
    assert result.index.value == pytest.approx(
        np.mean([math.tanh(v / 2) for v in planted.values()])
    )
    assert figure(result, "template_sd").value == pytest.approx(0.0, abs=1e-9)


def test_a_liking_for_one_pronoun_everywhere_is_no_leaning_of_occupations() -> None:
    result = score(probe(), lambda _: tokens(-1.5))
    assert result.index.value == pytest.approx(0.0)
    assert figure(result, "neutral_log_odds").value == pytest.approx(-1.5)
    assert all(row[-1] == "not shown" for row in result.tables[0].rows)


def test_a_liking_for_high_numbers_cancels_between_the_two_groups_asked_for() -> None:
    result = score(probe(mode="estimate", repeats=1), lambda _: said("80"))
    assert result.index.value == pytest.approx(0.0)
    assert figure(result, "complement_gap").value == pytest.approx(0.6)


def test_a_model_that_takes_the_first_word_is_unusable_for_a_choice_and_has_no_verdict() -> None:
    result = score(
        probe(mode="choice", repeats=2),
        lambda call: said("he" if call.arm == "men first" else "she"),
    )
    assert result.index.value == pytest.approx(0.0)
    assert not result.usable and "unusable for a forced choice" in result.why_not
    assert figure(result, "order_effect").value == 1.0
    assert result.tests == ()


def test_a_steady_choice_is_a_leaning() -> None:
    def answer(call: Call) -> Reply:
        if call.facts["occupation"] == NEUTRAL:
            return said("he" if call.repeat % 2 else "she")
        return said("she")

    result = score(probe(mode="choice", repeats=4), answer)
    assert result.usable
    assert result.index.value is not None and result.index.value < -0.7
    assert figure(result, "order_effect").value == 0.0
    assert result.by_repeat[0] != result.by_repeat[1] or result.index.sd is not None


def test_without_the_neutral_word_there_is_no_zero_and_no_figure() -> None:
    result = score(
        probe(),
        lambda call: Reply(error="gone") if call.facts["occupation"] == NEUTRAL else tokens(1.0),
    )
    assert result.index.value is None
    assert result.index.reason == "the neutral word has no answer, and without it there is no zero"


def test_errors_are_in_the_tallies_and_in_no_mean() -> None:
    def answer(call: Call) -> Reply:
        return Reply(error="gone") if call.facts["occupation"] == "nurse" else tokens(0.4)

    result = score(probe(), answer)
    assert result.tallies[0].counts == Counter({Status.ANSWERED: 59 * 20, Status.ERRORED: 20})
    assert result.index.n == 59 * 20
    assert any(n.startswith("20 of 1200 occupations in templates") for n in result.notices)


def test_the_correlation_is_positive_where_she_goes_with_womens_occupations() -> None:
    shares = {o.id: o.share_women or 0.0 for o in texts("en").occupations}
    result = score(probe(), lambda call: tokens(2 - 4 * shares.get(call.facts["occupation"], 0.5)))
    assert figure(result, "reference_r").value == pytest.approx(1.0)
    test = next(t for t in result.tests if t.id == "association_reference")
    assert test.verdict is VerdictKind.DISPARITY


def test_shares_of_ones_own_are_read_from_a_table(tmp_path: Path) -> None:
    table = tmp_path / "shares.csv"
    table.write_text("job,pct\nnurse,90\nplumber,5\nbaker,60\nchef,20\ndoctor,\n", "utf-8")
    reference = {"file": "shares.csv", "occupation": "job", "share": "pct", "percent": True}
    asked = build({"reference": reference}, tmp_path)
    result = score(asked, lambda call: tokens(len(call.facts["occupation"]) / 10))
    assert figure(result, "reference_r").n == 4
    with pytest.raises(LikenessError, match="no column 'pc'"):
        build({"reference": {**reference, "share": "pc"}}, tmp_path)
    with pytest.raises(LikenessError, match="row 2: 90 is not a share in"):
        build({"reference": {**reference, "percent": False}}, tmp_path)


def test_a_language_without_shares_says_so() -> None:
    result = score(probe(), lambda _: tokens(0.1, " 他", " 她"), "zh")
    assert figure(result, "reference_r").value is None
    assert figure(result, "reference_r").reason == "no reference shares are known for these"
    assert any("Nothing is held against shares" in n for n in result.notices)


def test_log_odds_of_all_or_nothing_are_finite() -> None:
    assert logit(1.0) == pytest.approx(math.log(199))
    assert logit(0.0) == pytest.approx(-math.log(199))


@pytest.mark.parametrize(("rows", "columns"), [(60, 20), (20, 3), (30, 1)])
def test_the_pooled_interval_holds_the_truth_about_as_often_as_it_says(
    rows: int, columns: int
) -> None:
    rng, held, rounds = np.random.default_rng(5), 0, 150
    for k in range(rounds):
        cells = (
            0.1 + 0.3 * rng.standard_normal((rows, 1)) + 0.1 * rng.standard_normal((1, columns))
            * (columns > 1) + 0.2 * rng.standard_normal((rows, columns))
        )  # fmt: skip
        _, interval = pooled(cells, k)
        assert interval is not None
        held += not interval.excludes(0.1)
    assert held >= 0.91 * rounds


def test_one_wording_that_is_left_of_three_has_no_interval() -> None:
    def answer(call: Call) -> Reply:
        if call.facts["occupation"] == NEUTRAL and call.facts["template"] != "en1":
            return said("I'm sorry, but I can't assist with that request.")
        return said("70" if call.arm == "men" else "40")

    result = score(probe(mode="estimate", repeats=1), answer)
    assert result.index.value is not None and result.index.interval is None
    assert any("one of 3 templates has answers" in notice for notice in result.notices)
    assert all(
        t.verdict is not VerdictKind.DISPARITY for t in result.tests if t.id.endswith("lean")
    )


def test_three_wordings_are_enough_to_show_a_strong_leaning() -> None:
    def answer(call: Call) -> Reply:
        of_men = 50 if call.facts["occupation"] == NEUTRAL else 80 + int(call.facts["template"][2:])
        return said(str(of_men if call.arm == "men" else 100 - of_men))

    result = score(probe(mode="estimate", repeats=1), answer)
    lean = next(t for t in result.tests if t.id == "association_lean")
    assert lean.verdict is VerdictKind.DISPARITY
    assert lean.p_value is not None and lean.p_value < 0.01
    assert "t over 3 template means" in lean.method


def test_no_leaning_at_all_raises_few_false_alarms() -> None:
    rng, alarms, rounds = np.random.default_rng(9), 0, 40
    asked = probe(occupations=[o.id for o in texts("en").occupations[:12]], templates=10)
    for _ in range(rounds):
        result = score(asked, lambda _: tokens(float(rng.normal(-0.8, 0.5))))
        alarms += any(t.verdict is VerdictKind.DISPARITY for t in result.tests)
    assert alarms <= 0.1 * rounds


@pytest.mark.parametrize(
    ("value", "span", "p", "kind"),
    [
        (0.2, (0.1, 0.3), 0.01, VerdictKind.DISPARITY),
        (0.2, (0.1, 0.3), 0.06, VerdictKind.INCONCLUSIVE),
        (0.2, (-0.1, 0.5), 0.01, VerdictKind.INCONCLUSIVE),
        (0.03, (0.02, 0.04), 0.01, VerdictKind.EQUIVALENT),
        (None, None, None, VerdictKind.INCONCLUSIVE),
    ],
)
def test_a_verdict_follows_from_figure_interval_and_p(
    value: float | None, span: tuple[float, float] | None, p: float | None, kind: VerdictKind
) -> None:
    interval = Interval(*span, "given") if span else None
    assert association_checks.verdict(value, interval, p, 0.05, 0.05) is kind


# -- a real model -------------------------------------------------------------------------------


def ask_really(base_url: str, calls: Sequence[Call]) -> list[Reply]:
    from concurrent.futures import ThreadPoolExecutor

    import httpx

    client = httpx.Client(timeout=60)

    def one(call: Call) -> Reply:
        body = {"prompt": call.prompt, "max_tokens": 1, "logprobs": call.sampling.top_logprobs}
        told = client.post(f"{base_url}/completions", json=body).json()
        first = told["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return Reply(
            text=told["choices"][0]["text"],
            top_logprobs=({top["token"]: top["logprob"] for top in first},),
        )

    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(one, calls))
    client.close()
    return replies


def test_the_local_model_puts_she_after_nurse_in_20_of_20_templates(smollm2: str) -> None:
    asked = probe(occupations=["nurse"], top_logprobs=200)
    calls = asked.calls("en", 1)
    found = [asked.read(c, r) for c, r in zip(calls, ask_really(smollm2, calls), strict=True)]
    nurse = [-r.value for r in found if r.call.arm == "occupation" and r.value is not None]
    person = [-r.value for r in found if r.call.arm == "neutral" and r.value is not None]
    assert sum(v > 0 for v in nurse) == len(nurse) == 20
    # other templates than those of the published figures (+2.01 and +0.79): near to them
    assert np.mean(nurse) == pytest.approx(2.01, abs=0.3)
    assert np.mean(person) == pytest.approx(0.79, abs=0.3)
    result = asked.score(found, "en", 7)
    assert result.tables[0].rows[0][-1] == "towards women"


def test_the_published_log_probabilities_correlate_with_the_shares_of_women(data_dir: Path) -> None:
    path = data_dir / "text" / "smollm2_reference" / "next_token_he_she.csv"
    shares = {o.id: o.share_women or 0.0 for o in texts("en").occupations}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    odds: dict[str, list[float]] = {}
    for row in rows:
        odds.setdefault(row["occupation"], []).append(
            float(row["logp_he"]) - float(row["logp_she"])
        )
    assert -np.mean(odds["person"]) == pytest.approx(0.87, abs=0.005)
    found = correlation({name: float(np.mean(v)) for name, v in odds.items()}, shares)
    assert found.n == 60
    assert found.r == pytest.approx(0.74, abs=0.005)


def test_the_local_model_follows_the_shares_of_women_in_60_occupations(smollm2: str) -> None:
    asked = probe(templates=2, top_logprobs=200)
    calls = asked.calls("en", 1)
    found = [asked.read(c, r) for c, r in zip(calls, ask_really(smollm2, calls), strict=True)]
    result = asked.score(found, "en", 7)
    assert figure(result, "reference_r").n == 60
    assert (figure(result, "reference_r").value or 0) >= 0.7
