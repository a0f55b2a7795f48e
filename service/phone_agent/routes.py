"""The agent as an HTTP server: the paths of openapi.yaml."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.phone_agent.agent import CONTRACT, MAX_BYTES, Answer, Job, PhoneAgent, failed
from service.phone_agent.faults import CallEnded

Play = Callable[[Job, bytes], str | Response]
"""What to do with an edit: "ok", one of agent.PLAYS, or a ready answer."""


def app(agent: PhoneAgent, token: str = "", play: Play | None = None) -> Starlette:
    """The server. Without ``token`` it asks for none."""

    def check(request: Request) -> None:
        said = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and not hmac.compare_digest(said.encode(), token.encode()):
            raise CallEnded("unauthorized")

    async def ping(request: Request) -> Response:
        return JSONResponse({"ok": True, "contract": CONTRACT})

    async def capabilities(request: Request) -> Response:
        try:
            check(request)
        except CallEnded as end:
            return _response(failed(end))
        return JSONResponse(agent.capabilities())

    async def edits(request: Request) -> Response:
        try:
            check(request)
            parameters, body, media_type = await _parts(request)
            job = await run_in_threadpool(agent.read, parameters, body, media_type)
        except CallEnded as end:
            return _response(failed(end))
        chosen = play(job, body) if play else "ok"
        if isinstance(chosen, Response):
            return chosen
        return _response(await run_in_threadpool(agent.work, job, chosen))

    return Starlette(
        routes=[
            Route("/v1/ping", ping),
            Route("/v1/capabilities", capabilities),
            Route("/v1/edits", edits, methods=["POST"]),
        ]
    )


async def _parts(request: Request) -> tuple[str, bytes, str]:
    """Parameters, picture and its media type, from a form or from a bare body with its header."""
    if int(request.headers.get("content-length") or 0) > MAX_BYTES:
        raise CallEnded("too_large")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        return request.headers.get("x-edit-parameters", ""), await request.body(), kind
    try:
        async with request.form(max_files=1, max_fields=1, max_part_size=1_000_000) as form:
            picture, parameters = form.get("picture"), form.get("parameters", "")
            if not isinstance(picture, UploadFile) or not isinstance(parameters, str):
                raise CallEnded("bad_parameters", "the form needs 'picture' (a file), 'parameters'")
            return parameters, await picture.read(), (picture.content_type or "").lower()
    except HTTPException:
        raise CallEnded("bad_parameters", "the form cannot be read") from None


def _response(answer: Answer) -> Response:
    return Response(
        answer.body, answer.status, headers=dict(answer.headers), media_type=answer.media_type
    )
