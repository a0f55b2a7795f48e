"""Counterfactual partners in a table of measurements: kept out of group comparisons, compared with
their own base instead."""

from __future__ import annotations

import pandas as pd

from metrics.statistics import CounterfactualPair, pairs_of


def split(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[CounterfactualPair]]:
    """The rows in which every face counts once, as its base picture, and the pairs.

    ``rows`` may have the columns portrait_id, pair_base (portrait_id of the base, "" for a base) and
    varied_attribute; without them every row stays and there are no pairs. Where only partners are
    left, they stay too.
    """
    if not {"portrait_id", "pair_base", "varied_attribute"} <= set(rows.columns):
        return rows, []
    partner = rows["pair_base"].fillna("").str.strip() != ""
    alone = rows[~partner] if not partner.all() else rows
    portraits = rows.drop_duplicates("portrait_id")
    manifest = [
        {
            **{str(k): "" if v is None else str(v) for k, v in row.items()},
            "file": row["portrait_id"],
            "pair_base_file": row["pair_base"] or "",
        }
        for row in portraits.to_dict("records")
    ]
    return alone, pairs_of(manifest)
