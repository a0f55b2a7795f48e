"""The nodes that the pretended ComfyUI has: what they take, what they give, what they make of a picture.

Follows nodes.py (INPUT_TYPES, RETURN_TYPES, LoadImage.load_image, LoadImageMask.load_image) and
execution.py (validate_prompt, validate_inputs) of Comfy-Org/ComfyUI.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

Graph = Mapping[str, Mapping[str, Any]]
CHECKPOINTS = ["512-inpainting-ema.safetensors", "v1-5-pruned-emaonly.safetensors"]
SAMPLERS = ["euler", "euler_ancestral", "dpmpp_2m", "ddim", "uni_pc", "uni_pc_bh2"]
SCHEDULERS = ["normal", "karras", "simple"]
MODEL_LOADERS = ("MODEL", "CLIP", "VAE")
INPUTS: Mapping[str, Mapping[str, Any]] = {
    "CheckpointLoaderSimple": {"ckpt_name": CHECKPOINTS},
    "LoadImage": {"image": "FILE"},
    "LoadImageMask": {"image": "FILE", "channel": ["alpha", "red", "green", "blue"]},
    "CLIPTextEncode": {"text": "STRING", "clip": "CLIP"},
    "VAEEncode": {"pixels": "IMAGE", "vae": "VAE"},
    "VAEEncodeForInpaint": {"pixels": "IMAGE", "vae": "VAE", "mask": "MASK", "grow_mask_by": "INT"},
    "SetLatentNoiseMask": {"samples": "LATENT", "mask": "MASK"},
    "KSampler": {
        "model": "MODEL", "seed": "INT", "steps": "INT", "cfg": "FLOAT", "sampler_name": SAMPLERS,
        "scheduler": SCHEDULERS, "positive": "CONDITIONING", "negative": "CONDITIONING",
        "latent_image": "LATENT", "denoise": "FLOAT",
    },
    "VAEDecode": {"samples": "LATENT", "vae": "VAE"},
    "SaveImage": {"images": "IMAGE", "filename_prefix": "STRING"},
    "PreviewImage": {"images": "IMAGE"},
}  # fmt: skip
RETURNS: Mapping[str, tuple[str, ...]] = {
    "CheckpointLoaderSimple": MODEL_LOADERS, "LoadImage": ("IMAGE", "MASK"),
    "LoadImageMask": ("MASK",), "CLIPTextEncode": ("CONDITIONING",), "VAEEncode": ("LATENT",),
    "VAEEncodeForInpaint": ("LATENT",), "SetLatentNoiseMask": ("LATENT",), "KSampler": ("LATENT",),
    "VAEDecode": ("IMAGE",), "SaveImage": (), "PreviewImage": (),
}  # fmt: skip
OUTPUTS = ("SaveImage", "PreviewImage")
LARGEST_SEED = 0xFFFFFFFFFFFFFFFF


def refuse(graph: Any, files: Mapping[str, bytes]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """validate_prompt: (error, node_errors). ``error`` is None when some output is good; the bad
    ones are then in ``node_errors`` alone. ``files`` are the uploads by name."""
    for name, node in graph.items():
        kind = node.get("class_type")
        if kind not in INPUTS:
            title = node.get("_meta", {}).get("title", kind)
            return _error(
                "missing_node_type",
                f"Node '{title}' not found. The custom node may not be installed.",
                f"Node ID '#{name}'",
            ), {}
    outputs = [name for name, node in graph.items() if node["class_type"] in OUTPUTS]
    if not outputs:
        return _error("prompt_no_outputs", "Prompt has no outputs", ""), {}
    bad: dict[str, Any] = {}
    good = 0
    for output in outputs:
        wrong = {n: c for n in _upstream(graph, output) if (c := _complaints(graph, n, files))}
        good += not wrong
        for name, complaints in wrong.items():
            entry = {
                "errors": complaints,
                "dependent_outputs": [],
                "class_type": graph[name]["class_type"],
            }
            bad.setdefault(name, entry)["dependent_outputs"].append(output)
    if good:
        return None, bad
    details = "\n".join(
        f"{c['message']}: {c['details']}" for entry in bad.values() for c in entry["errors"]
    )
    return _error(
        "prompt_outputs_failed_validation", "Prompt outputs failed validation", details
    ), bad


def picture_and_mask(
    graph: Graph, output: str, files: Mapping[str, bytes]
) -> tuple[bytes, bytes | None]:
    """What reaches ``output``: the picture of the IMAGE it descends from, and the mask (grey PNG,
    white = paint) of the MASK that its latent was given, None for none."""
    picture, mask = b"", None
    for name in _upstream(graph, output):
        node = graph[name]
        links = [v for v in node["inputs"].values() if isinstance(v, list)]
        for source, slot in links:
            kind = RETURNS[graph[source]["class_type"]][slot]
            if graph[source]["class_type"] == "LoadImage" and kind == "IMAGE":
                picture = files[graph[source]["inputs"]["image"]]
            if kind == "MASK":
                mask = _mask(graph[source], files)
    return picture, mask if mask is None else _fitted(mask, picture)


def _mask(node: Mapping[str, Any], files: Mapping[str, bytes]) -> Image.Image:
    """LoadImage: 1 - alpha, or nothing at all without an alpha. LoadImageMask: a channel; of
    "alpha" again 1 - it, where a picture without one counts as opaque."""
    with Image.open(BytesIO(files[node["inputs"]["image"]])) as opened:
        if node["class_type"] == "LoadImage":
            if "A" not in opened.getbands():
                return Image.new("L", (64, 64), 0)
            return opened.getchannel("A").point(lambda value: 255 - value)
        channel = node["inputs"]["channel"][0].upper()
        found = opened.convert("RGBA").getchannel(channel)
        return found.point(lambda value: 255 - value) if channel == "A" else found


def _fitted(mask: Image.Image, picture: bytes) -> bytes:
    with Image.open(BytesIO(picture)) as opened:
        size = opened.size
    out = BytesIO()
    Image.fromarray(np.asarray(mask.resize(size), dtype=np.uint8)).save(out, format="PNG")
    return out.getvalue()


def _upstream(graph: Graph, node: str) -> list[str]:
    """``node`` and all that it depends on, without repeats."""
    found, waiting = [], [node]
    while waiting:
        name = waiting.pop()
        if name in found or name not in graph:
            continue
        found.append(name)
        values = graph[name].get("inputs", {}).values()
        waiting += [str(v[0]) for v in values if isinstance(v, list) and v]
    return found


def _complaints(graph: Graph, name: str, files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """validate_inputs of one node."""
    node = graph[name]
    found = []
    for key, kind in INPUTS[node["class_type"]].items():
        if key not in node["inputs"]:
            found.append(_error("required_input_missing", "Required input is missing", key))
            continue
        value = node["inputs"][key]
        wrong = _wrong_link(graph, key, kind, value) if isinstance(value, list) else None
        wrong = wrong or (
            None if isinstance(value, list) else _wrong_value(key, kind, value, files)
        )
        if wrong:
            found.append(wrong)
    return found


def _wrong_link(graph: Graph, key: str, kind: Any, link: list[Any]) -> dict[str, Any] | None:
    if len(link) != 2 or link[0] not in graph:
        why = "Bad linked input, must be a length-2 list of [node_id, slot_index]"
        return _error("bad_linked_input", why, key)
    given = RETURNS[graph[link[0]]["class_type"]]
    received = given[link[1]] if link[1] < len(given) else "nothing"
    if received != kind:
        why = "Return type mismatch between linked nodes"
        return _error(
            "return_type_mismatch",
            why,
            f"{key}, received_type({received}) mismatch input_type({kind})",
        )
    return None


def _wrong_value(
    key: str, kind: Any, value: Any, files: Mapping[str, bytes]
) -> dict[str, Any] | None:
    if kind == "FILE" and value not in files:
        why = "Custom validation failed for node"
        return _error("custom_validation_failed", why, f"{key} - Invalid image file: {value}")
    if isinstance(kind, list) and value not in kind:
        return _error("value_not_in_list", "Value not in list", f"{key}: '{value}' not in {kind}")
    if kind in ("INT", "FLOAT"):
        try:
            number = int(value) if kind == "INT" else float(value)
        except (TypeError, ValueError) as error:
            why = f"Failed to convert an input value to a {kind} value"
            return _error("invalid_input_type", why, f"{key}, {value}, {error}")
        if number < 0:
            return _error("value_smaller_than_min", f"Value {number} smaller than min of 0", key)
        if number > LARGEST_SEED:
            return _error("value_bigger_than_max", f"Value {number} bigger than max", key)
    return None


def _error(kind: str, message: str, details: str) -> dict[str, Any]:
    return {"type": kind, "message": message, "details": details, "extra_info": {}}
