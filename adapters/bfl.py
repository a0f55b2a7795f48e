"""Black Forest Labs' FLUX API: FLUX.1 Fill by mask, FLUX.1 Kontext and FLUX.2 by instruction.

Sources: docs.bfl.ai (OpenAPI of the endpoints, errors, image generation, help pages) and the maker's
own integration guide (github.com/black-forest-labs/skills), read in stored copies of 2026; nothing was
called live. The ``polling_url`` is used as given: it may lie on the host of a region (api.eu1.bfl.ai),
where the key must go along. Signed result addresses live for ten minutes: each is fetched in the poll
that sees "Ready". The maker does not charge for moderated requests.
"""

from __future__ import annotations

import base64
import math
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from adapters.contract import Adapter, ToolSpec
from adapters.guard import EditEnded, failures_are_answers, one_line, read_settings
from adapters.hosted.mask_forms import mask_in
from adapters.hosted.prompts import prompt_of
from adapters.over_http.polling import Patience, Wait, patiently
from adapters.over_http.results import edited, facts, json_of, without_key
from adapters.over_http.wire import HttpSettings, Reply, Wire
from domain.edits import EditOutcome, EditRequest, Failed, Refused, Task
from domain.sizing import SizeRule
from domain.tools import Price

FAKE = "bfl"
EXAMPLE: Mapping[str, Any] = {"poll_s": 0.05}
MASKED = (Task.INPAINT_BACKGROUND, Task.INPAINT_FACE, Task.INPAINT_LOWER_FACE)
UNMASKED = (Task.RETOUCH, Task.RESTYLE, Task.ENHANCE)
Model = Literal["flux-pro-1.0-fill", "flux-kontext-pro", "flux-kontext-max", "flux-2-pro", "flux-2-max"]  # fmt: skip
SOURCE = "black-forest-labs/skills, bfl-api/SKILL.md, read 2026-11; 1 credit is 0.01 USD"
# FLUX.2: the first output megapixel, further ones, and each input megapixel have a price
PRICES: Mapping[str, Price] = {
    "flux-pro-1.0-fill": Price(0.05, source=SOURCE),
    "flux-kontext-pro": Price(0.04, source=SOURCE),
    "flux-kontext-max": Price(0.08, source=SOURCE),
    "flux-2-pro": Price(0.015, per_megapixel=0.03, source=SOURCE),
    "flux-2-max": Price(0.04, per_megapixel=0.06, source=SOURCE),
}
STAGES = {"Request Moderated": "input", "Content Moderated": "output"}
RUNNING = frozenset({"pending", "queued", "processing", "task-queued", "task-processing"})
LARGEST_SEED = 2**31
SPEC = ToolSpec(
    id="bfl",
    name="Black Forest Labs FLUX",
    tasks=MASKED,
    # Latents are packed in squares of 16 pixels; FLUX.2 makes at most 4 megapixels
    size=SizeRule(multiple=16, min_side=64, max_side=1984),
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    price_note="credits by the picture; what a call cost is kept where the answer says it",
    licence="proprietary service, Black Forest Labs' terms",
    remote=True,
    concurrency=8,  # the maker allows 24 at once for the whole account
    price=PRICES["flux-pro-1.0-fill"],
    key_env="BFL_API_KEY",
    key_needed=True,
    refuses=(
        "What moderation flags before work begins (Request Moderated) or after (Content Moderated).",
        "A mask of another size than the picture.",
    ),
)


class BflSettings(HttpSettings):
    """``model`` is the endpoint. ``steps`` and ``guidance`` are Fill's alone. ``safety_tolerance`` 0 is
    the strictest; FLUX.2 goes up to 5, the others to 6. ``poll_hosts`` are hosts of the maker that
    the key may be handed to besides ``base_url``'s."""

    base_url: str = "https://api.bfl.ai"
    model: Model = "flux-pro-1.0-fill"
    steps: Annotated[int, Field(ge=15, le=50)] = 50
    guidance: Annotated[float, Field(ge=1.5, le=100)] = 60.0
    safety_tolerance: Annotated[int, Field(ge=0, le=6)] = 2
    prompt_upsampling: bool = False
    output_format: Literal["png", "jpeg"] = "png"
    poll_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    poll_hosts: tuple[str, ...] = ("*.bfl.ai",)

    @field_validator("poll_hosts")
    @classmethod
    def _are_narrow(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not re.match(r"^(?:\*\.)?(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}$", host):
                raise ValueError(f"'{host}' is no host, nor a pattern such as *.bfl.ai")
        return hosts

    @model_validator(mode="after")
    def _suits_the_model(self) -> Self:
        if self.model != "flux-pro-1.0-fill":
            for name in ("steps", "guidance"):
                if name in self.model_fields_set:
                    raise ValueError(f"{name}: '{self.model}' does not know it")
        if self.model.startswith("flux-2") and self.safety_tolerance > 5:
            raise ValueError(f"safety_tolerance: '{self.model}' goes up to 5")
        return self


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting."""
    return Bfl(read_settings(BflSettings, settings, SPEC.id))


class Bfl:
    """One endpoint. Safe in threads."""

    def __init__(self, settings: BflSettings, wait: Wait = time.sleep) -> None:
        """``wait`` stands in for sleeping."""
        self._settings, self._wait = settings, wait
        self._fills = settings.model == "flux-pro-1.0-fill"
        self.spec = replace(
            SPEC,
            tasks=MASKED if self._fills else UNMASKED,
            mask_support="advisory" if self._fills else "none",
            price=PRICES[settings.model],
            # The whole account may run 6 of these at once
            concurrency=4 if settings.model == "flux-kontext-max" else SPEC.concurrency,
        )
        self.model = f"BFL {settings.model}"
        key = settings.key.get_secret_value() if settings.key else ""
        self._wire = Wire(settings, {"x-key": key} if key else {}, settings.poll_hosts)
        self._closed = False

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One task, from its submission to the bytes of its picture."""
        if self._closed:
            return Failed("the tool was closed")
        if self._settings.key is None:
            return without_key(SPEC)
        patience = Patience(self._settings.total_s, self._settings.poll_s, self._wait)
        body, sent = self._body(request)
        reply = self._wire.send("POST", f"v1/{self._settings.model}", json=body)
        meta = {**reply.meta(), "model": self.model, "sent": sent}
        early = self._moderated(reply.json_or_none(), meta)
        if early is not None:
            return early
        if reply.status != 200:
            return self._turned_down(reply, sent)
        task = json_of(reply, meta)
        meta |= self._accepted(task)
        address = task.get("polling_url")
        if not isinstance(address, str) or not address:
            return Failed("the answer names no polling_url", meta={**meta, "maybe_billed": True})
        return self._follow(request, address, meta, patience)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._wire.close()

    def _body(self, request: EditRequest) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is posted, and the same without pictures for the record."""
        s = self._settings
        if not request.picture:
            raise ValueError("the request has no picture")
        sent: dict[str, Any] = {
            "prompt": prompt_of(request),
            "seed": request.seed % LARGEST_SEED,
            "safety_tolerance": s.safety_tolerance,
            "output_format": s.output_format,
        }
        pictures = {"input_image": request.picture}
        if self._fills:
            pictures = {"image": request.picture, "mask": mask_in(request, "white_is_edit")}
            sent |= {"steps": s.steps, "guidance": s.guidance}
        if s.model.startswith("flux-2"):
            sent |= {"width": request.width, "height": request.height}
        else:
            sent["prompt_upsampling"] = s.prompt_upsampling
        if s.model.startswith("flux-kontext") and request.width and request.height:
            common = math.gcd(request.width, request.height)
            sent["aspect_ratio"] = f"{request.width // common}:{request.height // common}"
        encoded = {name: base64.b64encode(data).decode() for name, data in pictures.items()}
        return {**sent, **encoded}, sent

    def _accepted(self, task: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {
            "returned": facts(task, ("cost", "input_mp", "output_mp"), self._wire)
        }
        if task.get("id"):
            found["request_id"] = one_line(str(task["id"]), 100)
        cost = task.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            found["cost"] = {"amount": round(cost * 0.01, 6), "currency": "USD"}
        return found

    def _follow(
        self, request: EditRequest, address: str, meta: Mapping[str, Any], patience: Patience
    ) -> EditOutcome:
        """Poll until the task has ended, and fetch what it made."""
        while True:
            reply = patiently(partial(self._poll, address), patience, meta)
            told = json_of(reply, meta)
            status = str(told.get("status") or "")
            now = {**meta, "http_status": reply.status}
            refused = self._moderated(told, now)
            if refused is not None:
                return refused
            if status.lower() not in RUNNING:
                return self._ended(request, status, told, now, patience)
            if not patience.pause():
                reason = f"the task was not finished after {self._settings.total_s:g} s"
                return Failed(reason, meta={**now, "maybe_billed": True})

    def _poll(self, address: str) -> Reply:
        """Any answer that names a state of the task; it may come with an error status."""
        reply = self._wire.send("GET", address)
        told = reply.json_or_none()
        if reply.status != 200 and not (isinstance(told, dict) and told.get("status")):
            raise EditEnded(self._wire.failure(reply, f"polling: {_detail(reply) or reply.words}"))
        return reply

    def _ended(
        self,
        request: EditRequest,
        status: str,
        told: Mapping[str, Any],
        meta: Mapping[str, Any],
        patience: Patience,
    ) -> EditOutcome:
        billed = {**meta, "maybe_billed": True}
        if status != "Ready":
            said = told.get("error") or told.get("details") or ""
            if isinstance(said, dict):
                said = ", ".join(f"{name}: {value}" for name, value in said.items())
            words = self._wire.redact(f"{status or 'a state without a name'}: {said}").strip(": ")
            return Failed(f"the task ended with {words}", status == "Task not found", None, billed)
        result = told.get("result")
        result = result if isinstance(result, dict) else {}
        address = result.get("sample")
        if not isinstance(address, str) or not address:
            return Failed("the task is ready, but names no picture", meta=billed)
        kept = {**meta["returned"], **facts(result, ("seed", "duration"), self._wire)}
        picture = patiently(partial(self._wire.fetch, address), patience, meta)
        return edited(picture.body, picture.media_type, request, {**meta, "returned": kept})

    def _moderated(self, told: Any, meta: Mapping[str, Any]) -> Refused | None:
        status = told.get("status") if isinstance(told, dict) else None
        if status not in STAGES:
            return None
        details = told.get("details")
        reasons = details.get("Moderation Reasons") if isinstance(details, dict) else None
        listed = reasons if isinstance(reasons, list) else [reasons] if reasons else []
        text = self._wire.redact(", ".join(str(reason) for reason in listed))
        return Refused(STAGES[status], status, text, {k: v for k, v in meta.items() if k != "cost"})

    def _turned_down(self, reply: Reply, sent: Mapping[str, Any]) -> Failed:
        failed = self._wire.failure(reply, _detail(reply))
        meta = {**failed.meta, "model": self.model, "sent": dict(sent)}
        if reply.status == 404:  # no such endpoint
            meta["stop"] = True
        return replace(failed, meta=meta)


def _detail(reply: Reply) -> str:
    """The sentence of an error: FastAPI's "detail", a text or a list of what is wrong where."""
    body = reply.json_or_none()
    detail = body.get("detail") if isinstance(body, dict) else None
    if isinstance(detail, list):
        wrong = [entry for entry in detail if isinstance(entry, dict)]
        return "; ".join(
            f"{'.'.join(str(p) for p in entry.get('loc', []))}: {entry.get('msg', '')}"
            for entry in wrong
        )
    return str(detail) if detail else ""
