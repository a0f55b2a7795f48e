"""What a probe plan would ask and cost, before anything is asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from probes.asking.ask import is_settled
from probes.asking.cost import Estimate, estimate
from probes.asking.endpoint import Endpoint
from probes.asking.journal import Journal
from service.budget import Budget
from service.probe_plans import LoadedProbePlan
from service.probe_questions import questions


@dataclass(frozen=True, slots=True)
class ProbeEstimate:
    """``left`` is what is still to be asked, ``remembered`` how many replies of this run are there
    and ``spent`` what they cost, in the price's currency. ``calls`` counts every call of the plan by
    probe, language and condition. Second calls, which depend on replies, are not among them."""

    left: Estimate
    remembered: int
    spent: float
    calls: dict[tuple[str, str, str], int]


def reckon(
    loaded: LoadedProbePlan, endpoint: Endpoint, journal: Journal | None = None
) -> ProbeEstimate:
    """Work it out; nobody is asked. ``journal`` is that of a run to go on with."""
    calls = [question.asked for question in questions(loaded, loaded.parts)]
    keys = [call.key(endpoint.name) for call in calls] if journal else []
    there = journal.known(keys) if journal else {}
    answered = {key for key, reply in there.items() if is_settled(reply)}
    left = [c for c, key in zip(calls, keys, strict=True) if key not in answered] if keys else calls
    return ProbeEstimate(
        estimate(left, endpoint),
        len(answered),
        sum(reply.cost or 0.0 for reply in there.values()),
        dict(Counter((c.probe, c.language, c.condition) for c in calls)),
    )


def excess(found: ProbeEstimate, budget: Budget) -> str | None:
    """Why the run is not to begin under ``budget``, in one line; None where what it will likely cost
    lies within. It is stopped anyway before the budget is passed."""
    likely = found.left.cost_likely
    if likely is None:
        return (
            f"--budget {budget}: the price of a token is unknown; set endpoint.price in the plan"
            " (input_per_million and output_per_million, 0 where it costs nothing)"
        )
    total = found.spent + likely
    if found.left.currency != budget.currency and total > 0:
        return (
            f"--budget {budget}: endpoint.price is in {found.left.currency}; give both in one"
            " currency"
        )
    if total <= budget.amount * (1 + 1e-9):
        return None
    before = f", {found.spent:,.2f} of it spent already" if found.spent else ""
    return (
        f"--budget {budget}: this run will likely cost {total:,.2f} {found.left.currency}{before};"
        " raise the budget, or lower the repeats"
    )
