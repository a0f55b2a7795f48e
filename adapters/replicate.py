"""Any picture model on Replicate: a template says which input takes what.

Sources: replicate.com/docs/reference/http (predictions.create, .get, .cancel, files.create), the pages
on rate limits, error codes and prediction deadlines, read in stored copies of 2026; nothing was called
live. Data URIs are for pictures up to 256 kB, larger ones go through the files API. Output files are
gone after an hour: each is fetched in the poll that sees "succeeded". A prediction that outlives
``total_s`` is cancelled, and Replicate is told that deadline beforehand, so that a crash here does not
leave it running; what ran before that is billed.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from adapters.codec import media_type_of
from adapters.contract import Adapter
from adapters.guard import EditEnded, failures_are_answers, one_line, read_settings
from adapters.hosted.mask_forms import mask_in
from adapters.hosted.prompts import prompt_of
from adapters.hosted.replicate_outcome import DONE, RUNNING, Wording, addresses
from adapters.hosted.replicate_settings import MASKED, SPEC, ReplicateSettings
from adapters.over_http.polling import Patience, Wait, patiently
from adapters.over_http.results import edited, facts, json_of, picture_of, without_key
from adapters.over_http.wire import Reply, Wire
from domain.edits import EditOutcome, EditRequest, Failed, Refused

__all__ = ["EXAMPLE", "FAKE", "SPEC", "build"]
FAKE = "replicate"
EXAMPLE: Mapping[str, Any] = {
    "model": "example/inpainter",
    "mask_field": "mask",
    "inputs": {"output_format": "png"},
    "poll_s": 0.05,
}
LARGEST_SEED = 2**31
_ID = re.compile(r"^[\w-]{1,100}$")


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting."""
    return Replicate(read_settings(ReplicateSettings, settings, SPEC.id))


class Replicate:
    """One model. Safe in threads."""

    def __init__(self, settings: ReplicateSettings, wait: Wait = time.sleep) -> None:
        """``wait`` stands in for sleeping."""
        self._settings, self._wait = settings, wait
        self.spec, self.model = settings.spec(), f"Replicate {settings.model}"
        self._wording = Wording(settings.refusal_words)
        key = settings.key.get_secret_value() if settings.key else ""
        self._wire = Wire(settings, {"authorization": f"Bearer {key}"} if key else {})
        self._closed = False

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One prediction, from its creation to the bytes of its first picture."""
        if self._closed:
            return Failed("the tool was closed")
        if self._settings.key is None:
            return without_key(SPEC)
        patience = Patience(self._settings.total_s, self._settings.poll_s, self._wait)
        uploads: list[str] = []
        try:
            inputs, sent = self._inputs(request, uploads)
            return self._predict(request, inputs, sent, patience)
        finally:
            self._delete(uploads)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._wire.close()

    def _inputs(
        self, request: EditRequest, uploads: list[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model's input, and the same without pictures for the record."""
        s = self._settings
        if not request.picture:
            raise ValueError("the request has no picture")
        plain: dict[str, Any] = dict(s.inputs)
        for name, value in (
            (s.prompt_field, prompt_of(request)),
            (s.seed_field, request.seed % LARGEST_SEED),
            (s.width_field, request.width),
            (s.height_field, request.height),
        ):
            if name:
                plain[name] = value
        pictures = {s.picture_field: request.picture}
        if s.mask_field and request.task in MASKED:
            pictures[s.mask_field] = mask_in(request, s.mask)
        inputs, sent = dict(plain), dict(plain)
        for field, data in pictures.items():
            name, listed = field.removesuffix("[]"), field.endswith("[]")
            inline = len(data) <= s.inline_kb * 1024
            where = _data_uri(data) if inline else self._upload(data, uploads)
            inputs[name] = [where] if listed else where
            sent[name] = "in the request" if inline else "as a file"
        return inputs, sent

    def _upload(self, data: bytes, uploads: list[str]) -> str:
        kind = media_type_of(data) or "application/octet-stream"
        label = f"picture.{kind.rpartition('/')[2].replace('jpeg', 'jpg')}"
        reply = self._wire.send("POST", "v1/files", files={"content": (label, data, kind)})
        if reply.status not in (200, 201):
            raise EditEnded(self._broken(reply, "uploading the picture"))
        body = json_of(reply, reply.meta())
        name, urls = str(body.get("id") or ""), body.get("urls")
        if _ID.match(name):
            uploads.append(name)
        address = urls.get("get") if isinstance(urls, dict) else None
        if not isinstance(address, str):
            raise EditEnded(Failed("Replicate took the file but named no address for it"))
        return address

    def _delete(self, uploads: list[str]) -> None:
        """A face is not left lying there; Replicate would drop it after a day in any case."""
        for name in uploads:
            try:
                self._wire.send("DELETE", f"v1/files/{name}")
            except EditEnded:
                continue

    def _predict(
        self,
        request: EditRequest,
        inputs: Mapping[str, Any],
        sent: Mapping[str, Any],
        patience: Patience,
    ) -> EditOutcome:
        s = self._settings
        body = {"input": dict(inputs), **({"version": s.version} if s.version else {})}
        headers = {"cancel-after": f"{max(5, int(s.total_s))}s"}
        wait = min(s.wait_s, max(1, int(s.total_s)))
        if wait:
            headers["prefer"] = f"wait={wait}"
        # The answer is held open that long before its first byte
        reply = self._wire.send(
            "POST", s.path, json=body, headers=headers, timeout_s=s.timeout_s + wait
        )
        if reply.status not in (200, 201, 202):
            return self._turned_down(reply, sent)
        base = {**reply.meta(), "sent": sent}
        job, meta = self._read(reply, base)
        while job.get("status") in RUNNING:
            if not patience.pause():
                self._cancel(job)
                return Failed(
                    f"the prediction was not finished after {s.total_s:g} s and was cancelled",
                    meta={**meta, "maybe_billed": True},
                )
            reply = patiently(partial(self._poll, _address(job)), patience, meta)
            job, meta = self._read(reply, base)
        return self._outcome(request, job, meta, patience)

    def _poll(self, address: str) -> Reply:
        reply = self._wire.send("GET", address)
        if reply.status != 200:
            raise EditEnded(self._broken(reply, "polling"))
        return reply

    def _cancel(self, job: Mapping[str, Any]) -> None:
        try:
            self._wire.send("POST", f"{_address(job)}/cancel")
        except EditEnded:
            return

    def _outcome(
        self,
        request: EditRequest,
        job: Mapping[str, Any],
        meta: Mapping[str, Any],
        patience: Patience,
    ) -> EditOutcome:
        if job.get("status") not in DONE:
            return self._not_done(job, meta)
        found = addresses(job.get("output"), self._settings.output_key)
        if not found:
            return self._without_output(job, meta)
        if len(found) > 1:
            meta = {**meta, "note": f"the first of {len(found)} pictures is taken"}
        if found[0].startswith("data:"):
            return edited(picture_of(found[0], meta), "a data URI", request, meta)
        result = patiently(partial(self._wire.fetch, found[0], with_key=True), patience, meta)
        return edited(result.body, result.media_type, request, meta)

    def _not_done(self, job: Mapping[str, Any], meta: Mapping[str, Any]) -> EditOutcome:
        status, error = str(job.get("status")), str(job.get("error") or "")
        billed = {**meta, "maybe_billed": True}
        if status == "failed":
            return self._wording.of_failed(error, self._wire.redact(error), meta)
        if status == "aborted":  # before it began: not charged
            return Failed("the prediction was aborted before it began", retryable=True, meta=meta)
        if status == "canceled":
            return Failed("the prediction was cancelled at Replicate", meta=billed)
        return Failed(f"unknown state of the prediction: {self._wire.redact(status)}", meta=billed)

    def _without_output(self, job: Mapping[str, Any], meta: Mapping[str, Any]) -> EditOutcome:
        """ "Succeeded" with an empty list: a model's way of keeping a filtered picture back."""
        logs = str(job.get("logs") or "")
        words = self._wording.refuses(logs)
        if words:
            line = next((x for x in logs.splitlines() if self._wording.refuses(x)), words)
            return Refused("output", words.lower()[:60], self._wire.redact(line), meta)
        gone = job.get("data_removed") is True
        reason = "its data was removed" if gone else "the output holds no picture"
        return Failed(
            f"the prediction succeeded, but {reason}", meta={**meta, "maybe_billed": True}
        )

    def _turned_down(self, reply: Reply, sent: Mapping[str, Any]) -> EditOutcome:
        """No prediction was created: a problem document says why."""
        said = _problem(reply)
        meta = {**reply.meta(), "sent": dict(sent)}
        if reply.status in (400, 403, 422):
            refused = self._wording.refusal(said, self._wire.redact(said), meta)
            if refused is not None:
                return replace(refused, stage="input")
        failed = self._broken(reply, "")
        stop = {"stop": True} if reply.status == 404 else {}
        return replace(failed, meta={**failed.meta, "sent": dict(sent), **stop})

    def _broken(self, reply: Reply, doing: str) -> Failed:
        said = _problem(reply)
        return self._wire.failure(reply, ": ".join(part for part in (doing, said) if part))

    def _read(
        self, reply: Reply, base: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """The prediction, and ``base`` with what it says of itself."""
        job = json_of(reply, base)
        meta = {**base, "http_status": reply.status}
        if job.get("id"):
            meta["request_id"] = one_line(str(job["id"]), 100)
        version = str(job.get("version") or self._settings.version)
        name = str(job.get("model") or self._settings.model.partition(":")[0])
        meta["model"] = self._wire.redact(f"Replicate {name}" + (f":{version}" if version else ""))
        meta["returned"] = facts(job, ("status", "metrics", "source"), self._wire)
        return job, meta


def _address(job: Mapping[str, Any]) -> str:
    """Where the prediction is asked after: by its id, on the host that the key belongs to."""
    name = str(job.get("id") or "")
    if not _ID.match(name):
        raise EditEnded(Failed("the prediction has no usable id", meta={"maybe_billed": True}))
    return f"v1/predictions/{name}"


def _data_uri(data: bytes) -> str:
    kind = media_type_of(data) or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _problem(reply: Reply) -> str:
    """The sentence of a problem document (RFC 9457)."""
    body = reply.json_or_none()
    if not isinstance(body, dict):
        return ""
    parts = [str(body[name]) for name in ("title", "detail") if body.get(name)]
    for entry in body.get("invalid_fields") or body.get("errors") or []:
        if isinstance(entry, dict):
            parts.append(f"{entry.get('field', '')} {entry.get('description', '')}".strip())
    return "; ".join(parts)
