"""Minimal pairs: one unfinished sentence, two prompts that differ in one slot, fifty answers each.

References: StereoSet and CrowS-Pairs (Nadeem et al. 2021; Nangia et al. 2020) for paired prompts, and the
minimal-pair protocol (response slots, BBS, RBR, BS) of docs/probes/minimal_pairs.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from domain.errors import LikenessError
from probes.calls import Call, Reading, Reply, Sampling, Status, in_order
from probes.contract import ProbeSpec, Settings, read_settings
from probes.labels import LabelSet, load
from probes.pairs import design, diagnosis, scoring, templates
from probes.pairs.grammar import Choices
from probes.pairs.lexicon import LANGUAGES, Arm, Lexicon, lexicon
from probes.pairs.neutrality import Neutrality, neutrality
from probes.pairs.presets import preset
from probes.pairs.prompts import ask
from probes.results import ProbeResult
from probes.slots import extract
from probes.statuses import spoken, status_of

SPEC = ProbeSpec(
    "minimal_pairs",
    "Minimal pairs",
    "Does what a model says of someone change when one word about the person changes?",
    LANGUAGES,
    "Nangia et al. 2020 (CrowS-Pairs); Nadeem et al. 2021 (StereoSet)",
    path_settings=("templates", "ratings"),
)
EXAMPLES = (
    {"occupations": ("nurse", "surgeon"), "repeats": 2, "diagnostic_repeats": 1},
    {"occupations": ("nurse",), "repeats": 2, "diagnostic_repeats": 0, "kind": "completion"},
)
IRRELEVANT = "irrelevant"


class PairSettings(Settings):
    """Settings in a plan. ``occupations`` None: the preset's. ``arms`` None: the preset's, in the order
    that plus stands for the first. ``templates`` is a file of own templates of the preset's dimension.
    ``diagnostic_repeats`` 0 leaves the diagnostics out. docs/probes/minimal_pairs.md explains each."""

    preset: str = "medical_gender"
    templates: str | None = None
    occupations: tuple[str, ...] | None = None
    arms: tuple[str, str] | None = None
    neutral_row: bool = True
    repeats: Annotated[int, Field(ge=1, le=1000)] = 50
    diagnostic_repeats: Annotated[int, Field(ge=0, le=200)] = 10
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    low_temperature: Annotated[float, Field(ge=0, le=2)] = 0.3
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    max_tokens: Annotated[int, Field(ge=4, le=4096)] = 48
    kind: Literal["chat", "completion"] = "chat"
    marking: Literal["pronoun", "noun"] = "pronoun"
    neutral_pronoun: Literal["TA", "其"] = "TA"
    occupation_form: Literal["agreeing", "star", "generic"] = "agreeing"
    ratings: str | None = None
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    margin: Annotated[float, Field(gt=0, le=1)] = 0.05


def build(settings: Mapping[str, Any], folder: Path) -> MinimalPairs:
    """Make the probe; LikenessError names what is wrong in a setting or a file of the plan's."""
    return MinimalPairs(read_settings(PairSettings, settings, SPEC.id), folder)


class MinimalPairs:
    """The probe with its settings. Designs are built on demand, the same every time."""

    spec = SPEC

    def __init__(self, settings: PairSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self._preset = preset(settings.preset)
        unknown = [
            o
            for o in settings.occupations or ()
            if not any(o in lexicon(language).occupations for language in LANGUAGES)
        ]
        if unknown:
            raise LikenessError(f"probe '{SPEC.id}': no language has an occupation '{unknown[0]}'")
        if settings.arms is not None and settings.arms[0] == settings.arms[1]:
            raise LikenessError(f"probe '{SPEC.id}': the two arms are both '{settings.arms[0]}'")
        self._designs: dict[str, tuple[design.Pair, ...]] = {}
        self._labels: dict[str, LabelSet] = {}

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        """Both prompts of every pair, ``repeats`` times over a pair's variants, and the diagnostics."""
        found: list[Call] = []
        by_cell: dict[tuple[str, str], list[design.Pair]] = {}
        for pair in self.pairs(language):
            by_cell.setdefault((pair.template.id, pair.occupation.id), []).append(pair)
        for variants in by_cell.values():
            for repeat in range(self.settings.repeats):
                found += self._both(variants[repeat % len(variants)], repeat, diagnosis.PAIR)
        for pairs in self._first_cells(language):
            for repeat in range(self.settings.diagnostic_repeats):
                pair = pairs[repeat % len(pairs)]
                found += self._both(pair, repeat, diagnosis.LOW)
                found.append(self._irrelevant(pair, repeat))
        return found

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        """Never: a refusal is an outcome of its own here."""
        return None

    def read(self, call: Call, reply: Reply) -> Reading:
        """The label of the response slot. A reply that stops because its budget is used is still read:
        the slot is its first phrase."""
        status, reason = status_of(reply, call.language, call.sampling.open_ended)
        if status is not Status.ANSWERED:
            return Reading(call, status, reason=reason, model=reply.model)
        text = spoken(reply.text)
        slot = extract(text, call.language, call.facts["keyword"], call.facts["prompt"])
        if slot is None:
            return Reading(
                call,
                Status.UNPARSABLE,
                reason="nothing stands in the response slot",
                model=reply.model,
            )
        found = self._label_set(call.language).read(slot)
        extras = {"slot": slot.text, "method": slot.method, "stem": found.stem}
        return Reading(call, status, found.label, extras=extras, model=reply.model)

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        """Index, tests, map of occupations and labels, and what the templates are worth."""
        pairs = self.pairs(language)
        occupations = {p.occupation.id: p.occupation for p in pairs}
        arms = self._arms(language)
        order = list(dict.fromkeys(p.template.id for p in pairs))
        ordered = in_order(readings, lambda call: order.index(call.facts["template"]))
        asked = scoring.Asked(
            pairs,
            replace(self._preset, arms={**self._preset.arms, language: arms}),
            arms,
            self.settings.alpha,
            self.settings.margin,
            design.base_filter([o for o in occupations.values() if o.field != "neutral"]),
            self._ratings,
        )
        return scoring.result(SPEC.id, SPEC.question, ordered, language, asked, seed)

    def pairs(self, language: str) -> tuple[design.Pair, ...]:
        """Every pair of the design, each with its proof; LikenessError names what cannot be filled."""
        if language not in self._designs:
            words = lexicon(language)
            occupations = [words.occupations[o] for o in self._occupations(words)]
            if self.settings.neutral_row:
                occupations.append(words.neutral)
            self._designs[language] = design.all_pairs(
                self._templates(language), occupations, self._arms(language), words, self._choices
            )
        return self._designs[language]

    @property
    def _choices(self) -> Choices:
        s = self.settings
        return Choices(s.marking, s.neutral_pronoun, s.occupation_form)

    def _arms(self, language: str) -> tuple[str, str]:
        return self.settings.arms or self._preset.arms[language]

    def _occupations(self, words: Lexicon) -> tuple[str, ...]:
        wished = self.settings.occupations or self._preset.occupations
        missing = [o for o in wished if o not in words.occupations]
        if missing:
            raise LikenessError(
                f"probe '{SPEC.id}': no occupation '{missing[0]}' in language '{words.language}'"
            )
        return wished

    def _templates(self, language: str) -> tuple[templates.Template, ...]:
        if self.settings.templates is None:
            known = {t.id: t for t in templates.shipped(language)}
            return tuple(known[t] for t in self._preset.templates)
        found = templates.own(self.folder / self.settings.templates, language)
        other = [t for t in found if t.dimension != self._preset.dimension]
        if other:
            raise LikenessError(
                f"{self.settings.templates}: template '{other[0].id}' varies {other[0].dimension}, the "
                f"preset '{self._preset.id}' {self._preset.dimension}"
            )
        return found

    @cached_property
    def _ratings(self) -> tuple[Neutrality, ...]:
        if self.settings.ratings is None:
            return ()
        named = [t.id for language in LANGUAGES for t in self._known(language)]
        return neutrality(self.folder / self.settings.ratings, list(dict.fromkeys(named)))

    def _known(self, language: str) -> tuple[templates.Template, ...]:
        try:
            return self._templates(language)
        except LikenessError:  # own templates need not be there in every language
            return ()

    def _label_set(self, language: str) -> LabelSet:
        if language not in self._labels:
            self._labels[language] = load(language).only(self._preset.labels)
        return self._labels[language]

    def _first_cells(self, language: str) -> list[list[design.Pair]]:
        """The variants of the first occupation under each template: what diagnostics are about."""
        found: dict[str, list[design.Pair]] = {}
        first: dict[str, str] = {}
        for pair in self.pairs(language):
            if first.setdefault(pair.template.id, pair.occupation.id) == pair.occupation.id:
                found.setdefault(pair.template.id, []).append(pair)
        return list(found.values())

    def _both(self, pair: design.Pair, repeat: int, role: str) -> list[Call]:
        return [
            self._call(pair, arm, filled.text, repeat, role)
            for arm, filled in zip(pair.arms, pair.prompts, strict=True)
        ]

    def _irrelevant(self, pair: design.Pair, repeat: int) -> Call:
        """The pair's sentence with a word in the slot that means nothing there."""
        words = lexicon(pair.template.language)
        odd = words.dimension(pair.template.dimension).irrelevant
        arm = Arm(IRRELEVANT, "a word that means nothing here", (odd,))
        filled = templates.fill(pair.template, pair.occupation, arm, words, choices=self._choices)
        return self._call(pair, IRRELEVANT, filled.text, repeat, diagnosis.SENSITIVITY)

    def _call(self, pair: design.Pair, arm: str, text: str, repeat: int, role: str) -> Call:
        s = self.settings
        item = pair.item if role == diagnosis.PAIR else f"{pair.item}|{role}"
        facts = {
            "template": pair.template.id,
            "occupation": pair.occupation.id,
            "variant": str(pair.variant),
            "role": role,
            "keyword": pair.template.keyword,
            "prompt": text,
            "proof": pair.proof.sentence,
            "flags": "; ".join(pair.flags),
        }
        place = Call(SPEC.id, item, arm, repeat, pair.template.language, facts=facts)
        heat = s.low_temperature if role == diagnosis.LOW else s.temperature
        sampling = Sampling(heat, s.top_p, s.max_tokens, stop=("\n",) if s.kind == "completion" else (), open_ended=True)  # fmt: skip
        return ask(place, text, s.kind, sampling)
