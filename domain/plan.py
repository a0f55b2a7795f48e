"""The audit plan: everything that decides what a run does, so that the same plan gives the same run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.edits import Task
from domain.tools import RateText

Perturbation = Literal[
    "none", "noise", "crop_above_nose",
    "red_up", "red_down", "green_up", "green_down", "blue_up", "blue_down",
]  # fmt: skip
EngineName = Literal["mediapipe", "dlib"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PortraitSource(_Part):
    """Which portraits: a manifest (path relative to the plan) and an optional selection."""

    manifest: str
    where: dict[str, list[str]] = Field(default_factory=dict)
    limit: Annotated[int, Field(ge=1)] | None = None


class ToolPrice(_Part):
    """What a call costs by your contract; used for estimates in place of the adapter's list price."""

    per_call: Annotated[float, Field(ge=0)]
    per_megapixel: Annotated[float, Field(ge=0)] = 0.0
    currency: Annotated[str, Field(min_length=1, max_length=12)] = "USD"


class ToolChoice(_Part):
    """One tool under test. ``id`` is the adapter's, ``name`` tells two settings of it apart.

    ``concurrency``, ``rate_limit`` ("150/10s"), ``max_attempts`` and ``price`` stand in for what the
    adapter says of itself. A wait that the tool asks for and that is longer than ``max_wait_s``
    ends the item as failed. ``warm_up`` calls are made before the first item and thrown away.
    """

    id: str
    name: str = ""
    tasks: list[Task] = Field(default_factory=list)
    perturbations: list[Perturbation] | None = None
    prompt: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    concurrency: Annotated[int, Field(ge=1, le=64)] | None = None
    rate_limit: RateText | None = None
    max_attempts: Annotated[int, Field(ge=1, le=20)] | None = None
    max_wait_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    warm_up: Annotated[int, Field(ge=0, le=20)] = 0
    price: ToolPrice | None = None

    @property
    def label(self) -> str:
        """The name that reports use for this tool with these settings."""
        return self.name or self.id


class Claim(_Part):
    """A comparison named before the run. With ``event`` a rate ("below" ``threshold``), else the figure.

    ``tools`` are the labels of the tools it is asked of, all of them when empty: the fewer questions
    are named, the less the correction for their number takes from each."""

    metric: str
    attribute: str
    event: Literal["below", "above"] | None = None
    threshold: float | None = None
    region: str = "face"
    margin: Annotated[float, Field(gt=0)] | None = None
    tools: list[str] = Field(default_factory=list)


class Planted(_Part):
    """The harm that the controls plant: the share of fine detail taken, and from which group.

    Without ``attribute`` and ``value`` the largest group of the first attribute is taken: a choice
    by count, not by what the group is.
    """

    strength: Annotated[float, Field(gt=0, lt=1)] = 0.8
    attribute: str | None = None
    value: str | None = None


class AuditPlan(_Part):
    """See docs/plan.md for the meaning of each key; defaults are documented there and in samples/."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    purpose: str = ""
    portraits: PortraitSource
    tools: Annotated[list[ToolChoice], Field(min_length=1)]
    controls: bool = True
    planted: Planted = Planted()
    tasks: list[Task] = Field(default_factory=list)
    perturbations: Annotated[list[Perturbation], Field(min_length=1)] = ["none"]
    groups: list[str] = Field(default_factory=lambda: ["gender"])
    claims: list[Claim] = Field(default_factory=list)
    margins: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    min_score: Annotated[float, Field(ge=0, le=100)] = 85.0
    engine: EngineName = "mediapipe"
    extra_metrics: list[Literal["identity_similarity"]] = []
    profile: Literal["document", "even"] = "document"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    workers: Annotated[int, Field(ge=1, le=64)] | None = None
