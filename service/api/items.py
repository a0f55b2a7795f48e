"""The items of a run: a portrait given to a tool, what came back, and what was measured on it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from adapters.codec import media_type_of
from domain.measurements import Outcome
from service.api.conditional import has_already, not_modified, strong_tag
from service.api.context import ContextOf
from service.api.own_runs import AuditToRead, Reader, RunId
from service.api.paging import Cursors, CursorText, PageSize, cut, link_next
from service.api.problem_kinds import kind
from service.api.problems import Problem, problems
from service.store.access_log import AccessLog
from service.store.readings import Readings, Row

router = APIRouter(tags=["runs"])
kind(
    "no-picture",
    404,
    "No such picture",
    "The item has no such picture: the tool was not called yet, brought none, or was given no mask.",
)
kind(
    "picture-gone",
    410,
    "Picture deleted",
    "The picture was deleted, with its batch or because its time was over. The figures stay.",
)
PICTURE_POLICY = "default-src 'none'; sandbox"
"""A picture opened by itself runs nothing, whatever is hidden in it."""
_ENDINGS = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif",
            "image/avif": "avif", "image/heif": "heic"}  # fmt: skip
PICTURE_TYPES = tuple(_ENDINGS)


class Item(BaseModel):
    """One portrait x perturbation x task x tool."""

    item_id: str
    portrait_id: str
    tool: str
    tool_id: str
    control: bool
    task: str
    perturbation: str
    state: str = Field(description="planned, calling, edited (not measured yet) or done.")
    outcome: Outcome | None = Field(description="null until the item is done.")
    reason: str | None
    seconds: float | None
    model: str
    attempts: int
    pictures: dict[str, str] = Field(description="Addresses of the pictures there are.")


class ItemPage(BaseModel):
    """Items in the order planned."""

    items: list[Item]
    next: str | None


class ItemFigure(BaseModel):
    """A figure, or the reason why there is none."""

    metric: str
    region: str
    value: float | None
    unit: str
    status: str
    reason: str | None


class Call(BaseModel):
    """One call of the tool. Without ``ended`` it was cut off, and may have been billed."""

    attempt: int
    kind: str
    started: str
    ended: str | None
    result: str | None
    reason: str | None
    seconds: float | None
    model: str | None
    request_id: str | None
    meta: dict[str, Any] | None


class Portrait(BaseModel):
    """What the instrument saw on the untouched portrait."""

    portrait_id: str
    subject_id: str
    attributes: dict[str, str]
    accepted: bool
    face_found: bool
    reason: str | None
    facts: dict[str, Any]
    warnings: list[str]


class ItemDetail(Item):
    """Everything about one item."""

    seed: int
    warnings: list[str]
    health: dict[str, Any]
    portrait: Portrait | None
    figures: list[ItemFigure]
    calls: list[Call]


ItemId = Annotated[
    str,
    Path(pattern=r"^[0-9a-f]{16}$", description="Id of the item.", examples=["0a1b2c3d4e5f6071"]),
]
Which = Annotated[
    Literal["original", "edited", "mask"],
    Path(description="`original` as it was sent to the tool, `edited` as it came back."),
]
State = Annotated[
    Literal["planned", "calling", "edited", "done"] | None, Query(description="Only in this state.")
]


@router.get(
    "/runs/{run_id}/items",
    summary="Items of a run",
    response_model=ItemPage,
    responses=problems(400, 401, 403, 404, 422, 503),
)
def list_run_items(
    request: Request,
    response: Response,
    run_id: RunId,
    _job: AuditToRead,
    context: ContextOf,
    *,
    state: State = None,
    outcome: Annotated[Outcome | None, Query(description="Only with this outcome.")] = None,
    tool: Annotated[str | None, Query(max_length=200, description="Only of this tool.")] = None,
    cursor: CursorText = None,
    limit: PageSize = 100,
) -> ItemPage:
    """Every item has a row from the moment that the run was planned, however it ended."""
    wanted = outcome.value if outcome else None
    cursors = Cursors(context.secret, "items", run_id, state, wanted, tool)
    after = cursors.read(cursor)
    rows = Readings(context.database, run_id).items(
        after[0] if after else None, limit + 1, state=state, outcome=wanted, tool=tool
    )
    page, more = cut(rows, limit, cursors, lambda row: (row["seq"],))
    link_next(request, response, more)
    return ItemPage(items=[Item(**_item(run_id, row)) for row in page], next=more)


def _item(run_id: str, row: Row) -> dict[str, Any]:
    here = f"/v1/runs/{run_id}/items/{row['item_id']}"
    pictures = {which: f"{here}/{which}" for which in ("original", "edited", "mask") if row[which]}
    known = {name: row[name] for name in Item.model_fields if name in row}
    return known | {"control": bool(row["control"]), "pictures": pictures}


@router.get(
    "/runs/{run_id}/items/{item_id}",
    summary="One item with its facts, figures and calls",
    response_model=ItemDetail,
    responses=problems(401, 403, 404, 422, 503),
)
def get_run_item(
    run_id: RunId, item_id: ItemId, _job: AuditToRead, context: ContextOf
) -> ItemDetail:
    """Figures that could not be taken are null with their reason."""
    readings = Readings(context.database, run_id)
    row = _known_item(readings, run_id, item_id)
    portrait = readings.portrait(row["portrait_id"])
    return ItemDetail(
        **_item(run_id, row),
        seed=row["seed"],
        warnings=row["warnings"],
        health=row["health"],
        portrait=Portrait(**portrait) if portrait else None,
        figures=[ItemFigure(**figure) for figure in readings.figures([item_id])],
        calls=[Call(**call) for call in readings.calls(item_id)],
    )


def _known_item(readings: Readings, run_id: str, item_id: str) -> Row:
    row = readings.item(item_id)
    if row is None:
        raise Problem(404, "not-found", f"run {run_id} has no item {item_id}")
    return row


@router.get(
    "/runs/{run_id}/items/{item_id}/{which}",
    summary="A picture of an item",
    response_class=Response,
    responses={
        200: {
            "description": "The bytes as they were sent or came back.",
            "content": {
                name: {"schema": {"type": "string", "format": "binary"}} for name in PICTURE_TYPES
            },
        },
        304: {"description": "The caller has it already."},
        **problems(401, 403, 404, 410, 422, 503),
    },
)
def get_run_picture(
    request: Request,
    run_id: RunId,
    item_id: ItemId,
    which: Which,
    _job: AuditToRead,
    caller: Reader,
    context: ContextOf,
) -> Response:
    """Every reading is entered in the access log."""
    key = _known_item(Readings(context.database, run_id), run_id, item_id)[which]
    if not key:
        raise Problem(404, "no-picture", f"item {item_id} has no picture '{which}'")
    if not context.blobs.exists(key):
        raise Problem(410, "picture-gone", f"picture '{which}' of item {item_id} was deleted")
    target = f"{run_id}/{item_id}/{which}"
    AccessLog(context.database).add(caller.key_id, "read picture", target)
    tag = strong_tag(key)
    # always asked for anew: each reading goes into the log, and a deleted face must not stay about
    headers = {"Cache-Control": "private, no-cache", "Content-Security-Policy": PICTURE_POLICY}
    if has_already(request, tag):
        return not_modified(tag, headers)
    data = context.blobs.get(key)
    media_type = media_type_of(data)
    ending = _ENDINGS.get(media_type, "bin")
    place = "inline" if media_type in _ENDINGS else "attachment"
    headers["Content-Disposition"] = f'{place}; filename="{item_id}-{which}.{ending}"'
    return Response(
        data,
        media_type=media_type or "application/octet-stream",
        headers={"ETag": tag, **headers},
    )
