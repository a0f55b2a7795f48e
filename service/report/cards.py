"""The summary: one card a tool, with one sentence and how its comparisons and requests ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from domain.measurements import Outcome
from domain.verdicts import Verdict, VerdictKind
from service.report import wording
from service.report.calls import notices
from service.report.model import ItemRow, RunData


@dataclass(frozen=True)
class Tally:
    """Counts of verdicts of one family: "claims named in the plan", "further comparisons"."""

    title: str
    counts: Sequence[tuple[VerdictKind, int, str]]


@dataclass(frozen=True)
class ToolCard:
    """One tool in the summary. ``outcomes`` are (key, words, count, rate) of what occurred;
    ``outcome_line`` says on whom refusals or losses fell, where ``line`` is about something else;
    ``warnings`` are what its calls showed that touches the figures."""

    label: str
    models: str
    line: str
    mark: str
    tallies: Sequence[Tally]
    items: int
    people: int
    outcomes: Sequence[tuple[str, str, int, str]]
    outcome_line: str = ""
    warnings: Sequence[str] = ()


def tool_card(data: RunData, label: str) -> ToolCard:
    """The card of the tool ``label``."""
    items = [i for i in data.counted if i.tool == label]
    verdicts = [v for v in (*data.paired, *data.verdicts) if v.tool == label]
    kinds = {v.verdict for v in verdicts}
    mark = VerdictKind.INCONCLUSIVE
    if VerdictKind.DISPARITY in kinds:
        mark = VerdictKind.DISPARITY
    elif kinds == {VerdictKind.EQUIVALENT}:
        mark = VerdictKind.EQUIVALENT
    ended = [(o, sum(i.outcome is o for i in items)) for o in Outcome]
    models = ", ".join(sorted({i.model for i in items if i.model}))
    return ToolCard(
        label=label,
        models=models if len(models) <= MODEL_LETTERS else models[: MODEL_LETTERS - 1] + "…",
        line=_nothing_measured(items, verdicts) or wording.tool_line(verdicts, data.plan.groups),
        mark=str(mark),
        tallies=_tallies(verdicts),
        items=len(items),
        people=len({i.subject_id for i in items}),
        outcomes=[
            (str(o), wording.OUTCOME_LABELS[o], n, wording.percent(n, len(items)))
            for o, n in ended
            if n
        ],
        outcome_line=_outcome_line(verdicts),
        warnings=[n.text for n in notices(data) if n.tool == label and n.grave],
    )


def _nothing_measured(items: Sequence[ItemRow], verdicts: Sequence[Verdict]) -> str:
    """What happened instead, where no result could be compared with its original; "" elsewhere and
    where a group fared worse in that."""
    if not items or any(i.outcome is Outcome.MEASURED for i in items):
        return ""
    if wording.strongest(verdicts) is not None:
        return ""
    (first, count), *_ = Counter(i.outcome for i in items).most_common()
    said = f"No result could be compared with its original: {wording.OUTCOME_LABELS[first]}"
    return f"{said}, {count:,} of {len(items):,}. {wording.OUTCOME_MEANINGS[first]}"


def _outcome_line(verdicts: Sequence[Verdict]) -> str:
    """A difference of outcomes (refusals, lost faces) that the card's own line is not about: who
    gets no result at all is not to stand behind a figure of those who do."""
    first = wording.strongest(verdicts)
    ended = wording.strongest([v for v in verdicts if v.metric.startswith("outcome:")])
    if ended is None or first is None or first.metric.startswith("outcome:"):
        return ""
    return wording.without_tool(ended)


MODEL_LETTERS = 60


def _tallies(verdicts: Sequence[Verdict]) -> list[Tally]:
    """Claims of the plan apart from the exploratory rest, where the statistics tell them apart."""
    rest = [v for v in verdicts if v.details.get("family") == "exploratory"]
    named = [v for v in verdicts if v not in rest]
    title = "Claimed before the run" if rest else ""
    families = [(title, named), ("Also looked at" if named else "Looked at", rest)]
    return [Tally(name, _counts(family)) for name, family in families if family]


def _counts(verdicts: Sequence[Verdict]) -> list[tuple[VerdictKind, int, str]]:
    found = []
    for kind, (one, many) in wording.VERDICT_TALLIES.items():
        n = sum(v.verdict is kind for v in verdicts)
        if n:
            found.append((kind, n, one if n == 1 else many))
    return found
