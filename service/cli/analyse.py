"""``likeness analyse``: verdicts from a file of measurements alone, also one made elsewhere."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import pandas as pd
import typer
from pydantic import BaseModel, ConfigDict, Field, model_validator

from domain.errors import LikenessError, did_you_mean
from domain.plan import AuditPlan, Claim
from domain.verdicts import NAMED, Verdict, VerdictKind
from metrics.statistics import StatisticsError, analyse, paired_analysis
from service import yaml_lines
from service.cli.escape import printable
from service.gate import decide_audit
from service.partners import split
from service.report.model import COUNTED, Place

Margin = Annotated[float, Field(gt=0)]
_REQUIRED = ("subject_id", "tool", "metric", "value", "status")
_ORDER = (VerdictKind.DISPARITY, VerdictKind.INCONCLUSIVE, VerdictKind.EQUIVALENT)
_LISTED = 20
"""Exploratory findings printed; all of them are in the JSON."""


class AnalysisPlan(BaseModel):
    """The part of a plan that the statistics read; a whole audit plan serves as well.

    ``margin`` is one number for every claim that has none of its own (in the claim's unit; a
    rate's is 0..1) or a mapping like ``margins``: by metric, "metric/region", or "rate".
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    groups: list[str] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)
    margin: Margin | dict[str, Margin] | None = None
    margins: dict[str, Margin] = Field(default_factory=dict)
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for index, claim in enumerate(self.claims):
            if (claim.event is None) != (claim.threshold is None):
                raise ValueError(f"claims.{index}: 'event' and 'threshold' go together")
        if not self.groups and not self.claims:
            raise ValueError("name the attributes to compare: 'groups: [gender]' or claims")
        return self

    def attributes(self) -> list[str]:
        """Groups first, then what only claims name."""
        return [*dict.fromkeys([*self.groups, *(c.attribute for c in self.claims)])]

    def resolved(self) -> tuple[list[Claim], dict[str, float]]:
        """Claims and margins with ``margin`` worked in."""
        if self.margin is None:
            return self.claims, self.margins
        if isinstance(self.margin, Mapping):
            return self.claims, {**self.margin, **self.margins}
        claims = [
            c if c.margin is not None else c.model_copy(update={"margin": self.margin})
            for c in self.claims
        ]
        return claims, {"rate": self.margin, **self.margins}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("analyse")(run)


def run(
    measurements: Annotated[Path, typer.Argument(help="CSV: one row an item and metric.")],
    plan: Annotated[Path, typer.Option("--plan", help="YAML: groups, claims, margin, alpha.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Draw verdicts from measurements: who is harmed, how, and how sure that is.

    The CSV has the columns subject_id, tool, metric, value, status, one column for each attribute
    (gender, ...) and, where there are any, perturbation, task, region, outcome, item_id, standing.
    Status is "measured" or says why there is no value; with a column standing only the rows of the
    main statistics are used, and with the columns portrait_id, pair_base and varied_attribute
    counterfactual partners are compared with their base and not between groups. Exit 0: no disparity; 1: a disparity among the
    claims; 2: could not run; 3: nothing was settled.
    """
    chosen = load_analysis_plan(plan)
    rows = load_measurements(measurements, chosen.attributes())
    rows, left_out = main_rows(rows, measurements)
    if left_out:
        told = ", ".join(f"{n} {place}" for place, n in left_out.items())
        print(f"left out of the main statistics: {told} (items)", file=sys.stderr)
    claims, margins = chosen.resolved()
    asked: dict[str, Any] = {"claims": claims, "margins": margins}
    asked |= {"alpha": chosen.alpha, "seed": chosen.seed}
    alone, pairs = split(rows)
    pairs = [p for p in pairs if p.attribute in chosen.attributes()]
    try:
        verdicts = analyse(alone, attributes=chosen.attributes(), **asked)
        if pairs:
            verdicts = [*paired_analysis(rows, pairs, **asked), *verdicts]
    except StatisticsError as error:
        raise StatisticsError(f"{measurements}: {error}") from None
    named = [v for v in verdicts if v.details.get("family") in NAMED]
    rest = [v for v in verdicts if v.details.get("family") not in NAMED]
    if as_json:
        print(
            json.dumps(
                answer(named, rest, chosen, measurements) | {"left_out": left_out},
                ensure_ascii=False,
            )
        )
    else:
        _show(named, rest)
    raise typer.Exit(int(decide_audit(named)))


def answer(
    named: list[Verdict], rest: list[Verdict], plan: AnalysisPlan, source: Path
) -> dict[str, Any]:
    """The JSON answer: ``verdicts`` are the plan's claims, ``exploratory`` what nobody named."""
    return {
        "source": str(source),
        "alpha": plan.alpha,
        "seed": plan.seed,
        "decision": decide_audit(named).name.lower(),
        "verdicts": [of_verdict(v) for v in named],
        "exploratory": [of_verdict(v) for v in rest],
    }


def of_verdict(v: Verdict) -> dict[str, Any]:
    """A verdict as JSON: null where there is no figure."""
    return {
        "tool": v.tool,
        "task": v.task,
        "metric": v.metric,
        "region": v.details.get("region"),
        "event": v.event,
        "attribute": v.attribute,
        "groups": list(v.groups),
        "verdict": v.verdict.value,
        "effect": v.effect,
        "interval": list(v.interval) if v.interval else None,
        "unit": v.unit,
        "p_value": v.p_value,
        "p_adjusted": v.p_adjusted,
        "n": dict(v.n),
        "needed_n": v.needed_n,
        "margin": v.margin,
        "estimates": [
            {
                "group": e.group, "n": e.n, "items": e.items,
                "estimate": e.estimate, "low": e.low, "high": e.high,
            }
            for e in v.estimates
        ],
        "sentence": v.sentence,
        "reason": v.reason,
        "details": {k: _plain(x) for k, x in v.details.items()},
    }  # fmt: skip


def _plain(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def load_measurements(path: Path, attributes: Iterable[str] = ()) -> pd.DataFrame:
    """The CSV as text, so that nothing is guessed; rows of an audit's controls are left out.

    Raises LikenessError with file and cause.
    """
    try:
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", skip_blank_lines=False
        )
    except FileNotFoundError:
        raise LikenessError(f"{path}: no such file") from None
    except pd.errors.EmptyDataError:
        raise LikenessError(f"{path}: the file is empty") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError) as error:
        cause = " ".join(str(error).split())
        raise LikenessError(f"{path}: cannot be read as CSV: {cause}") from None
    frame.columns = [str(c).strip() for c in frame.columns]
    for name in [*_REQUIRED, *attributes]:
        if name not in frame.columns:
            hint = did_you_mean(name, list(frame.columns), 0.6)
            what = "column" if name in _REQUIRED else "attribute"
            have = ", ".join(str(c) for c in frame.columns[:30])
            raise LikenessError(f"{path}: no {what} '{name}'{hint} (columns: {have})")
    frame["source_line"] = range(2, len(frame) + 2)
    if "control" in frame.columns:  # an audit's own controls are judged by the audit
        frame = frame[~frame["control"].str.strip().str.lower().isin(("1", "true", "yes"))]
    if len(frame) == 0:
        raise LikenessError(f"{path}: no rows under the header")
    return frame


def main_rows(frame: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows of the main statistics, and how many items (rows, where items have no id) of each
    other standing were left out. A table without the column ``standing`` stays whole.

    Items without an answer (``excluded_1``, ``excluded_2``) stay: they have no figures, and their
    outcomes count. Raises LikenessError for a standing that is none, or when nothing is left.
    """
    if "standing" not in frame.columns:
        return frame, {}
    standing = frame["standing"].str.strip().replace("", Place.MAIN.value)
    strange = ~standing.isin(list(Place))
    if strange.any():
        line = int(frame.loc[strange, "source_line"].iloc[0])
        given = standing[strange].iloc[0]
        raise LikenessError(
            f"{path}: line {line}: standing '{given}' is none of {', '.join(Place)}"
        )
    counted = standing.isin(list(COUNTED))
    if not counted.any():
        raise LikenessError(f"{path}: no row stands in the main statistics (column standing)")
    item = frame["item_id"] if "item_id" in frame.columns else frame["source_line"]
    left_out = item[~counted].groupby(standing[~counted]).nunique()
    return frame[counted], {str(k): int(v) for k, v in left_out.items()}


def load_analysis_plan(path: Path) -> AnalysisPlan:
    """Read the plan's part. Raises PlanError with file, line and key, one line a mistake."""
    text = yaml_lines.read_text(path)
    data, lines = yaml_lines.parse(path, text, "groups, claims, margin, alpha")
    known = {*AnalysisPlan.model_fields, *AuditPlan.model_fields}
    unknown = [key for key in data if key not in known]
    yaml_lines.refuse(
        path,
        lines,
        (
            ((str(k),), f"{k}: unknown key{did_you_mean(str(k), sorted(known), 0.5)}")
            for k in unknown
        ),
    )
    return yaml_lines.validated(path, data, lines, AnalysisPlan)


def _show(named: list[Verdict], rest: list[Verdict]) -> None:
    for v in sorted(named, key=lambda v: _ORDER.index(v.verdict)):
        print(f"{v.verdict.value.upper():12} {printable(v.sentence)}")
    hits = [v for v in rest if v.verdict is VerdictKind.DISPARITY]
    if hits:
        print("\nBeyond the claims (exploratory, Benjamini-Hochberg):")
        for v in hits[:_LISTED]:
            print(f"{v.verdict.value.upper():12} {printable(v.sentence)}")
    if len(rest) > len(hits[:_LISTED]):
        left = len(rest) - len(hits[:_LISTED])
        print(f"{left} more comparisons were made; --json lists them all.", file=sys.stderr)
