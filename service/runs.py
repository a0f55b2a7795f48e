"""A run: its plan, its portraits, its tools, and the ledger they are written to."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import adapters.contract
from adapters.guard import one_line
from domain.errors import LedgerError, LikenessError, PlanError, did_you_mean
from domain.measurements import Outcome
from domain.plan import AuditPlan, ToolChoice
from domain.portraits import Portrait
from service import secrets
from service.controls import control_tools
from service.keys import Keys, check_no_key, with_key
from service.plans import LoadedPlan
from service.portraits import read_manifest, select
from service.store.blobs import Blobs
from service.store.ledger import CALLING, PLANNED, Ledger, now
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


def begin(
    loaded: LoadedPlan,
    out: Path,
    resume: bool,
    retry_failed: bool = False,
    say: Callable[[str], object] = lambda _text: None,
) -> Run:
    """Open or reopen the ledger in ``out``; with ``retry_failed`` the items that a tool had failed
    are planned again. ``say`` is told what is worth a line. Raises LikenessError when the folder
    holds another run, or one that was not asked to be resumed."""
    portraits = chosen_portraits(loaded)
    ledger_file = out / "ledger.sqlite3"
    if ledger_file.exists() and not resume:
        raise LedgerError(f"{out}: already holds a run; use --resume, or another folder")
    if resume and not ledger_file.exists():
        raise LedgerError(f"{out}: holds no run to resume; leave out --resume to begin one")
    tools, controls = _tools(loaded, portraits, lambda tool: tool)
    idle = _idle_in(ledger_file, retry_failed) if resume else frozenset()
    specs = _specs(loaded, tools, idle, say)
    check_no_key(loaded.path, loaded.text)
    try:
        ledger = Ledger.at(ledger_file)
    except OSError as error:
        raise LedgerError(f"{out}: cannot be written: {error.strerror or error}") from None
    blobs = Blobs(str(out / "blobs"))
    run = Run(loaded, out, ledger, blobs, portraits, tools, controls, specs, time.monotonic())
    _enter(run)
    if retry_failed:
        say(f"failed items that go back to their tools: {ledger.plan_failed_again()}")
    return run


def begin_in(
    loaded: LoadedPlan,
    ledger: Ledger,
    blobs: Blobs,
    out: Path,
    say: Callable[[str], object] = lambda _text: None,
    resolve: Callable[[ToolChoice], ToolChoice] = lambda tool: tool,
) -> Run:
    """Begin the run in a ledger and a blob store that others share, or go on with it. ``out`` is for
    the report's files only. ``resolve`` gives the adapter and all settings of a tool that the plan
    names by what it is called here: they stay out of the plan, which goes on record. Raises
    LikenessError."""
    portraits = chosen_portraits(loaded)
    tools, controls = _tools(loaded, portraits, resolve)
    specs = _specs(loaded, tools, _idle(ledger, False), say)
    check_no_key(loaded.path, loaded.text)
    run = Run(loaded, out, ledger, blobs, portraits, tools, controls, specs, time.monotonic())
    _enter(run)
    return run


def chosen_portraits(loaded: LoadedPlan) -> list[Portrait]:
    """The portraits of the plan's manifest that it asks for. Raises LikenessError when there are
    none, or when the plan groups by what no portrait declares."""
    source = loaded.plan.portraits
    portraits = select(read_manifest(loaded.manifest), source.where, source.limit)
    check_groups(loaded, portraits)
    return portraits


def _tools(
    loaded: LoadedPlan,
    portraits: Sequence[Portrait],
    resolve: Callable[[ToolChoice], ToolChoice],
) -> tuple[dict[str, ToolChoice], frozenset[str]]:
    """The plan's tools and the controls by label, and the labels of those controls that the plan
    does not list itself."""
    plan = loaded.plan
    tools = {t.label: resolve(t) for t in plan.tools}
    added = {t.label: t for t in control_tools(plan, portraits)} if plan.controls else {}
    controls = frozenset(added) - frozenset(tools)
    return tools | {label: added[label] for label in added if label in controls}, controls


def _specs(
    loaded: LoadedPlan,
    tools: Mapping[str, ToolChoice],
    idle: frozenset[str],
    say: Callable[[str], object],
) -> dict[str, adapters.contract.ToolSpec]:
    return {
        label: _spec(loaded, tool, "placeholder" if label in idle else "real", say)
        for label, tool in tools.items()
    }


def _idle_in(ledger_file: Path, retry_failed: bool) -> frozenset[str]:
    ledger = Ledger.at(ledger_file)
    try:
        return _idle(ledger, retry_failed)
    finally:
        ledger.close()


def _idle(ledger: Ledger, retry_failed: bool) -> frozenset[str]:
    """Tools that a resumed run has no call left for: to report on them takes no key."""
    items = ledger.items()
    called = (PLANNED, CALLING)
    again = Outcome.FAILED.value if retry_failed else ""
    busy = {i["tool"] for i in items if i["state"] in called or i["outcome"] == again}
    return frozenset(i["tool"] for i in items) - busy


def check_groups(loaded: LoadedPlan, portraits: Sequence[Portrait]) -> None:
    """A group that no portrait declares is a slip of the pen: refused before anything is run. Raises
    PlanError."""
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


def build_tool(
    loaded: LoadedPlan,
    tool: ToolChoice,
    keys: Keys = "real",
    say: Callable[[str], object] = lambda _text: None,
) -> adapters.contract.Adapter:
    """The adapter of one tool, with settings that name files made relative to the plan and its key
    read from where the plan or the tool says. ``keys="placeholder"`` reads none: such an adapter
    can be asked for its spec, not for an edit."""
    spec = adapters.contract.discover()[tool.id][0]
    folder = loaded.path.parent.resolve()
    settings = with_key(spec, tool.settings, folder, keys=keys, warn=say)
    if "cwd" in spec.path_settings:  # programs and scripts named in a plan lie beside it
        settings.setdefault("cwd", ".")
    for name in spec.path_settings:
        if isinstance(settings.get(name), str):
            settings[name] = str(folder / settings[name])
    return adapters.contract.build(tool.id, settings)


def _spec(
    loaded: LoadedPlan, tool: ToolChoice, keys: Keys, say: Callable[[str], object]
) -> adapters.contract.ToolSpec:
    """What the tool can do with these settings. A tool that cannot be made is told before anything
    is run or paid for."""
    try:
        adapter = build_tool(loaded, tool, keys, lambda text: say(f"{tool.label}: {text}"))
    except LikenessError as error:
        said = secrets.hide_keys(str(error)).removeprefix(f"tool '{tool.id}': ")
        raise LikenessError(f"{loaded.path}: tool '{tool.label}': {said}") from None
    close_tool(adapter)
    return adapter.spec


def close_tool(adapter: adapters.contract.Adapter) -> str:
    """Close it. Returns what went wrong, "" for nothing: what a tool made is safe by then, so a
    stranger's fault here must not end a run."""
    try:
        adapter.close()
    except Exception as error:
        return secrets.hide_keys(one_line(f"{type(error).__name__}: {error}"))
    return ""


def _enter(run: Run) -> None:
    inputs = {
        str(run.loaded.path.name): run.loaded.sha256,
        run.plan.portraits.manifest: _sha256(run.loaded.manifest),
    }
    row = run.ledger.run()
    if row is None:
        run.ledger.begin(
            {
                "run_id": run.ledger.run_id,
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
