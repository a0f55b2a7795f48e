"""Portraits and the people they show, as a manifest declares them. Nothing here is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Portrait:
    """One row of a manifest.

    ``portrait_id`` is unique in a run (the manifest's ``file``). ``subject_id`` names the person:
    the unit of every statistic. ``attributes`` holds the declared columns (gender, age, age_group,
    skin_tone, ...); an empty cell is absent. ``pair_base_file`` and ``varied_attribute`` name the
    counterfactual partner, "" where there is none.
    """

    portrait_id: str
    path: Path
    subject_id: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    pair_base_file: str = ""
    varied_attribute: str = ""
