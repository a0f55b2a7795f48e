"""``/problems/{slug}``: what a kind of problem means, for people and for machines."""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from service.api.problem_kinds import KINDS, PREFIX, Kind
from service.api.problems import Problem, problems

root_router = APIRouter(tags=["problems"])


class ProblemKind(BaseModel):
    """One kind of problem."""

    type: str = Field(examples=["/problems/not-found"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404], ge=400, le=599)
    about: str = Field(examples=["There is no such thing, or it belongs to another key."])


@root_router.get("/problems", summary="Every kind of problem")
async def list_problem_kinds() -> list[ProblemKind]:
    """All kinds that this service answers with, by status."""
    return [_shown(k) for k in sorted(KINDS.values(), key=lambda k: (k.status, k.slug))]


@root_router.get(
    "/problems/{slug}",
    summary="One kind of problem",
    response_model=ProblemKind,
    responses={
        200: {
            "description": "What it means; as a page for a browser.",
            "content": {"text/html": {"example": "<!doctype html><title>Not found</title>"}},
        },
        **problems(404),
    },
)
async def get_problem_kind(
    slug: Annotated[str, Path(pattern="^[a-z][a-z0-9-]{0,60}$", examples=["not-found"])],
    request: Request,
) -> ProblemKind | Response:
    """What the ``type`` of a problem stands for, and what helps."""
    found = KINDS.get(slug)
    if found is None:
        raise Problem(404, "not-found", "there is no such kind of problem")
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(_page(found))
    return _shown(found)


def _shown(kind: Kind) -> ProblemKind:
    return ProblemKind(
        type=PREFIX + kind.slug, title=kind.title, status=kind.status, about=kind.about
    )


def _page(kind: Kind) -> str:
    title, about = escape(kind.title), escape(kind.about)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<h1>{title}</h1><p>HTTP status {kind.status}, type {PREFIX}{kind.slug}</p><p>{about}</p>"
        '<p><a href="/problems">Every kind of problem</a></p></html>\n'
    )
