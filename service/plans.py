"""Reads an audit plan from YAML; every mistake is told with file, line, key and the near miss."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

import adapters.contract
import metrics.contract
from domain.errors import PlanError, did_you_mean
from domain.measurements import FACE_REGION
from domain.plan import AuditPlan, ToolChoice
from metrics.regions import NAMES
from service.keys import NO_LITERAL

Path_ = tuple[str | int, ...]
REGIONS = (FACE_REGION, *(name for name in NAMES if name != FACE_REGION))


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A valid plan with where it came from. ``manifest`` is the absolute path of its manifest."""

    plan: AuditPlan
    path: Path
    text: str
    manifest: Path

    @property
    def sha256(self) -> str:
        """Of the plan's text: a run can only be resumed with the very same plan."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load_plan(path: Path) -> LoadedPlan:
    """Read and check ``path``. Raises PlanError with one line a mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"{path}: no such plan") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    return read_plan(path, text)


def read_plan(
    path: Path,
    text: str,
    known: Mapping[str, adapters.contract.ToolSpec] | None = None,
    set_keys: Callable[[dict[str, Any]], object] = lambda _data: None,
) -> LoadedPlan:
    """Check the ``text`` of a plan that lies at ``path``. ``known`` are the tools that it may name,
    every adapter by default; ``set_keys`` may change keys of the parsed plan. Raises PlanError with
    one line a mistake."""
    data, lines = _parse(path, text)
    set_keys(data)
    try:
        plan = AuditPlan.model_validate(data)
    except ValidationError as error:
        raise PlanError("\n".join(_messages(path, error, lines))) from None
    if known is None:
        known = {name: spec for name, (spec, _) in adapters.contract.discover().items()}
    problems = [*_check_tools(plan, known), *_check_claims(plan), *_check_margins(plan)]
    if problems:
        raise PlanError("\n".join(f"{path}:{_line(lines, loc)}: {say}" for loc, say in problems))
    return LoadedPlan(plan, path, text, (path.parent / plan.portraits.manifest).resolve())


def _parse(path: Path, text: str) -> tuple[Any, dict[Path_, int]]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise PlanError(f"{where}: not valid YAML: {error.problem}") from None
    if not isinstance(node, yaml.MappingNode):
        raise PlanError(f"{path}:1: a plan is a mapping of keys (name, portraits, tools, ...)")
    lines: dict[Path_, int] = {}
    _walk(path, node, (), lines)
    return yaml.safe_load(text), lines


def _walk(path: Path, node: yaml.Node, at: Path_, lines: dict[Path_, int]) -> None:
    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            if here in lines:
                raise PlanError(
                    f"{path}:{key.start_mark.line + 1}: '{key.value}' stands twice "
                    f"(first in line {lines[here]})"
                )
            _walk(path, value, here, lines)
            lines[here] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(path, value, (*at, index), lines)


def _line(lines: Mapping[Path_, int], at: Sequence[str | int]) -> int:
    here = tuple(at)
    while here not in lines and here:
        here = here[:-1]
    return lines.get(here, 1)


def _messages(path: Path, error: ValidationError, lines: Mapping[Path_, int]) -> Iterable[str]:
    for item in error.errors():
        at = item["loc"]
        key = ".".join(str(part) for part in at)
        if item["type"] == "extra_forbidden":
            hint = did_you_mean(str(at[-1]), _siblings(at[:-1]), 0.5)
            yield f"{path}:{_line(lines, at)}: {key}: unknown key{hint}"
        elif item["type"] == "missing":
            yield f"{path}:{_line(lines, at[:-1])}: {key}: this key is required"
        else:
            hint = _value_hint(item)
            yield f"{path}:{_line(lines, at)}: {key}: {item['msg']}{hint}"


def _value_hint(item: Any) -> str:
    expected = str(item.get("ctx", {}).get("expected", ""))
    options = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",") if part]
    said = f" (here: {item['input']!r})" if isinstance(item.get("input"), str | int | float) else ""
    return said + did_you_mean(str(item.get("input")), options, 0.5)


def _siblings(at: Sequence[str | int]) -> list[str]:
    """Field names of the plan's part at ``at``, for the near miss of an unknown key."""
    part: Any = AuditPlan
    for step in at:
        if isinstance(step, int):
            continue
        if not (isinstance(part, type) and issubclass(part, BaseModel)):
            return []
        field = part.model_fields.get(step)
        if field is None:
            return []
        part = _model_in(field.annotation)
    return list(part.model_fields) if isinstance(part, type) and issubclass(part, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found is not None:
            return found
    return None


def _check_tools(
    plan: AuditPlan, known: Mapping[str, adapters.contract.ToolSpec]
) -> Iterable[tuple[Path_, str]]:
    labels: dict[str, int] = {}
    for index, tool in enumerate(plan.tools):
        if tool.id not in known:
            hint = did_you_mean(tool.id, known, 0.5)
            yield (
                ("tools", index, "id"),
                (f"tools.{index}.id: unknown tool '{tool.id}'{hint} (known: {', '.join(known)})"),
            )
            continue
        if tool.label in labels:
            yield (
                ("tools", index),
                (f"tools.{index}: two tools are called '{tool.label}'; give each its own 'name'"),
            )
        labels[tool.label] = index
        yield from _check_running(index, tool, known[tool.id])
        wanted = tool.tasks or plan.tasks
        if wanted and not set(wanted) & set(known[tool.id].tasks):
            yield (
                ("tools", index),
                (
                    f"tools.{index}: '{tool.id}' does none of the tasks asked for "
                    f"({', '.join(wanted)}); it does: {', '.join(known[tool.id].tasks)}"
                ),
            )


def _check_running(
    index: int, tool: ToolChoice, spec: adapters.contract.ToolSpec
) -> Iterable[tuple[Path_, str]]:
    """A key has no place in a plan, and a local tool that is not made for it no second thread."""
    if spec.key_env is not None and "key" in tool.settings:
        at: Path_ = ("tools", index, "settings", "key")
        yield at, f"tools.{index}.settings.key: {NO_LITERAL}"
    if (tool.concurrency or 1) > 1 and spec.concurrency == 1 and not spec.remote:
        yield (
            ("tools", index, "concurrency"),
            f"tools.{index}.concurrency: '{tool.id}' runs here and makes one picture at a time",
        )


def _check_margins(plan: AuditPlan) -> Iterable[tuple[Path_, str]]:
    """A margin is for a metric, "metric/region", "rate", or "metric:below 95"."""
    known = [*metrics.contract.specs(), "rate", "health"]
    for name in plan.margins:
        metric = name.split("/")[0].split(":")[0]
        if metric in known or metric.startswith(("health", "outcome")):
            continue
        hint = did_you_mean(metric, known, 0.5)
        yield ("margins", name), f"margins.{name}: unknown metric '{metric}'{hint}"


def _check_claims(plan: AuditPlan) -> Iterable[tuple[Path_, str]]:
    known = metrics.contract.specs()
    for index, claim in enumerate(plan.claims):
        at: Path_ = ("claims", index)
        if claim.metric not in known and not claim.metric.startswith(("health", "outcome:")):
            hint = did_you_mean(claim.metric, known, 0.5)
            yield (*at, "metric"), f"claims.{index}.metric: unknown metric '{claim.metric}'{hint}"
        if claim.region not in REGIONS:
            hint = did_you_mean(claim.region, REGIONS, 0.5)
            yield (*at, "region"), f"claims.{index}.region: unknown region '{claim.region}'{hint}"
        labels = [tool.label for tool in plan.tools]
        for label in claim.tools:
            if label not in labels:
                hint = did_you_mean(label, labels, 0.5)
                yield (
                    (*at, "tools"),
                    f"claims.{index}.tools: no tool of this plan is called '{label}'{hint}",
                )
        if (claim.event is None) != (claim.threshold is None):
            yield at, f"claims.{index}: 'event' and 'threshold' go together"
        if claim.attribute not in plan.groups:
            yield (
                (*at, "attribute"),
                (
                    f"claims.{index}.attribute: '{claim.attribute}' is not among groups "
                    f"({', '.join(plan.groups)})"
                ),
            )
