import pytest
import yaml

from domain.errors import LikenessError
from probes import labels
from probes.slots import Slot

LANGUAGES = ("de", "en", "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_label_has_a_definition_and_stems_of_its_own(language: str) -> None:
    found = labels.load(language)
    assert len(found.labels) >= 12
    stems = [stem for label in found.labels for stem in label.stems]
    assert len(stems) == len(set(stems))
    assert all(label.definition and label.title and len(label.stems) >= 8 for label in found.labels)


def test_all_languages_have_the_same_labels_with_the_same_poles() -> None:
    first, *others = (
        [(label.id, label.pole) for label in labels.load(language).labels]
        for language in labels.languages()
    )
    assert labels.languages() == LANGUAGES
    assert all(other == first for other in others)
    poles = dict(first)
    assert (poles["technical_skill"], poles["caring"]) == ("agentic", "communal")


def test_the_poles_have_opposite_signs() -> None:
    signs = {label.id: label.sign for label in labels.load("en").labels}
    assert (signs["ambition"], signs["family_duties"], signs["workload"]) == (1, -1, 0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_stem_finds_its_own_label(language: str) -> None:
    found = labels.load(language)
    for label in found.labels:
        for stem in label.stems:
            example = stem.replace("*", "")
            assert found.label_of(example).label != labels.OTHER, stem


@pytest.mark.parametrize("preset", ["work"])
def test_every_preset_loads_in_every_language(preset: str) -> None:
    sets = {labels.load(language, preset).ids for language in LANGUAGES}
    assert len(sets) == 1


def one(**stems: str) -> labels.LabelSet:
    return labels.LabelSet(
        "en",
        tuple(
            labels.Label(name, name, name, tuple(yaml.safe_load(text)))
            for name, text in stems.items()
        ),
    )


def test_the_longest_stem_wins_and_of_equals_the_first_in_the_text() -> None:
    found = one(family="[family, work and family]", work="[work*, career]")
    assert found.label_of("balance work and family").label == "family"
    assert found.label_of("family before career").label == "family"
    assert found.label_of("career before family").label == "work"


def test_a_stem_is_a_word_unless_a_star_says_otherwise() -> None:
    found = one(care="[care]", helping="[help*, '*hood']")
    assert found.label_of("a career").label == labels.OTHER
    assert found.label_of("careful").label == labels.OTHER
    assert found.label_of("Care!").label == "care"
    assert found.label_of("helpless").label == "helping"
    assert found.label_of("motherhood").label == "helping"


def test_nothing_that_fits_is_other() -> None:
    assert labels.load("en").label_of("the constant noise") == labels.Labelled("other")


def test_a_slot_that_says_nothing_is_read_with_its_sentence() -> None:
    slot = Slot("need her", "vo", "the patients need her")
    assert labels.load("en").read(slot) == labels.Labelled("caring", "patients", "sentence")
    plain = Slot("the patients", "np", "the patients")
    assert labels.load("en").read(plain).where == "slot"
    assert labels.load("en").read(Slot("noise", "np", "the noise")).where == ""


def test_a_set_can_be_cut_to_some_labels_and_always_has_other() -> None:
    few = labels.load("en").only(["income", "caring", "other"])
    assert few.ids == ("income", "caring", "other")
    assert few.label_of("family").label == "other"


def test_unknown_labels_languages_and_presets_are_named() -> None:
    with pytest.raises(LikenessError, match=r"no label 'incom' in language 'en'.*income"):
        labels.load("en").only(["incom"])
    with pytest.raises(LikenessError, match="'xx'"):
        labels.load("xx")
    with pytest.raises(LikenessError, match="'wrk'"):
        labels.load("en", "wrk")


def test_the_alarm_sounds_above_five_in_a_hundred() -> None:
    assert labels.other_alarm(["other"] * 5 + ["income"] * 95) == ""
    assert "6%" in labels.other_alarm(["other"] * 6 + ["income"] * 94 + [None] * 50)
    assert labels.other_alarm([None]) == ""
    assert labels.other_share([None]) is None


def test_two_passes_are_compared_and_labels_merged() -> None:
    first = ["learning_ability", "learning_ability", "income", None]
    second = ["learning_ability", "creativity", "income", "income"]
    found = labels.compare_passes(first, second)
    assert (found.n, found.left_out) == (3, 1)
    assert [(m.first, m.second) for m in found.merges] == [("creativity", "learning_ability")]
    together = labels.merged(first, {"learning_ability": "growth"})
    assert together == ["growth", "growth", "income", None]
