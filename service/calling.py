"""Step 4 of an audit: one item's request, and the call of the tool, on record before it is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

import adapters.contract
from adapters.guard import one_line
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
from service import secrets
from service.pacing import Pacing
from service.runs import Run, build_tool
from service.store.ledger import CALLING, DONE, EDITED
from service.store.tables import WARM_UP

MOST_DEATHS = 3
"""Times that the process may die while it calls a tool on one item, before the item is given up."""
LONGEST_REASON = 500
SHORTEST_ID = 6
"""Characters below which a request id would be found in ordinary words."""
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


class Called(Enum):
    """What a call of a tool came to, for the one who made it."""

    MEASURABLE = "there is a picture to measure"
    FINISHED = "the item ended without one"
    INTERRUPTED = "the run is being stopped; the item waits for --resume"


def try_build(run: Run, label: str) -> tuple[adapters.contract.Adapter | None, str]:
    """The tool, or None with the reason why it cannot be started."""
    try:
        return build_tool(run.loaded, run.tools[label]), ""
    except LikenessError as error:
        return None, secrets.hide_keys(str(error))
    except Exception as error:  # a third party's tool: its fault is its items' outcome
        return None, secrets.scrub_text(one_line(f"{type(error).__name__}: {error}"))


def give_up(run: Run, item: Mapping[str, Any], reason: str) -> None:
    """End an item as failed, without figures."""
    row = {"outcome": Outcome.FAILED.value, "reason": secrets.hide_keys(reason)}
    run.ledger.finish_item(item["item_id"], row, [])


def call_tool(
    run: Run,
    adapter: adapters.contract.Adapter,
    item: Mapping[str, Any],
    portrait: Mapping[str, Any],
    pacing: Pacing | None = None,
) -> Called:
    """Call the tool on one item when ``pacing`` lets it, again where that is right, and record each
    call. An item that could not be prepared or sent, was refused or failed is finished here, with
    its reason. Safe in threads, for an adapter that is."""
    pace = pacing or Pacing()
    if item["state"] == CALLING and (deaths := run.ledger.cut_off(item["item_id"])) >= MOST_DEATHS:
        give_up(run, item, f"the process died {deaths} times while calling this tool")
        return Called.FINISHED
    if why := pace.why_not():
        give_up(run, item, why)
        return Called.FINISHED
    try:
        request, notes = prepare(run, item, portrait)
    except (LikenessError, OSError, ValueError) as error:
        give_up(run, item, f"could not be prepared for the tool: {error}")
        return Called.FINISHED
    pictures = {"original": request.picture or b""}
    if request.mask is not None:
        pictures["mask"] = encode_png(request.mask.values)
    sent = {name: run.blobs.put(data) for name, data in pictures.items()}
    called = _with_retries(run, adapter, item, request, {**sent, "warnings": notes}, pace)
    for data in pictures.values():  # named only now: a deletion during the call may have taken them
        run.blobs.put(data)
    return called


def _with_retries(
    run: Run,
    adapter: adapters.contract.Adapter,
    item: Mapping[str, Any],
    request: EditRequest,
    sent: Mapping[str, Any],
    pace: Pacing,
) -> Called:
    last = ""
    tries = 0
    while pace.enter():
        tries += 1
        call = run.ledger.begin_call(item["item_id"], item["attempts"] + tries)
        outcome, seconds = ask(adapter, request)
        if isinstance(outcome, Failed):
            pace.heed(outcome)
            if _worth_another(outcome, tries, pace):
                row = _call_row(adapter, outcome, seconds)
                run.ledger.end_call(call, item["item_id"], row, sent)
                last = f"{row['reason']}; "
                if pace.rest(outcome, tries):
                    continue
                return Called.INTERRUPTED
            if too_long := pace.too_long(outcome):
                outcome = Failed(f"{too_long}: {outcome.reason}", meta=outcome.meta)
        return _settle(run, item, call, outcome, _call_row(adapter, outcome, seconds), sent)
    if why := pace.why_not():
        give_up(run, item, last + why)
        return Called.FINISHED
    return Called.INTERRUPTED


def _worth_another(failure: Failed, tries: int, pace: Pacing) -> bool:
    return (
        failure.retryable
        and tries < pace.max_attempts
        and failure.meta.get("stop") is not True
        and not pace.too_long(failure)
    )


def warm_up(
    run: Run,
    adapter: adapters.contract.Adapter,
    item: Mapping[str, Any],
    portrait: Mapping[str, Any],
    pacing: Pacing,
    say: Callable[[str], object],
) -> None:
    """Make the plan's warm-up calls with ``item``'s request and throw the results away. A failing
    one is told, and no more: whether the tool works is for the items to show."""
    count = run.tools[item["tool"]].warm_up
    try:
        request, _ = prepare(run, item, portrait) if count else (None, [])
    except (LikenessError, OSError, ValueError):
        return  # the item itself will say so
    for number in range(1, count + 1):
        if request is None or not pacing.enter():
            return
        call = run.ledger.begin_call(item["item_id"], number, WARM_UP)
        outcome, seconds = ask(adapter, request)
        row = _call_row(adapter, outcome, seconds)
        run.ledger.end_call(call, item["item_id"], row, {})
        if isinstance(outcome, Failed):
            pacing.heed(outcome)
        if not isinstance(outcome, Edited):
            say(f"{item['tool']}: warm-up {number} of {count} {row['result']}: {row['reason']}")


def ask(adapter: adapters.contract.Adapter, request: EditRequest) -> tuple[EditOutcome, float]:
    """One call: what came of it, and the seconds it took. Never raises."""
    start = time.perf_counter()
    try:
        outcome = _checked(adapter.edit(request))
    except Exception as error:  # a third party's tool may break the contract; the run goes on
        outcome = Failed(f"the tool's adapter raised {type(error).__name__}: {error}")
    return outcome, time.perf_counter() - start


def _checked(outcome: object) -> EditOutcome:
    if not isinstance(outcome, Edited | Refused | Failed):
        return Failed(f"the tool's adapter answered with {type(outcome).__name__}")
    if isinstance(outcome, Edited) and not outcome.picture:
        return Failed("the tool answered with an empty body", meta=outcome.meta)
    if isinstance(outcome, Edited) and secrets.holds_secret(outcome.picture):
        meta = {**outcome.meta, "maybe_billed": True}
        return Failed("the picture that came back holds the key, so it was not kept", meta=meta)
    return outcome


def _call_row(
    adapter: adapters.contract.Adapter, outcome: EditOutcome, seconds: float
) -> dict[str, Any]:
    """A call as the ledger keeps it: nothing of it may hold a key or a picture."""
    meta = secrets.scrub(dict(outcome.meta))
    row: dict[str, Any] = {
        "result": "edited",
        "reason": None,
        "seconds": seconds,
        "model": str(meta.get("model") or secrets.scrub_text(str(adapter.model))),
        "request_id": str(meta.get("request_id") or "") or None,
        "meta": meta,
    }
    if isinstance(outcome, Edited):
        return row
    if isinstance(outcome, Refused):
        kind, reason = Outcome.REFUSED, f"{outcome.stage}: {outcome.code} {outcome.text}".strip()
    else:
        kind, reason = Outcome.FAILED, outcome.reason
    if row[
        "request_id"
    ]:  # it stands beside; in a reason it would make each refusal one of its kind
        reason = reason.replace(row["request_id"], "[request id]")
    said = one_line(secrets.scrub_text(reason), LONGEST_REASON)
    return row | {"result": kind.value, "reason": said}


def _settle(
    run: Run,
    item: Mapping[str, Any],
    call: int,
    outcome: EditOutcome,
    row: Mapping[str, Any],
    sent: Mapping[str, Any],
) -> Called:
    """Record the call that decided the item, together with what the item became by it."""
    changes = {**sent, **{name: row[name] for name in ("meta", "model", "seconds")}}
    if isinstance(outcome, Edited):
        changes |= {"state": EDITED, "edited": run.blobs.put(outcome.picture)}
        if note := row["meta"].get("note"):  # what the adapter saw amiss is for people to read
            changes["warnings"] = [*sent["warnings"], one_line(str(note), LONGEST_REASON)]
        run.ledger.end_call(call, item["item_id"], row, changes)
        run.blobs.put(outcome.picture)  # likewise
        return Called.MEASURABLE
    changes |= {"state": DONE, "outcome": row["result"], "reason": row["reason"]}
    run.ledger.end_call(call, item["item_id"], row, changes)
    return Called.FINISHED
