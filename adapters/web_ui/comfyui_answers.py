"""What ComfyUI's answers mean: a graph it would not take, a job that ended, the picture it made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adapters.codec import is_black
from adapters.guard import EditEnded, one_line
from adapters.over_http.results import edited
from adapters.over_http.wire import Reply, Wire
from adapters.web_ui.comfyui_graph import Graph
from domain.edits import Edited, EditRequest, Failed


def refusal_of_graph(wire: Wire, reply: Reply, answer: Any, graph: Graph) -> Failed | None:
    """None when `POST /prompt` queued the whole graph; else the node and its complaint. A graph that
    is wrong is wrong for every picture and stops the run; one whose picture was not found is not.
    A 200 may still name errors: those outputs are left out without another word."""
    answer = answer if isinstance(answer, dict) else {}
    errors = answer.get("node_errors")
    errors = errors if isinstance(errors, dict) else {}
    if reply.status == 200 and answer.get("prompt_id"):
        if not any(_stops(one, graph.output) for one in errors.values()):
            return None
    elif reply.status not in (200, 400):
        return wire.failure(reply, _said(answer.get("error")))
    elif reply.status == 200:
        kind = reply.media_type or "no type given"
        reason = f"HTTP 200: the answer to the graph names no job ({kind})"
        return Failed(reason, meta={**reply.meta(), "maybe_billed": True})
    nodes = [_complaint(node, one) for node, one in errors.items()]
    said = "; ".join(n for n in nodes if n) or _said(answer.get("error")) or "without a reason"
    files = {node for name in ("picture", "mask") for node, _ in graph.places.get(name, ())}
    meta = dict(reply.meta())
    if not errors or not set(errors) <= files:
        meta["stop"] = True
    return Failed(one_line(f"ComfyUI would not run the graph: {wire.redact(said)}", 300), meta=meta)


def done(
    entry: Mapping[str, Any],
    graph: Graph,
    meta: Mapping[str, Any],
    redact: Callable[[str], str],
) -> tuple[dict[str, str], str]:
    """The `/view` query for the result of a job that is over, and a note. Raises EditEnded with
    ``Failed`` for a job that broke, was stopped, or left no picture."""
    status = entry.get("status")
    status = status if isinstance(status, dict) else {}
    messages = _messages(status)
    if "execution_interrupted" in messages:
        node = _node(messages["execution_interrupted"], graph)
        reason = f"the job was stopped on the server, at node {node}"
        raise EditEnded(Failed(reason, retryable=True, meta=dict(meta)))
    if "execution_error" in messages or status.get("status_str") == "error":
        raise EditEnded(_broken(messages.get("execution_error", {}), graph, meta, redact))
    outputs = entry.get("outputs")
    output = outputs.get(graph.output) if isinstance(outputs, dict) else None
    images = output.get("images") if isinstance(output, dict) else None
    images = [i for i in images if isinstance(i, dict)] if isinstance(images, list) else []
    if not images or not images[0].get("filename"):
        why = (
            "the server took it from its cache" if _cached(messages, graph) else "nothing is named"
        )
        raise EditEnded(
            Failed(
                f"the job ended without a picture at node {graph.output} "
                f"({graph.class_of(graph.output)}): {why}",
                meta={**meta, "maybe_billed": True},
            )
        )
    note = f"{len(images)} pictures came back; the first was taken" if len(images) > 1 else ""
    if _cached(messages, graph):
        note = "; ".join(n for n in (note, "from the server's cache of an earlier job") if n)
    first = images[0]
    return {
        "filename": str(first["filename"]),
        "subfolder": str(first.get("subfolder") or ""),
        "type": str(first.get("type") or "output"),
    }, note


def read_picture(
    wire: Wire, view: Reply, request: EditRequest, meta: Mapping[str, Any], note: str
) -> Edited | Failed:
    """The answer of `/view` as the outcome; the picture's bytes, with the graph that ComfyUI wrote
    into them, are left as they are. Raises EditEnded with Failed for what is no picture."""
    meta = {**view.meta(), **meta}
    if view.status == 404:
        said = {**meta, "http_status": 404, "maybe_billed": True}
        return Failed("the result's file is gone from the server", retryable=True, meta=said)
    if view.status != 200:
        failed = wire.failure(view, "fetching the result", maybe_billed=True)
        return replace(failed, meta={**meta, **failed.meta})
    if is_black(view.body):
        return Failed(
            "the picture is black: half-precision overflow in the VAE (start ComfyUI with --fp32-vae), "
            "or a filter node struck; ComfyUI does not say which",
            meta=meta,
        )
    found = edited(view.body, view.media_type, request, meta)
    notes = "; ".join(n for n in (note, str(found.meta.get("note", ""))) if n)
    return replace(found, meta={**meta, "note": notes}) if notes else found


def _broken(
    said: Mapping[str, Any], graph: Graph, meta: Mapping[str, Any], redact: Callable[[str], str]
) -> Failed:
    """``execution_error``. Its ``current_inputs`` and ``traceback`` are left out: they hold prompts
    and the server's paths. Memory may be free again the next time."""
    kind = str(said.get("exception_type") or "")
    words = one_line(str(said.get("exception_message") or "it gave no reason"), 160)
    reason = f"node {_node(said, graph)} broke: {kind}{': ' if kind else ''}{words}"
    return Failed(
        redact(reason), retryable="OutOfMemory" in kind, meta={**meta, "maybe_billed": True}
    )


def _messages(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The job's events by name: each is [name, data]."""
    found: dict[str, Mapping[str, Any]] = {}
    messages = status.get("messages")
    for one in messages if isinstance(messages, list) else []:
        if isinstance(one, list) and len(one) == 2 and isinstance(one[1], dict):
            found[str(one[0])] = one[1]
    return found


def _cached(messages: Mapping[str, Mapping[str, Any]], graph: Graph) -> bool:
    nodes = messages.get("execution_cached", {}).get("nodes")
    return isinstance(nodes, list) and graph.output in nodes


def _node(said: Mapping[str, Any], graph: Graph) -> str:
    node = str(said.get("node_id") or "?")
    kind = str(said.get("node_type") or graph.class_of(node) or "unknown class")
    return one_line(f"{node} ({kind})", 80)


def _stops(error: Any, output: str) -> bool:
    dependent = error.get("dependent_outputs") if isinstance(error, dict) else None
    return isinstance(dependent, list) and output in dependent


def _complaint(node: str, error: Any) -> str:
    if not isinstance(error, dict):
        return ""
    lines = [
        f"{one.get('message', '')} ({one.get('details', '')})"
        for one in error.get("errors") or []
        if isinstance(one, dict)
    ]
    return one_line(f"node {node} ({error.get('class_type', '?')}): {', '.join(lines)}", 200)


def _said(error: Any) -> str:
    if isinstance(error, dict):
        words = [str(error.get(k)) for k in ("message", "details") if error.get(k)]
        return one_line(": ".join(words))
    return one_line(str(error)) if error else ""
