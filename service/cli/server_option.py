"""The option ``--server URL``, the same for every command that has it."""

from __future__ import annotations

from typing import Annotated

import typer

ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Let a service do the work. Its key: LIKENESS_TOKEN, or a file named by "
        "LIKENESS_TOKEN_FILE.",
    ),
]
