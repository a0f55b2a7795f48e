"""Identity similarity: cosine of two face embeddings. Off unless the plan asks for it.

The embedding is the 128-value output of dlib's residual network (King, dlib 19, CC0 weights, as
shipped by face-recognition-models). It exists while one pair is measured and is stored nowhere.
Such networks err more often on some groups than on others, so a difference between groups in this
figure may be the network's own and is never a verdict by itself.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from domain.errors import ExtraMissing
from domain.faces import Face
from domain.measurements import Measurement
from metrics.contract import Direction, MetricSpec

if TYPE_CHECKING:
    from metrics.pair import FacePair

DEFAULT_OFF = True
"""Callers leave this module out unless they were asked for it by name."""
MIN_IED = 24.0

SPECS = (
    MetricSpec(
        id="identity_similarity",
        name="identity similarity",
        unit="cosine",
        low=-1.0,
        high=1.0,
        direction=Direction.HIGHER_IS_BETTER,
        perfect=1.0,
        reference="cosine of dlib_face_recognition_resnet_model_v1 embeddings",
        margin=0.02,
        harm="the face no longer looks like the same person",
    ),
)


def measure(pair: FacePair) -> list[Measurement]:
    """The similarity of the two faces. Raises ExtraMissing where dlib is not installed."""
    spec = SPECS[0]
    smallest = min(pair.original.ied, pair.edited.ied)
    if smallest < MIN_IED:
        reason = f"the face is too small for an embedding ({smallest:.0f} px between the eyes)"
        return [Measurement.missing(spec.id, spec.unit, reason)]
    first, second = _embedding(pair.original), _embedding(pair.edited)
    cosine = 1.0 - 0.5 * float(np.sum((first - second) ** 2))  # of unit vectors; exact when equal
    return [Measurement(spec.id, max(-1.0, min(1.0, cosine)), spec.unit)]


def _embedding(face: Face) -> npt.NDArray[np.float64]:
    dlib, network = _network()
    x, y = np.rint(face.points.min(axis=0)).astype(int)
    right, bottom = np.rint(face.points.max(axis=0)).astype(int)
    places = [dlib.point(int(px), int(py)) for px, py in np.rint(face.points)]
    shape = dlib.full_object_detection(
        dlib.rectangle(int(x), int(y), int(right), int(bottom)), places
    )
    values = np.array(network.compute_face_descriptor(face.picture.pixels, shape))
    return np.asarray(values / np.linalg.norm(values))


@cache
def _network() -> tuple[Any, Any]:
    try:
        import dlib
        from face_recognition_models import face_recognition_model_location
    except ImportError as error:
        raise ExtraMissing(f"identity_similarity needs a package: {error}") from error
    return dlib, dlib.face_recognition_model_v1(face_recognition_model_location())
