"""A tool that answers as it was told to, a clock that runs only when waited on, and a run whose
portraits need no instrument."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from adapters.contract import ToolSpec
from domain.edits import EditOutcome, EditRequest, Task
from preprocess.decode import encode_png
from service import audit, runs
from service.plans import load_plan

SPEC = ToolSpec(id="scripted", name="scripted", tasks=(Task.RETOUCH,))
Answer = EditOutcome | Callable[[EditRequest], EditOutcome]


class Scripted:
    """Gives the answers it was given, one after the other, the last one for ever."""

    model = "scripted 1"

    def __init__(self, *answers: Answer, **facts: Any) -> None:
        self.spec = replace(SPEC, **facts)
        self.answers = list(answers)
        self.calls = 0
        self.closed = 0
        self._lock = threading.Lock()

    def edit(self, request: EditRequest) -> EditOutcome:
        with self._lock:
            answer = self.answers[min(self.calls, len(self.answers) - 1)]
            self.calls += 1
        return answer(request) if callable(answer) else answer

    def close(self) -> None:
        self.closed += 1


class Time:
    """Seconds that pass only by waiting. Safe in threads."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        with self._lock:
            self.waits.append(seconds)
            self.now += max(0.0, seconds)
        return False


def picture(seed: int = 0, width: int = 96, height: int = 128) -> bytes:
    """A PNG of noise."""
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return encode_png(noise)


def write_plan(folder: Path, tools: str, count: int = 1, more: str = "") -> Path:
    """A plan with ``count`` portraits of noise, and its manifest. ``tools`` is a YAML list."""
    rows = ["file,subject_id,gender"]
    for number in range(count):
        (folder / f"p{number}.png").write_bytes(picture(number))
        rows.append(f"p{number}.png,s{number},{('female', 'male')[number % 2]}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    plan = folder / "plan.yaml"
    plan.write_text(
        f"name: scripted\nportraits: {{manifest: manifest.csv}}\ntools: {tools}\n"
        f"controls: false\n{more}"
    )
    return plan


def begin(plan: Path, resume: bool = False, **options: Any) -> runs.Run:
    """The run of ``plan`` with its items planned, every portrait said to hold a face."""
    run = runs.begin(load_plan(plan), plan.parent / "out", resume, **options)
    box = [20.0, 30.0, 56.0, 70.0]
    angle = np.linspace(0, 2 * np.pi, 68)
    points = np.stack([48 + 25 * np.cos(angle), 65 + 30 * np.sin(angle)], axis=1).tolist()
    rows = [
        {
            "portrait_id": p.portrait_id, "seq": seq, "subject_id": p.subject_id,
            "attributes": dict(p.attributes), "accepted": 1, "face_found": 1, "reason": None,
            "facts": {}, "face": {"box": box, "points": points}, "warnings": [], "sha256": "",
        }
        for seq, p in audit.unseen(run)
    ]  # fmt: skip
    run.ledger.add_portraits(rows)
    audit.plan_items(run)
    return run
