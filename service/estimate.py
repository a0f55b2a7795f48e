"""What an audit would ask of its tools before any is called: calls, pictures, money, time, and whose
faces leave this machine. Nothing is written, nobody is called, no key is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import adapters.contract
from domain.edits import Task
from domain.errors import LikenessError, PictureRejected
from domain.pictures import Picture
from domain.plan import ToolChoice
from domain.portraits import Portrait
from domain.sizing import SizeRule
from domain.tools import Price, RateLimit
from preprocess.crop import fit_to_tool
from preprocess.decode import open_picture
from service.audit import work_of
from service.controls import control_tools
from service.destinations import Destination, destination_by_settings, destination_of
from service.pacing import Pacing
from service.plans import LoadedPlan
from service.portraits import read_manifest, select
from service.runs import build_tool
from service.so_far import Asked, SoFar

SAMPLED = 12
"""Portraits decoded to learn their size; the others are taken to be like them."""
CONTRACT_PRICE = "as the plan says"


@dataclass(frozen=True, slots=True)
class ToolEstimate:
    """One tool's share. ``note`` says why it could not be asked about itself. ``calls`` are expected where every first call succeeds, ``calls_at_most``
    where each item needs every attempt; both hold the ``warm_ups``. ``megapixels`` is 10^6 pixels
    a call on average, None where no portrait could be sized. Money is None where the price is
    unknown, else in ``price.currency``. ``seconds_at_least`` follows from the rate limit, and from
    the tool's own speed where this run has measured it already; None where neither is known.
    ``spent`` is what calls made before this estimate may have cost."""

    tool: str
    tool_id: str
    control: bool
    destination: Destination
    items: int
    pictures: int
    people: int
    calls: int
    calls_at_most: int
    attempts: int
    warm_ups: int
    megapixels: float | None
    price: Price | None
    expected: float | None
    at_most: float | None
    spent: float
    seconds_at_least: float | None
    rate: RateLimit | None
    concurrency: int
    note: str = ""

    @property
    def leaves(self) -> bool:
        """Whether pictures go to another machine."""
        return self.destination.remote


@dataclass(frozen=True, slots=True)
class Estimate:
    """The whole run. ``sized`` of ``portraits`` were opened for their size; ``done`` items of a
    resumed run need no call any more."""

    tools: Sequence[ToolEstimate]
    portraits: int
    people: int
    sized: int
    resumed: bool = False
    done: int = 0

    @property
    def unpriced(self) -> list[str]:
        """Tools still to be called whose price nobody has named."""
        return [t.tool for t in self.tools if t.calls and t.expected is None]

    def totals(self) -> dict[str, tuple[float, float, float]]:
        """(spent, expected, at most) by currency, of the tools whose price is known. What was
        spent is in the other two."""
        found: dict[str, tuple[float, float, float]] = {}
        for t in self.tools:
            if t.price is None or t.expected is None or t.at_most is None:
                continue
            spent, expected, most = found.get(t.price.currency, (0.0, 0.0, 0.0))
            found[t.price.currency] = (
                spent + t.spent, expected + t.spent + t.expected, most + t.spent + t.at_most,
            )  # fmt: skip
        return found


def estimate(
    loaded: LoadedPlan, ledger: Path | None = None, retry_failed: bool = False
) -> Estimate:
    """Work out what ``loaded`` asks for. With the ``ledger`` of a run that is to be resumed only
    what is left counts, and what was spent is told; ``retry_failed`` as for ``likeness audit``.
    Raises LikenessError for a manifest or a tool's settings that an audit would refuse too."""
    plan = loaded.plan
    portraits = select(read_manifest(loaded.manifest), plan.portraits.where, plan.portraits.limit)
    tools = {t.label: t for t in plan.tools}
    added = {t.label: t for t in control_tools(plan, portraits)} if plan.controls else {}
    controls = frozenset(added) - frozenset(tools)
    sizes = _Sizes(portraits)
    before = SoFar.read(ledger, retry_failed) if ledger else None
    found = []
    for label, tool in (tools | {n: added[n] for n in added if n in controls}).items():
        known = _known_of(loaded, tool)
        work = work_of(plan, tool, known.spec, label in controls)
        asked = before.left(label) if before else _everything(portraits, work)
        found.append(_of_tool(tool, known, label in controls, asked, sizes, before))
    people = len({p.subject_id for p in portraits})
    done = before.done if before else 0
    return Estimate(found, len(portraits), people, sizes.opened, before is not None, done)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a tool says of itself; ``note`` is why it could not be asked."""

    spec: adapters.contract.ToolSpec
    destination: Destination
    note: str = ""


def _known_of(loaded: LoadedPlan, tool: ToolChoice) -> _Known:
    """A remote tool that cannot be set up now, such as a phone that is not there, is reckoned by its
    general facts, and that is said; the audit itself would not begin."""
    try:
        adapter = build_tool(loaded, tool, keys="placeholder")
    except LikenessError as error:
        spec = adapters.contract.discover()[tool.id][0]
        if not spec.remote:
            raise
        said = str(error).removeprefix(f"tool '{tool.id}': ")
        return _Known(spec, destination_by_settings(spec, tool.settings), said)
    try:
        return _Known(adapter.spec, destination_of(adapter))
    finally:
        adapter.close()


def _everything(portraits: Sequence[Portrait], work: Sequence[tuple[str, Task]]) -> Asked:
    ids = frozenset(p.portrait_id for p in portraits)
    return Asked(len(portraits) * len(work), ids, frozenset(p.subject_id for p in portraits))


def _of_tool(
    tool: ToolChoice,
    known: _Known,
    control: bool,
    asked: Asked,
    sizes: _Sizes,
    before: SoFar | None,
) -> ToolEstimate:
    spec, destination = known.spec, known.destination
    pacing = Pacing.of(tool, spec)
    warm_ups = tool.warm_up if asked.items else 0
    calls = asked.items + warm_ups
    at_most = asked.items * pacing.max_attempts + warm_ups
    price = price_of(tool, spec, destination)
    pixels = sizes.megapixels(spec.size)
    one = _of_call(price, pixels)
    rate = RateLimit.parse(tool.rate_limit) if tool.rate_limit else spec.rate
    concurrency = tool.concurrency or spec.concurrency
    speed = before.seconds(tool.label) if before else None
    return ToolEstimate(
        tool.label, tool.id, control, destination,
        asked.items, len(asked.portraits), len(asked.people),
        calls, at_most, pacing.max_attempts, warm_ups, pixels, price,
        None if one is None else calls * one, None if one is None else at_most * one,
        before.spent(tool.label, price, one) if before else 0.0,
        least_seconds(calls, rate, concurrency, speed), rate, concurrency, known.note,
    )  # fmt: skip


def price_of(
    tool: ToolChoice, spec: adapters.contract.ToolSpec, destination: Destination
) -> Price | None:
    """The plan's price, else nothing for a tool of this machine, else the maker's list price; None
    where nobody has named one."""
    if tool.price is not None:
        own = tool.price
        return Price(own.per_call, own.currency, own.per_megapixel, CONTRACT_PRICE)
    if not destination.remote:
        return Price(0.0, source="this machine")
    return spec.price


def _of_call(price: Price | None, megapixels: float | None) -> float | None:
    if price is None or (price.per_megapixel and megapixels is None):
        return None
    return price.of(megapixels or 0.0)


def least_seconds(
    calls: int, rate: RateLimit | None, concurrency: int, seconds_a_call: float | None
) -> float | None:
    """The time below which ``calls`` calls cannot end: the last may begin only when the rate lets
    it, and ``concurrency`` of them at a time take ``seconds_a_call`` each."""
    bounds = []
    if rate is not None:
        bounds.append(max(calls - 1, 0) // rate.calls * rate.seconds)
    if seconds_a_call is not None:
        bounds.append(math.ceil(calls / max(concurrency, 1)) * seconds_a_call)
    return max(bounds) if bounds else None


class _Sizes:
    """How large the pictures are that a tool would get, from a sample spread over the portraits."""

    def __init__(self, portraits: Sequence[Portrait]) -> None:
        step = max(1, math.ceil(len(portraits) / SAMPLED))
        self._pictures = [p for p in map(_opened, portraits[::step]) if p is not None]
        self._known: dict[SizeRule, float | None] = {}
        self.opened = len(self._pictures)

    def megapixels(self, rule: SizeRule) -> float | None:
        """10^6 pixels a call on average, with the face taken to be in the middle; None where no
        portrait could be opened or fitted."""
        if rule not in self._known:
            areas = [a for a in (_area(p, rule) for p in self._pictures) if a is not None]
            self._known[rule] = sum(areas) / len(areas) / 1e6 if areas else None
        return self._known[rule]


def _opened(portrait: Portrait) -> Picture | None:
    try:
        return open_picture(portrait.path)
    except (PictureRejected, OSError):
        return None  # the audit will count it as unreadable; here it only has no size


def _area(picture: Picture, rule: SizeRule) -> int | None:
    try:
        fitted = fit_to_tool(picture, None, rule).picture
    except ValueError:
        return None
    return fitted.width * fitted.height
