"""What a run that a server did has to show, read from the files that it wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from domain.verdicts import GroupEstimate, Verdict, VerdictKind
from service.finishing import Finished, worth_printing

REPORT = "report.json"


def finished(files: Mapping[str, Path]) -> Finished:
    """The run whose files these are. Raises LikenessError when report.json is not among them, or
    is not a report."""
    path = files.get(REPORT)
    if path is None:
        raise LikenessError(f"the server's run has no {REPORT}; it may be kept no longer")
    try:
        return _finished(json.loads(path.read_text("utf-8")), files)
    except (OSError, ValueError, KeyError, TypeError):
        raise LikenessError(f"{path}: is not a report as this version knows it") from None


def _finished(report: Mapping[str, Any], files: Mapping[str, Path]) -> Finished:
    verdicts = [verdict_of(v) for v in (*report["paired"], *report["verdicts"])]
    items = report["items"]
    reasons = Counter(f"{i['outcome']}: {i['reason']}" for i in items if i["reason"])
    return Finished(
        run_id=str(report["run"]["id"]),
        files=dict(files),
        verdicts=verdicts,
        table=worth_printing(verdicts),
        outcomes=Counter(str(i["outcome"]) for i in items),
        reasons=dict(reasons.most_common()),
        controls_ok=report["controls_ok"],
        standings=Counter(str(i["standing"]) for i in items),
        to_review=int(report["cleaning"]["review"]["listed"]),
    )


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """A verdict as report.json has it. Raises KeyError, TypeError or ValueError for another thing."""
    first, second = row["groups"]
    known = {name: row[name] for name in (f.name for f in fields(Verdict)) if name in row}
    estimates = [GroupEstimate(**e) for e in row["estimates"]]
    interval = row["interval"]
    return Verdict(
        **{
            **known,
            "groups": (str(first), str(second)),
            "verdict": VerdictKind(row["verdict"]),
            "interval": None if interval is None else (float(interval[0]), float(interval[1])),
            "estimates": tuple(estimates),
        }
    )
