"""Names: balanced, matched, never words; files as others publish them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import LikenessError
from probes.name_files import read_entries
from probes.names import NameSource, name_pairs, neutral_names, own_names, refused_as_word, texts


@pytest.fixture(scope="module")
def names_dir(data_dir: Path) -> Path:
    return data_dir / "text" / "names"


FULL = {"men": "us_fullnames_by_group_men.json", "women": "us_fullnames_by_group_women.json"}
CENSUS = {"men": "us_census1990_first_male.txt", "women": "us_census1990_first_female.txt"}


@pytest.mark.parametrize("name", ["Go", "You", "True", "Do", "Grace Miller", "Anne-Joy Smith"])
def test_names_that_are_words_are_refused_with_the_reason(name: str) -> None:
    assert "is a word as well as a name" in refused_as_word(name, "en")


@pytest.mark.parametrize("name", ["高峰", "白雪", "文静", "成功"])
def test_chinese_full_names_that_are_words_are_refused(name: str) -> None:
    assert refused_as_word(name, "zh")


def test_a_name_that_only_contains_a_word_is_taken() -> None:
    assert not refused_as_word("Gordon Dobson", "en")
    assert not refused_as_word("王高", "zh")


@pytest.mark.parametrize("language", ["en", "zh", "de"])
@given(count=st.integers(2, 24), seed=st.integers(0, 5))
def test_groups_have_as_many_names_and_a_pair_shares_its_surname(
    language: str, count: int, seed: int
) -> None:
    lists = name_pairs(language, count, seed)
    assert len(lists.pairs) == count
    assert {p.first.group for p in lists.pairs} == {"men"}
    assert {p.second.group for p in lists.pairs} == {"women"}
    for pair in lists.pairs:
        assert pair.first.given != pair.second.given
        assert pair.first.text.replace(pair.first.given, "_") == pair.second.text.replace(
            pair.second.given, "_"
        )
    shown = [name.text for p in lists.pairs for name in (p.first, p.second)]
    assert len(set(shown)) == 2 * count
    assert lists == name_pairs(language, count, seed)


@pytest.mark.parametrize("language", ["en", "zh", "de"])
def test_own_lists_hold_no_word_no_name_twice_and_none_of_both_genders(language: str) -> None:
    own = own_names(language)
    assert len(own.men) == len(own.women) == len(set(own.men)) == len(set(own.women))
    assert not set(own.men) & set(own.women)
    assert not [n for n in (*own.men, *own.women) if refused_as_word(n, language)]
    assert not set(own.neutral) & {*own.men, *own.women}


def test_chinese_pairs_have_names_of_the_same_length() -> None:
    assert all(len(p.first.text) == len(p.second.text) for p in name_pairs("zh", 24, 0).pairs)


def test_census_names_are_matched_by_rank_and_shared_ones_are_left_out(names_dir: Path) -> None:
    lists = name_pairs("en", 100, 0, NameSource(**CENSUS), names_dir)
    first = lists.pairs[0]
    assert (first.first.given, first.second.given) == ("James", "Mary")
    assert lists.refused["Ashley"] == "borne by women and men"
    assert "word" in lists.refused["Mark"]
    given_names = {p.first.given for p in lists.pairs} & {p.second.given for p in lists.pairs}
    assert not given_names


def test_full_names_are_matched_within_race_or_ethnicity(names_dir: Path) -> None:
    lists = name_pairs("en", 40, 3, NameSource(**FULL), names_dir)
    assert lists.axis == "gender"
    strata = [p.stratum for p in lists.pairs]
    assert {s: strata.count(s) for s in "ABHW"} == dict.fromkeys("ABHW", 10)
    assert "Hunter Schaefer" in lists.refused
    assert lists != name_pairs("en", 40, 4, NameSource(**FULL), names_dir)


def test_the_axis_of_race_pairs_names_of_one_gender(names_dir: Path) -> None:
    source = NameSource(**FULL, axis="race_ethnicity", arms=("W", "B"))
    lists = name_pairs("en", 20, 0, source, names_dir)
    assert lists.axis == "race_ethnicity"
    assert sorted({p.stratum for p in lists.pairs}) == ["M", "W"]
    assert {(p.first.group, p.second.group) for p in lists.pairs} == {("W", "B")}


def test_race_and_gender_can_be_crossed(names_dir: Path) -> None:
    source = NameSource(**FULL, axis="race_ethnicity_x_gender", arms=("W_M", "B_W"))
    lists = name_pairs("en", 20, 0, source, names_dir)
    men = {e.name for e in read_entries(**FULL, both=None, folder=names_dir) if e.gender == "M"}
    assert {p.first.text for p in lists.pairs} <= men
    assert not {p.second.text for p in lists.pairs} & men


def test_chinese_names_are_matched_in_strength_and_length(names_dir: Path) -> None:
    lists = name_pairs("zh", 26, 0, NameSource(both="zh_given_names.csv"), names_dir)
    assert lists.refused["子涵"] == "borne by all genders"
    assert all(len(p.first.given) == len(p.second.given) for p in lists.pairs)
    assert any(p.stratum.startswith("lean") for p in lists.pairs)


def test_names_by_ethnicity_and_count_are_read(names_dir: Path) -> None:
    source = NameSource(both="nyc_baby_names_by_gender_ethnicity.csv")
    lists = name_pairs("en", 30, 0, source, names_dir)
    assert len({p.stratum for p in lists.pairs}) >= 4


def test_too_few_names_are_said_with_the_number(names_dir: Path) -> None:
    with pytest.raises(LikenessError, match="only 24 pairs of names for men and women"):
        name_pairs("en", 25, 0)


def test_yaml_truth_values_are_not_taken_for_names() -> None:
    with pytest.raises(LikenessError, match="entry 2 is False"):
        texts(["Ann", False], "names")


def test_a_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1, 2]")
    (tmp_path / "b.csv").write_text("who,what\n1,2\n")
    with pytest.raises(LikenessError, match=r"'c.txt' is not there"):
        read_entries("c.txt", "c.txt", None, tmp_path)
    with pytest.raises(LikenessError, match=r"a.json.*neither JSON"):
        read_entries("a.json", "a.json", None, tmp_path)
    with pytest.raises(LikenessError, match="needs the columns name and gender"):
        read_entries(None, None, "b.csv", tmp_path)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ({"men": "a.txt"}, "needs one of women"),
        ({"axis": "race_ethnicity", "arms": ("W", "B")}, "needs files"),
        ({"arms": ("women", "men")}, "in that order"),
        ({"men": "a", "women": "b", "both": "c"}, "not all of them"),
    ],
)
def test_sources_that_do_not_fit_are_refused(wrong: dict, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        NameSource(**wrong)


def test_neutral_names_are_there_in_every_language_and_no_more_than_there_are() -> None:
    assert all(len(neutral_names(language, 6)) == 6 for language in ("en", "zh", "de"))
    with pytest.raises(LikenessError, match="neutral names"):
        neutral_names("en", 99)
