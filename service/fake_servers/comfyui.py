"""Pretends to be ComfyUI: uploads, the queue, the history, and `/view`.

Follows server.py (routes) and execution.py (PromptQueue, PromptExecutor) of Comfy-Org/ComfyUI: the
history holds nothing of a job until it is over, an output node whose inputs are those of an earlier job
does not run again, and without a ``client_id`` its cached pictures are left out of the history (pull
request 14939). ComfyUI has no login; the key is asked for as a proxy in front of it would.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import threading
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.comfyui_jobs import (
    LOOKS,
    Job,
    black_like,
    history_entry,
    output_of,
    with_graph,
)
from service.fake_servers.comfyui_nodes import picture_and_mask, refuse
from service.fake_servers.desk import Desk, seen_of

NAME = "comfyui"
DOES = "ComfyUI: /upload/image, /prompt, /history, /queue, /interrupt, /view"
BEHAVIOURS: Mapping[str, str] = {
    "broken": "the job ends with execution_error in its sampler",
    "oom": "the job ends with execution_error: out of memory",
    "interrupted": "the job ends with execution_interrupted",
    "stuck": "the job never ends",
    "waiting": "the job never begins: others are before it",
    "lost": "the job is forgotten, as by a restart",
    "no_output": "the job ends well, without a picture",
    "two": "the job ends with two pictures",
    "black": "the job ends with a black picture",
    "gone": "the result's file is not there any more",
    "view_html": "the result's address answers with a web page",
    "view_empty": "the result's address answers with an empty body",
    "view_truncated": "the result is broken off half way, the first time",
    "history_503": "the first look at the history meets an overloaded proxy",
    "echo": "the job ends with an error that repeats the login and the picture",
}
NEVER = frozenset({"stuck", "waiting"})


def app(desk: Desk) -> Starlette:
    """The server of one ComfyUI. Each route is there with `/api` in front, too."""
    comfy = _Comfy(desk)
    routes = [
        ("/system_stats", "GET", comfy.system_stats),
        ("/upload/image", "POST", comfy.upload),
        ("/prompt", "POST", comfy.prompt),
        ("/history/{job}", "GET", comfy.history),
        ("/queue", "GET", comfy.queue),
        ("/queue", "POST", comfy.change_queue),
        ("/interrupt", "POST", comfy.interrupt),
        ("/view", "GET", comfy.view),
    ]
    return Starlette(
        routes=[Route(f"{p}{r}", h, methods=[m]) for r, m, h in routes for p in ("", "/api")],
        exception_handlers={PermissionError: _not_admitted},
    )


async def _not_admitted(request: Request, fault: Exception) -> Response:
    return Response("Unauthorized", 401, headers={"www-authenticate": "Bearer"})


class _Comfy:
    """Its state: uploads, results, jobs, and the cache of output nodes."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._lock = desk, threading.Lock()
        self._inputs: dict[str, bytes] = {}
        self._results: dict[tuple[str, str, str], bytes] = {}
        self._jobs: dict[str, Job] = {}
        self._cache: dict[str, list[dict[str, str]]] = {}
        self._numbers, self._broken_off = 0, set[tuple[str, str, str]]()

    async def system_stats(self, request: Request) -> Response:
        """GET /system_stats."""
        self._admit(request)
        system = {"os": "posix", "comfyui_version": "0.3.75", "python_version": "3.12.3"}
        return JSONResponse({"system": system, "devices": [{"name": "cuda:0", "type": "cuda"}]})

    async def upload(self, request: Request) -> Response:
        """POST /upload/image. Without ``overwrite`` a second file of a name gets another."""
        self._admit(request)
        seen = seen_of(request)
        data = seen.files.get("image")
        folder = str(seen.fields.get("subfolder", ""))
        async with request.form() as form:
            name = str(getattr(form.get("image"), "filename", "") or "")
        if not data or not name:
            return Response(status_code=400)
        path = posixpath.normpath(posixpath.join(folder, name))
        if path.startswith(("/", "..")) or seen.fields.get("type", "input") != "input":
            return Response(status_code=400)
        stem, kind = posixpath.splitext(name)
        count = 1
        while (
            seen.fields.get("overwrite") not in ("true", "1")
            and self._inputs.get(path, data) != data
        ):
            name = f"{stem} ({count}){kind}"
            path, count = posixpath.normpath(posixpath.join(folder, name)), count + 1
        self._inputs[path] = data
        return JSONResponse({"name": name, "subfolder": folder, "type": "input"})

    async def prompt(self, request: Request) -> Response:
        """POST /prompt."""
        self._admit(request)
        body = seen_of(request).json()
        if not isinstance(body, dict) or "prompt" not in body:
            return JSONResponse({"error": _no_prompt(), "node_errors": {}}, 400)
        graph = body["prompt"]
        error, node_errors = refuse(graph, self._inputs)
        if error is not None:
            return JSONResponse({"error": error, "node_errors": node_errors}, 400)
        picture, _ = picture_and_mask(graph, output_of(graph), self._inputs)
        behaviour = self._desk.turn(picture)
        if (answer := self._desk.common(behaviour)) is not None:
            return answer
        login = request.headers.get("authorization", "")
        self._numbers += 1
        job = Job(self._numbers, graph, str(body.get("client_id") or ""), behaviour, login=login)
        name = str(uuid4())
        if behaviour != "lost":
            self._jobs[name] = job
        return JSONResponse({"prompt_id": name, "number": job.number, "node_errors": node_errors})

    async def history(self, request: Request) -> Response:
        """GET /history/{prompt_id}: ``{}`` for a job that is not over and for one never heard of."""
        self._admit(request)
        name = request.path_params["job"]
        job = self._jobs.get(name)
        if job is None:
            return JSONResponse({})
        job.looks -= 1
        if job.behaviour == "history_503" and job.looks == LOOKS - 1:
            return Response("<title>503 Service Temporarily Unavailable</title>", 503)
        if job.looks <= 0 and job.entry is None and job.behaviour not in NEVER:
            job.entry = await run_in_threadpool(self._run, name, job)
        return JSONResponse({name: job.entry} if job.entry else {})

    async def queue(self, request: Request) -> Response:
        """GET /queue: [number, prompt_id, graph, extra data, outputs] of each job that is not over."""
        self._admit(request)
        rows: dict[bool, list[Any]] = {True: [], False: []}
        for name, job in self._jobs.items():
            if job.entry is None:
                row = [
                    job.number,
                    name,
                    job.graph,
                    {"client_id": job.client},
                    [output_of(job.graph)],
                ]
                rows[job.behaviour != "waiting"].append(row)
        return JSONResponse({"queue_running": rows[True], "queue_pending": rows[False]})

    async def change_queue(self, request: Request) -> Response:
        """POST /queue: ``delete`` takes waiting jobs out; the running one stays."""
        self._admit(request)
        for name in (seen_of(request).json() or {}).get("delete", []):
            if name in self._jobs and self._jobs[name].behaviour == "waiting":
                del self._jobs[name]
        return Response()

    async def interrupt(self, request: Request) -> Response:
        """POST /interrupt: of the job named in the body, or of whatever runs."""
        self._admit(request)
        wanted = (seen_of(request).json() or {}).get("prompt_id")
        for name, job in self._jobs.items():
            if job.entry is None and job.behaviour != "waiting" and wanted in (None, name):
                job.entry = history_entry(job, name, "interrupted")
        return Response()

    async def view(self, request: Request) -> Response:
        """GET /view."""
        self._admit(request)
        asked = request.query_params
        place = (asked.get("filename", ""), asked.get("subfolder", ""), asked.get("type", "output"))
        data = self._results.get(place)
        if data is None:
            return Response(status_code=404)
        behaviour = next((b for b in ("html", "empty", "truncated") if f"view_{b}" in place[0]), "")
        if behaviour == "truncated":
            if place not in self._broken_off:
                seen_of(request).played = behaviour
            self._broken_off.add(place)
        elif (answer := self._desk.common(behaviour)) is not None:
            return answer
        return Response(data, media_type="image/png")

    def _admit(self, request: Request) -> None:
        if not self._desk.has_bearer(request):
            raise PermissionError

    def _run(self, name: str, job: Job) -> dict[str, Any]:
        """Execute the graph's output; its history entry."""
        output = output_of(job.graph)
        if job.behaviour in ("broken", "oom", "interrupted", "echo", "refuse"):
            return history_entry(job, name, job.behaviour, self._inputs)
        picture, mask = picture_and_mask(job.graph, output, self._inputs)
        signature = json.dumps(
            [job.graph, sorted(hashlib.sha256(d).hexdigest() for d in (picture, mask or b""))]
        )
        with self._lock:
            known = self._cache.get(signature)
        if known is not None:
            kept = {output: {"images": known}} if job.client else {}
            return history_entry(job, name, "ok", outputs=kept, cached=list(job.graph))
        result = self._desk.edit(picture, mask)
        if job.behaviour == "black":
            result = black_like(picture)
        images = [self._save(job, output, result, i) for i in range(1 + (job.behaviour == "two"))]
        if job.behaviour == "no_output":
            return history_entry(job, name, "ok", outputs={})
        with self._lock:
            self._cache[signature] = images
        return history_entry(job, name, "ok", outputs={output: {"images": images}})

    def _save(self, job: Job, output: str, png: bytes, index: int) -> dict[str, str]:
        """SaveImage: the graph goes into the picture; PreviewImage: into the temporary folder."""
        node = job.graph[output]
        preview = node["class_type"] == "PreviewImage"
        prefix = str(node["inputs"].get("filename_prefix", "ComfyUI_temp_abcde"))
        folder, _, stem = prefix.rpartition("/")
        mark = f"{job.behaviour}_" if job.behaviour.startswith("view_") else ""
        place = (
            f"{stem}_{mark}{job.number * 10 + index:05}_.png", folder, "temp" if preview else "output",
        )  # fmt: skip
        if job.behaviour != "gone":
            self._results[place] = with_graph(png, job.graph)
        return dict(zip(("filename", "subfolder", "type"), place, strict=True))


def _no_prompt() -> dict[str, Any]:
    return {"type": "no_prompt", "message": "No prompt provided", "details": "", "extra_info": {}}
