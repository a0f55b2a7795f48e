"""Step 4 of an audit: one item's request, and the call of the tool, on record before it is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import adapters.contract
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.faces import Face
from domain.masks import MaskKind
from domain.measurements import Outcome
from domain.pictures import Picture
from preprocess.crop import fit_to_tool, grow_box
from preprocess.decode import encode_png, open_picture
from preprocess.masks import make_mask
from preprocess.perturb import perturb
from service.runs import Run, build_tool
from service.store.ledger import CALLING, DONE, EDITED

MAX_ATTEMPTS = 3
LONGEST_WAIT = 60.0
MASKS = {
    Task.INPAINT_BACKGROUND: MaskKind.BACKGROUND,
    Task.INPAINT_FACE: MaskKind.FACE,
    Task.INPAINT_LOWER_FACE: MaskKind.LOWER_FACE,
}


def prepare(
    run: Run, item: Mapping[str, Any], portrait: Mapping[str, Any]
) -> tuple[EditRequest, list[str]]:
    """The request of one item: perturbed, fitted to the tool's own size, encoded, masked; and
    sentences about what the fitting had to do."""
    source = next(p for p in run.portraits if p.portrait_id == item["portrait_id"])
    tool, spec = run.tools[item["tool"]], run.specs[item["tool"]]
    face = _face(open_picture(source.path), portrait["face"], run.plan.engine)
    picture = perturb(face.picture, face, item["perturbation"], item["seed"], item["portrait_id"])
    box = grow_box(face.box, (picture.width, picture.height), points=face.points)
    fitted = fit_to_tool(picture, box, spec.size)
    task = Task(item["task"])
    mask = None
    if task in MASKS:
        moved = Face(fitted.picture, fitted.to_fitted(face.points), face.box, face.engine)
        mask = make_mask(moved, MASKS[task])
    request = EditRequest(
        item_id=item["item_id"],
        task=task,
        picture=encode_png(fitted.picture),
        width=fitted.picture.width,
        height=fitted.picture.height,
        seed=item["seed"],
        prompt=tool.prompt,
        mask=mask,
        face_box=fitted.face_box,
        original_name=item["portrait_id"],
        perturbation=item["perturbation"],
        attributes=source.attributes,
        settings=tool.settings,
    )
    return request, list(fitted.notes)


def _face(picture: Picture, stored: Mapping[str, Any], engine: str) -> Face:
    box = stored["box"]
    return Face(
        picture, np.asarray(stored["points"], float), (box[0], box[1], box[2], box[3]), engine
    )


def try_build(run: Run, label: str) -> tuple[adapters.contract.Adapter | None, str]:
    """The tool, or None with the reason why it cannot be started."""
    try:
        return build_tool(run.loaded, run.tools[label]), ""
    except LikenessError as error:
        return None, str(error)
    except Exception as error:  # a third party's tool: its fault is its items' outcome
        return None, f"{type(error).__name__}: {error}"


def give_up(run: Run, item: Mapping[str, Any], reason: str) -> None:
    """End an item as failed, without figures."""
    row = {"outcome": Outcome.FAILED.value, "reason": reason}
    run.ledger.finish_item(item["item_id"], row, [])


def call_tool(
    run: Run,
    adapter: adapters.contract.Adapter,
    item: Mapping[str, Any],
    portrait: Mapping[str, Any],
    wait: Callable[[float], object] = time.sleep,
) -> bool:
    """Call the tool on one item, with retries where a retry is right, and record each call.

    Returns True when there is a picture to measure. An item that could not be prepared, was
    refused or failed is finished here, with its reason.
    """
    try:
        request, notes = prepare(run, item, portrait)
    except (LikenessError, OSError, ValueError) as error:
        give_up(run, item, f"could not be prepared for the tool: {error}")
        return False
    if item["state"] == CALLING and item["attempts"] >= MAX_ATTEMPTS:
        reason = f"the process died {item['attempts']} times while calling this tool"
        give_up(run, item, reason)
        return False
    sent: dict[str, Any] = {"original": run.blobs.put(request.picture or b""), "warnings": notes}
    if request.mask is not None:
        sent["mask"] = run.blobs.put(encode_png(request.mask.values))
    for attempt in range(item["attempts"] + 1, item["attempts"] + 1 + MAX_ATTEMPTS):
        call = run.ledger.begin_call(item["item_id"], attempt)
        start = time.perf_counter()
        outcome = _edit(adapter, request)
        seconds = time.perf_counter() - start
        last = attempt >= item["attempts"] + MAX_ATTEMPTS
        if isinstance(outcome, Failed) and outcome.retryable and not last:
            run.ledger.end_call(
                call, item["item_id"], {"result": "failed", "reason": outcome.reason}, sent
            )
            wait(min(LONGEST_WAIT, outcome.retry_after or 2.0 ** (attempt - item["attempts"] - 1)))
            continue
        return _settle(run, adapter, item, call, outcome, sent | {"seconds": seconds})
    return False


def _edit(adapter: adapters.contract.Adapter, request: EditRequest) -> EditOutcome:
    try:
        outcome = adapter.edit(request)
    except Exception as error:  # a third party's tool may break the contract; the run goes on
        return Failed(f"the tool's adapter raised {type(error).__name__}: {error}")
    if isinstance(outcome, Edited) and not outcome.picture:
        return Failed("the tool answered with an empty body")
    return outcome


def _settle(
    run: Run,
    adapter: adapters.contract.Adapter,
    item: Mapping[str, Any],
    call: int,
    outcome: EditOutcome,
    row: Mapping[str, Any],
) -> bool:
    changes = dict(row) | {"meta": dict(outcome.meta), "model": adapter.model}
    if isinstance(outcome, Edited):
        changes |= {"state": EDITED, "edited": run.blobs.put(outcome.picture)}
        run.ledger.end_call(call, item["item_id"], {"result": "edited"}, changes)
        return True
    if isinstance(outcome, Refused):
        kind, reason = Outcome.REFUSED, f"{outcome.stage}: {outcome.code} {outcome.text}".strip()
    else:
        kind, reason = Outcome.FAILED, outcome.reason
    changes |= {"state": DONE, "outcome": kind.value, "reason": reason}
    run.ledger.end_call(call, item["item_id"], {"result": kind.value, "reason": reason}, changes)
    return False
