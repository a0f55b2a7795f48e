"""Reads an audit plan from YAML; every mistake is told with file, line, key and the near miss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adapters.contract
import metrics.contract
from domain.errors import did_you_mean
from domain.measurements import FACE_REGION
from domain.plan import AuditPlan, ToolChoice
from metrics.regions import NAMES
from service import yaml_lines
from service.keys import NO_LITERAL
from service.yaml_lines import At

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
        return yaml_lines.sha256_of(self.text)


def load_plan(path: Path) -> LoadedPlan:
    """Read and check ``path``. Raises PlanError with one line a mistake."""
    return read_plan(path, yaml_lines.read_text(path))


def read_plan(
    path: Path,
    text: str,
    known: Mapping[str, adapters.contract.ToolSpec] | None = None,
    set_keys: Callable[[dict[str, Any]], object] = lambda _data: None,
) -> LoadedPlan:
    """Check the ``text`` of a plan that lies at ``path``. ``known`` are the tools that it may name,
    every adapter by default; ``set_keys`` may change keys of the parsed plan. Raises PlanError with
    one line a mistake."""
    data, lines = yaml_lines.parse(path, text, "name, portraits, tools, ...")
    set_keys(data)
    plan = yaml_lines.validated(path, data, lines, AuditPlan)
    if known is None:
        known = {name: spec for name, (spec, _) in adapters.contract.discover().items()}
    problems = [*_check_tools(plan, known), *_check_claims(plan), *_check_margins(plan)]
    yaml_lines.refuse(path, lines, problems)
    return LoadedPlan(plan, path, text, (path.parent / plan.portraits.manifest).resolve())


def _check_tools(
    plan: AuditPlan, known: Mapping[str, adapters.contract.ToolSpec]
) -> Iterable[tuple[At, str]]:
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
) -> Iterable[tuple[At, str]]:
    """A key has no place in a plan, and a local tool that is not made for it no second thread."""
    if spec.key_env is not None and "key" in tool.settings:
        at: At = ("tools", index, "settings", "key")
        yield at, f"tools.{index}.settings.key: {NO_LITERAL}"
    if (tool.concurrency or 1) > 1 and spec.concurrency == 1 and not spec.remote:
        yield (
            ("tools", index, "concurrency"),
            f"tools.{index}.concurrency: '{tool.id}' runs here and makes one picture at a time",
        )


def _check_margins(plan: AuditPlan) -> Iterable[tuple[At, str]]:
    """A margin is for a metric, "metric/region", "rate", or "metric:below 95"."""
    known = [*metrics.contract.specs(), "rate", "health"]
    for name in plan.margins:
        metric = name.split("/")[0].split(":")[0]
        if metric in known or metric.startswith(("health", "outcome")):
            continue
        hint = did_you_mean(metric, known, 0.5)
        yield ("margins", name), f"margins.{name}: unknown metric '{metric}'{hint}"


def _check_claims(plan: AuditPlan) -> Iterable[tuple[At, str]]:
    known = metrics.contract.specs()
    for index, claim in enumerate(plan.claims):
        at: At = ("claims", index)
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
