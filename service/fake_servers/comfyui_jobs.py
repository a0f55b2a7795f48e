"""A job of the pretended ComfyUI: what waits, and what the history says of it when it is over.

Follows execution.py (PromptQueue.task_done, PromptExecutor.add_message) and nodes.py (SaveImage) of
Comfy-Org/ComfyUI.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from service.fake_servers.comfyui_nodes import OUTPUTS

LOOKS = 2
"""Looks at the history that a job takes."""


@dataclass(slots=True)
class Job:
    """One queued graph."""

    number: int
    graph: dict[str, Any]
    client: str
    behaviour: str
    looks: int = LOOKS
    entry: dict[str, Any] | None = None
    login: str = field(default="", repr=False)


def history_entry(
    job: Job,
    name: str,
    end: str,
    inputs: Mapping[str, bytes] | None = None,
    *,
    outputs: Mapping[str, Any] | None = None,
    cached: list[str] | None = None,
) -> dict[str, Any]:
    """PromptQueue.task_done: prompt, outputs, status with its messages."""
    sampler = next((n for n, v in job.graph.items() if v["class_type"] == "KSampler"), "1")
    at = {"prompt_id": name, "node_id": sampler, "node_type": "KSampler", "executed": []}
    messages: list[Any] = [
        ["execution_start", {"prompt_id": name}],
        ["execution_cached", {"nodes": cached or [], "prompt_id": name}],
    ]
    good = end == "ok"
    if good:
        messages.append(["execution_success", {"prompt_id": name}])
    elif end == "interrupted":
        messages.append(["execution_interrupted", at])
    else:
        kind, why = (
            "RuntimeError",
            "mat1 and mat2 shapes cannot be multiplied (77x2048 and 768x320)",
        )
        if end == "oom":
            kind, why = "torch.OutOfMemoryError", "Allocation on device 0 would exceed memory"
        if end == "echo":
            face = next(iter((inputs or {}).values()), b"")
            why = f"{job.login} {face.hex()}"
        said = {"exception_message": why, "exception_type": kind, "current_inputs": {"text": ["…"]}}
        messages.append(["execution_error", {**at, **said, "traceback": ['  File "nodes.py"\n']}])
    status = {"status_str": "success" if good else "error", "completed": good, "messages": messages}
    row = [job.number, name, job.graph, {"client_id": job.client}, [output_of(job.graph)]]
    return {"prompt": row, "outputs": dict(outputs or {}), "status": status, "meta": {}}


def output_of(graph: Mapping[str, Any]) -> str:
    """The first output node, "" without one."""
    return next((n for n, v in graph.items() if v["class_type"] in OUTPUTS), "")


def with_graph(png: bytes, graph: Mapping[str, Any]) -> bytes:
    """The picture with the graph written into it, as SaveImage does."""
    info, out = PngInfo(), BytesIO()
    info.add_text("prompt", json.dumps(graph))
    with Image.open(BytesIO(png)) as opened:
        opened.save(out, format="PNG", pnginfo=info, compress_level=4)
    return out.getvalue()


def black_like(picture: bytes) -> bytes:
    """A black picture of the same size."""
    out = BytesIO()
    with Image.open(BytesIO(picture)) as opened:
        Image.new("RGB", opened.size).save(out, format="PNG")
    return out.getvalue()
