"""Traps in the published data sets, and rows that cannot be read."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from domain.errors import LikenessError
from probes.benchmarks import bbq, cbbq, kobbq
from probes.benchmarks.items import Item, load
from probes.benchmarks.predictions import load_answers
from probes.benchmarks.tables import read_rows
from probes.benchmarks.wording import LANGUAGES, wording_of

HEAD = "category,example_id,question_index,question_polarity,context_condition,ans0,ans1,ans2,"
HEAD += "tag0,tag1,tag2,label,target,pred\n"
ROW = "Age,1,1,neg,ambig,The boy,The man,Unknown,nonOld,old,unknown,2,1,the man\n"


def table(folder: Path, text: str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("category", ["Age", "Gender_identity", "Nationality", "Religion"])
def test_bbq_has_a_direction_for_nearly_every_row(data_dir: Path, category: str) -> None:
    items = load("bbq", data_dir / "text" / "bbq" / f"{category}.jsonl.gz")
    # man and boy, girl and woman both belong to the group: those rows have no direction
    assert sum(i.target is None for i in items) == {"Gender_identity": 16}.get(category, 0)
    biased = sum(i.label == i.towards for i in items if i.condition == "disambiguated")
    assert 0.45 < biased / (len(items) / 2) < 0.55


def test_worked_out_targets_are_those_of_the_table(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "text" / "bbq_unifiedqa" / "Physical_appearance.csv.gz"
    with_column = load("bbq", path)
    text = gzip.decompress(path.read_bytes()).decode()
    without = load("bbq", table(tmp_path, text.replace(",target,", ",aim,", 1)))
    assert [i.target for i in with_column] == [i.target for i in without]
    assert sum(i.target is None for i in with_column) == 36


def test_the_german_unknown_answer_is_always_third_and_contexts_repeat(data_dir: Path) -> None:
    folder = data_dir / "text" / "ggbbq" / "paper_75a5cd0"
    one, two = (load("ggbbq", folder / f"subset{n}_amb.jsonl") for n in (1, 2))
    assert {i.unknown for i in [*one, *two]} == {2}
    assert {i.options[2] for i in one} == {"keine Antwort"}
    assert (len({i.context for i in one}), len({i.context for i in two})) == (145, 557)
    assert sum(i.target is None for i in two) == 36
    assert 15 < len({i.template for i in two}) < 25


def test_groups_called_trans_are_the_tag_non_binary(data_dir: Path) -> None:
    text = data_dir / "text" / "ggbbq"
    joined = load("ggbbq", text / "paper_75a5cd0" / "subset1_disamb.jsonl")
    upstream = load("ggbbq", text / "head_24e5b32" / "subset1_disamb.jsonl.gz")
    aimed = [i for i in joined if "non_binary" in i.groups]
    assert len(aimed) > 100
    assert all(i.groups[i.target] == "non_binary" for i in aimed if i.target is not None)
    # the later release has no column of targets: they are worked out, and are the same
    assert [i.target for i in joined] == [i.target for i in upstream]
    assert bbq.target_of(["Transgender women", "trans"], ["F", "non_binary", "unknown"], "abc") == 1


def test_chinese_rows_start_with_a_bom_and_end_with_the_unknown_answer(data_dir: Path) -> None:
    folder = data_dir / "text" / "cbbq_gender"
    assert (folder / "ambiguous.csv").read_bytes()[:3] == b"\xef\xbb\xbf"
    items = load("cbbq", folder / "ambiguous.csv") + load("cbbq", folder / "disambiguous.csv")
    assert len(items) == 3372
    assert {i.unknown for i in items} == {2}
    assert all(i.target is not None for i in items)
    told = [i for i in items if i.condition == "disambiguated"]
    # nearly every text says the opposite of the stereotype: the published bound cannot hold
    assert Counter(i.label == i.towards for i in told) == {False: 1814, True: 24}
    assert cbbq.target_of("变性人", ("非变性女生", "变性女生")) == 1
    assert cbbq.target_of("老人", ("男生", "女生")) is None


def test_korean_choices_are_python_lists_and_versions_tell_the_context(data_dir: Path) -> None:
    items = load("kobbq", data_dir / "text" / "kobbq" / "test_samples.tsv")
    assert len(items) == 2280
    assert all(len(i.options) == 3 and i.target is not None for i in items)
    for item in items:
        if item.condition == "disambiguated":
            says_it = kobbq.version_of(item.id) in "bd"
            assert (item.label == item.towards) == says_it
    assert "" not in {i.category for i in items}


@pytest.mark.parametrize(
    ("language", "said"), [("es", "No se puede determinar"), ("ca", "No es pot determinar")]
)
def test_the_token_unknown_is_worded_in_the_language(
    data_dir: Path, language: str, said: str
) -> None:
    items = load("esbbq", data_dir / "text" / "esbbq_cabbq_gender" / f"gender_{language}.csv.gz")
    assert {i.options[i.unknown] for i in items} == {said}
    assert {i.language for i in items} == {language}
    assert len({i.template for i in items}) == 66


def test_every_language_has_all_its_words() -> None:
    for language in LANGUAGES:
        words = wording_of(language)
        assert words.instruction and words.unknown and "{letters}" in words.only
        for part in (words.unknown, words.negations, words.fillers, words.markers, words.articles):
            assert all(isinstance(word, str) and word for word in part)
    with pytest.raises(LikenessError, match="no wording for the language 'fi'"):
        wording_of("fi")


def test_plain_and_packed_rows_are_the_same(tmp_path: Path) -> None:
    plain = load("bbq", table(tmp_path, HEAD + ROW))
    assert plain == load("bbq", table(tmp_path, HEAD + ROW, "rows.csv.gz"))
    assert (plain[0].target, plain[0].towards, plain[0].label) == (1, 1, 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD.replace("label", "lable") + ROW, "no column 'label'; did you mean 'lable'"),
        (HEAD + ROW.replace("neg,", "sad,"), "row 1, column 'question_polarity': 'sad' is none of"),
        (HEAD + ROW + ROW.replace(",2,1,", ",7,1,"), "row 2, column 'label': '7' is not an option"),
        (HEAD + ROW.replace(",2,1,", ",1,1,"), "row 1, column 'label': the right answer is the"),
        (HEAD + ROW.replace("unknown,2", "old,2"), "not exactly one option is tagged 'unknown'"),
        (HEAD + ROW.strip() + ",more\n", "row 1: more cells than columns"),
        (HEAD + "Age,1\n", "row 1: fewer cells than columns"),
        (HEAD, "no rows"),
        (HEAD + ROW.replace("The boy", '"The boy'), "unexpected end of data"),
    ],
)
def test_bad_rows_are_told_with_file_row_and_column(tmp_path: Path, text: str, told: str) -> None:
    path = table(tmp_path, text)
    with pytest.raises(LikenessError) as caught:
        load("bbq", path)
    assert str(caught.value).startswith(str(path))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("a.csv", b"\xff\xfea", "line 1: not UTF-8"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00broken", "a.csv.gz"),
        ("a.jsonl", b'{"a": 1}\nno\n', "line 2: not JSON"),
        ("a.jsonl", b"[1]\n", "line 1: an object is expected"),
        ("a.json", b'{"a": 1}', "a list of objects is expected"),
        ("a.parquet", b"x", "rows are read from .csv"),
    ],
)
def test_files_of_another_form_are_told(tmp_path: Path, name: str, raw: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(raw)
    with pytest.raises(LikenessError, match=told):
        read_rows(path)
    with pytest.raises(LikenessError, match="cannot be read"):
        read_rows(tmp_path / "absent.csv")


def test_a_benchmark_that_is_not_known_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="unknown benchmark 'gbbq'; did you mean 'ggbbq'"):
        load("gbbq", tmp_path)


def answers(folder: Path, data: object, key: str = "") -> list[int | None]:
    path = folder / "made.json"
    path.write_text(json.dumps(data))
    rows = table(folder, HEAD + ROW + ROW)
    return [a.option for a in load_answers("bbq", [rows], str(path), key=key).answers]


def test_answers_in_json_are_lists_by_condition_or_in_order(tmp_path: Path) -> None:
    assert answers(tmp_path, [1, None]) == [1, None]
    assert answers(tmp_path, {"pred_amb": [0, 5]}) == [0, None]
    assert answers(tmp_path, {"mine": {"pred_amb": ["B", "the boy"]}}, "mine") == [1, 0]


@pytest.mark.parametrize(
    ("data", "key", "told"),
    [
        ([1], "", "the list has 1 answers for 2 rows"),
        ({"pred_disamb": []}, "", "'pred_amb' is not a list, and 2 rows wait"),
        ({"gold": {}}, "", "name one of gold with --key"),
        ({"gold": {}}, "golt", "no entry 'golt'; did you mean 'gold'"),
        ({"pred_amb": [1, 1], "pred_dis": []}, "", "unknown key 'pred_dis'; did you mean"),
        ([1, [2]], "", "answer 2: text, a number or null is expected"),
        ([1, True], "", "answer 2: text, a number or null is expected"),
    ],
)
def test_answers_that_do_not_fit_are_told(
    tmp_path: Path, data: object, key: str, told: str
) -> None:
    with pytest.raises(LikenessError, match=told):
        answers(tmp_path, data, key)


def test_an_empty_cell_is_no_answer_and_never_an_option(tmp_path: Path) -> None:
    rows = table(tmp_path, HEAD + ROW + ROW.replace("the man\n", "\n"))
    found = load_answers("bbq", [rows], "pred").answers
    assert [a.option for a in found] == [1, None]
    assert found[1].status.value == "errored"


def test_an_item_without_a_direction_has_no_sides() -> None:
    item = Item(
        "bbq", "c", "1", "1", "negative", "ambiguous", "", "", ("a", "b", "?"), 2, None, 2, "en"
    )  # fmt: skip
    assert (item.side(0), item.side(1), item.side(2)) == (None, None, "unknown")
