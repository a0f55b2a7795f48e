"""Are verdicts right when the figures come from real pictures? Audits of the 102 London portraits.

Run by ``make validity``: ``python docs/validity/pictures_bench.py [AUDITS [FACES]]`` (default 1000
audits a scenario and all 102 faces, about six minutes on one core). Each face is disturbed, edited
and measured once by the product's instrument. Audits are then drawn from those figures: 41 people
a group, with replacement; where the truth must be "no gap", group labels are dealt at random, so
that nothing about the faces can make one. Prints one line a figure with its target and exits 1
when one is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))
from service import settings  # noqa: E402

settings.pin_threads()
import math  # noqa: E402

import cv2  # noqa: E402
import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import pandas as pd  # noqa: E402

from docs.validity.harness.london import SIDE, portraits  # noqa: E402
from docs.validity.harness.smoothed import (  # noqa: E402
    COPY,
    DISTURBED,
    EVERYWHERE,
    FIGURES,
    IDENTITY,
    PLANTED,
    SHARE,
    STRONG,
    WEAK,
    Floats,
    measure,
)
from docs.validity.harness.targets import Target, finish, report  # noqa: E402
from domain.verdicts import Verdict, VerdictKind  # noqa: E402
from metrics.statistics import ClaimSpec, analyse, net_of_instrument  # noqa: E402
from preprocess import models  # noqa: E402
from service.native import silence_native_chatter  # noqa: E402

Labels = npt.NDArray[np.str_]

EACH = 41
STRUCK = {"a": 0.73, "b": 0.44}
"""Share of each group's pictures that the smoothing strikes in the audits of rates."""
ICC = 0.6
"""Share of that variance that lies between people."""
MARGIN = 0.25
"""The default margin of detail_change, log2."""
EVENT = ClaimSpec(
    metric="detail_change", region="lower_face", event="below", threshold=-0.3, attribute="group"
)
"""The harm as a yes or no: the planted weak smoothing measures as -0.7, a benign copy as 0."""


def claims() -> list[ClaimSpec]:
    """The five figures, each named: corrected together, and no difference is too small to count."""
    return [ClaimSpec(metric=m, region=r, attribute="group") for m, r in FIGURES]


# Audits --------------------------------------------------------------------------------------


def rows(values: Floats, labels: Labels, tool: str = "tool") -> pd.DataFrame:
    """``values`` (people, disturbances, figures) as the rows of one tool."""
    people, disturbed, figures = values.shape
    flat = values.ravel()
    count = disturbed * figures
    metrics, regions = zip(*FIGURES, strict=True)
    return pd.DataFrame(
        {
            "subject_id": np.repeat([f"s{i}" for i in range(people)], count),
            "tool": tool,
            "perturbation": np.tile(np.repeat(DISTURBED[:disturbed], figures), people),
            "metric": np.tile(metrics, people * disturbed),
            "region": np.tile(regions, people * disturbed),
            "value": flat,
            "status": np.where(np.isfinite(flat), "measured", "not_measurable"),
            "group": np.repeat(labels, count),
        }
    )


def audit(
    values: Floats, labels: Labels, seed: int, asked: Sequence[ClaimSpec] = ()
) -> list[Verdict]:
    """The claims' verdicts at alpha 5 %; by default those of the five figures."""
    named = asked or claims()
    table = rows(values, labels)
    return analyse(table, attributes=["group"], claims=named, seed=seed, explore=False)


def at_random(rng: np.random.Generator, faces: int) -> tuple[npt.NDArray[np.int64], Labels]:
    """82 faces and group labels dealt to them: first half "a"."""
    return rng.integers(0, faces, 2 * EACH), np.repeat(["a", "b"], EACH)


def declared(rng: np.random.Generator, genders: Labels) -> tuple[npt.NDArray[np.int64], Labels]:
    """41 men ("a") and 41 women ("b")."""
    men, women = np.flatnonzero(genders == "male"), np.flatnonzero(genders == "female")
    chosen = [rng.choice(men, EACH), rng.choice(women, EACH)]
    return np.concatenate(chosen), np.repeat(["a", "b"], EACH)


def any_disparity(verdicts: Sequence[Verdict]) -> bool:
    """A false alarm, where there is no gap."""
    return any(v.verdict is VerdictKind.DISPARITY for v in verdicts)


def found_in_a(verdicts: Sequence[Verdict]) -> bool:
    """The planted claim is a disparity, and group a is the one that lost detail."""
    for v in verdicts:
        if (v.metric, v.details.get("region")) == PLANTED:
            sign = 1 if v.groups[0] == "a" else -1
            return v.verdict is VerdictKind.DISPARITY and sign * (v.effect or 0) < 0
    return False


class Bench:
    """Draws audits from measured figures."""

    def __init__(self, values: Floats, genders: Labels, audits: int) -> None:
        self.values, self.genders, self.audits = values, genders, audits
        self.rng = np.random.default_rng(20_240_202)

    def share(
        self,
        harmed: int,
        others: int,
        hit: Callable[[Sequence[Verdict]], bool],
        repeats: int = 1,
        real: bool = False,
    ) -> float:
        """Share of audits with a ``hit``: edit ``harmed`` on group a, ``others`` on group b."""
        hits = 0
        for seed in range(self.audits):
            if real:
                who, labels = declared(self.rng, self.genders)
            else:
                who, labels = at_random(self.rng, len(self.values))
            edits = np.where(labels == "a", harmed, others)
            hits += hit(audit(self.values[who, edits, :repeats], labels, seed))
        return 100 * hits / self.audits

    def struck(self, repeats: int) -> float:
        """Share of audits that find 73 % v 44 % of pictures smoothed, each picture by chance."""
        hits, weight = 0, (1 - ICC) / ICC
        each = np.repeat([*STRUCK.values()], EACH)
        for seed in range(self.audits):
            who, labels = at_random(self.rng, len(self.values))
            own = self.rng.beta(each * weight, (1 - each) * weight)
            if repeats == 1:
                own = each
            edits = np.where(self.rng.random((len(who), repeats)) < own[:, None], WEAK, COPY)
            values = self.values[who[:, None], edits, np.arange(repeats)]
            hits += any_disparity(audit(values, labels, seed, [EVENT]))
        return 100 * hits / self.audits

    def alarm(self, text: str, edit: int, repeats: int) -> Target:
        """False alarms with labels dealt at random; two standard errors of the count allowed."""
        slack = 200 * math.sqrt(0.05 * 0.95 / self.audits)
        value = self.share(edit, edit, any_disparity, repeats)
        return Target(f"{text}: % of audits with a disparity", value, high=round(5 + slack, 2))

    def targets(self) -> Iterator[Target]:
        """Everything that has one."""
        yield from sizes(self.values)
        for repeats in (1, len(DISTURBED)):
            each = f"{repeats} picture{'s' if repeats > 1 else ''} each"
            for text, a, b, real in (
                ("strong on a random half", STRONG, COPY, False),
                ("weak on a random half", WEAK, COPY, False),
                ("weak on all, strong on a random half", STRONG, WEAK, False),
                ("weak on declared men", WEAK, COPY, True),
            ):
                value = self.share(a, b, found_in_a, repeats, real)
                yield Target(f"smoothing, {text}, {each}: % found", value, low=80)
            least = 80 if repeats > 1 else 74  # one yes or no a person: see docs/validity.md
            text = f"smoothing strikes 73 % v 44 %, {each}: % found"
            yield Target(text, self.struck(repeats), low=least)
            yield self.alarm(f"weak smoothing of all, {each}", WEAK, repeats)
            yield self.alarm(f"strong smoothing of all, {each}", STRONG, repeats)
            yield self.alarm(f"benign copy, {each}", COPY, repeats)
        yield from self.gender_gaps()
        identical = self.share(IDENTITY, IDENTITY, any_disparity, real=True)
        yield Target("identical pictures, declared gender: % with a disparity", identical, high=0)

    def gender_gaps(self) -> Iterator[Target]:
        """One smoothing for all: what the figure says of men less women, by disturbance.

        The same share of everyone's lower-face energy was taken, so a gap beyond the margin would
        be the instrument's own.
        """
        texts = {WEAK: "lower face smoothed", EVERYWHERE: "whole face smoothed"}
        for edit, text in texts.items():
            men, women = (self.values[self.genders == g, edit, :, 0] for g in ("male", "female"))
            for i, name in enumerate(DISTURBED):
                gap = float(np.nanmean(men[:, i]) - np.nanmean(women[:, i]))
                yield Target(f"{text}, all, '{name}': men - women, log2", gap, -MARGIN, MARGIN)
        for edit, text in texts.items():
            change = float(np.nanmean(self.values[:, edit, 1, 1]))
            yield Target(f"{text}, 'noise': whole-face change, a loss", change, high=0.0)

    def by_gender(self) -> Iterator[str]:
        """What an audit of all faces says of declared gender when everyone is treated alike."""
        labels = np.where(self.genders == "male", "men", "women")
        for repeats in (1, len(DISTURBED)):
            copies = rows(self.values[:, COPY, :repeats], labels, "copy")
            for name, edit in (("benign copy", COPY), ("weak, all", WEAK), ("strong, all", STRONG)):
                text = f"{name}, {repeats} each"
                ours = rows(self.values[:, edit, :repeats], labels)
                raw = analyse(ours, attributes=["group"], claims=claims(), explore=False)
                yield from (line(text, "raw", v) for v in raw)
                if edit == COPY:
                    continue
                both = pd.concat([ours, copies])
                net = net_of_instrument(both, control="copy", attributes=["group"], claims=claims())
                yield from (line(text, "net", v) for v in net)


def sizes(values: Floats) -> Iterator[Target]:
    """What the edits measure as; log2 of the energy left, -0.74 and -2.32, is what was planted."""
    for edit, expected in ((WEAK, math.log2(0.6)), (STRONG, math.log2(0.2))):
        seen = float(np.nanmean(values[:, edit, 0, 0]))
        text = f"lower-face detail_change, {100 * SHARE[edit]:.0f} % of the energy taken"
        yield Target(text, seen, expected - 0.25, expected + 0.25)
    off = np.abs(values[:, IDENTITY] - [0.0, 0.0, 100.0, 0.0, 100.0])
    yield Target("identical pictures: worst figure off perfect", float(np.nanmax(off)), high=0)
    lost = float(np.isnan(values).any(axis=-1).mean())
    yield Target("share of pairs with a figure missing", lost, high=0.02)


def line(text: str, kind: str, v: Verdict) -> str:
    """One finding of the whole sample."""
    low, high = v.interval or (math.nan, math.nan)
    where = v.details.get("region")
    return (
        f"   {text:19} {kind:3} {v.metric}/{where}: {' - '.join(v.groups)} {v.effect or 0:+.3f} "
        f"({low:+.3f} to {high:+.3f}), margin {v.margin or 0:g}: {v.verdict.value}"
    )


def main() -> None:
    """All of it."""
    cv2.setNumThreads(1)
    silence_native_chatter()
    models.configure(settings.load().models)
    audits = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    shown = portraits(int(sys.argv[2]) if len(sys.argv) > 2 else 102)
    genders = np.array([gender for _, gender in shown])
    print(f"{len(shown)} London portraits at {SIDE} px, {audits} audits a scenario", flush=True)
    bench = Bench(measure([picture for picture, _ in shown]), genders, audits)
    missed = report(bench.targets())
    print("Declared gender, everyone treated alike, all faces (shown, no target):")
    for text in bench.by_gender():
        print(text)
    finish(missed)


if __name__ == "__main__":
    main()
