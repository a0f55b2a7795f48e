"""What a Stable Diffusion web UI's answers mean: pictures, faults, and which checkpoint made them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapters.codec import is_black
from adapters.guard import one_line
from adapters.over_http.results import edited, facts, json_of, picture_of
from adapters.over_http.wire import Reply, Wire
from domain.edits import Edited, EditRequest, Failed

RETURNED = (
    "seed", "width", "height", "steps", "cfg_scale", "sampler_name", "denoising_strength",
    "restore_faces", "face_restoration_model", "sd_model_name", "sd_model_hash",
    "sd_vae_name", "sd_vae_hash", "version",
)  # fmt: skip
_HASH_IN_TITLE = re.compile(r"\s*\[[0-9a-f]{6,64}\]$")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A line of `/sdapi/v1/sd-models`. ``digest`` is the longest hash that it gives, "" for none.
    ``names`` are all it may be called: an answer gives the bare file's name, the list a folder's too."""

    title: str
    name: str = ""
    digest: str = ""
    names: frozenset[str] = frozenset()


def find_checkpoint(models: Iterable[Mapping[str, Any]], wanted: str) -> Checkpoint | None:
    """The model that the server calls ``wanted``: by title, name, file name or hash."""
    for model in models:
        title, name = str(model.get("title") or ""), str(model.get("model_name") or "")
        file = re.split(r"[\\/]", str(model.get("filename") or ""))[-1]
        hashes = [str(model[k]) for k in ("sha256", "hash") if model.get(k)]
        bare = _HASH_IN_TITLE.sub("", title)
        names = frozenset({title, bare, name, file, file.rpartition(".")[0]} - {""})
        if wanted and wanted in names | set(hashes):
            return Checkpoint(title, name, hashes[0] if hashes else "", names)
    return None


def read_answer(
    reply: Reply, request: EditRequest, sent: Mapping[str, Any], expected: Checkpoint, wire: Wire
) -> Edited | Failed:
    """A 200 of img2img as the outcome. Raises EditEnded with Failed for what is no answer."""
    meta: dict[str, Any] = {**reply.meta(), "sent": dict(sent)}
    answer = json_of(reply, meta)
    info = _info(answer)
    picture = picture_of(_chosen(answer.get("images"), info), meta)
    meta |= {"returned": facts(info, RETURNED, wire), "model": _model(info, expected)}
    if other := _another_model(info, expected):
        return Failed(other, meta={**meta, "stop": True})
    if is_black(picture):
        return Failed(
            "the picture is black: half-precision overflow (start the web UI with --no-half-vae), "
            "or a filter extension struck; the web UI does not say which",
            meta=meta,
        )
    found = edited(picture, "", request, meta)
    notes = [str(found.meta.get("note", "")), *_notes(info, sent)]
    said = "; ".join(note for note in notes if note)
    return replace(found, meta={**meta, "note": said}) if said else found


def _chosen(images: Any, info: Mapping[str, Any]) -> Any:
    """The picture that ``index_of_first_image`` names: a grid may come before it, control maps and
    masks after."""
    if not isinstance(images, list) or not images:
        return None
    index = info.get("index_of_first_image")
    return images[index] if isinstance(index, int) and 0 <= index < len(images) else images[0]


def said_of(reply: Reply) -> str:
    """The server's own sentence, from any of its forms, without the fields that repeat what was
    sent: those hold the picture."""
    answer = reply.json_or_none()
    if not isinstance(answer, dict):
        return ""
    detail = answer.get("detail")
    if isinstance(detail, list):  # pydantic's: loc, msg, and the input, which is left alone
        lines = [
            f"{'.'.join(str(part) for part in one.get('loc', ()))}: {one.get('msg', '')}"
            for one in detail
            if isinstance(one, dict)
        ]
        return one_line("; ".join(lines))
    kind = str(answer.get("error") or "")
    words = [str(w) for w in (detail, answer.get("errors")) if isinstance(w, str) and w]
    if kind and kind != "HTTPException":
        words.insert(0, kind)
    return one_line(": ".join(dict.fromkeys(words)))


def settle_fault(failed: Failed, reply: Reply) -> Failed:
    """What the status alone does not say: which faults every item would meet, which only this one,
    and which would come again with the same seed."""
    said = said_of(reply)
    stop = {**failed.meta, "stop": True}
    if reply.status == 404 and said in ("", "Not Found"):
        reason = f"HTTP 404: no API at {reply.host}; start the web UI with --api"
        return Failed(reason, meta=stop)
    if reply.status in (404, 422) or ("model" in said and "not found" in said):
        return replace(failed, retryable=False, retry_after=None, meta=stop)
    if any(word in said for word in ("Invalid encoded image", "NansException", "NaNs")):
        return replace(failed, retryable=False, retry_after=None)
    return failed


def _info(answer: Mapping[str, Any]) -> dict[str, Any]:
    try:
        info = json.loads(answer.get("info") or "{}")
    except (TypeError, ValueError):
        return {}
    return info if isinstance(info, dict) else {}


def _model(info: Mapping[str, Any], expected: Checkpoint) -> str:
    name = str(info.get("sd_model_name") or expected.name or expected.title or "unknown checkpoint")
    digest = str(info.get("sd_model_hash") or expected.digest[:10])
    version = str(info.get("version") or "")
    return one_line(
        f"{name}{f' [{digest}]' if digest else ''}, web UI{f' {version}' if version else ''}", 160
    )


def _another_model(info: Mapping[str, Any], expected: Checkpoint) -> str:
    """A sentence when the answer names a checkpoint that is not the expected one."""
    digest, name = str(info.get("sd_model_hash") or ""), str(info.get("sd_model_name") or "")
    if digest and expected.digest:
        same = digest.startswith(expected.digest) or expected.digest.startswith(digest)
    elif name and expected.names:
        same = name in expected.names
    else:
        return ""
    if same:
        return ""
    return one_line(
        f"the web UI worked with '{name or digest}' and not with '{expected.title}': "
        "its checkpoint was changed, or the override is not heeded"
    )


def _notes(info: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
    said = []
    if "seed" in info and info["seed"] != sent["seed"]:
        said.append(f"asked for seed {sent['seed']}, the web UI used another")
    if info and not info.get("sd_model_hash") and not info.get("sd_model_name"):
        said.append("the web UI did not say which checkpoint it used")
    return said
