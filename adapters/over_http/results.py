"""From a hosted tool's answer to an outcome: whole, really a picture, at the size that was asked for.

Pictures are handed on byte for byte; facts that a server states about its work are kept short and
without secrets or encoded data.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.codec import media_type_of, size_note
from adapters.contract import ToolSpec
from adapters.guard import EditEnded
from adapters.over_http.wire import Reply, Wire
from domain.edits import Edited, EditRequest, Failed

Meta = Mapping[str, Any]
UNCHANGED = "the tool sent back the very picture it was given"
MANY = 40
"""Entries of a list or mapping that are kept of what a server said."""


def without_key(spec: ToolSpec) -> Failed:
    """The answer of a tool that was built without the key it needs: the same for every item."""
    return Failed(f"no key: set {spec.key_env} or name a key file", meta={"stop": True})


def json_of(reply: Reply, meta: Meta) -> dict[str, Any]:
    """The body of a success as a JSON object. Raises EditEnded with Failed, naming the content type,
    for a web page, an empty body or anything else: work may have been done and billed."""
    if not reply.body:
        raise EditEnded(Failed(f"HTTP {reply.status}: the answer is empty", meta=_billed(meta)))
    try:
        body = reply.json()
    except ValueError as error:
        raise EditEnded(Failed(str(error), meta=_billed(meta))) from None
    if not isinstance(body, dict):
        raise EditEnded(
            Failed(f"HTTP {reply.status}: the answer is no JSON object", meta=_billed(meta))
        )
    return body


def picture_of(text: Any, meta: Meta) -> bytes:
    """The bytes of a picture sent as base64, with or without the head of a data URL. Raises
    EditEnded with Failed."""
    if not isinstance(text, str) or not text:
        raise EditEnded(Failed("the answer holds no picture", meta=_billed(meta)))
    encoded = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise EditEnded(
            Failed("the answer's picture is not valid base64", meta=_billed(meta))
        ) from None


def edited(data: bytes, declared: str, request: EditRequest, meta: Meta) -> Edited:
    """``data`` as the result, untouched; a note when its size is not the one asked for, or when it is
    the very file that was sent. ``declared`` is the content type that came with it. Raises EditEnded
    with Failed for what is no picture."""
    if not data:
        raise EditEnded(Failed("the tool answered with an empty body", meta=_billed(meta)))
    if not media_type_of(data):
        kind = declared or "data of no declared type"
        raise EditEnded(Failed(f"the tool answered with {kind}, no picture", meta=_billed(meta)))
    note = {"note": UNCHANGED} if data == request.picture else size_note(data, request)
    return Edited(data, {**meta, **note})


def facts(body: Mapping[str, Any], names: Iterable[str], wire: Wire) -> dict[str, Any]:
    """Those of ``names`` that ``body`` states, fit for a ledger."""
    return {name: _plain(body[name], wire) for name in names if body.get(name) is not None}


def _plain(value: Any, wire: Wire, depth: int = 0) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth < 4:
        some = list(value.items())[:MANY]
        return {wire.redact(str(k)): _plain(v, wire, depth + 1) for k, v in some}
    if isinstance(value, list) and depth < 4:
        return [_plain(v, wire, depth + 1) for v in value[:MANY]]
    return None if value is None else wire.redact(str(value))


def _billed(meta: Meta) -> dict[str, Any]:
    return {**meta, "maybe_billed": True}
