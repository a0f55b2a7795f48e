"""A beautify SDK on a phone, through an agent in an app: samples/phone_agent/openapi.yaml is the contract.

Such SDKs start in a low-power mode that scales pictures down in silence. So the mode is set with every
edit and checked three ways: what the capabilities say is set, what the answer says was used, and
whether the picture still holds detail that a scaled-down copy cannot (``phone.detail``).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any
from uuid import uuid4

from PIL import Image

from adapters.codec import media_type_of, read_rgb, write_png
from adapters.contract import Adapter, ToolSpec
from adapters.guard import EditEnded, failures_are_answers, one_line, read_settings
from adapters.over_http.wire import Reply
from adapters.phone.adb import Adb
from adapters.phone.answers import (
    THROTTLED,
    Capabilities,
    facts_of,
    outcome_of,
    read_capabilities,
    size_of,
)
from adapters.phone.detail import Detail, fine_detail
from adapters.phone.links import AdbLink, HttpLink, Link, PullLink
from adapters.phone.mode import doubt_of
from adapters.phone.nv21 import from_nv21, round_trip_error, to_nv21
from adapters.phone.pull import share
from adapters.phone.settings import HIGH, MobileSettings, unmet
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.errors import LikenessError
from domain.pictures import RgbPixels
from domain.sizing import SizeRule

MEDIA = {"png": "image/png", "nv21": "application/x-nv21"}
SPEC = ToolSpec(
    id="mobile",
    name="Phone SDK (agent in an app)",
    tasks=(Task.RETOUCH, Task.ENHANCE),
    size=SizeRule(multiple=16, min_side=64, max_side=4096, aspect=3 / 4),
    remote=True,
    licence="the SDK maker's",
    price_note="the SDK's licence",
    key_env="",
    refuses=(
        "frames that are not 4:3 or 3:4",
        "sides that are no multiple of 16 (never sent: the SDK would ruin the colours)",
    ),
)
EXAMPLE: Mapping[str, Any] = {}
FAKE = "phone"
LOST_BEFORE_STOP = 3
_TURNS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""A lock for each device, for tools of one plan that share it."""


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. A phone that can be reached is asked for its capabilities; LikenessError says in
    one line what is wrong with it, with the settings or with adb."""
    checked = read_settings(MobileSettings, settings, SPEC.id)
    link = _link(checked)
    try:
        return MobileTool(checked, link)
    except BaseException:
        link.close()
        raise


def _link(settings: MobileSettings) -> Link:
    if settings.pull is not None and settings.key is not None:
        host = share(
            settings.pull.listen,
            settings.key.get_secret_value(),
            settings.pull.device,
            int(settings.max_result_mb * 1_000_000),
        )
        return PullLink(host, wait_s=settings.pull.wait_s, total_s=settings.total_s)
    if settings.adb:
        adb = Adb(settings.adb_program, settings.serial, settings.adb_server_port)
        remote = f"localabstract:{settings.socket}" if settings.socket else f"tcp:{settings.port}"
        return AdbLink(adb, remote, settings)
    return HttpLink(settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """Bytes to keep, their size where it can be told, their pixels where that is the size sent."""

    picture: bytes
    size: tuple[int, int] | None
    pixels: RgbPixels | None


class MobileTool:
    """One phone. ``model`` names SDK, chip, system and model hash; when the hash changes on the way,
    it says so."""

    def __init__(self, settings: MobileSettings, link: Link) -> None:
        self._settings, self._link = settings, link
        self._able: Capabilities | None = None
        self._first_hash = ""
        self._confirmed: tuple[str, ...] = ()
        self._lost = 0
        self._closed = False
        self.model = "phone SDK, not asked yet"
        self.spec = replace(SPEC, size=self._size(None))
        if not isinstance(link, PullLink):  # a phone that pulls may come when the run has begun
            try:
                self._ask()
            except EditEnded as end:
                assert isinstance(end.outcome, Failed)
                raise LikenessError(f"tool 'mobile': {end.outcome.reason}") from None
            except LikenessError as error:
                raise LikenessError(f"tool 'mobile': {one_line(str(error))}") from None

    def _size(self, able: Capabilities | None) -> SizeRule:
        rule = SPEC.size
        most = able.max_side if able else rule.max_side
        return replace(
            rule,
            aspect=3 / 4 if self._settings.frame == "3:4" else 4 / 3,
            multiple=able.sides_multiple if able else rule.multiple,
            min_side=able.min_side if able else rule.min_side,
            max_side=min(most, self._settings.max_side or most),
        )

    def _ask(self) -> Capabilities:
        """Capabilities, and whether they are enough. Raises LikenessError when not."""
        able = read_capabilities(self._link.capabilities(), self._link)
        why = unmet(self._settings, able)
        if why:
            raise LikenessError(why)
        if self._able is None:
            self.spec, self.model = replace(SPEC, size=self._size(able)), able.model
            self._first_hash = able.model_hash
        self._able = able
        return able

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """The picture as the phone gives it back; with ``nv21`` turned into a PNG."""
        if self._closed:
            return Failed("the tool was closed")
        pixels = read_rgb(request.picture)
        with _TURNS[self._link.device]:
            try:
                self._check_frame(pixels, self._able or self._ask())
                outcome = self._edit(request, pixels)
            except EditEnded as end:
                outcome = end.outcome
            except LikenessError as error:
                return Failed(str(error), meta={"stop": True})
        return self._counted(outcome)

    def _counted(self, outcome: EditOutcome) -> EditOutcome:
        """A device that is lost again and again ends the run; the next item would fare the same."""
        self._lost = self._lost + 1 if outcome.meta.get("device_lost") else 0
        if isinstance(outcome, Failed) and self._lost >= LOST_BEFORE_STOP:
            return replace(outcome, retryable=False, meta={**outcome.meta, "stop": True})
        return outcome

    def _check_frame(self, pixels: RgbPixels, able: Capabilities) -> None:
        """Raises EditEnded for a frame that would come back ruined, before anything is sent."""
        height, width = pixels.shape[:2]
        step = able.sides_multiple
        if width % step or height % step:
            reason = f"{width}x{height} is not sent: sides must be multiples of {step}"
        elif not able.min_side <= min(width, height) <= max(width, height) <= able.max_side:
            reason = f"{width}x{height} is not sent: sides of {able.min_side} to {able.max_side} go"
        elif abs(min(width, height) - 0.75 * max(width, height)) > step / 2:
            reason = f"{width}x{height} is not sent: only 4:3 and 3:4 frames go"
        else:
            return
        raise EditEnded(Failed(reason))

    def _edit(self, request: EditRequest, pixels: RgbPixels) -> EditOutcome:
        height, width = pixels.shape[:2]
        form = self._settings.transport
        sent = {
            "quality_mode": self._settings.quality_mode,
            "colour_format": form,
            "parameters": dict(self._settings.parameters),
            "request_id": uuid4().hex,
        } | ({"width": width, "height": height} if form == "nv21" else {})
        body = request.picture or b""
        if form == "nv21":
            body = to_nv21(pixels)
        reply = self._link.edit(sent, body, MEDIA[form])
        if reply.status != 200:
            outcome = outcome_of(reply, self._link)
            return replace(outcome, meta={**outcome.meta, "sent": sent})
        result = _result(reply, form, (width, height))
        facts = facts_of(reply, self._link)
        meta = {
            **reply.meta(),
            "device": reply.host if isinstance(self._link, PullLink) else self._link.device,
            "sent": sent,
            "returned": facts,
            "model": self._model(facts),
            "colour_format_error": round_trip_error(pixels),
        }
        detail = Detail(None)
        if result.pixels is not None:
            detail = fine_detail(pixels, result.pixels, request.face_box)
        return self._judged(result, meta, detail, (width, height))

    def _model(self, facts: Mapping[str, Any]) -> str:
        """The version string; an SDK or a model that changed during the run is told."""
        assert self._able is not None
        now = self._able.model_copy(
            update={k: facts[k] for k in ("sdk_version", "model_hash") if k in facts}
        )
        self.model = now.model
        if now.model_hash != self._first_hash:
            self.model += f" (was {self._first_hash[:12]} when this run began)"
        return self.model

    def _judged(
        self, result: _Result, meta: dict[str, Any], detail: Detail, size: tuple[int, int]
    ) -> EditOutcome:
        """The edit, or the failure that it is when the quality mode was not to be had."""
        meta["fine_detail_kept"] = detail.kept
        facts = meta["returned"]
        asked = self._settings.quality_mode
        doubt = doubt_of(asked, facts, detail, size) or self._set_mode(facts)
        notes = []
        if result.size is not None and result.size != size:
            came = "the picture came back at {}x{}, not at {}x{}".format(*result.size, *size)
            if asked == HIGH:
                doubt = doubt or came
            else:
                notes.append(came)
        if doubt:
            notes.insert(0, doubt)
        if doubt and self._settings.require_high_accuracy:
            hot = facts.get("thermal_before") in THROTTLED
            return Failed(doubt, retryable=hot, retry_after=30.0 if hot else None, meta=meta)
        if detail.kept is None and result.pixels is not None:
            notes.append("too little fine detail was sent to check the quality mode by the picture")
        if self._settings.transport == "nv21":
            notes.append("converted from NV21 as the device sent it")
        if facts.get("faces") == "0":
            notes.append("the SDK found no face")
        return Edited(result.picture, meta | ({"note": "; ".join(notes)} if notes else {}))

    def _set_mode(self, facts: Mapping[str, Any]) -> str:
        """Ask the device which mode is set: after the first edit, and when anything about it changed."""
        state = tuple(
            str(facts.get(k))
            for k in ("sdk_version", "model_hash", "thermal_after", "quality_mode")
        )
        if state == self._confirmed:
            return ""
        try:
            able = self._ask()
        except (EditEnded, LikenessError):  # the edit is done, and checked otherwise: ask next time
            return ""
        if able.quality_mode not in ("", self._settings.quality_mode):
            said = one_line(able.quality_mode, 40)
            return f"the device has {said} set although {self._settings.quality_mode} was asked for"
        self._confirmed = state
        return ""

    def close(self) -> None:
        """Let go of the phone: connections, the forwarded port, the listening port."""
        self._closed = True
        self._link.close()


def _size(data: bytes) -> tuple[int, int] | None:
    """(width, height) by the header alone; None where even that cannot be read."""
    try:
        with Image.open(BytesIO(data)) as opened:
            return opened.size
    except (
        Exception
    ):  # whatever a strange file makes a decoder raise; the decode gate will judge it
        return None


def _result(reply: Reply, form: str, sent: tuple[int, int]) -> _Result:
    """The picture of an answer. Raises EditEnded for a body that is none."""
    if form == "nv21" and reply.media_type == MEDIA["nv21"]:
        size = size_of(reply.headers.get("x-frame-size", "")) or sent
        try:
            pixels = from_nv21(reply.body, *size)
        except ValueError as error:
            raise EditEnded(Failed(f"the device's frame: {error}", meta=reply.meta())) from None
        return _Result(write_png(pixels), size, pixels if size == sent else None)
    if not media_type_of(reply.body):
        named = one_line(reply.media_type or "no content type", 60)
        reason = f"the device answered {len(reply.body)} bytes of {named}, no picture"
        raise EditEnded(Failed(reason, meta=reply.meta()))
    size_told = _size(reply.body)
    if size_told != sent:  # decoded here only where the size is known to be no bomb's
        return _Result(reply.body, size_told, None)
    try:
        return _Result(reply.body, sent, read_rgb(reply.body))
    except ValueError:
        return _Result(reply.body, sent, None)
