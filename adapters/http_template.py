"""Any other HTTP API, described in the plan: no code, and every mistake told when the plan is read.

What the description may hold is in ``template_settings``; docs/tools/http_template.md has two whole
examples. Requests that must be signed with the time (AWS) cannot be described.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from adapters.codec import media_type_of
from adapters.contract import Adapter
from adapters.guard import EditEnded, failures_are_answers, one_line, read_settings
from adapters.hosted.mask_forms import mask_in
from adapters.hosted.prompts import prompt_of
from adapters.over_http.polling import Patience, Wait, patiently
from adapters.over_http.results import edited, json_of, picture_of
from adapters.over_http.wire import Reply, Wire
from adapters.template.paths import look_up
from adapters.template.rules import refusal_of
from adapters.template.settings import SPEC, Poll, TemplateSettings, without_pictures
from adapters.template.text import KEY, fill, fill_text, names_in, only_placeholder
from domain.edits import EditOutcome, EditRequest, Failed

__all__ = ["EXAMPLE", "FAKE", "SPEC", "build"]
FAKE = "template"
EXAMPLE: Mapping[str, Any] = {
    "path": "/v1/edit",
    "headers": {"Authorization": "Bearer {key}"},
    "multipart": {
        "picture": "{picture}",
        "mask": "{mask}",
        "prompt": "{prompt}",
        "seed": "{seed}",
        "strength": "0.8",
    },
    "refusals": [
        {"status": 422, "jsonpath": "$.error.code", "matches": "^blocked_", "stage": "input",
         "text": "$.error.message"},
        {"header": "x-mira-verdict", "equals": "filtered", "stage": "output"},
    ],
    "error_text": "$.error.message",
    "model": "Mira 3",
}  # fmt: skip


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError with the mistake in the template."""
    return HttpTemplate(read_settings(TemplateSettings, settings, SPEC.id))


class HttpTemplate:
    """One API. Safe in threads."""

    def __init__(self, settings: TemplateSettings, wait: Wait = time.sleep) -> None:
        """``wait`` stands in for sleeping."""
        self._settings, self._wait = settings, wait
        self.spec = settings.spec()
        self._wire = Wire(settings, self._auth())
        self.model = settings.model or f"HTTP API at {settings.base_url.partition('://')[2]}"
        self._closed = False

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One call, followed to its result."""
        if self._closed:
            return Failed("the tool was closed")
        s = self._settings
        patience = Patience(s.total_s, s.poll.every_s if s.poll else 1.0, self._wait)
        values = self._values(request)
        sent = without_pictures(s.multipart or s.json_body, values)
        reply = self._wire.send(
            s.method,
            fill_text(s.path, {name: quote(str(value)) for name, value in values.items()}),
            headers=self._headers(values),
            params={name: fill_text(text, values) for name, text in s.query.items()} or None,
            **self._body(values, request),
        )
        meta = self._meta(reply, {"sent": sent})
        ended = self._ended(reply, meta)
        if ended is not None:
            return ended
        if s.poll is not None:
            followed = self._follow(s.poll, reply, meta, patience)
            if not isinstance(followed, Reply):
                return followed
            reply, meta = followed, self._meta(followed, meta)
        return self._result(reply, request, meta, patience)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._wire.close()

    def _auth(self) -> dict[str, str]:
        key = self._settings.key
        return {
            name: fill_text(text, {KEY: key.get_secret_value()})
            for name, text in self._settings.headers.items()
            if key is not None and KEY in names_in(text)
        }

    def _headers(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Those that can be filled with ``values``; the key's go by another way."""
        given = {n: t for n, t in self._settings.headers.items() if names_in(t) <= values.keys()}
        return {name: fill_text(text, values) for name, text in given.items()}

    def _values(self, request: EditRequest) -> dict[str, Any]:
        """What the placeholders stand for. Raises ValueError where the request lacks one."""
        s = self._settings
        values: dict[str, Any] = {
            "prompt": prompt_of(request),
            "seed": request.seed % s.seed_below,
            "width": request.width,
            "height": request.height,
        }
        if s.used("picture"):
            if not request.picture:
                raise ValueError("the request has no picture, and the template wants one")
            values |= _forms("picture", request.picture)
        if s.used("mask"):
            values |= _forms("mask", mask_in(request, s.mask))
        return values

    def _body(self, values: Mapping[str, Any], request: EditRequest) -> dict[str, Any]:
        s = self._settings
        if not s.multipart:
            return {"json": fill(s.json_body, values)}
        parts: list[tuple[str, tuple[str | None, bytes | str, str | None]]] = []
        for name, text in s.multipart.items():
            file = only_placeholder(text)
            if file in ("picture", "mask"):
                data = values[file]
                kind = media_type_of(data) or request.media_type
                suffix = kind.rpartition("/")[2].replace("jpeg", "jpg")
                parts.append((name, (f"{file}.{suffix}", data, kind)))
            else:  # without a file name: an ordinary field
                parts.append((name, (None, fill_text(text, values), None)))
        return {"files": parts}

    def _meta(self, reply: Reply, before: Mapping[str, Any]) -> dict[str, Any]:
        s, body = self._settings, reply.json_or_none()
        # Of several answers the first one's clock and id stand: it began the work
        meta = {**reply.meta(), **before, "http_status": reply.status}
        for name, path in (("request_id", s.request_id), ("model", s.model_path)):
            found = look_up(path, body)
            if found is not None:
                meta[name] = one_line(self._wire.redact(str(found)), 100)
        return meta

    def _ended(self, reply: Reply, meta: Mapping[str, Any]) -> EditOutcome | None:
        """A refusal or a failure; None for an answer to go on with."""
        refused = refusal_of(self._settings.refusals, reply, self._wire, meta)
        if refused is not None:
            return refused
        if 200 <= reply.status < 300:
            return None
        failed = self._wire.failure(reply, self._said(reply))
        return replace(failed, meta={**meta, **failed.meta})

    def _said(self, reply: Reply) -> str:
        found = look_up(self._settings.error_text, reply.json_or_none())
        return "" if found is None else str(found)

    def _follow(
        self, poll: Poll, reply: Reply, meta: Mapping[str, Any], patience: Patience
    ) -> Reply | EditOutcome:
        """The answer that names the state "done", or the end that came instead."""
        first = json_of(reply, meta)
        job = look_up(poll.id, first)
        name = {"id": quote(str(job), safe="")}
        asked = look_up(poll.url, first) if poll.url else fill_text(poll.path, name)
        billed = {**meta, "maybe_billed": True}
        if not isinstance(asked, str) or not asked or (poll.id and job is None):
            return Failed("the answer names no job to follow", meta=billed)
        body: Mapping[str, Any] = first
        while True:
            state = look_up(poll.state, body)
            word = state if isinstance(state, str) else str(state)
            if word in poll.done:
                return reply
            said = self._wire.redact(self._said(reply))
            if word in poll.failed:
                return Failed(f"the job ended as {self._wire.redact(word)}: {said or 'no reason given'}", meta=billed)  # fmt: skip
            if poll.running and state is not None and word not in poll.running:
                return Failed(f"unknown state of the job: {self._wire.redact(word)}", meta=billed)
            if not patience.pause():
                self._cancel(poll, name)
                return Failed(f"the job was not done after {patience.total_s:g} s", meta=billed)
            reply = patiently(partial(self._poll, asked), patience, meta)
            ended = self._ended(reply, {**self._meta(reply, meta), "maybe_billed": True})
            if ended is not None:
                return ended
            body = json_of(reply, meta)

    def _poll(self, address: str) -> Reply:
        """An answer that the rules can judge. One that may be asked for again is raised."""
        reply = self._wire.send("GET", address, headers=self._headers({}))
        failed = self._ended(reply, {})
        if isinstance(failed, Failed) and failed.retryable:
            raise EditEnded(failed)
        return reply

    def _cancel(self, poll: Poll, name: Mapping[str, str]) -> None:
        if not poll.cancel:
            return
        try:
            self._wire.send("POST", fill_text(poll.cancel, name))
        except EditEnded:
            return

    def _result(
        self, reply: Reply, request: EditRequest, meta: Mapping[str, Any], patience: Patience
    ) -> EditOutcome:
        s = self._settings
        if s.result_base64:
            found = look_up(s.result_base64, json_of(reply, meta))
            return edited(picture_of(found, meta), "base64 that is no picture", request, meta)
        if s.result_url:
            address = look_up(s.result_url, json_of(reply, meta))
            if not isinstance(address, str) or not address:
                return Failed("the answer names no address of a result", meta={**meta, "maybe_billed": True})  # fmt: skip
            if address.startswith("data:"):
                return edited(picture_of(address, meta), "a data URI", request, meta)
            fetch = partial(self._wire.fetch, address, with_key=s.result_with_key)
            reply = patiently(fetch, patience, meta)
        return edited(reply.body, reply.media_type, request, meta)


def _forms(name: str, data: bytes) -> dict[str, Any]:
    """``data`` in each form that a placeholder may ask for."""
    encoded = base64.b64encode(data).decode()
    kind = media_type_of(data) or "application/octet-stream"
    return {
        name: data,
        f"{name}_base64": encoded,
        f"{name}_data_uri": f"data:{kind};base64,{encoded}",
    }
