"""The instrument: half faces cut on purpose, and metrics that are off unless asked for."""

from __future__ import annotations

from pathlib import Path

from domain.measurements import Outcome
from domain.pictures import Picture
from preprocess.decode import open_picture
from preprocess.faces import FaceFinder
from preprocess.perturb import perturb
from service.measuring import Instrument

FACE = Path(__file__).resolve().parents[2] / "samples" / "portraits" / "images" / "id01_base.jpg"


def cut_portrait() -> Picture:
    finder = FaceFinder()
    picture = open_picture(FACE)
    face = finder.find(picture).face
    finder.close()
    return perturb(picture, face, "crop_above_nose")


def test_what_the_cut_took_away_is_not_measurable_and_the_rest_is() -> None:
    portrait = cut_portrait()
    instrument = Instrument()
    result = instrument.measure(portrait, Picture(portrait.pixels.copy()), cut=True)
    assert result.outcome is Outcome.MEASURED
    flrr, upper = result.figure("flrr"), result.figure("detail_change", "upper_face")
    assert flrr is not None and flrr.value == 100
    assert upper is not None and upper.value == 0
    for metric, region in (
        ("detail_change", "lower_face"),
        ("pdl", "beard"),
        ("jaw_width", "face"),
    ):
        figure = result.figure(metric, region)
        assert figure is not None and figure.value is None and figure.reason
    unasked = instrument.measure(portrait, portrait)
    instrument.close()
    assert unasked.outcome is Outcome.NOT_MEASURABLE
    assert "cut by the picture's edge" in str(unasked.reason)


def test_a_metric_that_is_off_runs_only_where_it_is_asked_for() -> None:
    picture = open_picture(FACE)
    asked = Instrument(extra_metrics=["identity_similarity"])
    similarity = asked.measure(picture, Picture(picture.pixels.copy())).figure(
        "identity_similarity"
    )
    asked.close()
    assert similarity is not None and similarity.value == 1
    usual = Instrument()
    assert usual.measure(picture, picture).figure("identity_similarity") is None
    usual.close()
