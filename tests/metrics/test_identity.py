"""Identity similarity is off by default and, when asked for, tells faces apart."""

from __future__ import annotations

import pytest

from domain.faces import Face
from domain.pictures import Picture
from metrics import identity
from metrics.pair import FacePair
from tests.metrics.portrait_pairs import edited, figures, identical, rendered, value
from tests.planted import jpeg

pytest.importorskip("dlib")
pytest.importorskip("face_recognition_models")


def similarity(pair: FacePair) -> float:
    return value(figures(pair, identity), "identity_similarity")


def test_it_is_off_unless_asked_for() -> None:
    assert identity.DEFAULT_OFF is True


def test_the_same_face_is_itself_exactly_and_nearly_so_after_a_resave() -> None:
    face = rendered("id02_base")
    assert similarity(identical(face)) == 1.0
    assert similarity(edited(face, jpeg(75))) > 0.97


def test_another_person_is_less_alike_than_the_same_one_resaved() -> None:
    face, other = rendered("id02_base"), rendered("id07_base")
    assert similarity(FacePair(face, other)) < similarity(edited(face, jpeg(75))) - 0.05


def test_no_embedding_is_kept_in_the_measurement() -> None:
    (found,) = identity.measure(identical(rendered("id02_base")))
    assert not found.evidence


def test_a_tiny_face_has_a_reason() -> None:
    face = rendered("id02_base")
    small = Face(Picture(face.picture.pixels), face.points / 10, face.box, face.engine)
    (found,) = identity.measure(FacePair(small, small))
    assert found.value is None and "too small" in str(found.reason)
