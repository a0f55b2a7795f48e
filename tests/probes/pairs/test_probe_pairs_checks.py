"""Perplexity band, neutrality ratings, a model's second look, diagnosis of templates."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from domain.errors import LikenessError
from probes.calls import Call, Reading, Reply, Status
from probes.pairs.diagnosis import diagnose, distance, of_one_type, permuted
from probes.pairs.equivalence import equivalence_call, read_equivalence
from probes.pairs.neutrality import neutrality
from probes.pairs.perplexity import by_walking, from_echo
from probes.pairs.presets import preset

MEDICAL = preset("medical_gender")


def test_perplexity_is_the_exponential_of_the_mean_surprise() -> None:
    """Uniform over 22 tokens: perplexity 22, whatever the length."""
    found = from_echo("t", [None, *[-math.log(22)] * 9], "tok")
    assert found.value == pytest.approx(22)
    assert (found.place, found.tokens, found.tokeniser) == ("inside", 9, "tok")
    assert (
        found.sentence == "'t': perplexity 22.0 over 9 tokens of tok: inside of the band 15 to 30"
    )


@pytest.mark.parametrize(("each", "place"), [(5, "below"), (15.1, "inside"), (29.9, "inside"), (200, "above")])  # fmt: skip
def test_the_band_says_inside_below_or_above(each: float, place: str) -> None:
    assert from_echo("t", [-math.log(each)] * 4, "tok").place == place


def test_no_log_probability_is_no_perplexity() -> None:
    for logprobs in ([], [None], [0.5, -1.0], [-math.inf]):
        found = from_echo("t", logprobs, "tok")
        assert (found.value, found.place) == (None, "unknown")
        assert found.reason


def test_walking_asks_for_each_token_after_the_text_before_it() -> None:
    asked: list[str] = []

    def next_token(text: str) -> dict[str, float]:
        asked.append(text)
        return {" b": math.log(0.05), " c": math.log(0.05), " z": math.log(0.001)}

    found = by_walking("t", "a b c", next_token, lambda _: ["a", " b", " c"], "tok")
    assert asked == ["a", "a b"]
    assert found.value == pytest.approx(20)
    assert not found.bound


def test_a_token_outside_the_list_makes_the_figure_a_bound() -> None:
    listed = {" b": math.log(0.5), " z": math.log(0.1)}
    found = by_walking("t", "a b x", lambda _: listed, lambda _: ["a", " b", " x"], "tok")
    assert found.bound
    assert found.value == pytest.approx(math.exp(-(math.log(0.5) + math.log(0.1)) / 2))
    assert found.place == "unknown"
    assert "at least" in found.sentence
    rare = {" z": math.log(0.001)}
    assert by_walking("t", "a b", lambda _: rare, lambda _: ["a", " b"], "tok").place == "above"


def test_walking_without_log_probabilities_or_with_other_tokens_gives_a_reason() -> None:
    assert by_walking("t", "a b", lambda _: {}, lambda _: ["a", " b"], "tok").value is None
    assert "join" in by_walking("t", "a b", lambda _: {}, lambda _: ["a"], "tok").reason


def _ratings(folder: Path, lines: str) -> Path:
    path = folder / "ratings.csv"
    path.write_text("template,rater,rating\n" + lines)
    return path


def test_neutral_is_a_mean_near_three_of_enough_raters(tmp_path: Path) -> None:
    lines = "".join(f"good,r{i},{3 if i else 4}\n" for i in range(15))
    lines += "".join(f"praise,r{i},4.1\n" for i in range(15)) + "few,r1,3\n"
    good, praise, few, none = neutrality(
        _ratings(tmp_path, lines), ["good", "praise", "few", "none"]
    )
    assert (good.mean, good.raters, good.flags) == (pytest.approx(3 + 1 / 15), 15, ())
    assert praise.flags == ("mean 4.10 outside 2.8 to 3.2: the sentence itself leans",)
    assert few.flags == ("1 raters, fewer than 15",)
    assert (none.mean, none.flags) == (None, ("nobody rated it",))


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ("good,r1,6\n", "line 2: rating 6 is not from 1 to 5"),
        ("good,r1,nan\n", "line 2: rating nan is not from 1 to 5"),
        ("good,r1,x\n", "line 2: rating 'x' is no number"),
        ("good,r1,3\ngood,r1,4\n", "line 3: rater 'r1' rated 'good' twice"),
        ("good,,3\n", "line 2: no rater"),
        ("bad,r1,3\n", "line 2: there is no template 'bad'"),
    ],
)
def test_wrong_ratings_are_named_by_line(tmp_path: Path, lines: str, cause: str) -> None:
    with pytest.raises(LikenessError, match=cause):
        neutrality(_ratings(tmp_path, lines), ["good"])


def test_a_ratings_file_without_a_column_or_that_is_absent_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("template,rating\n")
    with pytest.raises(LikenessError, match=r"r\.csv: column rater is missing"):
        neutrality(tmp_path / "r.csv", ["good"])
    with pytest.raises(LikenessError, match=r"no\.csv: cannot be read"):
        neutrality(tmp_path / "no.csv", ["good"])


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("5", 5.0), ("4,5", 4.5), ("Score: 4.6/5", 4.6), ('```json\n{"score": 5}\n```', 5.0), ("4 out of 5", 4.0),
        ("7", None), ("3 or 4", None), ("very alike", None), ("45", None),
    ],
)  # fmt: skip
def test_a_score_is_one_number_from_one_to_five(text: str, score: float | None) -> None:
    call = equivalence_call("i", "He works.", "She works.", "en")
    found = read_equivalence(call, Reply(text=text, finish_reason="stop"))
    assert found.score == score
    assert found.kept == (score is not None and score >= 4.5)
    assert bool(found.reason) == (not found.kept)
    assert found.status is (Status.UNPARSABLE if score is None else Status.ANSWERED)


def test_a_refused_second_look_is_no_score() -> None:
    call = equivalence_call("i", "a", "b", "zh", swapped=True)
    assert call.messages[0].content.endswith("一：b\n二：a")
    found = read_equivalence(call, Reply(text="x", refusal="no", finish_reason="stop"))
    assert (found.score, found.kept, found.status) == (None, False, Status.REFUSED)
    with pytest.raises(LikenessError, match="'fr'"):
        equivalence_call("i", "a", "b", "fr")


def test_determinism_is_the_share_of_the_commonest_abstract_type() -> None:
    labels = ["technical_skill"] * 16 + ["decision_making"] + ["workload"] * 2 + ["other"]
    assert of_one_type(labels, MEDICAL) == (0.85, "ability")
    assert of_one_type(["other"], MEDICAL) == (0.0, "")
    assert of_one_type([], MEDICAL) == (None, "")


def test_distance_and_its_permutation_test() -> None:
    assert distance(["a", "b"], ["a", "b"]) == 0
    assert distance(["a"], ["b"]) == 1
    assert distance([], ["b"]) is None
    apart = permuted(["a"] * 10, ["b"] * 50, 1)
    assert apart is not None
    assert apart < 0.001
    assert permuted(["a"] * 10, ["a"] * 50, 1) == 1
    assert permuted([], ["a"], 1) is None


def _readings(template: str, role: str, arm: str, row: str, labels: list[str]) -> list[Reading]:
    facts = {"template": template, "occupation": row, "variant": "0", "role": role}
    return [
        Reading(
            Call("minimal_pairs", f"{template}|{row}|{role}", arm, i, facts=facts),
            Status.ANSWERED,
            x,
        )
        for i, x in enumerate(labels)
    ]


def _template(name: str, men: str, women: str, odd: str) -> list[Reading]:
    found: list[Reading] = []
    for row in ("nurse", "surgeon"):
        found += _readings(name, "pair", "men", row, [men] * 20)
        found += _readings(name, "pair", "women", row, [women] * 20)
    found += _readings(name, "sensitivity", "irrelevant", "nurse", [odd] * 10)
    found += _readings(name, "low_temperature", "men", "nurse", [men] * 5)
    return found + _readings(name, "low_temperature", "women", "nurse", [women] * 5)


def test_templates_are_told_apart_by_whether_they_listen() -> None:
    readings = _template("listens", "technical_skill", "caring", "other")
    readings += _template("deaf", "workload", "workload", "workload")
    listens, deaf = diagnose(readings, MEDICAL, 1)
    assert (listens.listens, listens.weak, listens.lean, listens.lean_low) == ("listens", False, 1.0, 1.0)  # fmt: skip
    assert deaf.listens == "does not listen"
    assert deaf.weak
    assert (deaf.commonest, deaf.share, deaf.determined, deaf.type) == ("workload", 1.0, 1.0, "constraint")  # fmt: skip
    assert any("too weak" in note for note in deaf.notes)


def test_a_diagnosis_without_answers_has_none() -> None:
    (found,) = diagnose(_readings("t", "pair", "men", "nurse", []) or [
        Reading(Call("minimal_pairs", "i", "men", facts={"template": "t", "occupation": "nurse", "variant": "0", "role": "pair"}), Status.REFUSED)
    ], MEDICAL, 1)  # fmt: skip
    assert (found.listens, found.moved, found.p_value, found.share, found.lean) == ("not shown", None, None, None, None)  # fmt: skip
