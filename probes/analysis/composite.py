"""The probes of one language and condition in one number, and what that number hides.

Every probe about gender has an index in [-1, 1] and says what its ends mean; turned so that plus is
towards men for all of them, their weighted mean says which way they go together, their weighted root
mean square how far they go at all: opposite leanings cancel in the first alone.
docs/probes/association.md has the formulas and the rule for the direction.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from scipy import stats

from probes.results import Composite, CompositePart, Figure, Interval, ProbeResult

AXIS = "gender"
ENDS = ("towards men", "towards women")
Direction = Literal["towards men", "towards women", "both ways", "not shown"]
_Z = float(stats.norm.ppf(0.975))


def composites(
    results: Sequence[ProbeResult],
    weights: Mapping[str, float],
    planned: Mapping[str, Collection[str]] | None = None,
) -> tuple[Composite, ...]:
    """One for each language and condition in which a probe about gender has a result, in order.

    ``weights`` are by probe, 1 for one that is not named; a weight of 0 leaves a probe out.
    ``planned`` are the probes that should be there, by language. Beside them every probe that has a
    result of the language under any condition is expected, and every weighted one that has no result
    anywhere: where an expected one has none, or is unusable, there is no composite, with the reason.
    Raises ValueError for a weight that is negative or not finite.
    """
    if any(not math.isfinite(w) or w < 0 for w in weights.values()):
        raise ValueError("weights of a composite are 0 or more")
    told = [r for r in results if r.axis == AXIS and weights.get(r.probe, 1.0) > 0]
    places = dict.fromkeys((r.language, r.condition) for r in told)
    anywhere = {r.probe for r in results}
    found = []
    for language, condition in places:
        here = [r for r in told if (r.language, r.condition) == (language, condition)]
        expected = [
            *(r.probe for r in told if r.language == language),
            *(p for p in (planned or {}).get(language, ()) if _counts(p, results, weights)),
            *(p for p, weight in weights.items() if weight > 0 and p not in anywhere),
        ]
        absent = [p for p in dict.fromkeys(expected) if p not in {r.probe for r in here}]
        found.append(_composite(language, condition, here, absent, weights))
    return tuple(found)


def _counts(probe: str, results: Sequence[ProbeResult], weights: Mapping[str, float]) -> bool:
    """Whether a planned probe belongs in: not where it is known to be about something else."""
    axes = {r.axis for r in results if r.probe == probe}
    return weights.get(probe, 1.0) > 0 and (not axes or AXIS in axes)


def _composite(
    language: str,
    condition: str,
    here: Sequence[ProbeResult],
    absent: Sequence[str],
    weights: Mapping[str, float],
) -> Composite:
    parts = [_part(r, weights.get(r.probe, 1.0)) for r in here]
    parts += [
        CompositePart(
            p, 1, weights.get(p, 1.0), None, None, f"no result in {language}, {condition}"
        )
        for p in absent
    ]
    without = [p for p in parts if p.value is None]
    if without:
        reason = "; ".join(f"{p.probe}: {p.reason}" for p in without)
        mean = Figure("composite_mean", "Signed mean", None, reason=reason)
        rms = Figure("composite_rms", "Root mean square", None, reason=reason)
        return Composite(language, condition, tuple(parts), mean, rms, "not shown", ENDS)
    mean = _mean(parts, _sd_over_repeats(here, parts))
    return Composite(
        language, condition, tuple(parts), mean, _rms(parts), direction(mean, parts), ENDS
    )


def _part(result: ProbeResult, weight: float) -> CompositePart:
    sign = sign_of(result.index_means)
    index = result.index
    if not result.usable:
        return CompositePart(result.probe, sign, weight, None, None, result.why_not or "unusable")
    if index.value is None:
        return CompositePart(result.probe, sign, weight, None, None, index.reason or "no index")
    span = index.interval
    if span is not None and sign < 0:
        span = Interval(-span.high, -span.low, span.method, span.level)
    return CompositePart(result.probe, sign, weight, sign * index.value, span)


def sign_of(means: tuple[str, str]) -> int:
    """+1 where a probe's positive end is men's, -1 where it says that it is women's."""
    ends = [(bool(re.search(r"\bmen", m)), bool(re.search(r"\bwomen", m))) for m in means]
    return -1 if ends == [(False, True), (True, False)] else 1


def _total(parts: Sequence[CompositePart]) -> float:
    return sum(p.weight for p in parts)


def _values(parts: Sequence[CompositePart]) -> list[float]:
    return [p.value for p in parts if p.value is not None]


def _error(part: CompositePart) -> float | None:
    """Standard error from the width of the interval, as of a normal one."""
    if part.interval is None:
        return None
    z = float(stats.norm.ppf(0.5 + part.interval.level / 2))
    return (part.interval.high - part.interval.low) / (2 * z)


def _mean(parts: Sequence[CompositePart], sd: float | None) -> Figure:
    total = _total(parts)
    value = sum(p.weight * v for p, v in zip(parts, _values(parts), strict=True)) / total
    errors = [_error(p) for p in parts]
    interval, note = None, "a part has no interval"
    known = [e for e in errors if e is not None]
    if len(known) == len(parts):
        error = math.hypot(*(p.weight * e for p, e in zip(parts, known, strict=True))) / total
        interval = Interval(
            max(-1.0, value - _Z * error), min(1.0, value + _Z * error), "normal, parts independent"
        )
        note = ""
    return Figure(
        "composite_mean", "Signed mean", value, interval, len(parts), "probes", sd=sd, note=note
    )


def _rms(parts: Sequence[CompositePart]) -> Figure:
    """With the value that chance alone would give it, and by the delta method an interval."""
    total = _total(parts)
    values = _values(parts)
    value = math.sqrt(sum(p.weight * v * v for p, v in zip(parts, values, strict=True)) / total)
    errors = [e for e in map(_error, parts) if e is not None]
    if len(errors) < len(parts):
        note = "a part has no interval"
        return Figure(
            "composite_rms", "Root mean square", value, None, len(parts), "probes", note=note
        )
    chance = math.sqrt(sum(p.weight * e * e for p, e in zip(parts, errors, strict=True)) / total)
    interval = None
    if value > 0:
        slopes = [p.weight * v * e for p, v, e in zip(parts, values, errors, strict=True)]
        half = _Z * math.hypot(*slopes) / (total * value)
        interval = Interval(max(0.0, value - half), min(1.0, value + half), "delta method")
    return Figure(
        "composite_rms", "Root mean square", value, interval, len(parts), "probes",
        note=f"chance alone would give about {chance:.3f}",
    )  # fmt: skip


def _sd_over_repeats(here: Sequence[ProbeResult], parts: Sequence[CompositePart]) -> float | None:
    """Standard deviation of the mean when it is made of one repeat each. A probe that draws nothing
    has one repeat, which stands beside each of the others'; None where no probe has two."""
    runs = [[v for v in r.by_repeat if v is not None] for r in here]
    drawn = [len(run) for run in runs if len(run) > 1]
    if not drawn:
        return None
    total = _total(parts)
    means = []
    for k in range(min(drawn)):
        each = [
            p.sign * run[k] if len(run) > 1 else float(p.value or 0.0)
            for p, run in zip(parts, runs, strict=True)
        ]
        means.append(sum(p.weight * v for p, v in zip(parts, each, strict=True)) / total)
    return statistics.stdev(means)


def direction(mean: Figure, parts: Sequence[CompositePart]) -> Direction:
    """Towards men or women where the mean's interval lies on that side of 0. Else both ways where
    one part is shown on either side, with intervals widened for the number of parts (Bonferroni).
    Else, and where there is no mean or no interval, not shown."""
    if mean.value is None or mean.interval is None:
        return "not shown"
    if mean.interval.excludes(0.0):
        return "towards men" if mean.value > 0 else "towards women"
    z = float(stats.norm.ppf(1 - 0.025 / len(parts)))
    shown = set()
    for part in parts:
        error = _error(part)
        if part.value is not None and error is not None and abs(part.value) > z * error:
            shown.add(part.value > 0)
    return "both ways" if len(shown) == 2 else "not shown"
