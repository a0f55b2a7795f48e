"""Pretends to be AUTOMATIC1111's web UI at `/sdapi/v1`.

Follows modules/api/api.py (img2imgapi, validate_sampler_name, decode_base64_to_image,
api_middleware), modules/api/models.py and modules/processing.py (Processed.js, the img2img ``init``)
of AUTOMATIC1111/stable-diffusion-webui, releases 1.6 to 1.10: also in what it ignores in silence.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.fake_servers.desk import Desk, seen_of

NAME = "webui"
DOES = "Stable Diffusion web UI (AUTOMATIC1111): /sdapi/v1/img2img, options, sd-models, progress"
BEHAVIOURS: Mapping[str, str] = {
    "black": "200 with a black picture, as a filter extension or a NaN in the VAE leaves it",
    "nans": "500 NansException",
    "oom": "500 OutOfMemoryError",
    "other_model": "200, made with the loaded checkpoint whatever was asked for",
    "interrupted": "200 with what was there when somebody pressed Interrupt",
    "grid": "200 with a contact sheet before the picture",
    "extras": "200 with a control map after the picture",
    "data_prefix": "200, the picture written as a data: address",
    "no_images": "200 without a picture",
    "bad_base64": "200 with a picture that is no base64",
    "text": "200 with base64 of a text",
    "half_size": "200 with a picture of half the size",
    "other_seed": "200, made with another seed",
    "echo": "500 that repeats the request's body and login",
}
MODELS = [
    {
        "title": f"{name}.safetensors [{digest[:10]}]",
        "model_name": name,
        "hash": digest[:10],
        "sha256": digest,
        "filename": f"models/Stable-diffusion/{name}.safetensors",
        "config": None,
    }
    for name, digest in (
        ("v1-5-pruned-emaonly", "6ce0161689b3853acaa03779ec93eafe75a02f4ced659bee03f50797806fa2fa"),
        ("sd_xl_base_1.0", "31e35c80fc4829d14f90153f4c74cd59c90b779f6afe05a74cd6120b893f7e5b"),
    )
]
SAMPLERS = ("Euler a", "Euler", "DPM++ 2M", "DDIM")
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "init_images": list, "mask": str, "prompt": str, "negative_prompt": str, "seed": int,
    "width": int, "height": int, "steps": int, "cfg_scale": (int, float), "sampler_name": str,
    "denoising_strength": (int, float), "inpainting_fill": int, "inpainting_mask_invert": int,
    "mask_blur": int, "inpaint_full_res": bool, "override_settings": dict,
}  # fmt: skip


class _Fault(Exception):
    """An HTTPException or another exception, in api_middleware's shape."""

    def __init__(self, status: int, kind: str, detail: str = "", errors: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.body = {"error": kind, "detail": detail, "body": "", "errors": errors}


def app(desk: Desk) -> Starlette:
    """The server of one web UI."""
    ui = _WebUi(desk)
    paths = {
        "options": ("GET", ui.options), "sd-models": ("GET", ui.models),
        "progress": ("GET", ui.progress), "interrupt": ("POST", ui.interrupt),
        "img2img": ("POST", ui.img2img),
    }  # fmt: skip
    return Starlette(
        routes=[Route(f"/sdapi/v1/{p}", h, methods=[m]) for p, (m, h) in paths.items()],
        exception_handlers={_Fault: _say, 404: _nothing_here},
    )


async def _say(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, _Fault)
    headers = {"www-authenticate": "Basic"} if fault.status == 401 else None
    return JSONResponse(fault.body, fault.status, headers=headers)


async def _nothing_here(request: Request, fault: Exception) -> Response:
    """What a web UI without ``--api`` says to all of it."""
    return JSONResponse({"detail": "Not Found"}, 404)


class _WebUi:
    """Its state: the loaded checkpoint, and the flags of the last job."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._loaded, self._interrupted = desk, MODELS[0], False

    async def options(self, request: Request) -> Response:
        """GET options: the whole settings page; here the lines that matter."""
        self._admit(request)
        return JSONResponse({"sd_model_checkpoint": self._loaded["title"], "samples_format": "png"})

    async def models(self, request: Request) -> Response:
        """GET sd-models."""
        self._admit(request)
        return JSONResponse(MODELS)

    async def progress(self, request: Request) -> Response:
        """GET progress: ``state`` keeps its flags until the next job begins."""
        self._admit(request)
        state = {"skipped": False, "interrupted": self._interrupted, "job_count": 0}
        return JSONResponse({"progress": 0.0, "eta_relative": 0.0, "state": state})

    async def interrupt(self, request: Request) -> Response:
        """POST interrupt."""
        self._admit(request)
        self._interrupted = True
        return JSONResponse({})

    async def img2img(self, request: Request) -> Response:
        """POST img2img."""
        self._admit(request)
        fields = seen_of(request).json()
        if errors := _validate(fields):
            return JSONResponse({"detail": errors}, 422)
        if fields.get("init_images") is None:
            raise _Fault(404, "HTTPException", "Init image not found", "404: Init image not found")
        if fields.get("sampler_name", "Euler") not in SAMPLERS:
            raise _Fault(404, "HTTPException", "Sampler not found", "404: Sampler not found")
        pictures = [_decoded(text) for text in fields["init_images"]]
        mask = _decoded(fields["mask"]) if fields.get("mask") else None
        self._interrupted = False
        behaviour = self._desk.turn(pictures[0] if pictures else None)
        if (answer := self._desk.common(behaviour)) is not None:
            return answer
        self._fail(behaviour, request)
        self._interrupted = behaviour == "interrupted"
        return await run_in_threadpool(self._work, behaviour, fields, pictures[0], mask)

    def _admit(self, request: Request) -> None:
        """``--api-auth``: HTTP Basic. The key is the whole pair, or the password of any user."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            login = base64.b64decode(token).decode() if scheme.lower() == "basic" else ""
        except (binascii.Error, UnicodeDecodeError):
            login = ""
        if not (self._desk.has_key(login) or self._desk.has_key(login.partition(":")[2])):
            raise _Fault(401, "HTTPException", "Incorrect username or password")

    def _fail(self, behaviour: str, request: Request) -> None:
        if behaviour == "nans":
            why = (
                "A tensor with all NaNs was produced in VAE. Use --disable-nan-check to disable it."
            )
            raise _Fault(500, "NansException", "", why)
        if behaviour == "oom":
            raise _Fault(500, "OutOfMemoryError", "", "CUDA out of memory. Tried to allocate 2 GiB")
        if behaviour == "echo":
            seen = seen_of(request)
            login = base64.b64decode(seen.headers.get("authorization", "")[6:]).decode()
            told = f"{login} {seen.headers.get('authorization')} {seen.body.decode()}"
            raise _Fault(500, "RuntimeError", "", told)

    def _work(
        self, behaviour: str, fields: Mapping[str, Any], picture: bytes, mask: bytes | None
    ) -> Response:
        if behaviour != "other_model":
            self._override(fields)
        size = (fields.get("width", 512) // 8 * 8, fields.get("height", 512) // 8 * 8)
        if not all(size):
            raise _Fault(500, "RuntimeError", "", "cannot reshape tensor of 0 elements")
        result = self._desk.edit(picture, _effective(mask, picture, fields), size=size)
        if behaviour in ("black", "refuse"):  # there is no refusal; a filter extension blackens
            result = _flat(size, 0)
        if behaviour == "half_size":
            result = self._desk.edit(result, size=(size[0] // 2, size[1] // 2))
        info = _info(fields, self._loaded, size, index=int(behaviour == "grid"))
        if behaviour == "other_seed":
            info["seed"] = info["seed"] + 1
        shown = base64.b64encode(_with_text(result, info["infotexts"][0])).decode()
        shown = {
            "data_prefix": f"data:image/png;base64,{shown}",
            "bad_base64": "####",
            "text": base64.b64encode(b"no picture at all").decode(),
        }.get(behaviour, shown)
        extra = base64.b64encode(_flat(size, 200)).decode()
        images = {"grid": [extra, shown], "extras": [shown, extra], "no_images": []}
        echoed = {**fields, "init_images": None, "mask": None}
        return JSONResponse(
            {
                "images": images.get(behaviour, [shown]),
                "parameters": echoed,
                "info": json.dumps(info),
            }
        )

    def _override(self, fields: Mapping[str, Any]) -> None:
        """process_images: an unknown checkpoint is taken out of the settings without a word."""
        wanted = (fields.get("override_settings") or {}).get("sd_model_checkpoint")
        for model in MODELS:
            if wanted in (model["title"], model["model_name"], model["hash"], model["sha256"]):
                self._loaded = model


def _validate(fields: Any) -> list[dict[str, Any]]:
    """pydantic's complaints, which repeat the value that was sent."""
    if not isinstance(fields, dict):
        return [
            {"type": "model_attributes_type", "loc": ["body"], "msg": "Input should be an object"}
        ]
    return [
        {
            "type": "type_error",
            "loc": ["body", name],
            "msg": "Input has the wrong type",
            "input": value,
        }
        for name, value in fields.items()
        if name in TYPES and value is not None and not isinstance(value, TYPES[name])
    ]


def _decoded(text: Any) -> bytes:
    if isinstance(text, str) and text.startswith("data:image/"):
        text = text.split(";")[1].split(",")[1]
    try:
        data = base64.b64decode(text)
        with Image.open(BytesIO(data)) as opened:
            opened.load()
    except Exception:
        raise _Fault(500, "HTTPException", "Invalid encoded image") from None
    return data


def _effective(mask: bytes | None, picture: bytes, fields: Mapping[str, Any]) -> bytes | None:
    """The mask as the web UI reads it (create_binary_mask): the alpha of an RGBA picture that has
    any, else its grey; then inverted if asked for, and resized to the picture."""
    if mask is None:
        return None
    with Image.open(BytesIO(mask)) as opened, Image.open(BytesIO(picture)) as base:
        if opened.mode == "RGBA" and opened.getchannel("A").getextrema() != (255, 255):
            grey = opened.getchannel("A")
        else:
            grey = opened.convert("L")
        if fields.get("inpainting_mask_invert", 0):
            grey = ImageOps.invert(grey)
        return _png(grey.resize(base.size))


def _info(
    fields: Mapping[str, Any], model: Mapping[str, Any], size: tuple[int, int], index: int
) -> dict[str, Any]:
    """Processed.js, the keys that clients read."""
    seed = fields.get("seed", -1)
    seed = 3735928559 if seed == -1 else seed
    steps, sampler = fields.get("steps", 50), fields.get("sampler_name", "Euler")
    text = (
        f"{fields.get('prompt', '')}\nSteps: {steps}, Sampler: {sampler}, Seed: {seed}, "
        f"Size: {size[0]}x{size[1]}, Model hash: {model['hash']}, Model: {model['model_name']}, "
        "Version: v1.10.1"
    )
    return {
        "prompt": fields.get("prompt", ""), "seed": seed, "all_seeds": [seed],
        "width": size[0], "height": size[1], "sampler_name": sampler, "steps": steps,
        "cfg_scale": fields.get("cfg_scale", 7.0), "batch_size": 1,
        "restore_faces": fields.get("restore_faces", False), "face_restoration_model": None,
        "sd_model_name": model["model_name"], "sd_model_hash": model["hash"],
        "sd_vae_name": None, "sd_vae_hash": None,
        "denoising_strength": fields.get("denoising_strength", 0.75),
        "index_of_first_image": index, "infotexts": [text], "version": "v1.10.1",
    }  # fmt: skip


def _with_text(png: bytes, text: str) -> bytes:
    """``enable_pnginfo``: the parameters travel in the picture."""
    info = PngInfo()
    info.add_text("parameters", text)
    with Image.open(BytesIO(png)) as opened:
        return _png(opened, pnginfo=info)


def _flat(size: tuple[int, int], grey: int) -> bytes:
    return _png(Image.new("RGB", size, (grey, grey, grey)))


def _png(picture: Image.Image, **options: Any) -> bytes:
    out = BytesIO()
    picture.save(out, format="PNG", compress_level=1, **options)
    return out.getvalue()
