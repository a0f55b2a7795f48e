"""Who read and deleted what: written by the resources, read by an administrator."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from service.api.context import ContextOf
from service.api.problems import problems
from service.api.security import Caller, needs
from service.store.access_log import AccessLog

router = APIRouter(tags=["access"])


class Act(BaseModel):
    """One act."""

    entry_id: int = Field(examples=[17])
    at: str = Field(examples=["2026-03-14T10:15:00.123+00:00"])
    key_id: str | None = Field(description="Whose key it was.", examples=["5f0c2d9e8b7a"])
    action: str = Field(examples=["delete batch"])
    target: str = Field(examples=["b_5f0c2d9e8b7a4c1d3e6f9a0b"])
    detail: dict[str, Any] | None = Field(examples=[{"pictures": 12}])


class Acts(BaseModel):
    """A page of acts, the latest first."""

    entries: list[Act]
    next: int | None = Field(description="`before` of the next page.", examples=[16])


@router.get("/access", summary="Who read and deleted what", responses=problems(401, 403, 422))
def list_access(
    context: ContextOf,
    _caller: Annotated[Caller, Depends(needs("admin"))],
    *,
    limit: Annotated[int, Query(ge=1, le=1000, description="Acts of a page at most.")] = 100,
    before: Annotated[
        int | None, Query(ge=1, le=2**53, description="`next` of the page before.", examples=[17])
    ] = None,
    target: Annotated[
        str | None,
        Query(max_length=64, description="Only what was done to this batch or run."),
    ] = None,
) -> Acts:
    """The access log. It is kept longer than the pictures it tells of, and holds none of their names."""
    rows = AccessLog(context.database).page(limit, before=before, target=target)
    entries = [Act.model_validate(row) for row in rows]
    return Acts(entries=entries, next=entries[-1].entry_id if len(entries) == limit else None)
