"""What it takes to begin a run, and whether it can be done."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from domain.errors import Conflict, LikenessError, ManifestError, PlanError
from service import presets
from service.api.context import Context
from service.api.problem_kinds import kind
from service.api.problems import Problem
from service.api.security import Caller
from service.engine import materialise
from service.offers import Offers, plan_text
from service.plans import LoadedPlan
from service.runs import build_tool, close_tool
from service.store.jobs import QUEUED, Jobs, Row
from service.store.readings import accepted_items, batch
from service.webhooks import check_target

kind(
    "plan",
    422,
    "Plan with mistakes",
    "'errors' lists each mistake with its line in the plan and the key it is about.",
)
kind(
    "batch-not-ready",
    409,
    "Batch not ready",
    "The batch is still being received, or none of its pictures was accepted.",
)
PLAN = "plan.yaml"
_EXAMPLE_PLAN = """\
name: Spring audit
tools:
  - {id: style_transfer, settings: {style: 0, strength: 0.7}}
groups: [gender]
"""


class RunRequest(BaseModel):
    """A batch, and the plan to run over it: either by value or by the name of a preset."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"batch_id": "b_0a1b2c3d4e5f60718293a4b5", "preset": "self-test"},
                {"batch_id": "b_0a1b2c3d4e5f60718293a4b5", "plan": _EXAMPLE_PLAN},
            ]
        },
    )

    batch_id: Annotated[str, Field(pattern=r"^b_[0-9a-f]{24}$")]
    plan: str | dict[str, Any] | None = Field(
        default=None,
        description="The audit plan, as YAML text or as an object. Its portraits are the batch's.",
    )
    preset: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="A name of /v1/presets."
    )
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="What the run is called in lists; the plan's name by default."
    )
    webhook_url: Annotated[str, Field(max_length=2048)] | None = Field(
        default=None, description="Told when the run ends, by a signed POST. A public address."
    )

    @model_validator(mode="after")
    def _one_plan(self) -> RunRequest:
        if (self.plan is None) == (self.preset is None):
            raise ValueError("give either 'plan' or 'preset'")
        return self


def plan_in(body: RunRequest, most: int) -> str:
    """The plan's text, of ``most`` bytes. Raises Problem."""
    try:
        text = (
            presets.preset(body.preset) if body.preset is not None else plan_text(body.plan or "")
        )
    except LikenessError as error:
        pointer = "#/preset" if body.preset is not None else "#/plan"
        raise mistakes([str(error)], pointer) from None
    if len(text.encode("utf-8", "replace")) > most:
        raise Problem(413, "too-large", f"the plan is larger than {most} bytes", limit=most)
    return text


def checked(
    context: Context, caller: Caller, body: RunRequest, text: str, offers: Offers
) -> LoadedPlan:
    """The plan, found to be one that can be run over this batch. Raises Problem."""
    if body.webhook_url is not None:
        check_webhook(body.webhook_url, context.server.fetch_allow)
    row = batch(context.database, body.batch_id)
    if row is None or not caller.owns(row["owner"]):
        raise Problem(404, "not-found", f"there is no batch {body.batch_id}")
    if row["state"] == "deleted":
        raise Problem(410, "gone", f"batch {body.batch_id} was deleted")
    items = accepted_items(context.database, body.batch_id)
    if row["state"] != "ready" or not items:
        said = f"batch {body.batch_id} is {row['state']}, with {len(items)} accepted pictures"
        raise Problem(409, "batch-not-ready", said, state=row["state"])
    try:
        loaded = materialise.check(text, items, offers)
        _try_settings(loaded, offers)
    except (PlanError, ManifestError) as error:
        raise mistakes(str(error).splitlines(), "#/plan") from None
    return loaded


def _try_settings(loaded: LoadedPlan, offers: Offers) -> None:
    """Whether the tools that work here take the settings given. Ready-made ones are not tried: the
    machine that runs them may have what this one lacks."""
    local = {offer.name for offer in offers.all() if not offer.ready_made}
    for tool in loaded.plan.tools:
        if tool.id not in local or not tool.settings:
            continue
        try:
            said = close_tool(build_tool(loaded, offers.resolve(tool), "placeholder"))
        except LikenessError as error:
            said = str(error).removeprefix(f"tool '{tool.id}': ")
            raise PlanError(f"{PLAN}: tool '{tool.label}': {said}") from None


def enqueue(
    context: Context, caller: Caller, run_id: str, batch_id: str | None, name: str, text: str,
    webhook_url: str | None,
) -> Row:  # fmt: skip
    """Put a run into the queue, or find the one that this very request has put there before its
    answer was lost. Raises Problem where too many wait."""
    jobs = Jobs(context.database)
    if jobs.counts()[QUEUED] >= context.limits.max_queued:
        retry = {"Retry-After": str(10 * context.limits.poll_after_s)}
        raise Problem(503, "busy", "too many runs wait for a worker", headers=retry)
    try:
        return jobs.submit(run_id, batch_id, caller.key_id, name, text, webhook_url)
    except Conflict:
        made = jobs.get(run_id)
        if made is None:
            raise
        return made


def check_webhook(url: str, allowed: Collection[str]) -> None:
    """Pass an address that may be told of a run's end. Raises Problem."""
    try:
        check_target(url, allowed)
    except LikenessError as error:
        raise mistakes([f"webhook_url: {error}"], "#/webhook_url", "invalid") from None


def mistakes(lines: list[str], pointer: str, slug: str = "plan") -> Problem:
    """The answer to a plan with mistakes, one line each as the command line tells them."""
    errors = [_mistake(line, pointer) for line in lines[:50]]
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    detail = (
        errors[0]["detail"] if len(lines) == 1 else f"{count}, the first: {errors[0]['detail']}"
    )
    return Problem(422, slug, detail, errors=errors)


def _mistake(line: str, pointer: str) -> dict[str, Any]:
    """One line as the command line says it, ``plan.yaml:3: tools.0.id: ...``, taken apart."""
    name, _, rest = line.partition(":")
    number, _, said = rest.partition(":")
    if name == PLAN and number.strip().isdigit():
        return {"pointer": pointer, "line": int(number), "detail": said.strip(), "code": "plan"}
    said = rest.strip() if name == PLAN else line
    return {"pointer": pointer, "detail": said, "code": "plan"}
