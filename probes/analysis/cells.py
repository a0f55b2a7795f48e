"""The map of occupations and labels: one cell for each, arm A against arm B, corrected as a whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from probes.analysis import rates
from probes.analysis.bootstrap import WARN_BELOW, pooled_difference, pooled_log2_ratio
from probes.analysis.multiplicity import benjamini_hochberg
from probes.analysis.tests import fisher
from probes.results import Cell, HeatMap, Interval

IMPLAUSIBLE = "implausible"
"""Flag of a cell whose row and arm hardly go together in the world; it is shown like any other."""
ONE_TEMPLATE = "one_template"
"""Flag: the interval is about this one wording, nothing is known about others."""
FEW_TEMPLATES = "few_templates"
"""Flag: fewer templates than an interval over templates should rest on."""
Counts = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Draw:
    """One reply that was asked for: ``label`` is None where it has none (refused, truncated, ...)."""

    row: str
    arm: str
    template: str
    label: str | None


def build_cells(
    draws: Sequence[Draw],
    arms: tuple[str, str],
    rows: Sequence[str],
    labels: Sequence[str],
    seed: int,
    *,
    title: str = "",
    map_id: str = "map",
    implausible: Collection[tuple[str, str]] = (),
    resamples: int = 2000,
) -> HeatMap:
    """Every cell of ``rows`` x ``labels``, in that order, arm ``arms[0]`` against ``arms[1]``.

    Shares are of the draws that have a label; the note counts those without one. With one template a
    cell has Newcombe's interval and Fisher's p; with more, the interval over templates, and as p the
    larger of the t test over templates and Fisher's: chance may make few templates agree too well.
    p values are corrected over the map (Benjamini-Hochberg). ``implausible`` names (row, arm).
    Raises ValueError for a label that is not among ``labels``.
    """
    counts = _count(draws, labels)
    cells = [
        _cell(row, label, _by_template(counts, row, label, arms), seed, resamples)
        for row in rows
        for label in labels
    ]
    odd = {row for row, arm in implausible if arm in arms}
    adjusted = benjamini_hochberg([c.p_value for c in cells])
    finished = tuple(
        replace(c, p_adjusted=p, flags=(*c.flags, IMPLAUSIBLE) if c.row in odd else c.flags)
        for c, p in zip(cells, adjusted, strict=True)
    )
    note = _note(draws, arms, set(rows))
    return HeatMap(map_id, title, arms, tuple(rows), tuple(labels), finished, note)


def template_differences(
    draws: Sequence[Draw], arms: tuple[str, str], labels: Sequence[str]
) -> npt.NDArray[np.float64]:
    """P_A - P_B of each (row, template) and label, for ``multiplicity.max_t``: units x labels, NaN
    where an arm of the unit has no label at all."""
    counts = _count(draws, labels)
    units = sorted({(d.row, d.template) for d in draws})
    found = np.full((len(units), len(labels)), np.nan)
    for u, (row, template) in enumerate(units):
        a, b = (counts.get((row, template, arm), Counter()) for arm in arms)
        if a.total() and b.total():
            found[u] = [a[name] / a.total() - b[name] / b.total() for name in labels]
    return found


def _count(
    draws: Sequence[Draw], labels: Sequence[str]
) -> Mapping[tuple[str, str, str], Counter[str]]:
    known = set(labels)
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for draw in draws:
        if draw.label is None:
            continue
        if draw.label not in known:
            raise ValueError(f"label '{draw.label}' is not one of the map's")
        counts[draw.row, draw.template, draw.arm][draw.label] += 1
    return counts


def _by_template(
    counts: Mapping[tuple[str, str, str], Counter[str]],
    row: str,
    label: str,
    arms: tuple[str, str],
) -> list[Counts]:
    found = []
    for template in sorted({t for r, t, _ in counts if r == row}):
        a, b = (counts.get((row, template, arm), Counter()) for arm in arms)
        found.append((a[label], a.total(), b[label], b.total()))
    return found


def _cell(row: str, label: str, parts: list[Counts], seed: int, resamples: int) -> Cell:
    xa, na, xb, nb = (sum(part[i] for part in parts) for i in range(4))
    delta = rates.difference(xa, na, xb, nb)
    value, status = rates.ratio(xa, na, xb, nb)
    both = [part for part in parts if part[1] and part[3]]
    if len(both) > 1:
        _, span = pooled_difference(parts, seed, resamples)
        log2, log2_span = pooled_log2_ratio(parts, seed, resamples)
    else:
        span = rates.newcombe(xa, na, xb, nb)
        log2, log2_span = rates.smoothed_log2_ratio(xa, na, xb, nb)
    gaps = [part[0] / part[1] - part[2] / part[3] for part in both]
    bs, bs_reason = _stability((xa, na, xb, nb), span)
    return Cell(
        row, label, xa, na, xb, nb,
        delta=delta,
        delta_interval=span,
        bbs=None if delta is None else abs(delta),
        rbr=value,
        rbr_status=status,
        log2_rbr=log2,
        log2_rbr_interval=log2_span,
        bs=bs,
        bs_reason=bs_reason,
        grade=rates.grade(log2, log2_span),
        p_value=_p_value((xa, na, xb, nb), gaps),
        template_sd=float(np.std(gaps, ddof=1)) if len(gaps) > 1 else None,
        flags=_flags(len(both)),
        bbs_by_chance=rates.expected_bbs_without_difference((xa + xb) / (na + nb), na, nb)
        if na and nb else None,
    )  # fmt: skip


def _stability(counts: Counts, span: Interval | None) -> tuple[float | None, str]:
    if span is None and counts[1] and counts[3]:
        return None, "the difference has no interval"
    return rates.bias_stability(*counts, interval=span)


def _p_value(counts: Counts, gaps: Sequence[float]) -> float | None:
    plain = fisher(*counts).p
    if plain is None or len(gaps) < 2:
        return plain
    spread = float(np.std(gaps, ddof=1))
    if spread < 1e-12:
        return plain
    t = float(np.mean(gaps)) / spread * len(gaps) ** 0.5
    return max(plain, float(2 * stats.t.sf(abs(t), len(gaps) - 1)))


def _flags(templates: int) -> tuple[str, ...]:
    if templates == 1:
        return (ONE_TEMPLATE,)
    return (FEW_TEMPLATES,) if 0 < templates < WARN_BELOW else ()


def _note(draws: Sequence[Draw], arms: tuple[str, str], rows: set[str]) -> str:
    asked = Counter(d.arm for d in draws if d.row in rows)
    without = Counter(d.arm for d in draws if d.row in rows and d.label is None)
    said = ", ".join(f"{arm} {without[arm]} of {asked[arm]}" for arm in arms)
    return f"Replies without a label, not in the shares: {said}."
