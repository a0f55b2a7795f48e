"""``/v1/tools``: what can be audited, and which of it a plan sent here may use."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

import adapters.contract
from service.api.context import ContextOf
from service.api.problems import problems
from service.api.security import Caller, needs
from service.offers import Offer, Offers, load_offers
from service.tool_facts import spec_json

router = APIRouter(tags=["tools"])
HERE = {
    "name": "identity",
    "id": "identity",
    "about": "",
    "ready_made": False,
    "may_change": [],
}


class Offered(BaseModel):
    """A tool as a plan may ask for it: ``id: <name>``, with the settings in ``may_change``."""

    name: str = Field(description="What a plan writes as the tool's id.")
    id: str = Field(description="The tool behind it, one of `tools`.")
    about: str = Field(description="What whoever runs the service says of it.")
    ready_made: bool = Field(description="Set up by whoever runs the service, keys included.")
    may_change: list[str] = Field(description="Settings that a plan may set.")


class Tools(BaseModel):
    """Every tool this installation knows, and those that may be used here."""

    tools: list[dict[str, Any]] = Field(
        description="As `likeness tools --json` tells them; `usable_here` beside.",
        examples=[[{"id": "identity", "tasks": ["retouch"], "remote": False, "usable_here": True}]],
    )
    offered: list[Offered] = Field(examples=[[HERE]])


@router.get(
    "/tools",
    summary="Tools, and which of them may be used here",
    responses=problems(401, 403),
)
def list_tools(context: ContextOf, _caller: Annotated[Caller, Depends(needs("read"))]) -> Tools:
    """A plan sent to the service can name what is in `offered`; nothing else is run for strangers."""
    return _told(context.server.tools)


@lru_cache(maxsize=4)
def _told(file: Path | None) -> Tools:
    offered = offers(file).all()
    usable = {offer.id for offer in offered}
    known = [spec for spec, _ in adapters.contract.discover().values()]
    return Tools(
        tools=[{**spec_json(spec), "usable_here": spec.id in usable} for spec in known],
        offered=[_shown(offer) for offer in offered],
    )


@lru_cache(maxsize=4)
def offers(file: Path | None) -> Offers:
    """What this service offers, read once."""
    return load_offers(file)


def _shown(offer: Offer) -> Offered:
    return Offered(
        name=offer.name,
        id=offer.id,
        about=offer.about,
        ready_made=offer.ready_made,
        may_change=list(offer.may_change),
    )
