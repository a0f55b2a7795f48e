"""What a tool is: a frozen spec and ``edit(EditRequest) -> EditOutcome``. Exceptions never cross it.

Adding a tool is one file in this package (plus its test): define ``SPEC`` and ``build``. Third
parties offer the same module under the entry-point group ``likeness.adapters``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from domain.discovery import offered
from domain.edits import EditOutcome, EditRequest, Task
from domain.errors import ExtraMissing, LikenessError
from domain.sizing import SizeRule
from domain.tools import Price, RateLimit

MaskSupport = Literal["enforced", "advisory", "none"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Facts about a tool that do not depend on settings."""

    id: str
    name: str
    tasks: tuple[Task, ...]
    size: SizeRule = field(default_factory=SizeRule)
    mask_support: MaskSupport = "none"
    takes_prompt: bool = False
    seedable: bool = False
    deterministic: bool = False
    control: bool = False
    """True for the instruments' own checks (identity, re-encode, planted harms)."""
    extra: str | None = None
    """The optional extra that brings its packages, if any."""
    price_note: str = "free, local"
    licence: str = ""
    path_settings: tuple[str, ...] = ()
    """Settings that name files; in a plan they are relative to the plan's folder."""
    generates: bool = False
    """Makes a picture from text alone: the request has no original."""
    remote: bool = False
    """The work is done on another machine: waiting for it takes no processor from other tools."""
    concurrency: int = 1
    """Calls at once, unless the plan says otherwise. Above 1, ``edit`` must be safe in threads."""
    rate: RateLimit | None = None
    """The maker's published limit; the plan can set a lower one."""
    price: Price | None = None
    """None: not known (``remote``) or nothing (otherwise)."""
    key_env: str | None = None
    """The environment variable that holds the key by default; "" when a key is optional and has no
    usual name; None when the tool knows no key. The key arrives as ``settings["key"]``, a
    pydantic SecretStr, put there by whoever builds the tool: a plan never holds one."""
    key_needed: bool = False
    refuses: tuple[str, ...] = ()
    """What the tool would not take, a sentence each, for ``likeness tools check``."""


class Adapter(Protocol):
    """A tool ready to work. ``close`` frees memory, processes and connections; calls after it are
    an error of the caller. ``model`` is the version string put in every report; where a server says
    in an answer which model served it, that stands in the outcome's ``meta["model"]``."""

    spec: ToolSpec
    model: str

    def edit(self, request: EditRequest) -> EditOutcome:
        """Do one piece of work. Whatever goes wrong is a value, Refused or Failed, never raised."""
        ...

    def close(self) -> None:
        """Free memory, processes and connections."""
        ...


class AdapterModule(Protocol):
    """What a module (or object) must offer to be found as a tool."""

    SPEC: ToolSpec

    def build(self, settings: Mapping[str, Any]) -> Adapter:
        """Make the tool. Raises LikenessError with one clear line on a wrong setting."""
        ...


BROKEN: dict[str, str] = {}
"""Third parties' tools that could not be loaded, with the reason."""


def discover() -> dict[str, tuple[ToolSpec, AdapterModule]]:
    """Every adapter by id: this package's modules, then installed entry points."""
    found: dict[str, tuple[ToolSpec, AdapterModule]] = {}
    offered("adapters", "likeness.adapters", lambda module: _register(module, found), BROKEN)
    return found


def _register(module: Any, found: dict[str, tuple[ToolSpec, AdapterModule]]) -> None:
    """A module may offer one tool (``SPEC``, ``build``) or several (``TOOLS``: spec to builder)."""
    if hasattr(module, "SPEC") and hasattr(module, "build"):
        found[module.SPEC.id] = (module.SPEC, module)
    for one in getattr(module, "TOOLS", ()):
        found[one.SPEC.id] = (one.SPEC, one)


def build(tool_id: str, settings: Mapping[str, Any]) -> Adapter:
    """Make the tool ``tool_id``; one clear line when it is unknown or its extra is missing."""
    known = discover()
    if tool_id not in known:
        raise LikenessError(f"unknown tool '{tool_id}'; known: {', '.join(sorted(known))}")
    spec, module = known[tool_id]
    try:
        return module.build(settings)
    except ImportError as error:
        extra = f"Install it with: scripts/setup.sh {spec.extra}" if spec.extra else ""
        raise ExtraMissing(f"tool '{tool_id}' needs a package: {error}. {extra}".strip()) from error
