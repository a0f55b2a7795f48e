"""ComfyUI on your own machine: a graph of yours, sent once for each picture.

Follows server.py, execution.py and nodes.py of Comfy-Org/ComfyUI. The end of a job is read from
`/history/{prompt_id}` alone, which holds a job when and only when it is over: no websocket is needed.
While it is empty, `/queue` tells a job at work from one that a restart has lost.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field

from adapters.codec import mask_as_alpha, mask_png
from adapters.contract import Adapter, ToolSpec
from adapters.diffusion.prompts import INPAINTING, SEEDS, prompt_for
from adapters.guard import EditEnded, failures_are_answers, one_line, read_settings
from adapters.hosted.size_check import check_size
from adapters.over_http.polling import Patience, Wait, patiently
from adapters.over_http.wire import HttpSettings, Reply, Wire
from adapters.web_ui.comfyui_answers import done, read_picture, refusal_of_graph
from adapters.web_ui.comfyui_graph import Graph, MaskForm, load_graph
from domain.edits import EditOutcome, EditRequest, Failed, Task
from domain.errors import LikenessError
from domain.sizing import SizeRule

OTHERS = (Task.RETOUCH, Task.RESTYLE, Task.ENHANCE, Task.RECONSTRUCT)
SPEC = ToolSpec(
    id="comfyui",
    name="ComfyUI",
    tasks=(*sorted(INPAINTING), *OTHERS),
    size=SizeRule(multiple=8, min_side=64, max_side=2048),
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    price_note="free, on your own machine",
    licence="GPL-3.0 (ComfyUI); the models in the graph have their own",
    path_settings=("graph",),
    remote=True,
    concurrency=1,
    key_env="",
    refuses=(
        "sides that are no multiple of the setting 'multiple' (8), or outside 64..2048 px",
        "an inpainting task without a mask, with an empty one, or with a graph that has no {mask}",
    ),
)
EXAMPLE: Mapping[str, Any] = {
    "graph": str(Path(__file__).parents[1] / "samples" / "comfyui_inpaint.json"),
    "poll_s": 0.01,
}
FAKE = "comfyui"
FOLDER = "likeness"
LOOKS_BEFORE_DOUBT = 5


class ComfySettings(HttpSettings):
    """Settings of ComfyUI.

    ``graph`` is a file in API format; ``inputs`` names places in it that have no placeholder, such as
    {"picture": "10.image", "seed": ["3.seed", "12.seed"]}; ``output`` the node with the result, where
    there are several. ``mask_form`` is only for a mask loader that is not ComfyUI's own. ComfyUI has
    no login: a ``key`` is for a proxy in front of it ("user:password" or a bearer token)."""

    base_url: str = "http://127.0.0.1:8188"
    graph: str
    inputs: dict[str, str | list[str]] = Field(default_factory=dict)
    output: str = ""
    mask_form: MaskForm = ""
    negative_prompt: str = ""
    multiple: Annotated[int, Field(ge=1, le=256)] = 8
    max_side: Annotated[int, Field(ge=64, le=8192)] = 2048
    poll_s: Annotated[float, Field(gt=0, le=60)] = 1.0


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool; nothing is sent yet. Raises LikenessError on a wrong setting or graph."""
    checked = read_settings(ComfySettings, settings, SPEC.id)
    try:
        graph = load_graph(checked.graph, checked.inputs, checked.output, checked.mask_form)
    except LikenessError as error:
        raise LikenessError(f"tool '{SPEC.id}': {error}") from None
    return ComfyTool(checked, graph)


class ComfyTool:
    """A conversation with one ComfyUI."""

    def __init__(
        self,
        settings: ComfySettings,
        graph: Graph,
        wait: Wait = time.sleep,
    ) -> None:
        """``wait`` sleeps between two looks at the history."""
        self._settings, self._graph, self._pause = settings, graph, wait
        masked = "mask" in graph.places
        self.spec = replace(
            SPEC,
            tasks=tuple(sorted(INPAINTING)) if masked else OTHERS,
            mask_support="advisory" if masked else "none",
            size=SizeRule(multiple=settings.multiple, min_side=64, max_side=settings.max_side),
            takes_prompt="prompt" in graph.places,
            seedable="seed" in graph.places,
        )
        self._wire: Wire | None = Wire(settings, _auth(settings))
        self._client, self._version = uuid4().hex, ""
        self.model = self._model()

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """Upload, queue, wait, fetch."""
        if self._wire is None:
            return Failed("the tool was closed")
        files = self._files(request)
        if not self._version:
            self._version = _version(self._wire)
            self.model = self._model()
        values: dict[str, Any] = {
            "seed": request.seed % SEEDS,
            "prompt": prompt_for(request),
            "negative": self._settings.negative_prompt,
            "width": request.width,
            "height": request.height,
        }
        names = {name: self._upload(self._wire, request, *file) for name, file in files.items()}
        prefix = f"{FOLDER}/{_plain(request.item_id)}-{uuid4().hex[:12]}"
        job, reply = self._queue(self._wire, self._graph.fill(values | names, prefix))
        sent = {name: values[name] for name in values if name in self._graph.places}
        meta = {
            **reply.meta(),
            "request_id": job,
            "model": self.model,
            "sent": {**sent, "graph": self._graph.name, "graph_sha256": self._graph.sha256},
        }
        wire = self._wire
        patience = Patience(self._settings.total_s, self._settings.poll_s, self._pause)
        entry = self._await(wire, job, patience, meta)
        image, note = done(entry, self._graph, meta, wire.redact)
        # the file lies there: a broken line is no reason to have it made again
        view = patiently(lambda: wire.send("GET", "/view", params=image), patience, meta)
        return read_picture(wire, view, request, meta, note)

    def close(self) -> None:
        """Close the connections. May come twice."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def _model(self) -> str:
        parts = ", ".join(self._graph.models) or "no model file named"
        version = f" {self._version}" if self._version else ""
        return one_line(
            f"ComfyUI{version}, graph {self._graph.name} {self._graph.sha256[:12]}: {parts}", 300
        )

    def _files(self, request: EditRequest) -> dict[str, tuple[bytes, str]]:
        """What is uploaded, by place name: bytes and media type. The picture is untouched."""
        check_size(request, self.spec.size)
        files = {"picture": (request.picture or b"", request.media_type)}
        if "mask" in self._graph.places:
            alpha = self._graph.mask_form == "alpha"
            files["mask"] = (mask_as_alpha(request) if alpha else mask_png(request), "image/png")
        elif request.task in INPAINTING:
            raise ValueError(f"{self._graph.name} has no place for a mask")
        return files

    def _upload(self, wire: Wire, request: EditRequest, data: bytes, kind: str) -> str:
        """Put a file into the server's input folder; the name that LoadImage knows it by. The
        name holds the item and the content, so no two items and no two runs meet."""
        name = f"{_plain(request.item_id)}-{hashlib.sha256(data).hexdigest()[:16]}"
        reply = wire.send(
            "POST",
            "/upload/image",
            files={"image": (f"{name}.{kind.rpartition('/')[2]}", data, kind)},
            data={"type": "input", "subfolder": FOLDER, "overwrite": "true"},
        )
        if reply.status != 200:
            said = "the picture was not taken" if not reply.body else ""
            raise EditEnded(wire.failure(reply, said))
        place = reply.json()
        if not isinstance(place, dict) or not place.get("name"):
            raise EditEnded(Failed("the upload was answered without a name", meta=reply.meta()))
        return f"{place.get('subfolder') or ''}/{place['name']}".lstrip("/")

    def _queue(self, wire: Wire, graph: Mapping[str, Any]) -> tuple[str, Reply]:
        """Queue the graph; its prompt_id. ``client_id`` always goes along: without it some releases
        leave cached results out of the history (ComfyUI pull request 14939)."""
        reply = wire.send("POST", "/prompt", json={"prompt": graph, "client_id": self._client})
        answer = reply.json_or_none()
        refusal = refusal_of_graph(wire, reply, answer, self._graph)
        if refusal is not None:
            raise EditEnded(refusal)
        return str(answer["prompt_id"]), reply

    def _await(
        self, wire: Wire, job: str, patience: Patience, meta: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The job's entry in the history, bounded by ``total_s``; past it the job is called off."""
        looks = 0
        while True:
            entry = patiently(lambda: _history(wire, job), patience, meta)
            if entry:
                return entry
            looks += 1
            if looks % LOOKS_BEFORE_DOUBT == 0 and _is_lost(wire, job):
                raise EditEnded(_over("ComfyUI knows nothing of the job: was it restarted?", meta))
            if not patience.pause():
                _call_off(wire, job)
                raise EditEnded(
                    _over(f"not done after {self._settings.total_s:g} s; called off", meta)
                )


def _over(reason: str, meta: Mapping[str, Any]) -> Failed:
    return Failed(reason, retryable=True, meta={**meta, "maybe_billed": True})


def _auth(settings: ComfySettings) -> dict[str, str]:
    if settings.key is None:
        return {}
    key = settings.key.get_secret_value()
    if ":" in key:
        return {"authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
    return {"authorization": f"Bearer {key}"}


def _plain(item: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", item)[:60] or "item"


def _version(wire: Wire) -> str:
    """The server's version out of `/system_stats`; "of unknown version" where it does not say."""
    reply = wire.send("GET", "/system_stats", timeout_s=30.0)
    if reply.status in (401, 403):
        raise EditEnded(wire.failure(reply))
    stats = reply.json_or_none()
    system = stats.get("system") if isinstance(stats, dict) else None
    found = system.get("comfyui_version") if isinstance(system, dict) else None
    return one_line(str(found), 40) if found else "of unknown version"


def _history(wire: Wire, job: str) -> Mapping[str, Any] | None:
    """The job's entry; None while there is none (the server says ``{}``)."""
    reply = wire.send("GET", f"/history/{job}")
    if reply.status != 200:
        raise EditEnded(wire.failure(reply, maybe_billed=True))
    answer = reply.json_or_none()
    if not isinstance(answer, dict):
        raise EditEnded(
            Failed("the history is not JSON", retryable=True, meta={"maybe_billed": True})
        )
    entry = answer.get(job)
    return entry if isinstance(entry, dict) else None


def _is_lost(wire: Wire, job: str) -> bool:
    """Neither queued nor at work nor done: the history is asked last, as a job may end in between."""
    return not any(job in jobs for jobs in _jobs(wire)) and not _history(wire, job)


def _jobs(wire: Wire) -> tuple[list[str], list[str]]:
    """The ids of the running and of the waiting jobs. Each is (number, prompt_id, ...)."""
    answer = wire.send("GET", "/queue", timeout_s=30.0).json_or_none()
    found = []
    for name in ("queue_running", "queue_pending"):
        items = answer.get(name) if isinstance(answer, dict) else None
        items = items if isinstance(items, list) else []
        found.append([str(one[1]) for one in items if isinstance(one, list) and len(one) > 1])
    return found[0], found[1]


def _call_off(wire: Wire, job: str) -> None:
    """Take the job out of the queue, or stop it if it is the one at work. Older servers stop
    whatever runs, so they are only asked when it is ours."""
    with suppress(EditEnded):
        wire.send("POST", "/queue", json={"delete": [job]}, timeout_s=10.0)
        if job in _jobs(wire)[0]:
            wire.send("POST", "/interrupt", json={"prompt_id": job}, timeout_s=10.0)
