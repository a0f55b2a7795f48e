"""The child of the gate's pool: one process, its models loaded once, one pair after the other.

What passes through the pipe: a JSON head, then each picture that was given as bytes, as it is; back
come a JSON head and the answer as it goes to the client. Nothing a stranger sent is unpickled.
"""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import LikenessError, PictureRejected
from domain.measurements import Outcome, PairResult
from service import settings
from service.gate import UNREADABLE, ExitCode, exit_code

if TYPE_CHECKING:
    from domain.masks import Mask
    from preprocess.limits import Limits
    from service.measuring import Instrument

Source = Path | bytes


@dataclass(frozen=True, slots=True)
class Pair:
    """What to measure and how. A path is read by the measuring process itself; bytes are a file's.
    ``mask`` is a black-and-white picture of the original's size, white where the tool was to edit."""

    original: Source
    edited: Source
    mask: Source | None = None
    engine: str = "mediapipe"
    profile: str = "document"
    min_score: float = 85.0

    @property
    def held(self) -> int:
        """Bytes of pictures in memory while the pair waits."""
        return sum(len(s) for s in self.sources() if isinstance(s, bytes))

    def sources(self) -> list[Source]:
        """The pictures in the order in which they go through the pipe."""
        return [self.original, self.edited, *([] if self.mask is None else [self.mask])]


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """How one pair ended.

    ``body`` is the JSON of ``service.answers.of_pair``, b"" where nothing was measured. Where
    ``code`` is COULD_NOT_RUN, ``cause`` is "unreadable", "died", "too_slow", "not_ready" or
    "closing", ``part`` the picture it was about ("original", "edited", "mask" or "") and ``reason``
    a sentence.
    """

    code: ExitCode
    body: bytes = b""
    reason: str = ""
    cause: str = ""
    part: str = ""
    seconds: float = 0.0

    def answer(self) -> dict[str, Any]:
        """The body as a dict; empty where nothing was measured."""
        return dict(json.loads(self.body)) if self.body else {}


def send(link: Connection, pair: Pair) -> None:
    """Hand a pair over."""
    sources = pair.sources()
    head = {
        "paths": [str(s) if isinstance(s, Path) else None for s in sources],
        "engine": pair.engine,
        "profile": pair.profile,
        "min_score": pair.min_score,
    }
    link.send_bytes(json.dumps(head).encode())
    for source in sources:
        if isinstance(source, bytes):
            link.send_bytes(source)


def receive(link: Connection) -> GateAnswer:
    """Take an answer; blocks. EOFError or OSError when the process has gone."""
    head = json.loads(link.recv_bytes())
    return GateAnswer(**{**head, "code": ExitCode(head["code"])}, body=link.recv_bytes())


def serve(link: Connection, models_dir: Path, limits: Limits) -> None:
    """The life of the process: say that it is ready, answer pairs, end when the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then closes us
    try:
        try:
            _prepare(models_dir)
        except LikenessError as error:
            _reply(link, GateAnswer(ExitCode.COULD_NOT_RUN, reason=str(error), cause="not_ready"))
            return
        _reply(link, GateAnswer(ExitCode.PASS))
        while True:
            head = json.loads(link.recv_bytes())
            sources = [link.recv_bytes() if p is None else Path(p) for p in head["paths"]]
            _reply(link, _answer(head, sources, limits))
            del sources
    except (EOFError, OSError):  # the parent closed the pipe, or is gone
        return


def _reply(link: Connection, answer: GateAnswer) -> None:
    head = asdict(answer)
    body = head.pop("body")
    link.send_bytes(json.dumps(head).encode())
    link.send_bytes(body)


def _prepare(models_dir: Path) -> None:
    from service.native import keep_freed_memory, silence_native_chatter

    settings.pin_threads()
    silence_native_chatter()
    keep_freed_memory()
    import cv2
    import numpy as np

    from preprocess import models
    from preprocess.decode import encode_png

    cv2.setNumThreads(1)
    models.configure(models_dir)
    # the engine loads its models at its first picture; a caller should not wait for that
    grey = encode_png(np.full((256, 256, 3), 128, np.uint8))
    _instrument("mediapipe").measure_files(grey, grey)


@cache
def _instrument(engine: str) -> Instrument:
    from service.measuring import Instrument

    return Instrument(engine)


def _answer(head: dict[str, Any], sources: list[Source], limits: Limits) -> GateAnswer:
    from service.answers import of_pair

    try:
        mask = _mask(sources[2], limits) if len(sources) == 3 else None
        instrument = _instrument(head["engine"])
        instrument.profile, instrument.min_score = head["profile"], head["min_score"]
        result = instrument.measure_files(sources[0], sources[1], mask, limits=limits)
        _check_mask(mask, result)
    except PictureRejected as error:
        return _cannot("unreadable", "mask", error.reason)
    except LikenessError as error:
        return _cannot("not_ready", "", str(error))
    code = exit_code(result)
    body = json.dumps(of_pair(result)).encode()
    if result.outcome in UNREADABLE:
        part = "original" if result.outcome is Outcome.ORIGINAL_UNREADABLE else "edited"
        reason = str(result.reason).split(": ", 1)[1]
        return GateAnswer(code, body, reason, "unreadable", part)
    return GateAnswer(code, body)


def _cannot(cause: str, part: str, reason: str) -> GateAnswer:
    return GateAnswer(ExitCode.COULD_NOT_RUN, b"", reason, cause, part)


def _mask(source: Source, limits: Limits) -> Mask:
    import numpy as np

    from domain.masks import Mask, MaskKind
    from preprocess.decode import open_picture

    picture = open_picture(source, limits)
    if not picture.facts.monochrome:
        raise PictureRejected("not a black-and-white picture", "bad_mask")
    values = np.where(picture.pixels[:, :, 0] >= 128, 255, 0).astype(np.uint8)
    return Mask(values, MaskKind.FACE)


def _check_mask(mask: Mask | None, result: PairResult) -> None:
    size = result.evidence.get("original_size")
    if mask is None or size is None:
        return
    height, width = mask.values.shape
    if [width, height] != size:
        reason = f"{width} x {height} pixels where the original has {size[0]} x {size[1]}"
        raise PictureRejected(reason, "bad_mask")
