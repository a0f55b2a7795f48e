"""One picture through one tool: what an audit would send, what comes back, and what it says of itself.

The request is the audit's own: a run of one item is begun in a folder that is deleted again, the
portrait is looked at, the item planned and prepared by the same steps. Only then one call is made,
without retries; no picture is stored.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import adapters.contract
from adapters.codec import media_type_of
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError, PictureRejected, did_you_mean
from domain.masks import Mask
from domain.measurements import Outcome
from domain.pictures import Picture
from domain.plan import AuditPlan, PortraitSource, ToolChoice
from domain.portraits import Portrait
from domain.tools import Price
from metrics.difference import ACT, Compared, changed_share, difference
from preprocess.decode import open_picture
from service import audit, calling, runs, secrets
from service.destinations import Destination, destination_of
from service.estimate import price_of
from service.measuring import Instrument
from service.plans import LoadedPlan
from service.portraits import read_manifest

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "portraits"
DEFAULT_PORTRAIT = "images/id02_base.jpg"
"""A rendered head: it shows nobody, so it may be sent anywhere."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A tool and the request that it will get. ``picture_name`` is the file that was taken;
    ``notes`` are sentences on what fitting it to the tool's size had to do."""

    label: str
    choice: ToolChoice
    adapter: adapters.contract.Adapter
    destination: Destination
    price: Price | None
    request: EditRequest
    picture_name: str
    notes: tuple[str, ...]
    instrument: Instrument

    @property
    def spec(self) -> adapters.contract.ToolSpec:
        """The built tool's own."""
        return self.adapter.spec


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call came to. Shares are 0..1 of the pixels that moved by more than four levels in
    any channel; ``outside_drift`` is their mean change in levels 0..255, of all protected pixels.
    They are None without a mask, or with the reason in ``not_compared``. ``face`` says how the
    instrument would have judged the pair; ``flrr`` is landmarks kept, in percent."""

    outcome: str
    seconds: float
    model: str
    stage: str = ""
    code: str = ""
    text: str = ""
    retryable: bool | None = None
    retry_after: float | None = None
    picture: bytes | None = None
    media_type: str = ""
    size: tuple[int, int] | None = None
    unreadable: str = ""
    unchanged: bool | None = None
    inside_changed: float | None = None
    outside_changed: float | None = None
    outside_drift: float | None = None
    not_compared: str = ""
    face: str = ""
    flrr: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


def sample_picture() -> Path:
    """A portrait that comes with a clone of the project. Raises LikenessError where there is none."""
    found = SAMPLES / DEFAULT_PORTRAIT
    if not found.is_file():
        raise LikenessError(
            f"no sample portrait at {found}: name a picture of a face with --picture FILE"
        )
    return found


def plan_of_one(tool: ToolChoice) -> LoadedPlan:
    """A plan around one tool that no file names. Its paths are relative to the working folder."""
    source = PortraitSource(manifest="manifest.csv")
    plan = AuditPlan(name="tool check", portraits=source, tools=[tool], controls=False)
    return LoadedPlan(plan, Path("tool check"), "", Path("manifest.csv"))


def choice_in(loaded: LoadedPlan, label: str) -> ToolChoice:
    """The plan's tool that is called ``label``. Raises LikenessError with the near miss."""
    found = {t.label: t for t in loaded.plan.tools}
    if label not in found:
        hint = did_you_mean(label, found, 0.4)
        raise LikenessError(
            f"{loaded.path}: no tool is called '{label}'{hint} (known: {', '.join(found)})"
        )
    return found[label]


@contextmanager
def ready(
    loaded: LoadedPlan, choice: ToolChoice, picture: Path, task: Task | None = None
) -> Iterator[Ready]:
    """The tool, built with its key, and the audit's request for ``picture``. Raises LikenessError
    where an audit would refuse the settings, or could not send this picture."""
    _check_choice(choice, task)
    wanted = choice.model_copy(update={"tasks": [task] if task else choice.tasks, "warm_up": 0})
    plan = loaded.plan.model_copy(update={
        "tools": [wanted], "controls": False, "perturbations": ["none"], "claims": [],
        "groups": runs.DEFAULT_GROUPS, "portraits": PortraitSource(manifest="manifest.csv"),
    })  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="likeness-check-") as folder:
        manifest = _manifest(Path(folder), picture)
        run = _begin(replace(loaded, plan=plan, manifest=manifest), Path(folder))
        instrument = Instrument(plan.engine, plan.profile, plan.min_score)
        try:
            run = replace(run, portraits=[_portrait(loaded, picture)])
            request, notes = _request(run, instrument)
            adapter = runs.build_tool(run.loaded, wanted)
            try:
                destination = destination_of(adapter)
                yield Ready(
                    choice.label, wanted, adapter, destination,
                    price_of(wanted, adapter.spec, destination), request, picture.name,
                    tuple(notes), instrument,
                )  # fmt: skip
            finally:
                adapter.close()
        finally:
            instrument.close()
            run.ledger.close()


def _check_choice(choice: ToolChoice, task: Task | None) -> None:
    known = adapters.contract.discover()
    if choice.id not in known:
        hint = did_you_mean(choice.id, known, 0.5)
        raise LikenessError(f"unknown tool '{choice.id}'{hint} (known: {', '.join(sorted(known))})")
    spec = known[choice.id][0]
    if task is not None and task not in spec.tasks:
        raise LikenessError(
            f"tool '{choice.id}' does not do '{task}'; it does: {', '.join(spec.tasks)}"
        )


def _begin(loaded: LoadedPlan, folder: Path) -> runs.Run:
    try:
        return runs.begin(loaded, folder / "run", resume=False)
    except LikenessError as error:
        if loaded.text:
            raise
        raise LikenessError(str(error).removeprefix(f"{loaded.path}: ")) from None


def _manifest(folder: Path, picture: Path) -> Path:
    path = folder / "manifest.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("file", "subject_id"), (str(picture.resolve()), "one")])
    return path


def _portrait(loaded: LoadedPlan, picture: Path) -> Portrait:
    """The plan's own row where the picture is one of its portraits: a tool that looks results up by
    their name then finds this one."""
    if loaded.manifest.is_file():
        for row in read_manifest(loaded.manifest):
            if row.path.resolve() == picture.resolve():
                return row
    return Portrait(picture.name, picture.resolve(), "one")


def _request(run: runs.Run, instrument: Instrument) -> tuple[EditRequest, list[str]]:
    [portrait] = run.portraits
    row = audit.inspect(instrument, 0, portrait)
    if not row["accepted"] or not row["face_found"]:
        what = "shows no face to audit" if row["accepted"] else "cannot be used"
        raise LikenessError(f"{portrait.path}: {what}: {row['reason']}")
    run.ledger.add_portraits([row])
    audit.plan_items(run)
    try:
        return calling.prepare(run, run.ledger.items()[0], row)
    except ValueError as error:
        raise LikenessError(f"{portrait.path}: cannot be prepared for the tool: {error}") from None


def call(one: Ready) -> Answer:
    """Make the one call. Whatever goes wrong is in the answer, with keys taken out."""
    outcome, seconds = calling.ask(one.adapter, one.request)
    meta = secrets.scrub(dict(outcome.meta))
    model = str(meta.get("model") or secrets.scrub_text(str(one.adapter.model)))
    plain = Answer(_word(outcome), seconds, model, meta=meta)
    if isinstance(outcome, Refused):
        words = [secrets.scrub_text(w) for w in (outcome.stage, outcome.code, outcome.text)]
        return replace(plain, stage=words[0], code=words[1], text=words[2])
    if isinstance(outcome, Failed):
        return replace(
            plain, text=secrets.scrub_text(outcome.reason), retryable=outcome.retryable,
            retry_after=outcome.retry_after,
        )  # fmt: skip
    return _looked_at(one, replace(plain, picture=outcome.picture))


def _word(outcome: EditOutcome) -> str:
    if isinstance(outcome, Edited):
        return "edited"
    return (Outcome.REFUSED if isinstance(outcome, Refused) else Outcome.FAILED).value


def _looked_at(one: Ready, answer: Answer) -> Answer:
    sent = open_picture(one.request.picture or b"")
    media = media_type_of(answer.picture or b"") or "no kind of picture that is known"
    try:
        back = open_picture(answer.picture or b"")
    except PictureRejected as error:
        return replace(answer, media_type=media, unreadable=error.reason)
    pair = one.instrument.measure_files(
        one.request.picture or b"", answer.picture or b"", one.request.mask
    )
    flrr = pair.figure("flrr")
    return replace(
        _compared(sent, back, one.request.mask, answer),
        media_type=media, size=(back.width, back.height),
        face=pair.outcome.value + (f": {pair.reason}" if pair.reason else ""),
        flrr=flrr.value if flrr else None,
    )  # fmt: skip


def _compared(sent: Picture, back: Picture, mask: Mask | None, answer: Answer) -> Answer:
    if sent.pixels.shape != back.pixels.shape:
        why = f"the answer is {back.width}x{back.height}, not {sent.width}x{sent.height}"
        return replace(answer, unchanged=False, not_compared=why)
    answer = replace(answer, unchanged=bool(np.array_equal(sent.pixels, back.pixels)))
    if mask is None:
        return replace(answer, inside_changed=_changed(sent, back, None))
    act, protect = (
        np.asarray(area, dtype=np.uint8) for area in (mask.values >= ACT, mask.values == 0)
    )
    if not protect.any():
        return replace(answer, inside_changed=_changed(sent, back, act))
    sides = Compared(sent.pixels, back.pixels, act, protect)
    drift, outside = difference(sides, protect)
    return replace(
        answer, inside_changed=_changed(sent, back, act), outside_changed=outside,
        outside_drift=drift,
    )  # fmt: skip


def _changed(sent: Picture, back: Picture, area: npt.NDArray[np.uint8] | None) -> float | None:
    where = np.ones(sent.pixels.shape[:2], np.uint8) if area is None else area
    if not where.any():
        return None
    return changed_share(Compared(sent.pixels, back.pixels, where, None), where)
