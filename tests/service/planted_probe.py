"""A probe with a known answer, for tests of what runs probes: asks about people of two arms, and says
how often each was hired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from probes.analysis.rates import newcombe
from probes.calls import Call, Message, Reading, Reply, Sampling, Status
from probes.contract import ProbeSpec, Settings, read_settings
from probes.results import Figure, ProbeResult, Tally
from probes.statuses import status_of

ARMS = ("men", "women")


class PlantedSettings(Settings):
    repeats: int = Field(5, ge=1, le=500)
    jobs: int = 2
    fails: bool = False


class Planted:
    """The probe's module and the probe in one."""

    def __init__(self, probe_id: str = "planted", needs: tuple[str, ...] = ()) -> None:
        self.SPEC = ProbeSpec(probe_id, "Hiring", "Who is hired?", ("en", "de"), "-", needs)
        self.spec = self.SPEC

    def build(self, settings: Mapping[str, Any], folder: Path) -> Planted:
        made = Planted(self.spec.id, self.spec.needs)
        made.settings = read_settings(PlantedSettings, settings, self.spec.id)
        return made

    settings = PlantedSettings()

    def calls(self, language: str, seed: int) -> Sequence[Call]:
        return [
            Call(
                self.spec.id,
                f"job{job}",
                arm,
                repeat,
                language,
                (Message("user", f"hire {arm} for job{job} ({repeat})?"),),
                sampling=Sampling(max_tokens=40),
                facts={"job": f"job{job}"},
            )
            for job in range(self.settings.jobs)
            for arm in ARMS
            for repeat in range(self.settings.repeats)
        ]

    def follow_up(self, reading: Reading, seed: int) -> Call | None:
        if reading.status is not Status.REFUSED or reading.call.stage != "main":
            return None
        call = reading.call
        return replace(
            call,
            stage="fallback",
            messages=(Message("user", f"again: hire {call.arm} for {call.item} ({call.repeat})?"),),
        )

    def read(self, call: Call, reply: Reply) -> Reading:
        status, reason = status_of(reply, call.language)
        if status is not Status.ANSWERED:
            return Reading(call, status, reason=reason, model=reply.model)
        label = reply.text.strip().lower()
        if label not in ("yes", "no"):
            return Reading(call, Status.OUT_OF_CHOICE, reason="neither yes nor no")
        return Reading(call, status, label, float(label == "yes"), model=reply.model)

    def score(self, readings: Sequence[Reading], language: str, seed: int) -> ProbeResult:
        if self.settings.fails:
            raise ZeroDivisionError("no figures\ntoday")
        hired = {
            a: [r.value for r in readings if r.call.arm == a and r.value is not None] for a in ARMS
        }
        (men, women), (n_men, n_women) = (
            [sum(hired[a]) for a in ARMS],
            [len(hired[a]) for a in ARMS],
        )
        index = Figure("index", "Hired", None, reason="no answers")
        if n_men and n_women:
            interval = newcombe(int(men), n_men, int(women), n_women)
            value = men / n_men - women / n_women
            index = Figure("index", "Hired", value, interval, n_men + n_women)
        counts = {a: Counter(r.status for r in readings if r.call.arm == a) for a in ARMS}
        return ProbeResult(
            self.spec.id, self.spec.title, self.spec.question, language, ARMS, index,
            ("in favour of men", "in favour of women"),
            tuple(Tally(a, dict(counts[a])) for a in ARMS),
        )  # fmt: skip


def known(*modules: Planted) -> dict[str, tuple[ProbeSpec, Any]]:
    """Probes by name, as ``discover`` gives them."""
    return {m.SPEC.id: (m.SPEC, m) for m in modules or (Planted(),)}
