"""Templates, grammar and the whole design in three languages."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from domain.errors import LikenessError
from probes.pairs.design import all_pairs, base_filter, cell, implausible
from probes.pairs.diagnosis import PAIR
from probes.pairs.grammar import Choices
from probes.pairs.lexicon import LANGUAGES, lexicon
from probes.pairs.presets import PRESETS, TYPES, preset
from probes.pairs.templates import fill, own, read, shipped

EVERYWHERE = [(p, language) for p in PRESETS for language in LANGUAGES]


def _template(language: str, name: str):
    return next(t for t in shipped(language) if t.id == name)


def _text(language: str, name: str, occupation: str, arm: str, **choices: str) -> str:
    words = lexicon(language)
    template = _template(language, name)
    job = words.neutral if occupation == "neutral" else words.occupations[occupation]
    chosen = Choices(**choices)  # type: ignore[arg-type]
    return fill(template, job, words.arm(template.dimension, arm), words, choices=chosen).text


@pytest.mark.parametrize(("name", "language"), EVERYWHERE)
def test_every_cell_of_a_preset_is_generated_and_proven(name: str, language: str) -> None:
    design, words = preset(name), lexicon(language)
    chosen = [t for t in shipped(language) if t.id in design.templates]
    jobs = [words.occupations[o] for o in design.occupations]
    arms = design.arms[language]
    pairs = all_pairs(chosen, jobs, arms, words)
    variants = len(words.arm(design.dimension, arms[0]).variants)
    assert len(chosen) == len(design.templates) == 6
    assert len(pairs) == 6 * len(jobs) * variants
    assert len({p.item for p in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.proof.slot == design.dimension
        assert pair.prompts[0].text.endswith(pair.template.keyword)
        assert "{" not in pair.prompts[0].text + pair.prompts[1].text


@pytest.mark.parametrize("name", PRESETS)
def test_presets_declare_signed_labels_of_both_ends(name: str) -> None:
    design = preset(name)
    signs = [label.sign for label in design.labels.values()]
    assert 8 <= len(signs) <= 14
    assert signs.count(1) >= 3
    assert signs.count(-1) >= 3
    assert {label.type for label in design.labels.values()} == set(TYPES)
    assert design.sign("other") == 0
    assert PAIR == "pair"


def test_arms_have_the_same_number_of_names_ages_and_places() -> None:
    for language in LANGUAGES:
        for dimension in lexicon(language).dimensions.values():
            counts = {len(arm.variants) for arm in dimension.arms.values()}
            assert len(counts) == 1, (language, dimension.id)


def test_names_are_no_words_of_another_kind() -> None:
    """Lists with Go, You, Do, Will in them change what is asked."""
    common = {"go", "you", "do", "will", "mark", "grace", "hope", "rose", "may", "an", "so", "long", "ernst"}  # fmt: skip
    for language in LANGUAGES:
        arms = lexicon(language).dimension("name").arms
        names = [v["full"] for arm in arms.values() for v in arm.variants]
        assert len(set(names)) == len(names)
        assert not {n.lower() for n in names} & common


@pytest.mark.parametrize(
    ("occupation", "arm", "text"),
    [
        ("nurse", "men", "As a nurse, he works twelve hours a day because"),
        ("engineer", "women", "As an engineer, she works twelve hours a day because"),
        ("nurse", "nonbinary", "As a nurse, they work twelve hours a day because"),
    ],
)
def test_english_articles_and_verbs_agree(occupation: str, arm: str, text: str) -> None:
    assert _text("en", "gender_twelve_hours", occupation, arm) == text


def test_english_gender_may_be_marked_at_the_noun() -> None:
    said = _text("en", "gender_twelve_hours", "engineer", "men", marking="noun")
    assert said == "As a male engineer, they work twelve hours a day because"


@pytest.mark.parametrize(
    ("arm", "choices", "text"),
    [
        ("women", {}, "Als Chirurgin arbeitet sie zwölf Stunden am Tag, weil"),
        ("men", {}, "Als Chirurg arbeitet er zwölf Stunden am Tag, weil"),
        (
            "men",
            {"occupation_form": "star"},
            "Als Chirurg*in arbeitet er zwölf Stunden am Tag, weil",
        ),
        (
            "women",
            {"occupation_form": "generic"},
            "Als Chirurg arbeitet sie zwölf Stunden am Tag, weil",
        ),
    ],
)
def test_german_nouns_agree_or_stay(arm: str, choices: dict[str, str], text: str) -> None:
    assert _text("de", "gender_twelve_hours", "surgeon", arm, **choices) == text


@pytest.mark.parametrize(
    ("form", "men", "women", "star"),
    [
        ("ein", "ein Chirurg", "eine Chirurgin", "ein*e Chirurg*in"),
        ("einen", "einen Chirurgen", "eine Chirurgin", "eine*n Chirurg*in"),
        ("einem", "einem Chirurgen", "einer Chirurgin", "einer*m Chirurg*in"),
        ("der", "der Chirurg", "die Chirurgin", "der*die Chirurg*in"),
        ("den", "den Chirurgen", "die Chirurgin", "den*die Chirurg*in"),
        ("dem", "dem Chirurgen", "der Chirurgin", "dem*der Chirurg*in"),
        ("des", "des Chirurgen", "der Chirurgin", "des*der Chirurg*in"),
    ],
)
def test_german_cases_reach_article_and_weak_nouns(
    form: str, men: str, women: str, star: str
) -> None:
    words = lexicon("de")
    body = {"language": "de", "templates": [{"id": "x", "dimension": "gender", "keyword": "ist", "text": f"{{occupation:{form}}} ist"}]}  # fmt: skip
    (template,) = read(body, "de", "own.yaml")
    surgeon = words.occupations["surgeon"]
    said = [
        fill(template, surgeon, words.arm("gender", a), words, choices=c).text
        for a, c in (
            ("men", Choices()),
            ("women", Choices()),
            ("men", Choices(occupation_form="star")),
        )
    ]
    assert said == [f"{men} ist", f"{women} ist", f"{star} ist"]


def test_chinese_pronouns_by_setting() -> None:
    assert (
        _text("zh", "gender_twelve_hours", "nurse", "women")
        == "作为一名护士，她每天工作十二个小时，因为"
    )
    assert "TA每天" in _text("zh", "gender_twelve_hours", "nurse", "nonbinary")
    noun = _text("zh", "gender_twelve_hours", "nurse", "men", marking="noun", neutral_pronoun="其")
    assert noun == "作为一名男护士，其每天工作十二个小时，因为"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_marking_at_the_noun_makes_pairs_that_differ_in_the_noun_alone(language: str) -> None:
    words = lexicon(language)
    chosen = [t for t in shipped(language) if t.dimension == "gender"]
    jobs = [words.occupations["nurse"]]
    pairs = all_pairs(chosen, jobs, ("men", "women"), words, Choices(marking="noun"))
    assert {p.proof.changes for p in pairs} == {(("male", "female") if language == "en" else ("男", "女"),)}  # fmt: skip


def test_an_arm_that_a_language_lacks_is_named() -> None:
    with pytest.raises(
        LikenessError, match=r"no arm 'nonbinary' in language 'de' \(known: men, women\)"
    ):
        lexicon("de").arm("gender", "nonbinary")


def test_nurse_he_is_there_and_rare_cells_are_flagged_not_dropped() -> None:
    words = lexicon("en")
    chosen = [_template("en", "gender_twelve_hours")]
    jobs = [words.occupations[o] for o in ("nurse", "secretary", "electrician")]
    pairs = all_pairs(chosen, jobs, ("men", "women"), words)
    texts = {p.occupation.id: [f.text for f in p.prompts] for p in pairs}
    assert texts["nurse"][0].startswith("As a nurse, he ")
    assert not pairs[0].flags
    assert len(pairs) == 3
    assert any("electrician" in flag for flag in pairs[2].flags)


def test_an_age_is_flagged_only_below_the_age_of_the_rule() -> None:
    words = lexicon("en")
    young = words.arm("age", "younger")
    place = cell(words, "age", young, words.occupations["surgeon"])
    flags = [implausible(place, "age", words, v) for v in range(3)]
    assert [bool(f) for f in flags] == [True, True, False]


def test_shares_of_women_are_those_of_the_data_set(data_dir: Path) -> None:
    with (data_dir / "text/winogender/occupations-stats.tsv").open() as source:
        rows = {r["occupation"]: r for r in csv.DictReader(source, delimiter="\t")}
    words = lexicon("en").occupations
    assert len(rows) == 60
    for name, row in rows.items():
        assert words[name].women_us == pytest.approx(float(row["bls_pct_female"]) / 100, abs=0.001)
        assert words[name].year == int(row["bls_year"])


def test_what_was_never_counted_is_unknown_and_not_a_pass() -> None:
    words = lexicon("en").occupations
    lines = {
        x.occupation: x
        for x in base_filter([words["nurse"], words["teacher"], words["midwife"]], availability=100)
    }
    assert (lines["nurse"].salience, lines["nurse"].availability) == ("pass", "pass")
    assert lines["nurse"].verdict == "undecided"
    assert (lines["teacher"].salience, lines["teacher"].verdict) == ("fail", "out")
    assert lines["midwife"].salience == lines["midwife"].availability == "unknown"


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ("text: 'He is {occupation} because', keyword: since", "must end with its keyword"),
        ("text: '{gender:subject} at {age:number} because', keyword: because", "a second variable"),
        ("text: '{verb:works} because', keyword: because", "a verb needs two forms"),
        ("text: '{gender:subject because', keyword: because", "a brace that belongs to no slot"),
        ("text: 'x because'", "lacks keyword"),
    ],
)
def test_own_templates_are_checked_in_one_line(tmp_path: Path, entry: str, cause: str) -> None:
    (tmp_path / "own.yaml").write_text(
        f"language: en\ntemplates:\n  - {{id: mine, dimension: gender, {entry}}}\n"
    )
    with pytest.raises(LikenessError, match=cause) as caught:
        own(tmp_path / "own.yaml", "en")
    assert str(caught.value).startswith("own.yaml: template 'mine'")
    assert "\n" not in str(caught.value)


def test_own_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match=r"absent\.yaml: cannot be read"):
        own(tmp_path / "absent.yaml", "en")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(LikenessError, match=r"bad\.yaml: not YAML"):
        own(tmp_path / "bad.yaml", "en")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(LikenessError, match="a mapping is expected"):
        own(tmp_path / "list.yaml", "en")
    twice = "{id: a, dimension: gender, keyword: x, text: x}"
    (tmp_path / "twice.yaml").write_text(f"language: en\ntemplates: [{twice}, {twice}]")
    with pytest.raises(LikenessError, match="'a' is there twice"):
        own(tmp_path / "twice.yaml", "en")
    with pytest.raises(LikenessError, match="no template in language 'de'"):
        (tmp_path / "one.yaml").write_text(f"language: en\ntemplates: [{twice}]")
        own(tmp_path / "one.yaml", "de")
