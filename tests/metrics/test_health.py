"""The document's sum to the letter, and a second profile that is even over skin tones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import LikenessError
from domain.measurements import Decision, Health, Measurement
from metrics import chrominance, detail, texture
from metrics.health import PROFILES, profiles_disagree, score
from metrics.pair import FacePair
from tests.metrics.portrait_pairs import TONES, edited, identical, rendered, tone
from tests.metrics.skin_edits import bilateral, only_in, shift_lab
from tests.planted import PlantedEdit, blur, jpeg

HARMS: dict[str, PlantedEdit] = {
    "bilateral 9/40/7": bilateral(9, 40, 7),
    "bilateral 7/25/5": bilateral(7, 25, 5),
    "JPEG 75": jpeg(75),
    "JPEG 60": jpeg(60),
    "JPEG 30": jpeg(30),
    "blur 0.003 IED": blur(0.003),
    "blur 0.01 IED": blur(0.01),
    "+5 L*": shift_lab(d_l=5),
    "+10 L*": shift_lab(d_l=10),
}


def measurements(pair: FacePair, flrr: float = 100.0) -> list[Measurement]:
    """The figures of a pair whose landmarks are all retained."""
    found = [m for module in (detail, texture, chrominance) for m in module.measure(pair)]
    return [Measurement("flrr", flrr, "%"), *found]


def given_figures(flrr: float = 100.0, pdl: float = 0.0, csi: float = 0.0) -> list[Measurement]:
    return [
        Measurement("flrr", flrr, "%"),
        Measurement("pdl", pdl, "levels²"),
        Measurement("csi", csi, "CIE Lab units"),
        Measurement("detail_change", 0.0, "log2"),
        Measurement("texture_coherence", 1.0, "share"),
        Measurement("delta_e00", 0.0, "CIEDE2000"),
    ]


def points(health: Health) -> float:
    assert health.score is not None, health.reasons
    return health.score


@given(st.floats(0.01, 100), st.floats(0, 400), st.floats(0, 25))
def test_document_is_the_published_sum(flrr: float, pdl: float, csi: float) -> None:
    expected = 100 * (
        0.4 * flrr / 100
        + 0.3 * min(max((150 - pdl) / 150, 0), 1)
        + 0.3 * min(max((10 - csi) / 10, 0), 1)
    )
    health = score(given_figures(flrr, pdl, csi), "document")
    assert points(health) == pytest.approx(expected)
    assert (health.decision is Decision.PASS) == (points(health) >= 85)


def test_an_identical_pair_has_full_health_in_both_profiles() -> None:
    found = measurements(identical(rendered("id02_base")))
    for profile in PROFILES:
        health = score(found, profile)
        assert (health.score, health.decision, health.reasons) == (100.0, Decision.PASS, ())


def test_the_threshold_itself_passes() -> None:
    assert score(given_figures(pdl=75), "document").decision is Decision.PASS
    assert score(given_figures(pdl=75.1), "document").decision is Decision.FAIL
    assert score(given_figures(pdl=75.1), "document", min_score=80).decision is Decision.PASS


def test_reasons_are_sentences_that_say_what_cost_what_the_dearest_first() -> None:
    health = score(given_figures(flrr=90, pdl=100, csi=1), "document")
    assert health.reasons == (
        "Fine detail changed (PDL 100): costs 20.0 points.",
        "Landmarks lost (FLRR 90 %): costs 4.0 points.",
        "Skin colour shifted (CSI 1.0): costs 3.0 points.",
    )


@pytest.mark.parametrize(
    ("profile", "metric"),
    [("document", "flrr"), ("document", "pdl"), ("document", "csi"), ("even", "flrr"),
     ("even", "detail_change"), ("even", "texture_coherence"), ("even", "delta_e00")],
)  # fmt: skip
def test_a_missing_part_makes_it_inconclusive_and_never_a_number(profile: str, metric: str) -> None:
    found = [
        Measurement.missing(m.metric, m.unit, "original is monochrome") if m.metric == metric else m
        for m in given_figures()
    ]
    health = score(found, profile)
    assert health.score is None and health.decision is Decision.INCONCLUSIVE
    expected = f"The score needs {metric}, which is missing: original is monochrome."
    assert health.reasons[0] == expected
    absent = [m for m in found if m.metric != metric]
    assert score(absent, profile).decision is Decision.INCONCLUSIVE


def test_a_lost_face_fails_even_where_the_rest_cannot_be_measured() -> None:
    health = score([Measurement("flrr", 0.0, "%", reason="face lost")], "document")
    assert health.score is None and health.decision is Decision.FAIL
    assert "The face is lost" in health.reasons[0]


def test_an_unknown_profile_is_a_clear_error() -> None:
    with pytest.raises(LikenessError, match="unknown health profile 'fair'; known: document, even"):
        score(given_figures(), "fair")


def test_the_two_profiles_disagree_aloud() -> None:
    lightened = measurements(edited(rendered("id02_base"), shift_lab(d_l=12)))
    document, even = (score(lightened, profile) for profile in PROFILES)
    sentence = profiles_disagree(document, even)
    assert document.decision is Decision.PASS and even.decision is Decision.FAIL
    assert sentence is not None and "'document' says pass" in sentence
    assert profiles_disagree(document, document) is None


def test_one_harm_scores_the_same_on_every_skin_tone_in_even_only() -> None:
    print("\nharm, head: even by tone I..VI (spread) | document by tone (spread)")
    wider, apart = 0, []
    for name, edit in HARMS.items():
        for subject in ("id01", "id02"):
            found = [measurements(edited(tone(subject, group), edit)) for group in TONES]
            even, document = (
                [points(score(one, profile)) for one in found] for profile in ("even", "document")
            )
            spread, other = max(even) - min(even), max(document) - min(document)
            print(f"{name}, {subject}: {[round(s, 1) for s in even]} ({spread:.1f}) | "
                  f"{[round(s, 1) for s in document]} ({other:.1f})")  # fmt: skip
            assert spread <= 3.0, (name, subject, even)
            wider += other > 9
            if "L*" not in name:
                apart += [abs(a - b) for a, b in zip(even[:3], document[:3], strict=True)]
    print(f"mean distance of the profiles on tones I-III: {sum(apart) / len(apart):.1f}")
    assert wider >= 10, "document spreads far more"
    assert sum(apart) / len(apart) < 4, "they agree on the tones the document was made for"


@pytest.mark.parametrize(("d_a", "d_b"), [(0, 6), (4, 3), (-4, 0), (0, -6), (2, 2)])
def test_the_profiles_agree_on_a_shift_of_colour_on_light_and_medium_skin(
    d_a: float, d_b: float
) -> None:
    for group in ("I", "II", "III"):
        found = measurements(edited(tone("id02", group), shift_lab(d_a=d_a, d_b=d_b)))
        document, even = (points(score(found, profile)) for profile in PROFILES)
        assert even == pytest.approx(document, abs=8), (group, document, even)


def test_a_wiped_beard_area_fails_both_profiles_and_is_named() -> None:
    wiped = measurements(edited(rendered("id05_beard_full"), only_in("beard", blur(0.02))))
    for profile in PROFILES:
        health = score(wiped, profile)
        assert health.decision is Decision.FAIL
        assert health.reasons[0].startswith("The beard area lost detail")


def test_even_sees_a_wiped_beard_area_on_dark_skin_that_document_passes() -> None:
    wiped = measurements(edited(rendered("id01_skin_tone_VI"), only_in("beard", blur(0.02))))
    document, even = (score(wiped, profile) for profile in PROFILES)
    assert document.decision is Decision.PASS
    assert any("beard area" in reason for reason in document.reasons)
    assert even.decision is Decision.FAIL
