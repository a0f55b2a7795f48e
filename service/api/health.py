"""``/healthz``: the process answers. ``/readyz``: it can do its work, or what it lacks for that."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from domain.errors import LikenessError
from preprocess import models
from service.api.context import Context, ContextOf
from service.api.problems import Problem, described

root_router = APIRouter(tags=["health"])
CHECKED_FOR_S = 2.0
"""How long one look at everything is good for: nobody can make the service look all the time."""


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = Field(examples=["ok"])


class Ready(BaseModel):
    """Everything that the service needs is there."""

    status: Literal["ready"] = Field(examples=["ready"])
    checks: dict[str, Literal["ok"]] = Field(
        examples=[{"database": "ok", "blobs": "ok", "models": "ok", "disk": "ok"}]
    )


@root_router.get("/healthz", summary="Is the process alive?", responses={})
async def healthz() -> Alive:
    """Answers without looking at anything: for whoever restarts a hung process."""
    return Alive(status="ok")


@root_router.get(
    "/readyz",
    summary="Can it do its work?",
    responses={503: described(503, "not-ready")},
)
def readyz(request: Request, context: ContextOf) -> Ready:
    """Database, blob store, models and disk space; 503 names what is missing."""
    checks: dict[str, str] = request.app.state.readiness.look(context)
    missing = {name: said for name, said in checks.items() if said != "ok"}
    if missing:
        detail = "; ".join(f"{name}: {said}" for name, said in missing.items())
        retry = {"Retry-After": str(context.limits.store_retry_s)}
        raise Problem(503, "not-ready", detail, headers=retry, missing=sorted(missing))
    return Ready(status="ready", checks=dict.fromkeys(checks, "ok"))


class Readiness:
    """The checks, and what they found last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at, self._found = float("-inf"), dict[str, str]()

    def look(self, context: Context) -> dict[str, str]:
        """By name "ok" or what is wrong, without addresses, paths or passwords."""
        with self._lock:
            now = context.clock()
            if not 0 <= now - self._at < CHECKED_FOR_S:
                self._found = {name: _said(check, context) for name, check in CHECKS.items()}
                self._at = now
            return dict(self._found)


def _said(check: Callable[[Context], str | None], context: Context) -> str:
    try:
        return check(context) or "ok"
    except (LikenessError, OSError):
        return "cannot be reached"


def _database(context: Context) -> str | None:
    context.database.ping()
    return None


def _blobs(context: Context) -> str | None:
    context.blobs.ping()
    return None


def _models(context: Context) -> str | None:
    absent = [name for name in models.manifest() if models.state(name).path is None]
    return f"missing {', '.join(absent)}" if absent else None


def _disk(context: Context) -> str | None:
    folders = {context.server.home}
    if "://" not in context.server.blobs:
        folders.add(Path(context.server.blobs))
    for folder in folders:
        place = next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))
        if shutil.disk_usage(place).free < context.limits.min_free_bytes:
            return "too little space left"
    return None


CHECKS: dict[str, Callable[[Context], str | None]] = {
    "database": _database,
    "blobs": _blobs,
    "models": _models,
    "disk": _disk,
}
