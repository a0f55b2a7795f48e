"""What ``likeness probe`` says, on a screen and to machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probes.calls import PLAIN, Status
from probes.results import GateLine
from service.cli.escape import printable
from service.gate import WORDS, ExitCode
from service.report.probe_json import probe_json
from service.report.probe_model import ProbeRun
from service.report.probe_view import in_short
from service.report.wording import duration, plural

if TYPE_CHECKING:  # what loads the statistics is only for the command that needs them
    from probes.asking.endpoint import Endpoint
    from probes.contract import ProbeSpec
    from service.budget import Budget
    from service.probe_estimate import ProbeEstimate
    from service.probing import Done

FINDINGS, LIMITS = 8, 8
SECOND_CALLS = "Second questions, which some probes ask after a refusal, come on top."


def show_probes(specs: Sequence[ProbeSpec], broken: Mapping[str, str], as_json: bool) -> None:
    """Every probe with what it needs; those of third parties that could not be loaded as well."""
    if as_json:
        found = [
            {
                "id": s.id,
                "title": s.title,
                "question": s.question,
                "languages": list(s.languages),
                "needs": list(s.needs),
                "in_composite": s.in_composite,
                "reference": s.reference,
            }
            for s in specs
        ]
        print(json.dumps({"probes": found, "broken": dict(broken)}, ensure_ascii=False))
        return
    table = Table("probe", "languages", "question", "needs", show_lines=True)
    table.columns[0].no_wrap = True
    for s in specs:
        needs = ", ".join(s.needs) or "chat"
        table.add_row(*map(Text, (s.id, " ".join(s.languages), s.question, needs)))
    Console(file=sys.stdout).print(table)
    for name, reason in broken.items():
        print(f"{name} could not be loaded: {reason}", file=sys.stderr)


def show_estimate(
    found: ProbeEstimate,
    endpoint: Endpoint,
    budget: Budget | None,
    within: bool | None,
    as_json: bool,
) -> None:
    """Calls by probe, then tokens, money, time and where the questions go. ``within`` says whether
    that lies within the budget, where there is one."""
    left = found.left
    if as_json:
        print(json.dumps(_estimate(found, endpoint, within)))
        return
    console = Console(file=sys.stdout)
    table = Table("probe", "language", "condition", "calls")
    table.columns[3].justify = "right"
    for place, count in found.calls.items():
        table.add_row(*map(Text, (*place, f"{count:,}")))
    console.print(table)
    lines = [f"{plural(left.calls, 'call')} to make. Nobody was asked. {SECOND_CALLS}"]
    if found.remembered:
        lines.append(f"{plural(found.remembered, 'reply', 'replies')} of this run are there.")
    lines += [
        f"Tokens: about {left.prompt_tokens:,} sent, at most {left.completion_tokens_most:,} written.",
        _money(found),
        f"Time: about {duration(left.seconds)} with {endpoint.concurrency} calls at a time.",
        f"The questions go to {endpoint.name}.",
    ]
    if within is True:
        lines.append(f"Within the budget of {budget}.")
    for line in lines:
        console.print(Text(line))


def _money(found: ProbeEstimate) -> str:
    left = found.left
    if left.cost_likely is None or left.cost_most is None:
        return "Money: unknown: set endpoint.price in the plan."
    if not left.cost_most and not found.spent:
        return "Money: nothing."
    spent = f"; {found.spent:,.2f} {left.currency} spent already" if found.spent else ""
    return (
        f"Money: {left.cost_likely:,.2f} {left.currency} likely, at most"
        f" {left.cost_most:,.2f} {left.currency} if no call is repeated{spent}."
    )


def _estimate(found: ProbeEstimate, endpoint: Endpoint, within: bool | None) -> dict[str, Any]:
    left = found.left
    return {
        "endpoint": endpoint.name,
        "calls": left.calls,
        "remembered": found.remembered,
        "by_probe": [
            {"probe": p, "language": la, "condition": c, "calls": n}
            for (p, la, c), n in found.calls.items()
        ],
        "prompt_tokens": left.prompt_tokens,
        "completion_tokens_most": left.completion_tokens_most,
        "cost_likely": left.cost_likely,
        "cost_most": left.cost_most,
        "spent": found.spent,
        "currency": left.currency or None,
        "seconds": round(left.seconds, 1),
        "within_budget": within,
    }


def show(done: Done, files: Mapping[str, str], decision: ExitCode | None, seconds: float) -> None:
    """The first findings, how the replies ended, the gate, and where the report is."""
    run, console = done.run, Console(file=sys.stdout)
    lines = [
        *_findings(run),
        *run.notices,
        *_replies(run),
        *_limits(run.gate),
    ]
    for line in lines:  # a server's words may stand in them
        console.print(Text(printable(line)))
    if decision is not None:
        print(f"gate: {WORDS[decision]}")
    print(f"report: {files['report.html']}")
    print(f"total time: {duration(seconds)}")


def _findings(run: ProbeRun) -> list[str]:
    """What was found first, then what cannot be used, then the rest."""
    found = in_short(probe_json(run))
    found.sort(key=lambda line: {"disparity": 0, "warn": 1}.get(line[0], 2))
    lines = [said for _, said in found[:FINDINGS]]
    more = len(found) - FINDINGS
    return [*lines, f"{more} more of such lines are in the report."] if more > 0 else lines


def _limits(gate: Sequence[GateLine]) -> list[str]:
    """The limits that were not kept, the gravest first; those that were are counted."""
    graver = ("fail", "inconclusive", "not_measurable")
    left = sorted((g for g in gate if g.state in graver), key=lambda g: graver.index(g.state))
    lines = [g.sentence for g in left[:LIMITS]]
    if len(left) > LIMITS:
        lines.append(f"{len(left) - LIMITS} more limits are not settled; see the report.")
    kept = len(gate) - len(left)
    return [*lines, f"{kept} of {plural(len(gate), 'limit')} kept"] if gate else []


def refusals(run: ProbeRun) -> dict[str, tuple[int, int]]:
    """Replies refused or filtered, and all calls, by arm under the plain condition."""
    found: dict[str, tuple[int, int]] = {}
    for result in run.results:
        if result.condition != PLAIN:
            continue
        for tally in result.tallies:
            no, total = found.get(tally.arm, (0, 0))
            declined = sum(tally.counts.get(s, 0) for s in (Status.REFUSED, Status.FILTERED))
            found[tally.arm] = (no + declined, total + tally.total)
    return found


def _replies(run: ProbeRun) -> list[str]:
    stats = run.stats
    statuses = ", ".join(
        f"{n:,} {status.value.replace('_', ' ')}" for status, n in stats.statuses.items()
    )
    lines = [f"replies: {statuses} ({stats.remembered:,} were there already)"]
    lines += [f"  {n:,} x {reason}" for reason, n in list(stats.reasons.items())[:5] if reason]
    told = [f"{arm} {no / n:.1%} of {n:,}" for arm, (no, n) in refusals(run).items() if n]
    if told:
        lines.append(f"refused or filtered: {', '.join(told)}")
    lines += [
        f"cost: about {amount:,.2f} {currency}" for currency, amount in stats.cost.items() if amount
    ]
    if stats.stopped_by:
        lines.append(f"stopped: {stats.stopped_by}")
    return lines


def answer(
    done: Done, files: Mapping[str, str], decision: ExitCode | None, seconds: float
) -> dict[str, Any]:
    """The same for machines."""
    run, stats = done.run, done.run.stats
    return {
        "run_id": run.run_id,
        "files": dict(files),
        "model": run.model,
        "findings": [said for _, said in in_short(probe_json(run))],
        "results": [
            {
                "probe": r.probe,
                "language": r.language,
                "condition": r.condition,
                "index": r.index.value,
                "interval": [r.index.interval.low, r.index.interval.high]
                if r.index.interval
                else None,
                "reason": r.index.reason,
                "usable": r.usable,
                "why_not": r.why_not,
            }
            for r in run.results
        ],
        "composites": [
            {
                "language": c.language,
                "condition": c.condition,
                "mean": c.mean.value,
                "rms": c.rms.value,
                "direction": c.direction,
                "reason": c.mean.reason,
            }
            for c in run.composites
        ],
        "statuses": {status.value: n for status, n in stats.statuses.items()},
        "asked": stats.asked,
        "remembered": stats.remembered,
        "refused": {
            arm: {"count": no, "of": total, "rate": no / total if total else None}
            for arm, (no, total) in refusals(run).items()
        },
        "models": dict(stats.models),
        "cost": dict(stats.cost),
        "stopped_by": stats.stopped_by,
        "gate": [
            {
                "id": g.id,
                "state": g.state,
                "value": g.value,
                "limit": g.limit,
                "sentence": g.sentence,
            }
            for g in run.gate
        ],
        "decision": None if decision is None else WORDS[decision],
        "notices": list(run.notices),
        "seconds": round(seconds, 1),
    }
