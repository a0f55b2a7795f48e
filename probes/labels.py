"""Label sets: what a response slot is about, by stems of words; what fits no label is "other".

The labels of a language lie in ``data/labels/LANGUAGE.yaml`` with their definitions. Stems are found
in words, so that negation and irony are not understood: "no time for the family" is family duties.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import yaml

from domain.errors import LikenessError, did_you_mean
from probes.analysis.agreement import Agreement, agreement
from probes.slots import Slot

OTHER = "other"
OTHER_ALARM = 0.05
"""Above this share of "other" the label set misses what replies are about, and must be revised."""
Pole = Literal["agentic", "communal", ""]
_SIGNS: Mapping[str, int] = {"agentic": 1, "communal": -1}


@dataclass(frozen=True, slots=True)
class Label:
    """``stems`` as in the file. ``pole`` says which end of agentic / communal it stands for."""

    id: str
    title: str
    definition: str
    stems: tuple[str, ...]
    pole: Pole = ""

    @property
    def sign(self) -> int:
        """+1 agentic, -1 communal, 0 neither."""
        return _SIGNS.get(self.pole, 0)


@dataclass(frozen=True, slots=True)
class Labelled:
    """``stem`` is what decided, ``where`` it was found: in the slot, or in the sentence around it;
    both "" for "other"."""

    label: str
    stem: str = ""
    where: Literal["slot", "sentence", ""] = ""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The labels of one language, in the order in which they are shown."""

    language: str
    labels: tuple[Label, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every label that ``label_of`` can give, "other" last."""
        return (*(label.id for label in self.labels), OTHER)

    def only(self, ids: Iterable[str]) -> LabelSet:
        """The same set with these labels alone, in their order; "other" may be named and is always
        there. LikenessError names a label that the language does not have."""
        known = {label.id: label for label in self.labels}
        chosen = []
        for name in ids:
            if name == OTHER:
                continue
            if name not in known:
                hint = did_you_mean(name, known)
                raise LikenessError(f"no label '{name}' in language '{self.language}'{hint}")
            chosen.append(known[name])
        return replace(self, labels=tuple(chosen))

    def label_of(self, text: str) -> Labelled:
        """The label with the longest stem in ``text`` (in characters); of equally long ones the one
        that stands first."""
        best: tuple[int, int] | None = None
        found = Labelled(OTHER)
        for label, stem, pattern in _compiled(self):
            if match := pattern.search(text.replace("’", "'")):
                rank = (len(stem.replace("*", "")), -match.start())
                if best is None or rank > best:
                    best, found = rank, Labelled(label, stem, "slot")
        return found

    def read(self, slot: Slot) -> Labelled:
        """The label of the slot, or of its sentence where the slot alone says nothing."""
        found = self.label_of(slot.text)
        if found.label != OTHER or slot.sentence == slot.text:
            return found
        found = self.label_of(slot.sentence)
        return replace(found, where="sentence") if found.label != OTHER else found


@lru_cache(maxsize=64)
def _compiled(labels: LabelSet) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return tuple(
        (label.id, stem, _pattern(stem, labels.language))
        for label in labels.labels
        for stem in label.stems
    )


def _pattern(stem: str, language: str) -> re.Pattern[str]:
    if language == "zh":
        return re.compile(re.escape(stem), re.IGNORECASE)
    words = [re.escape(word).replace(r"\*", r"[\w'\-]*") for word in stem.split()]
    return re.compile(r"(?<![\w'])" + r"[\s,]+".join(words) + r"(?!\w)", re.IGNORECASE)


def load(language: str, preset: str = "work") -> LabelSet:
    """The labels of ``language`` that ``preset`` takes. LikenessError for an unknown one."""
    body = _body(language)
    presets: dict[str, Any] = body["presets"]
    if preset not in presets:
        hint = did_you_mean(preset, presets)
        raise LikenessError(f"no set of labels '{preset}' in language '{language}'{hint}")
    labels = tuple(
        Label(
            name, entry["title"], entry["definition"],
            tuple(str(stem) for stem in entry["stems"]), entry.get("pole", ""),
        )
        for name, entry in body["labels"].items()
    )  # fmt: skip
    whole = LabelSet(language, labels)
    return whole if presets[preset] == "all" else whole.only(presets[preset])


def languages() -> tuple[str, ...]:
    """Languages that have labels."""
    folder = resources.files("probes") / "data" / "labels"
    return tuple(sorted(f.name.removesuffix(".yaml") for f in folder.iterdir()))


@lru_cache(maxsize=8)
def _body(language: str) -> dict[str, Any]:
    if language not in languages():
        raise LikenessError(f"no labels for language '{language}' (there are {languages()})")
    text = (resources.files("probes") / "data" / "labels" / f"{language}.yaml").read_text("utf-8")
    body: dict[str, Any] = yaml.safe_load(text)
    return body


def other_share(labels: Sequence[str | None]) -> float | None:
    """Share of "other" among the labels; None without any."""
    counts = Counter(label for label in labels if label is not None)
    return counts[OTHER] / counts.total() if counts else None


def other_alarm(labels: Sequence[str | None]) -> str:
    """A sentence when more than 5 % of the labelled replies are "other", else ""."""
    share = other_share(labels)
    if share is None or share <= OTHER_ALARM:
        return ""
    return (
        f"{share:.0%} of the replies fit none of the labels (more than {OTHER_ALARM:.0%}): "
        "revise the label set before reading its figures"
    )


def compare_passes(first: Sequence[str | None], second: Sequence[str | None]) -> Agreement:
    """Agreement of two independent labellings of the same replies, with the pairs of labels that are
    split in more than 15 % and so proposed for merging."""
    return agreement(first, second)


def merged(labels: Sequence[str | None], merge: Mapping[str, str]) -> list[str | None]:
    """``labels`` with those in ``merge`` renamed, None left as it is."""
    return [None if label is None else merge.get(label, label) for label in labels]
