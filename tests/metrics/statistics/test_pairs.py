"""The same face with one attribute changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from domain.verdicts import VerdictKind
from metrics.statistics import ClaimSpec, StatisticsError, paired_analysis, pairs_of

MANIFEST = [
    row
    for i in range(10)
    for row in (
        {"file": f"{i}/base", "pair_base_file": "", "varied_attribute": "none", "skin_tone": "II", "beard": "none"},
        {"file": f"{i}/VI", "pair_base_file": f"{i}/base", "varied_attribute": "skin_tone", "skin_tone": "VI", "beard": "none"},
        {"file": f"{i}/full", "pair_base_file": f"{i}/base", "varied_attribute": "beard", "skin_tone": "II", "beard": "full"},
    )
]  # fmt: skip
CLAIMS = [ClaimSpec(metric="m", attribute=a, margin=0.3) for a in ("skin_tone", "beard")]


def measured(shift: float) -> pd.DataFrame:
    """Faces that differ a lot, of which skin tone VI alone moves the figure by ``shift``."""
    rng = np.random.default_rng(0)
    face = {str(i): rng.normal(0, 10) for i in range(10)}
    return pd.DataFrame(
        {
            "subject_id": row["file"][0], "portrait_id": row["file"], "tool": "t", "metric": "m",
            "value": face[row["file"][0]] + rng.normal(0, 0.05) + shift * (row["skin_tone"] == "VI"),
        }
        for row in MANIFEST
    )  # fmt: skip


def test_pairs_are_read_from_the_manifest() -> None:
    pairs = pairs_of(MANIFEST)
    assert len(pairs) == 20
    assert (pairs[0].attribute, pairs[0].base_value, pairs[0].variant_value) == (
        "skin_tone",
        "II",
        "VI",
    )


def test_a_change_of_one_attribute_is_found_through_large_differences_between_faces() -> None:
    found = paired_analysis(measured(0.8), pairs_of(MANIFEST), claims=CLAIMS)
    by = {v.attribute: v for v in found}
    tone = by["skin_tone"]
    assert tone.verdict is VerdictKind.DISPARITY
    assert tone.groups == ("VI", "II")
    assert tone.effect == pytest.approx(0.8, abs=0.05)
    assert tone.p_value == pytest.approx(2 / 2**10)
    assert tone.details["cliffs_delta"] == 1
    assert tone.details["family"] == "paired"
    assert by["beard"].verdict is VerdictKind.EQUIVALENT


def test_a_lost_partner_takes_only_its_own_pair_away() -> None:
    rows = measured(0.8)
    rows = rows[rows.portrait_id != "3/VI"]
    found = paired_analysis(rows, pairs_of(MANIFEST), claims=CLAIMS[:1])
    assert found[0].n == {"VI": 9, "II": 9}


def test_faces_with_different_bases_are_taken_together() -> None:
    pairs = [replace(p, base_value="I") if p.base[0] in "012" else p for p in pairs_of(MANIFEST)]
    found = paired_analysis(measured(0.8), pairs, claims=CLAIMS[:1])
    assert found[0].groups == ("VI", "their own base")
    assert found[0].n["VI"] == 10


def test_pairs_need_portrait_ids() -> None:
    with pytest.raises(StatisticsError, match="portrait_id"):
        paired_analysis(measured(0).drop(columns="portrait_id"), pairs_of(MANIFEST))


def test_values_with_an_order_are_pooled_by_the_way_they_were_changed() -> None:
    rows = [
        {"file": "a", "pair_base_file": "", "varied_attribute": "", "skin_tone": "III"},
        {"file": "a1", "pair_base_file": "a", "varied_attribute": "skin_tone", "skin_tone": "I"},
        {"file": "a5", "pair_base_file": "a", "varied_attribute": "skin_tone", "skin_tone": "V"},
        {"file": "a6", "pair_base_file": "a", "varied_attribute": "skin_tone", "skin_tone": "VI"},
    ]
    assert [(p.variant, p.variant_value) for p in pairs_of(rows)] == [
        ("a1", "skin tone towards I"),
        ("a5", "skin tone towards VI"),
        ("a6", "skin tone towards VI"),
    ]
    assert pairs_of(rows[:3])[0].variant_value == "I"
