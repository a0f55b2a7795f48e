"""``likeness gate``: pass or fail for one edited picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from service.answers import of_pair
from service.cli.measure import AsJson, Engine, readable
from service.gate import OF_DECISION, decide
from service.measuring import Instrument


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gate")(gate)


def gate(
    original: Annotated[Path, typer.Argument(help="The picture as it was sent.")],
    edited: Annotated[Path, typer.Argument(help="What the tool returned.")],
    min_score: Annotated[float, typer.Option(min=0, max=100, help="Least health to pass.")] = 85.0,
    engine: Engine = "mediapipe",
    profile: Annotated[
        Literal["document", "even"], typer.Option(help="The health profile that decides.")
    ] = "document",
    as_json: AsJson = False,
) -> None:
    """Decide on one edited picture: exit 0 pass, 1 fail, 2 could not run, 3 inconclusive."""
    result = readable(Instrument(engine, profile, min_score), original, edited)
    decision = decide(result)
    if as_json:
        print(json.dumps(of_pair(result)))
    else:
        score = "no score" if decision.score is None else f"health {decision.score:.1f}"
        print(
            f"{decision.decision.value}: {score} (profile {decision.profile}, at least {min_score:g})"
        )
        for reason in decision.reasons:
            print(f"  - {reason}")
    raise typer.Exit(OF_DECISION[decision.decision])
