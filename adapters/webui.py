"""A Stable Diffusion web UI on your own machine: AUTOMATIC1111, Forge, SD.Next, over `/sdapi/v1`.

Follows modules/api/api.py, modules/api/models.py and modules/processing.py of
AUTOMATIC1111/stable-diffusion-webui. Three habits of that server decide how it is spoken to: a
checkpoint it does not know is ignored in silence, an interrupted picture comes back half made under a
200, and it is silent while it works, so ``total_s`` bounds the edit and ``timeout_s`` the rest.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr

from adapters.codec import mask_png
from adapters.contract import Adapter, ToolSpec
from adapters.diffusion.prompts import INPAINTING, SEEDS, prompt_for
from adapters.guard import EditEnded, failures_are_answers, read_settings
from adapters.hosted.size_check import check_size
from adapters.over_http.wire import HttpSettings, Reply, Wire
from adapters.web_ui.webui_answers import (
    Checkpoint,
    find_checkpoint,
    read_answer,
    said_of,
    settle_fault,
)
from domain.edits import EditOutcome, EditRequest, Failed, Task
from domain.errors import LikenessError
from domain.sizing import SizeRule

SPEC = ToolSpec(
    id="webui",
    name="Stable Diffusion web UI (AUTOMATIC1111, Forge, SD.Next)",
    tasks=(*sorted(INPAINTING), Task.RETOUCH, Task.RESTYLE, Task.ENHANCE),
    size=SizeRule(multiple=8, min_side=64, max_side=2048),
    # it pastes the original back outside the mask, but blurs the mask's edge first
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    price_note="free, on your own machine",
    licence="AGPL-3.0 (the web UI); the checkpoint has its own",
    remote=True,
    concurrency=1,
    key_env="",
    refuses=(
        "sides that are no multiple of 8, or below 64 or above 2048 px",
        "an inpainting task without a mask, or with an empty one",
    ),
)
EXAMPLE: Mapping[str, Any] = {"user": "likeness", "steps": 4}
FAKE = "webui"
FILLS = {"fill": 0, "original": 1, "latent noise": 2, "latent nothing": 3}


class WebuiSettings(HttpSettings):
    """Settings of the web UI.

    ``key`` is the password of ``--api-auth``, with ``user``, or "user:password". ``checkpoint`` is a
    title, name or hash out of `/sdapi/v1/sd-models`; empty: whatever is loaded. ``only_masked`` works
    on the masked area alone, enlarged. ``fill`` is what the area holds before the first step."""

    base_url: str = "http://127.0.0.1:7860"
    user: str = ""
    checkpoint: str = ""
    steps: Annotated[int, Field(ge=1, le=150)] = 20
    cfg_scale: Annotated[float, Field(ge=1, le=30)] = 7.0
    sampler: str = "Euler a"
    scheduler: str = ""
    denoising_strength: Annotated[float, Field(ge=0, le=1)] = 0.75
    negative_prompt: str = ""
    fill: Literal["fill", "original", "latent noise", "latent nothing"] = "original"
    mask_blur: Annotated[int, Field(ge=0, le=64)] = 4
    only_masked: bool = False
    only_masked_padding: Annotated[int, Field(ge=0, le=256)] = 32
    restore_faces: bool = False


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool; nothing is sent yet. Raises LikenessError on a wrong setting."""
    return WebuiTool(read_settings(WebuiSettings, settings, SPEC.id))


class WebuiTool:
    """A conversation with one web UI."""

    spec = SPEC

    def __init__(self, settings: WebuiSettings) -> None:
        """Raises LikenessError when the key is a password without a user."""
        auth: dict[str, str] = {}
        if settings.key is not None:
            key = settings.key.get_secret_value()
            user, _, password = f"{settings.user}:{key}".removeprefix(":").partition(":")
            password = password.removeprefix(f"{user}:")
            if not password:
                raise LikenessError("tool 'webui': setting 'user': a password needs a user name")
            login = base64.b64encode(f"{user}:{password}".encode()).decode()
            auth["authorization"] = f"Basic {login}"
            # the password is what must never be repeated, alone or inside of that header
            settings = settings.model_copy(update={"key": SecretStr(password)})
        self._settings = settings
        self._wire: Wire | None = Wire(settings, auth)
        self._checkpoint: Checkpoint | None = None
        self.model = f"web UI, {settings.checkpoint or 'the checkpoint that is loaded'}"

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """One img2img call, with the mask for an inpainting task."""
        if self._wire is None:
            return Failed("the tool was closed")
        body = self._body(request)
        if self._checkpoint is None:
            self._checkpoint = self._learn(self._wire)
        if self._settings.checkpoint:
            # without the second line the server would load and unload a checkpoint for each picture
            body["override_settings"] = {"sd_model_checkpoint": self._checkpoint.title}
            body["override_settings_restore_afterwards"] = False
        reply = self._work(self._wire, body)
        if reply.status != 200:
            return settle_fault(self._wire.failure(reply, said_of(reply)), reply)
        sent = {k: v for k, v in body.items() if k not in ("init_images", "mask")}
        outcome = read_answer(reply, request, sent, self._checkpoint, self._wire)
        self.model = str(outcome.meta.get("model") or self.model)
        if not isinstance(outcome, Failed) and self._was_interrupted(self._wire):
            return Failed(
                "somebody pressed Interrupt or Skip in the web UI: the picture is half made",
                retryable=True,
                meta=outcome.meta,
            )
        return outcome

    def close(self) -> None:
        """Close the connections. May come twice."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def _body(self, request: EditRequest) -> dict[str, Any]:
        """The request's fields. Everything that the server would fill in from what somebody left
        in its settings page is said outright."""
        options = self._settings
        check_size(request, SPEC.size)
        body: dict[str, Any] = {
            "init_images": [base64.b64encode(request.picture or b"").decode()],
            "prompt": prompt_for(request),
            "negative_prompt": options.negative_prompt,
            "seed": request.seed % SEEDS,
            "width": request.width,
            "height": request.height,
            "resize_mode": 0,
            "steps": options.steps,
            "cfg_scale": options.cfg_scale,
            "sampler_name": options.sampler,
            "denoising_strength": options.denoising_strength,
            "batch_size": 1,
            "n_iter": 1,
            "restore_faces": options.restore_faces,
            "tiling": False,
            "send_images": True,
            "save_images": False,
            "include_init_images": False,
        }
        if options.scheduler:
            body["scheduler"] = options.scheduler
        if request.task in INPAINTING:
            body |= {
                "mask": base64.b64encode(mask_png(request)).decode(),
                "inpainting_mask_invert": 0,
                "inpainting_fill": FILLS[options.fill],
                "inpaint_full_res": options.only_masked,
                "inpaint_full_res_padding": options.only_masked_padding,
                "mask_blur": options.mask_blur,
            }
        return body

    def _learn(self, wire: Wire) -> Checkpoint:
        """Which checkpoint will do the work. One that the server lacks ends the run: it would be
        ignored, and another's pictures would be measured under its name."""
        options = self._get(wire, "options")
        models = self._get(wire, "sd-models")
        wanted = self._settings.checkpoint
        loaded = str(options.get("sd_model_checkpoint") or "") if isinstance(options, dict) else ""
        known = [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []
        found = find_checkpoint(known, wanted or loaded)
        if wanted and found is None:
            titles = ", ".join(str(m.get("title")) for m in known[:8]) or "none"
            raise EditEnded(
                Failed(
                    wire.redact(f"the web UI has no checkpoint '{wanted}'; it has: {titles}"),
                    meta={"stop": True},
                )
            )
        return found or Checkpoint(loaded)

    def _get(self, wire: Wire, what: str) -> Any:
        reply = wire.send("GET", f"/sdapi/v1/{what}", timeout_s=self._settings.timeout_s)
        if reply.status != 200:
            raise EditEnded(settle_fault(wire.failure(reply, said_of(reply)), reply))
        return reply.json()

    def _work(self, wire: Wire, body: Mapping[str, Any]) -> Reply:
        try:
            return wire.send(
                "POST", "/sdapi/v1/img2img", json=body, timeout_s=self._settings.total_s
            )
        except EditEnded as end:
            # it may still be at work, and the next picture would wait behind this one
            if end.outcome.meta.get("maybe_billed"):
                with suppress(EditEnded):
                    wire.send("POST", "/sdapi/v1/interrupt", timeout_s=10.0)
            raise

    def _was_interrupted(self, wire: Wire) -> bool:
        """The flags that the server keeps until its next job begins (modules/shared_state.py)."""
        with suppress(EditEnded):
            reply = wire.send(
                "GET", "/sdapi/v1/progress", params={"skip_current_image": "true"}, timeout_s=10.0
            )
            state = (reply.json_or_none() or {}) if reply.status == 200 else {}
            flags = state.get("state") if isinstance(state, dict) else None
            if isinstance(flags, dict):
                return any(flags.get(k) for k in ("interrupted", "skipped", "stopping_generation"))
        return False
