"""Ready-made designs: templates, occupations, arms and signed labels that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from domain.errors import LikenessError, did_you_mean

OTHER = "other"
"""The label of an answer that fits none of the others."""
TYPES = ("ability", "motive", "constraint")
Type = Literal["ability", "motive", "constraint"]
PRESETS = ("medical_gender", "service_names", "education_technology_age", "developer_region")


@dataclass(frozen=True, slots=True)
class Label:
    """``sign`` +1: towards the first of the preset's ends, -1: the second, 0: neither. ``type`` is
    the kind of thing an answer with it is."""

    id: str
    sign: int
    type: Type


@dataclass(frozen=True, slots=True)
class Preset:
    """A design. ``arms`` by language; ``axis`` is the attribute of the composite it counts for;
    ``ends`` what signs +1 and -1 stand for in words."""

    id: str
    title: str
    dimension: str
    arms: Mapping[str, tuple[str, str]]
    axis: str
    ends: tuple[str, str]
    templates: tuple[str, ...]
    occupations: tuple[str, ...]
    labels: Mapping[str, Label]

    def sign(self, label: str) -> int:
        """The sign of a label; 0 for "other"."""
        return self.labels[label].sign if label in self.labels else 0


@lru_cache(maxsize=8)
def preset(name: str) -> Preset:
    """The preset; LikenessError with the nearest name for an unknown one."""
    if name not in PRESETS:
        known = did_you_mean(name, PRESETS) or f" (known: {', '.join(PRESETS)})"
        raise LikenessError(f"no preset '{name}'{known}")
    text = files("probes.data").joinpath("presets", f"{name}.yaml").read_text(encoding="utf-8")
    return _preset(yaml.safe_load(text))


def _preset(body: Mapping[str, Any]) -> Preset:
    arms = body["arms"]
    by_language = arms if isinstance(arms, dict) else dict.fromkeys(("en", "zh", "de"), arms)
    labels = {k: Label(k, int(v["sign"]), v["type"]) for k, v in body["labels"].items()}
    return Preset(
        body["id"],
        body["title"],
        body["dimension"],
        {language: (pair[0], pair[1]) for language, pair in by_language.items()},
        body["axis"],
        (body["ends"][0], body["ends"][1]),
        tuple(body["templates"]),
        tuple(body["occupations"]),
        labels,
    )
