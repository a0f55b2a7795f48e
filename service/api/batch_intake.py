"""From a request's body to a batch: picks the kind of body, and keeps the slow work off the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio
from anyio import from_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from domain.errors import Conflict, ManifestError, PictureRejected
from service.api.batch_models import UrlBatch
from service.api.context import Context
from service.api.idempotent import once_id
from service.api.problem_kinds import kind
from service.api.problems import Problem
from service.api.security import Caller
from service.engine.materialise import private_folder, sweep
from service.intake.decoding import Decoders
from service.intake.incoming import Desk, NoPictures
from service.intake.parts import BrokenUpload
from service.intake.receiving import Received
from service.store.batches import DELETED, READY, RECEIVING, Batches, new_batch_id

T = TypeVar("T")
JSON, ZIPS = "application/json", ("application/zip", "application/x-zip-compressed")
MULTIPART = "multipart/form-data"
_THREADS = anyio.CapacityLimiter(64)
"""Of their own: an upload holds one while its sender sends, and nobody else may wait for that."""
kind(
    "bad-upload",
    400,
    "Upload unreadable",
    "The multipart body is damaged, or holds a field unknown here.",
)
kind("bad-archive", 422, "Archive refused", "The ZIP as a whole is refused; 'code' says why.")
kind(
    "bad-manifest",
    422,
    "Manifest refused",
    "The manifest as a whole cannot be used; nothing was kept.",
)
kind("no-pictures", 422, "Nothing sent", "The request holds no file.")
kind(
    "too-many-batches",
    409,
    "Too many batches",
    "The key holds as many batches as it may; delete one first.",
)


@asynccontextmanager
async def decoding(app: FastAPI) -> AsyncIterator[None]:
    """While the application is up: processes that decode (made when first needed), and no pictures
    left from an earlier process that was killed."""
    context: Context = app.state.context
    await anyio.to_thread.run_sync(sweep, context.server.home / "incoming")
    app.state.decoders = Decoders(context.limits.pictures())
    try:
        yield
    finally:
        await anyio.to_thread.run_sync(app.state.decoders.close)


async def receive(
    request: Request, context: Context, caller: Caller
) -> tuple[str, Received | None]:
    """Receive the batch in the body. Returns its id and the counts, None for one that an earlier try
    of this very request had made whole. Raises Problem."""
    work = await _work(request, context)
    batch_id = once_id(request, "b_") or new_batch_id()
    made = await in_long_thread(partial(_create, context, caller, batch_id))
    if not made:
        return batch_id, None
    try:
        return batch_id, await in_long_thread(partial(_receive, request, context, batch_id, work))
    except (BrokenUpload, PictureRejected, ManifestError, NoPictures) as error:
        raise _problem(error) from None


async def in_long_thread(work: Callable[[], T]) -> T:
    """Run work that may take minutes, where nothing short waits for it."""
    return await anyio.to_thread.run_sync(work, limiter=_THREADS)


Work = Callable[[Desk, str], Received]


async def _work(request: Request, context: Context) -> Work:
    sent = request.headers.get("content-type", "")
    media_type = sent.partition(";")[0].strip().lower()
    name = request.query_params.get("name", "")
    if media_type == MULTIPART:
        pieces = _pieces(request)
        return lambda desk, batch_id: desk.multipart(batch_id, sent, pieces)
    if media_type in ZIPS:
        pieces = _pieces(request)
        return lambda desk, batch_id: desk.archive(batch_id, pieces, name)
    if media_type == JSON:
        return await _urls(request, context)
    said = f"a batch comes as {MULTIPART}, {ZIPS[0]} or {JSON}"
    raise Problem(415, "media-type", said)


async def _urls(request: Request, context: Context) -> Work:
    try:
        asked = UrlBatch.model_validate_json(await request.body())
    except ValidationError as error:
        listed = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**e, "loc": ("body", *e["loc"])} for e in listed]) from None
    most = context.limits.max_urls
    if len(asked.urls) > most:
        raise Problem(413, "too-large", f"{len(asked.urls)} addresses, limit {most}", limit=most)
    wanted = [entry.wanted() for entry in asked.urls]
    return lambda desk, batch_id: desk.urls(batch_id, wanted, asked.manifest, asked.name)


def _pieces(request: Request) -> Iterator[bytes]:
    """The body, piece by piece, for a thread: the loop goes on meanwhile."""
    stream = request.stream()

    async def one() -> bytes | None:
        return await anext(stream, None)

    while (piece := from_thread.run(one)) is not None:
        yield piece


def _receive(request: Request, context: Context, batch_id: str, work: Work) -> Received:
    with private_folder(context.server.home / "incoming", batch_id) as folder:
        desk = Desk(
            context.database,
            context.blobs,
            context.limits,
            request.app.state.decoders,
            folder,
            context.server.fetch_allow,
        )
        return work(desk, batch_id)


def _create(context: Context, caller: Caller, batch_id: str) -> bool:
    batches, limits = Batches(context.database), context.limits
    if batches.held(caller.key_id) >= limits.max_batches:
        said = f"this key holds {limits.max_batches} batches"
        raise Problem(409, "too-many-batches", said, limit=limits.max_batches)
    now = context.clock()
    try:
        batches.create(caller.key_id, now, limits.keep_originals_s, batch_id)
        return True
    except Conflict:
        there = batches.get(batch_id)
    if there is not None and there["state"] == READY:
        return False
    if there is not None and there["state"] == DELETED:
        raise Problem(410, "gone", "the batch of this request was deleted")
    if there is not None and there["state"] == RECEIVING:
        batches.discard(batch_id, context.blobs)
    batches.create(caller.key_id, now, limits.keep_originals_s, batch_id)
    return True


def _problem(error: Exception) -> Problem:
    match error:
        case BrokenUpload(too_large=True):
            return Problem(413, "too-large", str(error))
        case BrokenUpload():
            return Problem(400, "bad-upload", str(error))
        case PictureRejected(code="too_large" | "too_many"):
            return Problem(413, "too-large", error.reason, code=error.code)
        case PictureRejected():
            return Problem(422, "bad-archive", error.reason, code=error.code)
        case ManifestError():
            return Problem(422, "bad-manifest", str(error))
    return Problem(422, "no-pictures", str(error))
