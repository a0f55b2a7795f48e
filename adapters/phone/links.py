"""The ways to a phone agent: its address, a port that adb forwards, or a host that the phone asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from adapters.guard import EditEnded, one_line
from adapters.over_http.wire import HttpSettings, Reply, Wire
from adapters.phone.adb import Adb
from adapters.phone.pull import Job, PullHost, release
from domain.edits import Failed
from domain.errors import LikenessError
from domain.redaction import redact

LOST: Mapping[str, Any] = {"device_lost": True}
"""The ``meta`` of a failure that says: there is no device any more."""


class Link(Protocol):
    """A way to one device. Calls raise EditEnded(Failed) when no whole answer comes back."""

    device: str
    """Names the device itself: two tools with the same must take turns."""

    def capabilities(self) -> Reply:
        """GET /v1/capabilities."""
        ...

    def edit(self, parameters: Mapping[str, Any], picture: bytes, media_type: str) -> Reply:
        """POST /v1/edits."""
        ...

    def redact(self, text: str) -> str:
        """A device's words without the token and without encoded data."""
        ...

    def close(self) -> None:
        """Let go of it. May come twice."""
        ...


class HttpLink:
    """The agent at an address."""

    def __init__(self, settings: HttpSettings, device: str = "") -> None:
        token = settings.key.get_secret_value() if settings.key else ""
        self._wire = Wire(settings, {"Authorization": f"Bearer {token}"} if token else {})
        self._patience = min(10.0, settings.timeout_s)
        self.device = device or settings.base_url

    def capabilities(self) -> Reply:
        """Soon or not at all: an agent that is there answers at once."""
        return self._wire.send("GET", "v1/capabilities", timeout_s=self._patience)

    def edit(self, parameters: Mapping[str, Any], picture: bytes, media_type: str) -> Reply:
        """As a form with the parts ``parameters`` (JSON) and ``picture``."""
        form = {
            "parameters": (None, json.dumps(parameters), "application/json"),
            "picture": ("picture", picture, media_type),
        }
        try:
            return self._wire.send("POST", "v1/edits", files=form)
        except EditEnded as end:
            if isinstance(end.outcome, Failed) and not end.outcome.meta:  # nobody was there at all
                raise EditEnded(replace(end.outcome, meta=LOST)) from None
            raise

    def redact(self, text: str) -> str:
        """See Link."""
        return self._wire.redact(text)

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()


class AdbLink:
    """The agent on a phone at the other end of adb. The port is opened here and closed by ``close``;
    it is opened anew when the phone was away and came back."""

    def __init__(self, adb: Adb, remote: str, settings: HttpSettings) -> None:
        """``remote`` is what the agent listens at on the phone, as adb writes it."""
        self._adb, self._remote, self._settings = adb, remote, settings
        self.device = f"adb:{adb.serial}/{remote}"
        self._open()

    def _open(self) -> None:
        self.port = self._adb.forward(self._remote)
        own = self._settings.model_copy(update={"base_url": f"http://127.0.0.1:{self.port}"})
        self._link = HttpLink(own, self.device)

    def capabilities(self) -> Reply:
        """See Link."""
        try:
            return self._link.capabilities()
        except EditEnded as end:
            raise self._explained(end) from None

    def edit(self, parameters: Mapping[str, Any], picture: bytes, media_type: str) -> Reply:
        """See Link."""
        try:
            return self._link.edit(parameters, picture, media_type)
        except EditEnded as end:
            raise self._explained(end) from None

    def _explained(self, end: EditEnded) -> EditEnded:
        """What adb knows of a call that broke off; the port made good for the next one."""
        if not isinstance(end.outcome, Failed):
            return end
        meta = dict(end.outcome.meta)
        try:
            state = self._adb.state()
            if state == "device":
                if not self._adb.forwarded(self.port):
                    self._link.close()
                    self._open()
                told = f"no whole answer from the agent at {self._remote} on {self._adb.serial}"
                reason = f"{told}: {end.outcome.reason}; is the app running?"
                meta.pop("device_lost", None)
            else:
                reason = f"the device {self._adb.serial} is lost (adb says: {one_line(state, 60)})"
                meta |= LOST
        except LikenessError as error:
            reason = f"the device {self._adb.serial} is lost ({error})"
            meta |= LOST
        return EditEnded(Failed(one_line(reason, 300), retryable=True, meta=meta))

    def redact(self, text: str) -> str:
        """See Link."""
        return self._link.redact(text)

    def close(self) -> None:
        """Close the port. The adb server and other people's ports are left alone."""
        self._link.close()
        with suppress(LikenessError):  # the phone may be gone, and its ports with it
            self._adb.remove(self.port)


class PullLink:
    """The agent that asks us."""

    def __init__(self, host: PullHost, *, wait_s: float, total_s: float) -> None:
        self.host, self.device = host, host.url
        self._wait_s, self._total_s, self._closed = wait_s, total_s, False

    def capabilities(self) -> Reply:
        """See Link."""
        return self._call(Job("capabilities", "{}", b"", ""))

    def edit(self, parameters: Mapping[str, Any], picture: bytes, media_type: str) -> Reply:
        """See Link."""
        return self._call(Job("edit", json.dumps(parameters), picture, media_type))

    def _call(self, job: Job) -> Reply:
        return self.host.call(job, wait_s=self._wait_s, total_s=self._total_s)

    def redact(self, text: str) -> str:
        """See Link."""
        return one_line(redact(text, [self.host.token]), 300)

    def close(self) -> None:
        """Stop listening, when no other tool of this plan uses the same phone."""
        if not self._closed:
            self._closed = True
            release(self.host)
