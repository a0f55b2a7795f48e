"""Batches: pictures sent to be audited with, what became of each, and their deletion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from service.api.batch_intake import decoding, in_long_thread, receive
from service.api.batch_models import (
    BATCH,
    Batch,
    BatchCreated,
    BatchItem,
    BatchItemDetail,
    BatchItemPage,
    BatchPage,
    item_shown,
    request_body,
    shown,
)
from service.api.context import Context, ContextOf
from service.api.paging import Cursors, CursorText, PageSize, cut, link_next
from service.api.problem_kinds import kind
from service.api.problems import Problem, problems
from service.api.receipts import Receipt, signer_of
from service.api.security import Caller, in_thread, needs
from service.api.waiting import until
from service.intake.decoding import MEDIA_TYPES
from service.store.access_log import AccessLog
from service.store.batches import ACCEPTED, Batches, Row
from service.store.erasure import BatchBusy, erase
from service.store.jobs import Jobs

router = APIRouter(tags=["batches"], lifespan=decoding)
kind(
    "batch-busy",
    409,
    "Batch in use",
    "Runs on the batch are not over ('runs'), or it still comes in. Cancel them with ?cancel=true, or"
    " ask again after Retry-After.",
)
PICTURE_POLICY = "default-src 'none'; sandbox"
"""A picture opened by itself runs nothing, whatever is hidden in it."""
CANCEL_S = 20
"""How long a deletion waits for the runs that it cancels."""
Submitter = Annotated[Caller, Depends(needs("submit"))]
Reader = Annotated[Caller, Depends(needs("read"))]
BatchId = Annotated[
    str, Path(pattern=r"^b_[0-9a-f]{24}$", description="Id of the batch.", examples=[BATCH])
]
Seq = Annotated[
    int, Path(ge=1, le=1_000_000, description="Number of the item in its batch.", examples=[1])
]
ItemState = Annotated[
    Literal["accepted", "rejected", "skipped"] | None, Query(description="Only in this state.")
]


@router.post(
    "/batches",
    status_code=201,
    summary="Send a batch of pictures",
    response_model=BatchCreated,
    openapi_extra=request_body(),
    responses=problems(400, 401, 403, 409, 410, 413, 415, 422, 503),
)
async def submit_batch(
    request: Request,
    response: Response,
    context: ContextOf,
    caller: Submitter,
    name: Annotated[
        str | None,
        Query(max_length=200, description="What to call a batch that comes as application/zip."),
    ] = None,
) -> BatchCreated:
    """As a form with `files` (or an `archive`), as a ZIP, or as a JSON list of addresses; each with
    an optional manifest. Every file is decoded before it counts: `items` says of each whether it was
    accepted, and if not, why. What was accepted is stored when the answer comes."""
    batch_id, received = await receive(request, context, caller)
    found = await in_thread(partial(_created, context, batch_id))
    response.headers["Location"] = f"/v1/batches/{batch_id}"
    row, items = found
    without = received.without_row if received else 0
    return BatchCreated(
        **shown(row), without_row=without, items=[BatchItem(**item_shown(i)) for i in items]
    )


def _created(context: Context, batch_id: str) -> tuple[Row, list[dict[str, Any]]]:
    batches = Batches(context.database)
    row = batches.get(batch_id)
    if row is None:  # deleted by its owner in this very moment
        raise Problem(410, "gone", "the batch was deleted")
    return row, batches.items(batch_id)


@router.get(
    "/batches",
    summary="Batches, the newest first",
    response_model=BatchPage,
    responses=problems(400, 401, 403, 422, 503),
)
def list_batches(
    request: Request,
    response: Response,
    context: ContextOf,
    caller: Reader,
    cursor: CursorText = None,
    limit: PageSize = 100,
) -> BatchPage:
    """Those of the key that asks; an administrator's key sees all."""
    owner = None if caller.is_admin else caller.key_id
    cursors = Cursors(context.secret, "batches", owner)
    rows = Batches(context.database).page(limit + 1, owner, cursors.read(cursor))
    page, more = cut(rows, limit, cursors, lambda row: (row["created"], row["batch_id"]))
    link_next(request, response, more)
    return BatchPage(items=[Batch(**shown(row)) for row in page], next=more)


@router.get(
    "/batches/{batch_id}",
    summary="One batch",
    response_model=Batch,
    responses=problems(401, 403, 404, 422, 503),
)
def get_batch(batch_id: BatchId, context: ContextOf, caller: Reader) -> Batch:
    """Its state and counts."""
    return Batch(**shown(own_batch(context, caller, batch_id)))


def own_batch(context: Context, caller: Caller, batch_id: str) -> Row:
    """The batch's row. 404 both for one that is not there and for one of another key: whoever asks
    must not learn which it is."""
    row = Batches(context.database).get(batch_id)
    if row is None or not caller.owns(row["owner"]):
        raise Problem(404, "not-found", f"there is no batch {batch_id}")
    return row


@router.get(
    "/batches/{batch_id}/items",
    summary="Files of a batch",
    response_model=BatchItemPage,
    responses=problems(400, 401, 403, 404, 422, 503),
)
def list_batch_items(
    request: Request,
    response: Response,
    batch_id: BatchId,
    context: ContextOf,
    caller: Reader,
    *,
    state: ItemState = None,
    cursor: CursorText = None,
    limit: PageSize = 100,
) -> BatchItemPage:
    """Every file that was sent, however it ended, and rows of the manifest that fit none."""
    own_batch(context, caller, batch_id)
    cursors = Cursors(context.secret, "batch items", batch_id, state)
    after = cursors.read(cursor)
    rows = Batches(context.database).items(batch_id, limit + 1, after[0] if after else 0, state)
    page, more = cut(rows, limit, cursors, lambda row: (row["seq"],))
    link_next(request, response, more)
    return BatchItemPage(items=[_detail(row) for row in page], next=more)


def _detail(row: dict[str, Any]) -> BatchItemDetail:
    here = f"/v1/batches/{row['batch_id']}/items/{row['seq']}/picture"
    return BatchItemDetail(
        **item_shown(row), attributes=row["attributes"] or {}, picture=here if row["blob"] else None
    )


@router.get(
    "/batches/{batch_id}/items/{seq}/picture",
    summary="A picture as it was sent",
    response_class=Response,
    responses={
        200: {
            "description": "The bytes as they were sent.",
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in MEDIA_TYPES.values()
            },
        },
        **problems(401, 403, 404, 410, 422, 503),
    },
)
def get_batch_picture(batch_id: BatchId, seq: Seq, context: ContextOf, caller: Reader) -> Response:
    """Every reading is entered in the access log."""
    own_batch(context, caller, batch_id)
    row = Batches(context.database).item(batch_id, seq)
    if row is None:
        raise Problem(404, "not-found", f"batch {batch_id} has no item {seq}")
    if row["state"] != ACCEPTED:
        raise Problem(404, "not-found", f"item {seq} was {row['state']}; its bytes were not kept")
    if not row["blob"] or not context.blobs.exists(row["blob"]):
        raise Problem(410, "picture-gone", f"picture {seq} of batch {batch_id} was deleted")
    AccessLog(context.database).add(caller.key_id, "read picture", f"{batch_id}/{seq}")
    ending = re.sub(r"[^a-z0-9]", "", row["media_type"].partition("/")[2]) or "bin"
    headers = {
        "Cache-Control": "private, no-store",
        "Content-Security-Policy": PICTURE_POLICY,
        "Content-Disposition": f'attachment; filename="{batch_id}-{seq}.{ending}"',
        "Content-Length": str(row["bytes"]),
    }
    return StreamingResponse(
        _read(context, row["blob"]), media_type=row["media_type"], headers=headers
    )


def _read(context: Context, key: str) -> Iterator[bytes]:
    with context.blobs.open(key) as stream:
        while piece := stream.read(1 << 18):
            yield piece


@router.delete(
    "/batches/{batch_id}",
    summary="Delete a batch and every picture made from it",
    response_model=Receipt,
    responses=problems(401, 403, 404, 409, 422, 503),
)
async def delete_batch(
    batch_id: BatchId,
    context: ContextOf,
    caller: Submitter,
    cancel: Annotated[
        bool, Query(description="Cancel the runs on it first; else they are a reason to refuse.")
    ] = False,
) -> Any:
    """Pictures, landmarks and reports with pictures go; figures stay. The receipt is signed, and the
    same one comes however often this is asked for."""
    await in_thread(partial(own_batch, context, caller, batch_id))
    if cancel:
        await _cancel(context, batch_id)
    try:
        return await in_long_thread(partial(_erase, context, caller, batch_id))
    except BatchBusy as error:
        retry = {"Retry-After": str(context.limits.busy_retry_s)}
        raise Problem(409, "batch-busy", str(error), headers=retry, runs=error.runs) from None


def _erase(context: Context, caller: Caller, batch_id: str) -> dict[str, Any]:
    signer = signer_of(context)
    receipt = erase(
        context.database,
        context.blobs,
        batch_id,
        now=context.clock(),
        key_id=caller.key_id,
        sign=signer.sign,
    )
    AccessLog(context.database).add(caller.key_id, "delete batch", batch_id)
    return signer.sign(receipt)


async def _cancel(context: Context, batch_id: str) -> None:
    """Ask its runs to end, and wait a little until they have."""
    jobs = Jobs(context.database)
    batches = Batches(context.database)
    for run_id in await in_thread(partial(batches.open_runs, batch_id)):
        await in_thread(partial(jobs.cancel, run_id))
    await until(partial(batches.open_runs, batch_id), lambda runs: not runs, CANCEL_S)
