"""The tables of the minimal pairs: proofs, rows, templates, base filter; and what readers must be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from probes.analysis.bootstrap import cluster_bootstrap
from probes.calls import Reading
from probes.labels import other_alarm
from probes.pairs.design import FilterLine, Pair
from probes.pairs.diagnosis import DETERMINED, Diagnosis
from probes.pairs.measures import Unit, by_cluster
from probes.pairs.neutrality import Neutrality
from probes.results import Table

SHOWN = 3


def proofs(pairs: Sequence[Pair]) -> Table:
    """One pair of each template with its proof; the proof holds for every pair, or it would have been
    refused before a call was made."""
    first: dict[str, Pair] = {}
    for pair in pairs:
        first.setdefault(pair.template.id, pair)
    rows = tuple(
        (p.template.id, p.prompts[0].text, p.prompts[1].text, p.proof.sentence)
        for p in first.values()
    )
    return Table(
        "pairs",
        "Prompts of a pair, and proof that they differ in the slot alone",
        ("template", pairs[0].arms[0], pairs[0].arms[1], "proof"),
        rows,
        f"The first of {len(pairs)} pairs is shown for each template; every one has its proof.",
    )


def flagged(pairs: Sequence[Pair]) -> Table | None:
    """Cells that are implausible, with the reason; None without any."""
    found = dict.fromkeys((p.occupation.id, flag) for p in pairs for flag in p.flags)
    if not found:
        return None
    return Table(
        "implausible",
        "Combinations that are rare or implausible, asked all the same",
        ("occupation", "reason"),
        tuple(found),
    )


def of_rows(found: Sequence[Unit], rows: Sequence[str], seed: int) -> Table:
    """The index of each row with its interval over templates."""
    lines: list[tuple[str | float | int | None, ...]] = []
    for row in rows:
        clusters = by_cluster([u for u in found if u.row == row], lambda u: u.template)
        value, interval = cluster_bootstrap(list(clusters.values()), seed)
        low, high = (interval.low, interval.high) if interval else (None, None)
        lines.append((row, value, low, high, len(clusters)))
    return Table(
        "rows",
        "Index of each occupation",
        ("occupation", "index", "low", "high", "templates"),
        tuple(lines),
        "The row neutral names no occupation: what it shows is the slot's own doing.",
    )


def of_templates(found: Sequence[Diagnosis], ratings: Sequence[Neutrality]) -> Table:
    """What is known of each template's fitness."""
    rated = {r.template: r for r in ratings}
    lines: list[tuple[str | float | int | None, ...]] = []
    for d in found:
        rating = rated.get(d.template)
        notes = (*d.notes, *(rating.flags if rating else ()))
        lines.append(
            (
                d.template,
                d.listens,
                d.moved,
                d.p_value,
                d.commonest,
                d.share,
                d.determined,
                d.type,
                d.lean,
                d.lean_low,
                rating.mean if rating else None,
                "; ".join(notes),
            )
        )
    return Table(
        "templates",
        "Do the templates measure anything?",
        ("template", "irrelevant word", "moved", "p", "commonest label", "its share",
         "share of one type", "type", "lean", "lean at low temperature", "neutrality", "notes"),
        tuple(lines),
        "Moved: how far an irrelevant word in the slot changes the answers (0 to 1). Lean: the index over "
        "the cells that were asked at low temperature too.",
    )  # fmt: skip


def of_filter(lines: Sequence[FilterLine]) -> Table:
    """The base filter's criteria for each occupation asked about."""
    return Table(
        "base_filter",
        "Occupations by the base filter's criteria",
        ("occupation", "salience", "comparability", "availability", "verdict"),
        tuple(
            (x.occupation, x.salience, x.comparability, x.availability, x.verdict) for x in lines
        ),
        "Unknown: never counted for this language. The filter reports; the plan chooses.",
    )


def notices(
    readings: Sequence[Reading], arms: tuple[str, str], found: Sequence[Diagnosis]
) -> list[str]:
    """Sentences that a report must show."""
    said = []
    for arm in arms:
        alarm = other_alarm([r.label for r in readings if r.call.arm == arm])
        if alarm:
            said.append(f"About {arm}: {alarm}.")
    deaf = [d.template for d in found if d.listens == "does not listen"]
    weak = [d.template for d in found if d.weak and d.template not in deaf]
    loose = [d.template for d in found if d.determined is not None and d.determined < DETERMINED]
    if deaf:
        said.append(f"Templates that do not listen to their slot: {', '.join(deaf)}.")
    if weak:
        said.append(f"Templates that draw one answer whoever it is about: {', '.join(weak)}.")
    if loose:
        said.append(
            f"Templates with less than {DETERMINED:.0%} of their answers of one type: {', '.join(loose)}."
        )
    return said


def examples(readings: Sequence[Reading], arms: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """A few answers of each arm, from the pairs in which most often the labels differ."""
    differ: Counter[str] = Counter()
    held: dict[tuple[str, int], Reading] = {}
    for r in readings:
        if r.call.arm == arms[0]:
            held[r.call.item, r.call.repeat] = r
    pairs: dict[str, tuple[Reading, Reading]] = {}
    for r in readings:
        other = held.get((r.call.item, r.call.repeat))
        if r.call.arm != arms[1] or other is None or not (r.label and other.label):
            continue
        if r.label != other.label:
            differ[r.call.item] += 1
            pairs.setdefault(r.call.item, (other, r))
    found = []
    for item, _ in sorted(differ.items(), key=lambda kv: (-kv[1], kv[0]))[:SHOWN]:
        for reading in pairs[item]:
            occupation, template = reading.call.facts["occupation"], reading.call.facts["template"]
            words = f"{occupation}, {template}: {reading.extras.get('slot', '')} ({reading.label})"
            found.append((reading.call.arm, words))
    return tuple(found)
