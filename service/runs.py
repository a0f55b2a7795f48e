"""A run: its plan, its portraits, its tools, and the ledger they are written to."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import adapters.contract
from domain.errors import LedgerError, LikenessError, PlanError, did_you_mean
from domain.plan import AuditPlan, ToolChoice
from domain.portraits import Portrait
from service.controls import control_tools
from service.plans import LoadedPlan
from service.portraits import read_manifest, select
from service.store.blobs import Blobs
from service.store.ledger import Ledger, now
from service.versions import installed_versions

MEASURED_GROUP = "measured_ita_group"
"""The one computed attribute: measured skin tone of the original."""
DEFAULT_GROUPS = ["gender"]


@dataclass(frozen=True)
class Run:
    """A run under way. ``tools`` holds the plan's tools and the controls, by label; ``controls``
    are the labels that the audit added itself: a control that the plan lists is a tool under test."""

    loaded: LoadedPlan
    out: Path
    ledger: Ledger
    blobs: Blobs
    portraits: Sequence[Portrait]
    tools: Mapping[str, ToolChoice]
    controls: frozenset[str]
    specs: Mapping[str, adapters.contract.ToolSpec]
    began: float

    @property
    def plan(self) -> AuditPlan:
        """The plan as it was loaded."""
        return self.loaded.plan


def begin(loaded: LoadedPlan, out: Path, resume: bool) -> Run:
    """Open or reopen the ledger in ``out``. Raises LikenessError when the folder holds another
    run, or one that was not asked to be resumed."""
    plan = loaded.plan
    portraits = select(read_manifest(loaded.manifest), plan.portraits.where, plan.portraits.limit)
    _check_groups(loaded, portraits)
    tools = {t.label: t for t in plan.tools}
    added = {t.label: t for t in control_tools(plan, portraits)} if plan.controls else {}
    controls = frozenset(added) - frozenset(tools)
    tools |= {label: added[label] for label in added if label in controls}
    specs = {label: _spec(loaded, tool) for label, tool in tools.items()}
    ledger_file = out / "ledger.sqlite3"
    if ledger_file.exists() and not resume:
        raise LedgerError(f"{out}: already holds a run; use --resume, or another folder")
    if resume and not ledger_file.exists():
        raise LedgerError(f"{out}: holds no run to resume; leave out --resume to begin one")
    try:
        ledger = Ledger(ledger_file)
    except OSError as error:
        raise LedgerError(f"{out}: cannot be written: {error.strerror or error}") from None
    blobs = Blobs(str(out / "blobs"))
    run = Run(loaded, out, ledger, blobs, portraits, tools, controls, specs, time.monotonic())
    _enter(run)
    return run


def _check_groups(loaded: LoadedPlan, portraits: Sequence[Portrait]) -> None:
    """A group that no portrait declares is a slip of the pen: refused before anything is run."""
    known = sorted({name for p in portraits for name in p.attributes} | {MEASURED_GROUP})
    for name in loaded.plan.groups:
        if name in known or (name == "age_group" and "age" in known):
            continue
        if loaded.plan.groups == DEFAULT_GROUPS:
            continue
        hint = did_you_mean(name, known, 0.5)
        raise PlanError(
            f"{loaded.path}: groups: no portrait declares '{name}'{hint} (declared: {', '.join(known)})"
        )


def build_tool(loaded: LoadedPlan, tool: ToolChoice) -> adapters.contract.Adapter:
    """The adapter of one tool, with settings that name files made relative to the plan."""
    spec = adapters.contract.discover()[tool.id][0]
    settings = dict(tool.settings)
    if "cwd" in spec.path_settings:  # programs and scripts named in a plan lie beside it
        settings.setdefault("cwd", ".")
    for name in spec.path_settings:
        if isinstance(settings.get(name), str):
            settings[name] = str(loaded.path.parent.resolve() / settings[name])
    return adapters.contract.build(tool.id, settings)


def _spec(loaded: LoadedPlan, tool: ToolChoice) -> adapters.contract.ToolSpec:
    """What the tool can do with these settings. A tool that cannot be made is told before anything
    is run or paid for."""
    try:
        adapter = build_tool(loaded, tool)
    except LikenessError as error:
        said = str(error).removeprefix(f"tool '{tool.id}': ")
        raise LikenessError(f"{loaded.path}: tool '{tool.label}': {said}") from None
    adapter.close()
    return adapter.spec


def _enter(run: Run) -> None:
    inputs = {
        str(run.loaded.path.name): run.loaded.sha256,
        run.plan.portraits.manifest: _sha256(run.loaded.manifest),
    }
    row = run.ledger.run()
    if row is None:
        run.ledger.begin(
            {
                "run_id": uuid4().hex,
                "plan_sha256": run.loaded.sha256,
                "plan_text": run.loaded.text,
                "started": now(),
                "versions": installed_versions(run.plan.engine),
                "inputs": inputs,
                "seconds": 0.0,
            }
        )
    elif row["plan_sha256"] != run.loaded.sha256:
        raise LedgerError(f"{run.out}: holds a run of another plan (its text has changed)")
    elif row["inputs"] != inputs:
        raise LedgerError(f"{run.out}: the manifest has changed since this run began")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
