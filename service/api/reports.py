"""What a finished run has to show: its report, its verdicts and its files."""

from __future__ import annotations

import html
import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from service.api.accepting import best_of
from service.api.conditional import has_already, not_modified, strong_tag
from service.api.context import Context, ContextOf
from service.api.own_runs import AuditToRead, Reader, RunId, RunToRead, need_done
from service.api.problem_kinds import kind
from service.api.problems import Problem, problems
from service.api.security import Caller
from service.store.access_log import AccessLog
from service.store.artefacts import Artefacts

router = APIRouter(tags=["runs"])
kind(
    "file-gone",
    410,
    "File expired",
    "The run is known, but the time for which its files are kept is over.",
)
HTML, JSON = "text/html", "application/json"
REPORTS = {HTML: "report.html", JSON: "report.json"}
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]{1,2000})">')
_HEAD_BYTES = 4096
_LOCKED = "default-src 'none'; sandbox"
_STORED = {"Cache-Control": "private, no-cache"}


class Verdicts(BaseModel):
    """What the statistics say, as in report.json."""

    run_id: str
    controls_ok: bool | None = Field(
        description="Whether the planted controls came out as planted; null where they could not tell."
    )
    verdicts: list[dict[str, Any]] = Field(description="Comparisons of groups of people.")
    paired: list[dict[str, Any]] = Field(
        description="Comparisons of the same face with one attribute changed."
    )


class FileInfo(BaseModel):
    """One file of a run."""

    name: str
    media_type: str
    bytes: int
    sha256: str
    created: str
    href: str


class Files(BaseModel):
    """The files of a run, by name; none before it is done."""

    items: list[FileInfo]


FileName = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="A name that /files lists."),
]


@router.get(
    "/runs/{run_id}/report",
    summary="The report of a finished run",
    response_class=Response,
    responses={
        200: {
            "description": "One page that needs no network, or the same for machines.",
            "content": {
                HTML: {"schema": {"type": "string"}},
                JSON: {"schema": {"type": "object"}},
            },
        },
        304: {"description": "The caller has it already."},
        **problems(401, 403, 404, 406, 409, 410, 422, 503),
    },
)
@router.head("/runs/{run_id}/report", include_in_schema=False)
def get_report(
    request: Request, run_id: RunId, job: RunToRead, caller: Reader, context: ContextOf
) -> Response:
    """HTML unless `Accept` asks for JSON. `ETag` is the sha256 of the bytes; every reading is entered
    in the access log."""
    form = best_of(request, (HTML, JSON))
    need_done(job, context.limits.poll_after_s)
    return _file(request, context, caller, run_id, REPORTS[form], {"Vary": "Accept"})


@router.get(
    "/runs/{run_id}/verdicts",
    summary="The verdicts of a finished run",
    response_model=Verdicts,
    responses=problems(401, 403, 404, 409, 410, 422, 503),
)
def get_verdicts(run_id: RunId, job: AuditToRead, caller: Reader, context: ContextOf) -> Verdicts:
    """Each names the groups, the effect with its interval, and how many people it rests on."""
    need_done(job, context.limits.poll_after_s)
    content = Artefacts(context.database, context.blobs).read(run_id, "report.json")
    if content is None:
        raise _gone(run_id, "report.json")
    AccessLog(context.database).add(caller.key_id, "read report", f"{run_id}/verdicts")
    report = json.loads(content)
    named = {name: report[name] for name in ("controls_ok", "verdicts", "paired")}
    return Verdicts(run_id=run_id, **named)


@router.get(
    "/runs/{run_id}/files",
    summary="The files of a run",
    response_model=Files,
    responses=problems(401, 403, 404, 422, 503),
)
def list_run_files(run_id: RunId, _job: RunToRead, context: ContextOf) -> Files:
    """Report, table of figures, list for review and manifest."""
    rows = Artefacts(context.database, context.blobs).list(run_id)
    return Files(
        items=[
            FileInfo(
                name=r["name"],
                media_type=r["media_type"],
                bytes=r["bytes"],
                sha256=r["blob"],
                created=r["created"],
                href=f"/v1/runs/{run_id}/files/{r['name']}",
            )
            for r in rows
        ]
    )


@router.get(
    "/runs/{run_id}/files/{name}",
    summary="One file of a run",
    response_class=Response,
    responses={
        200: {
            "description": "The file's bytes.",
            # a file may be JSON, of which "binary" would not be true
            "content": {"*/*": {"schema": {}}},
        },
        304: {"description": "The caller has it already."},
        **problems(401, 403, 404, 410, 422, 503),
    },
)
@router.head("/runs/{run_id}/files/{name}", include_in_schema=False)
def get_run_file(
    request: Request,
    run_id: RunId,
    name: FileName,
    _job: RunToRead,
    caller: Reader,
    context: ContextOf,
) -> Response:
    """As the run wrote it, byte for byte."""
    if Artefacts(context.database, context.blobs).get(run_id, name) is None:
        raise Problem(404, "not-found", f"run {run_id} has no such file")
    return _file(request, context, caller, run_id, name, {})


def _file(
    request: Request,
    context: Context,
    caller: Caller,
    run_id: str,
    name: str,
    more: dict[str, str],
) -> Response:
    row = Artefacts(context.database, context.blobs).get(run_id, name)
    if row is None or not context.blobs.exists(row["blob"]):
        raise _gone(run_id, name)
    AccessLog(context.database).add(caller.key_id, "read report", f"{run_id}/{name}")
    tag = strong_tag(row["blob"])
    headers = _STORED | {"ETag": tag} | more
    if has_already(request, tag):
        return not_modified(tag, headers)
    page = str(row["media_type"]).startswith(HTML)
    place = "inline" if page or request.url.path.endswith("/report") else "attachment"
    headers["Content-Disposition"] = f'{place}; filename="{run_id}-{name}"'
    data = context.blobs.get(row["blob"])
    headers["Content-Security-Policy"] = policy_of(data) if page else _LOCKED
    return Response(data, media_type=row["media_type"], headers=headers)


def policy_of(page: bytes) -> str:
    """The policy that a report was written with: its own style and script by their hash. Said in the
    header as well, where nothing in the page can come before it. A page without one runs nothing."""
    found = _POLICY.search(page[:_HEAD_BYTES].decode("utf-8", "replace"))
    if found is None or not (policy := html.unescape(found[1])).isprintable():
        return _LOCKED
    return f"{policy}; frame-ancestors 'none'" if policy.isascii() else _LOCKED


def _gone(run_id: str, name: str) -> Problem:
    return Problem(410, "file-gone", f"run {run_id}: {name} is no longer kept")
