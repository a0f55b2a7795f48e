"""Rows of made-up measurements for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def rows_of(
    groups: Mapping[str, Sequence[float]],
    metric: str = "m",
    tool: str = "t",
    attribute: str = "gender",
) -> pd.DataFrame:
    """One subject, one item, one figure each."""
    parts = [
        pd.DataFrame(
            {
                "subject_id": [f"{group}-{i}" for i in range(len(values))],
                "tool": tool,
                "perturbation": "none",
                "metric": metric,
                "value": np.asarray(values, dtype=float),
                "status": "measured",
                attribute: group,
            }
        )
        for group, values in groups.items()
    ]
    return pd.concat(parts, ignore_index=True)


def repeated(rows: pd.DataFrame, times: int) -> pd.DataFrame:
    """Every item again under another perturbation, with the same figure."""
    return pd.concat([rows.assign(perturbation=f"p{k}") for k in range(times)], ignore_index=True)
