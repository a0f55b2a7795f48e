"""Every metric module found by discovery keeps the contract; a new file is picked up by itself."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
import pytest

from domain.masks import Mask, MaskKind
from domain.measurements import FACE_REGION, Measurement, Status
from metrics.contract import Direction, MetricModule, MetricSpec, discover, specs
from metrics.pair import FacePair
from tests.metrics.portrait_pairs import edited, identical, rendered, with_pixels
from tests.planted import blur_then_grain, brightness, jpeg, noise

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
MODULES = discover()
SPECS = list(chain.from_iterable(m.SPECS for m in MODULES))
NAMES = [m.__name__.rpartition(".")[2] for m in MODULES]  # type: ignore[attr-defined]
each_module = pytest.mark.parametrize("module", MODULES, ids=NAMES)
each_spec = pytest.mark.parametrize("spec", SPECS, ids=[s.id for s in SPECS])


def masked_identity() -> FacePair:
    face = rendered("id02_base")
    values = np.full(face.picture.pixels.shape[:2], 255, np.uint8)
    cv2.circle(values, (360, 400), 200, 0, -1)
    return identical(face, Mask(values, MaskKind.BACKGROUND))


def harmed() -> dict[str, FacePair]:
    face = rendered("id01_skin_tone_V")
    pixels = face.picture.pixels
    return {
        "noise": edited(face, noise(40)),
        "blurred and grained": edited(face, blur_then_grain()),
        "compressed": edited(face, jpeg(5)),
        "bleached": edited(face, brightness(3.0)),
        "black": FacePair(face, with_pixels(face, np.zeros_like(pixels))),
        "inverted": FacePair(face, with_pixels(face, 255 - pixels)),
    }


def check(measurement: Measurement, module: MetricModule) -> None:
    """A figure belongs to its module's specs, lies in range, and a missing one says why."""
    spec = {s.id: s for s in module.SPECS}[measurement.metric]
    assert measurement.unit == spec.unit
    if measurement.status is Status.NOT_MEASURABLE:
        assert measurement.value is None and measurement.reason
        return
    assert measurement.value is not None
    assert spec.low is None or measurement.value >= spec.low, measurement
    assert spec.high is None or measurement.value <= spec.high, measurement


def test_the_metrics_of_this_product_are_found() -> None:
    expected = {"flrr", "pdl", "detail_change", "texture_coherence", "csi", "delta_e00"}
    assert expected <= set(specs())


def test_no_two_metrics_share_an_id() -> None:
    assert len(SPECS) == len({s.id for s in SPECS})


@each_spec
def test_a_spec_is_complete(spec: MetricSpec) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", spec.id)
    for text in (spec.name, spec.unit, spec.reference, spec.harm):
        assert text.strip(), spec.id
    assert isinstance(spec.direction, Direction)
    assert spec.low is None or spec.low <= spec.perfect
    assert spec.high is None or spec.high >= spec.perfect
    assert spec.direction is not Direction.SIGNED or spec.perfect == 0.0
    assert spec.threshold is None or spec.threshold_source, "a threshold needs its source"
    assert spec.margin is None or spec.margin > 0


@each_spec
def test_a_metric_has_its_section_in_the_docs(spec: MetricSpec) -> None:
    text = DOCS.read_text(encoding="utf-8")
    section = re.search(rf"^### `{spec.id}`.*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/metrics.md lacks a section ### `{spec.id}`"
    assert len(section.group(0).split()) > 25


def test_the_docs_have_no_section_of_a_metric_that_is_gone() -> None:
    named = re.findall(r"^### `([a-z0-9_]+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(s.id for s in SPECS)


@each_module
def test_an_identical_pair_gives_the_perfect_value_exactly(module: MetricModule) -> None:
    known = {s.id: s for s in module.SPECS}
    found = module.measure(masked_identity())
    assert {m.metric for m in found if m.region == FACE_REGION} == set(known)
    for m in found:
        check(m, module)
        assert m.value == known[m.metric].perfect, m


@each_module
def test_figures_of_harmed_faces_stay_in_their_declared_range(module: MetricModule) -> None:
    for pair in harmed().values():
        for m in module.measure(pair):
            check(m, module)


@each_module
def test_the_same_pair_gives_the_same_figures(module: MetricModule) -> None:
    face = rendered("id01_skin_tone_V")
    first, second = (module.measure(edited(face, noise(10))) for _ in range(2))
    assert [(m.metric, m.region, m.value) for m in first] == [
        (m.metric, m.region, m.value) for m in second
    ]
