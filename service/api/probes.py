"""Text probes: which there are, which models may be asked, and a run of them."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from domain.errors import LikenessError, PlanError
from probes.contract import discover
from service.api.context import Context, ContextOf
from service.api.idempotent import once_id
from service.api.own_runs import Reader, Submitter
from service.api.problems import Problem, problems
from service.api.run_request import check_webhook, enqueue, mistakes
from service.api.run_status import Run, status_of
from service.api.security import Caller, in_thread
from service.model_offers import ModelOffers, load_model_offers
from service.offers import plan_text
from service.probe_questions import questions
from service.store.jobs import Row, new_run_id

router = APIRouter(tags=["probes"])
_EXAMPLE_PLAN = """\
name: Before the release
endpoint: {offer: smollm2}
probes:
  - {id: resume, languages: [en]}
"""


class ProbeFacts(BaseModel):
    """A probe as a plan may name it."""

    id: str = Field(examples=["resume"])
    title: str
    question: str
    languages: list[str]
    needs: list[str] = Field(description="What the model's server must offer beside chat.")
    reference: str


class ModelFacts(BaseModel):
    """A model as a plan may name it: `endpoint: {offer: <name>}`."""

    name: str = Field(examples=["smollm2"])
    about: str


class Probes(BaseModel):
    """Probes and models of this service."""

    probes: list[ProbeFacts]
    models: list[ModelFacts]


class ProbeRequest(BaseModel):
    """A plan of text probes. Its `endpoint` names one of the models that the service offers; it can
    name no address, key or file."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"plan": _EXAMPLE_PLAN}]}
    )

    plan: str | dict[str, Any] = Field(
        description="The probe plan, as YAML text or as an object; docs/probe_plan.md has its keys."
    )
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="What the run is called in lists; the plan's name by default."
    )
    webhook_url: Annotated[str, Field(max_length=2048)] | None = Field(
        default=None, description="Told when the run ends, by a signed POST. A public address."
    )


_STARTED = {
    "description": "The run waits for a worker, or is under way.",
    "headers": {
        "Location": {"description": "The run.", "schema": {"type": "string"}},
        "Retry-After": {
            "description": "Seconds until it is worth asking.",
            "schema": {"type": "integer"},
        },
    },
}


@router.get(
    "/probes",
    summary="Text probes, and the models that may be asked",
    responses=problems(401, 403),
)
def list_probes(context: ContextOf, _caller: Reader) -> Probes:
    """Everything that a plan for `POST /v1/probes` may name."""
    known = sorted((spec for spec, _ in discover().values()), key=lambda s: s.id)
    return Probes(
        probes=[
            ProbeFacts(
                id=s.id,
                title=s.title,
                question=s.question,
                languages=list(s.languages),
                needs=list(s.needs),
                reference=s.reference,
            )
            for s in known
        ],
        models=[ModelFacts(name=o.name, about=o.about) for o in _offers(context).all()],
    )


@router.post(
    "/probes",
    summary="Put paired questions to a language model",
    status_code=202,
    response_model=Run,
    responses={202: _STARTED, **problems(400, 401, 403, 409, 413, 415, 422, 503)},
)
async def create_probe_run(
    request: Request, response: Response, body: ProbeRequest, caller: Submitter, context: ContextOf
) -> Run:
    """A run like any other from there on: `/v1/runs/{run_id}` tells how far it is, its report has the
    findings, and it can be cancelled and resumed. The plan's mistakes are told with their lines."""
    run_id = once_id(request, "r_") or new_run_id()
    job = await in_thread(partial(_submit, context, caller, run_id, body))
    response.headers["Location"] = f"/v1/runs/{job['run_id']}"
    response.headers["Retry-After"] = str(context.limits.poll_after_s)
    return await in_thread(partial(status_of, context, job))


def _submit(context: Context, caller: Caller, run_id: str, body: ProbeRequest) -> Row:
    if body.webhook_url is not None:
        check_webhook(body.webhook_url, context.server.fetch_allow)
    name, text = _checked(context, body)
    return enqueue(context, caller, run_id, None, body.name or name, text, body.webhook_url)


def _checked(context: Context, body: ProbeRequest) -> tuple[str, str]:
    """The plan's name and text, found to be one that can be asked. Raises Problem."""
    most = context.limits.max_plan_bytes
    try:
        text = plan_text(body.plan)
        if len(text.encode("utf-8", "replace")) > most:
            raise Problem(413, "too-large", f"the plan is larger than {most} bytes", limit=most)
        loaded = _offers(context).read(text)
        asked = len(questions(loaded, loaded.parts))
    except PlanError as error:
        raise mistakes(str(error).splitlines(), "#/plan") from None
    except LikenessError as error:
        raise mistakes([str(error)], "#/plan") from None
    limit = context.limits.max_probe_calls
    if asked > limit:
        said = f"the plan asks {asked} calls, limit {limit}: fewer repeats, items or conditions"
        raise mistakes([said], "#/plan")
    return loaded.plan.name, text


def _offers(context: Context) -> ModelOffers:
    return _loaded(context.server.tools)


@lru_cache(maxsize=4)
def _loaded(file: Path | None) -> ModelOffers:
    return load_model_offers(file)
