"""Reads a probe plan from YAML, builds its probes, and tells every mistake with file, line and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import probes.contract
from domain.errors import LikenessError, did_you_mean
from domain.probe_plan import ProbeChoice, ProbePlan
from probes.card_limits import read_limits
from probes.contract import Probe, ProbeModule, ProbeSpec
from probes.costs import read_costs
from probes.mitigation import Condition, condition_of
from service import yaml_lines
from service.yaml_lines import At

KEYS = "name, endpoint, probes, ..."
_NO_REPEATS = "unknown setting 'repeats'"
Known = Mapping[str, tuple[ProbeSpec, ProbeModule]]


@dataclass(frozen=True, slots=True)
class Part:
    """One probe of the plan, ready to build calls. ``label`` is its name in this run."""

    label: str
    spec: ProbeSpec
    languages: tuple[str, ...]
    probe: Probe


@dataclass(frozen=True, slots=True)
class LoadedProbePlan:
    """A valid plan with where it came from and its probes. ``notices`` say what of the plan does
    not apply. ``offer`` is the name of the service's model that it asks for, whose address is not
    for those who sent the plan to know."""

    plan: ProbePlan
    path: Path
    text: str
    parts: tuple[Part, ...]
    notices: tuple[str, ...] = field(default=())
    offer: str = ""

    @property
    def sha256(self) -> str:
        """Of the plan's text: a run can only be resumed with the very same plan."""
        return yaml_lines.sha256_of(self.text)

    def shown(self) -> dict[str, Any]:
        """The plan as a report may show it: of a service's model its name and no more."""
        told = self.plan.model_dump(mode="json", exclude_none=True)
        if self.offer:
            told["endpoint"] = {"offer": self.offer, "model": self.plan.endpoint.model}
        return told

    @property
    def folder(self) -> Path:
        """What files that the plan names are relative to."""
        return self.path.parent.resolve()

    @property
    def baseline(self) -> Path | None:
        """The card of an earlier run to compare with."""
        named = self.plan.gate.baseline
        return None if named is None else self.folder / named

    def files(self) -> list[str]:
        """The files that settings and gate name, as the plan names them."""
        named = [self.plan.gate.baseline or ""]
        for choice, part in zip(self.plan.probes, self.parts, strict=True):
            for setting in part.spec.path_settings:
                named += _words(choice.settings.get(setting))
        return [name for name in dict.fromkeys(named) if name and (self.folder / name).is_file()]

    def conditions(self, language: str) -> list[Condition]:
        """What is done to the calls in that language, in the plan's order."""
        return [condition_of(choice.told(), language) for choice in self.plan.conditions]


def load_probe_plan(path: Path) -> LoadedProbePlan:
    """Read and check ``path``. Raises PlanError with one line a mistake."""
    return read_probe_plan(path, yaml_lines.read_text(path))


def read_probe_plan(
    path: Path,
    text: str,
    known: Known | None = None,
    set_keys: Callable[[dict[str, Any]], object] = lambda _data: None,
) -> LoadedProbePlan:
    """Check the ``text`` of a plan that lies at ``path``. ``known`` are the probes that it may name,
    all by default; ``set_keys`` may change keys of the parsed plan. Raises PlanError with one line a
    mistake."""
    data, lines = yaml_lines.parse(path, text, KEYS)
    set_keys(data)
    plan = yaml_lines.validated(path, data, lines, ProbePlan)
    builder = _Builder(
        plan, path.parent.resolve(), probes.contract.discover() if known is None else known
    )
    problems = [*builder.build(), *_check_conditions(plan), *_check_names(plan, path.parent)]
    yaml_lines.refuse(path, lines, problems)
    return LoadedProbePlan(plan, path, text, tuple(builder.parts), tuple(builder.notices))


class _Builder:
    """Makes the probes; what is wrong with them is told with its place."""

    def __init__(self, plan: ProbePlan, folder: Path, known: Known) -> None:
        self._plan, self._folder, self._known = plan, folder, known
        self.parts: list[Part] = []
        self.notices: list[str] = []

    def build(self) -> Iterator[tuple[At, str]]:
        labels: set[str] = set()
        for index, choice in enumerate(self._plan.probes):
            at: At = ("probes", index)
            if choice.id not in self._known:
                hint = did_you_mean(choice.id, self._known, 0.5)
                names = ", ".join(sorted(self._known)) or "none"
                said = f"probes.{index}.id: unknown probe '{choice.id}'{hint} (known: {names})"
                yield (*at, "id"), said
                continue
            if choice.label in labels:
                said = f"two probes are called '{choice.label}'; give each its own 'name'"
                yield at, f"probes.{index}: {said}"
            labels.add(choice.label)
            yield from self._languages(index, choice)
            try:
                self._one(choice)
            except LikenessError as error:
                said = str(error).removeprefix(f"probe '{choice.id}': ")
                where = (*at, "settings", *_named(said, choice.settings))
                yield where, f"probes.{index}.settings: {said}"

    def _languages(self, index: int, choice: ProbeChoice) -> Iterator[tuple[At, str]]:
        spoken = self._known[choice.id][0].languages
        for place, language in enumerate(choice.languages):
            if language not in spoken:
                said = f"'{choice.id}' has no language '{language}' (it has: {', '.join(spoken)})"
            elif language in choice.languages[:place]:
                said = f"language '{language}' stands twice"
            else:
                continue
            yield ("probes", index, "languages", place), f"probes.{index}.languages: {said}"

    def _one(self, choice: ProbeChoice) -> None:
        _, module = self._known[choice.id]
        probe = module.build(choice.settings, self._folder)
        if self._plan.repeats is not None and "repeats" not in choice.settings:
            settings = {**choice.settings, "repeats": self._plan.repeats}
            try:
                probe = module.build(settings, self._folder)
            except LikenessError as error:
                if _NO_REPEATS not in str(error):
                    raise
                self.notices.append(f"{choice.label}: 'repeats' does not apply to it")
        self.parts.append(Part(choice.label, probe.spec, tuple(choice.languages), probe))


def _words(value: Any) -> list[str]:
    """Every text in a setting, whatever it is made of."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return [word for inner in value for word in _words(inner)]
    return [value] if isinstance(value, str) else []


def _named(said: str, keys: Iterable[str]) -> tuple[str, ...]:
    """The key that an error names first, for its line."""
    places = {key: said.find(f"'{key}'") for key in keys}
    found = [key for key in places if places[key] >= 0]
    return (min(found, key=places.__getitem__),) if found else ()


def _check_conditions(plan: ProbePlan) -> Iterator[tuple[At, str]]:
    languages = sorted({language for choice in plan.probes for language in choice.languages})
    for index, choice in enumerate(plan.conditions):
        for language in languages:
            try:
                condition_of(choice.told(), language)
            except LikenessError as error:
                yield ("conditions", index), f"conditions.{index}: {error}"
                break


def _check_names(plan: ProbePlan, folder: Path) -> Iterator[tuple[At, str]]:
    """Weights are for probes of this plan; limits, costs and baseline are right before a call is paid."""
    labels = [choice.label for choice in plan.probes]
    for name in plan.composite.weights:
        if name not in labels:
            hint = did_you_mean(name, labels, 0.5)
            said = f"no probe of this plan is called '{name}'{hint}"
            yield ("composite", "weights", name), f"composite.weights.{name}: {said}"
    try:
        read_limits(plan.gate.limits)
    except LikenessError as error:
        said = str(error)
        yield ("gate", *_named(said, plan.gate.limits)), said
    try:
        read_costs(plan.costs)
    except LikenessError as error:
        yield ("costs",), str(error)
    baseline = plan.gate.baseline
    if baseline is not None and not (folder / baseline).is_file():
        yield ("gate", "baseline"), f"gate.baseline: no such file: {baseline}"
