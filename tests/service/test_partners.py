"""A face counts once between groups; its counterfactual partners are compared with it."""

from __future__ import annotations

import pandas as pd

from service.partners import split

ROWS = pd.DataFrame(
    {
        "portrait_id": ["a.jpg", "a_dark.jpg", "b.jpg", "b_beard.jpg"],
        "pair_base": ["", "a.jpg", "", "b.jpg"],
        "varied_attribute": ["", "skin_tone", "", "beard"],
        "skin_tone": ["II", "VI", "III", "III"],
        "beard": ["none", "none", "none", "full"],
        "value": ["1", "2", "3", "4"],
    }
)


def test_partners_leave_the_groups_and_become_pairs() -> None:
    alone, pairs = split(ROWS)
    assert list(alone["portrait_id"]) == ["a.jpg", "b.jpg"]
    assert [(p.base, p.variant, p.attribute, p.base_value, p.variant_value) for p in pairs] == [
        ("a.jpg", "a_dark.jpg", "skin_tone", "II", "VI"),
        ("b.jpg", "b_beard.jpg", "beard", "none", "full"),
    ]


def test_a_table_without_the_columns_stays_whole() -> None:
    plain = ROWS.drop(columns=["pair_base"])
    alone, pairs = split(plain)
    assert alone is plain and pairs == []


def test_where_only_partners_are_left_they_are_not_thrown_away() -> None:
    only = ROWS[ROWS["pair_base"] != ""]
    assert len(split(only)[0]) == 2
