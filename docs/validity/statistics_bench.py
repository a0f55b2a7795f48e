"""Do the verdicts keep their promises? Simulated audits whose truth is known (no pictures).

Run by ``make validity``: ``python docs/validity/statistics_bench.py [AUDITS]`` (default 1000 a
scenario, about three minutes on one core). Each audit has clustered repeats, skewed figures, ties
and missing values. Prints one line a promise and exits 1 when one is broken.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from domain.verdicts import Verdict, VerdictKind
from metrics.statistics import ClaimSpec, analyse

Floats = npt.NDArray[np.float64]

RATE = ClaimSpec(metric="flrr", event="below", threshold=95, attribute="group", margin=0.10)
FIGURE = ClaimSpec(metric="delta_e00", attribute="group", margin=1.0)
DETAIL = ClaimSpec(metric="detail_change", attribute="group", margin=0.2)
MOST_SECONDS = 10.0
ICC = 0.6
"""Share of the variance that lies between subjects."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What was counted, out of how many, and the bounds it must keep."""

    text: str
    hits: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Hits out of all, 0..1."""
        return self.hits / self.of

    @property
    def kept(self) -> bool:
        """Within the bounds, allowing two standard errors of the simulation itself."""
        slack = 2 * (max(self.share * (1 - self.share), 0.01) / self.of) ** 0.5
        return bool(self.low - slack <= self.share <= self.high + slack)


def rates(rng: np.random.Generator, rate: float, n: int, k: int, icc: float = ICC) -> Floats:
    """(n, k) FLRR-like figures with ties: below 95 with chance ``rate``, clustered by subject."""
    weight = (1 - icc) / icc
    own = rng.beta(rate * weight, (1 - rate) * weight, n) if icc < 1 else rng.random(n) < rate
    below = rng.random((n, k)) < np.asarray(own, dtype=float)[:, None]
    lost = 1 + rng.geometric(0.3, (n, k)).clip(max=60)
    return np.where(below, 100 * (1 - (3 + lost) / 68), 100 * (1 - (lost % 4) / 68))


def figures(rng: np.random.Generator, mean: float, n: int, k: int) -> Floats:
    """(n, k) skewed figures (log-normal between subjects), true mean ``mean``, variance about 1."""
    s = 0.6
    scale = (ICC / ((np.exp(s * s) - 1) * np.exp(s * s))) ** 0.5
    own = scale * (rng.lognormal(0, s, n) - np.exp(s * s / 2))
    return np.asarray(mean + own[:, None] + rng.normal(0, (1 - ICC) ** 0.5, (n, k)))


def table(
    rng: np.random.Generator,
    parts: dict[str, dict[str, Floats]],
    missing: float = 0.05,
    tool: str = "t",
) -> pd.DataFrame:
    """Rows of one tool: ``parts`` maps metric to group to (subjects, repeats)."""
    frames = []
    for metric, groups in parts.items():
        for group, values in groups.items():
            n, k = values.shape
            gone = rng.random(n * k) < missing
            frames.append(
                pd.DataFrame(
                    {
                        "subject_id": np.repeat([f"{group}{i}" for i in range(n)], k),
                        "tool": tool,
                        "perturbation": np.tile([f"p{j}" for j in range(k)], n),
                        "metric": metric,
                        "value": np.where(gone, np.nan, values.ravel()),
                        "status": np.where(gone, "not_measurable", "measured"),
                        "group": group,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def verdicts(rows: pd.DataFrame, claims: Sequence[ClaimSpec], seed: int) -> list[Verdict]:
    """The named claims' verdicts at alpha 5 %."""
    return analyse(rows, attributes=["group"], claims=claims, seed=seed, explore=False)


def _no_gap(rng: np.random.Generator, seed: int, k: int, sizes: dict[str, int]) -> list[Verdict]:
    """Two tools, three claims, nobody harmed more than anybody else."""
    tools = [
        table(
            rng,
            {
                "flrr": {g: rates(rng, 0.4, n, k) for g, n in sizes.items()},
                "delta_e00": {g: figures(rng, 4.0, n, k) for g, n in sizes.items()},
                "detail_change": {g: figures(rng, -1.0, n, k) for g, n in sizes.items()},
            },
            tool=tool,
        )
        for tool in ("t", "u")
    ]
    return verdicts(pd.concat(tools), [RATE, FIGURE, DETAIL], seed)


def _gap(rng: np.random.Generator, seed: int, k: int, icc: float, n: int = 41) -> Verdict:
    parts = {"flrr": {"a": rates(rng, 0.73, n, k, icc), "b": rates(rng, 0.44, n, k, icc)}}
    return verdicts(table(rng, parts, 0.0 if k == 1 else 0.05), [RATE], seed)[0]


def _beyond(rng: np.random.Generator, seed: int) -> list[Verdict]:
    """Gaps that lie exactly on their margins: the hardest case for a false "equivalent"."""
    parts = {
        "flrr": {"a": rates(rng, 0.35, 150, 3), "b": rates(rng, 0.25, 150, 3)},
        "delta_e00": {"a": figures(rng, 5.0, 40, 3), "b": figures(rng, 4.0, 40, 3)},
    }
    return verdicts(table(rng, parts), [RATE, FIGURE], seed)


def _covered(v: Verdict, truth: float) -> bool:
    return v.interval is not None and v.interval[0] <= truth <= v.interval[1]


def _harmful(found: Sequence[Verdict]) -> bool:
    return any(v.verdict is VerdictKind.DISPARITY for v in found)


def promises(audits: int, say: Callable[[str], None] = lambda _: None) -> list[Promise]:
    """Simulate ``audits`` of each scenario and hold the verdicts against the truth."""
    rng = np.random.default_rng(20_240_101)
    kept: list[Promise] = []

    def add(text: str, hits: Sequence[bool], low: float, high: float) -> None:
        kept.append(Promise(text, sum(hits), len(hits), low, high))
        p = kept[-1]
        say(
            f"{'ok ' if p.kept else 'BAD'} {100 * p.share:5.1f} % ({low:.0%} to {high:.0%})  {text}"
        )

    two, three = {"a": 41, "b": 41}, {"a": 61, "b": 19, "c": 13}
    runs = [_no_gap(rng, i, 3, two) for i in range(audits)]
    add(
        "false alarm in an audit: no gap, 2 tools x 3 claims, uniform harm, 3 repeats",
        [_harmful(r) for r in runs],
        0,
        0.05,
    )
    figure = [v for r in runs for v in r if v.metric == "delta_e00"]
    rate = [v for r in runs for v in r if v.metric == "flrr"]
    add(
        "95 % interval of a difference of skewed figures covers it",
        [_covered(v, 0) for v in figure],
        0.93,
        0.97,
    )
    add(
        "95 % interval of a difference of clustered rates covers it",
        [_covered(v, 0) for v in rate],
        0.93,
        0.97,
    )
    group = [e for v in figure for e in v.estimates if e.low is not None and e.high is not None]
    add(
        "95 % interval of a group's mean covers it",
        [(e.low or 0) <= 4.0 <= (e.high or 0) for e in group],
        0.93,
        0.97,
    )
    once = [_no_gap(rng, i, 1, two) for i in range(audits // 2)]
    add("the same without repeats: false alarm in an audit", [_harmful(r) for r in once], 0, 0.05)
    runs = [_no_gap(rng, i, 3, three) for i in range(audits // 2)]
    add(
        "false alarm in an audit: three groups of 61, 19 and 13",
        [_harmful(r) for r in runs],
        0,
        0.05,
    )
    found = [_gap(rng, i, 3, ICC) for i in range(audits)]
    add("planted 73 % v 44 % found, 41 a group, 3 repeats", [_harmful([v]) for v in found], 0.80, 1)
    add("its interval covers the 29 points", [_covered(v, 0.29) for v in found], 0.93, 0.97)
    found = [_gap(rng, i, 1, 1.0) for i in range(audits)]
    add(
        "planted 73 % v 44 % found, 41 a group, one picture each (no valid test reaches 80 %)",
        [_harmful([v]) for v in found],
        0.74,
        1,
    )
    found = [_gap(rng, i, 1, 1.0, 45) for i in range(audits)]
    add("the same with 45 a group", [_harmful([v]) for v in found], 0.78, 1)
    edge = [_beyond(rng, i) for i in range(audits)]
    for metric in ("flrr", "delta_e00"):
        equal = [v.verdict is VerdictKind.EQUIVALENT for r in edge for v in r if v.metric == metric]
        add(f"'equivalent' although the gap is as large as the margin ({metric})", equal, 0, 0.05)
    return kept


def big_audit(items: int = 10_000, tools: int = 4) -> pd.DataFrame:
    """``items`` pictures a tool, three of each person, three figures each, three attributes."""
    rng = np.random.default_rng(7)
    n, k = items // 3 + 1, 3
    frames = []
    for t in range(tools):
        parts = {
            "flrr": {"all": rates(rng, 0.4, n, k)},
            "delta_e00": {"all": figures(rng, 4.0, n, k)},
            "detail_change": {"all": figures(rng, -1.0, n, k)},
        }
        frames.append(table(rng, parts, tool=f"tool {t}").drop(columns="group"))
    rows = pd.concat(frames, ignore_index=True)
    person = rows["subject_id"].str.removeprefix("all").astype(int)
    for attribute, groups in (("gender", 2), ("skin_tone", 6), ("age_group", 5)):
        dealt = np.array([f"{attribute} {g}" for g in rng.integers(0, groups, n)])
        rows[attribute] = dealt[person]
    return rows


def speed(say: Callable[[str], None]) -> bool:
    """Whether the large audit takes at most ten seconds of processor time: the named claims alone,
    and with every question that nobody named (all figures, all intersections)."""
    rows, kept = big_audit(), True
    for explore, text in ((False, "named claims"), (True, "and all that nobody named")):
        wall, cpu = time.perf_counter(), time.process_time()
        found = analyse(
            rows, attributes=["gender", "skin_tone", "age_group"], seed=1, explore=explore
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        kept = kept and cpu <= MOST_SECONDS
        say(
            f"{'ok ' if cpu <= MOST_SECONDS else 'BAD'} 10,000 items x 4 tools x 3 attributes, "
            f"{text}: {wall:.1f} s, {cpu:.1f} s of processor ({MOST_SECONDS:.0f} at most), "
            f"{len(found):,} verdicts"
        )
    return kept


def main() -> int:
    """Print every promise; 1 when one is broken."""
    audits = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    kept = promises(audits, print)
    broken = [p for p in kept if not p.kept]
    fast = speed(print)
    print(f"{len(kept) - len(broken)} of {len(kept)} promises kept over {audits} simulated audits")
    return 0 if fast and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
