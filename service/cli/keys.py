"""``likeness keys``: who may use the service."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain.errors import LikenessError
from service.cli.escape import printable

if TYPE_CHECKING:
    from service.store.api_keys import ApiKey, ApiKeys

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=3650)
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


def register(app: typer.Typer) -> None:
    """Add ``keys add``, ``keys list`` and ``keys revoke``."""
    group = typer.Typer(
        help="API keys of the service, in the database that LIKENESS_DATABASE names.",
        no_args_is_help=True,
    )
    group.command("add")(add)
    group.command("list")(list_keys)
    group.command("revoke")(revoke)
    app.add_typer(group, name="keys")


def add(
    name: Annotated[str, typer.Argument(help="Whose key it is, such as ci or anna.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="submit, read, review or admin; may be repeated. Default: submit, read."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="How long it lasts: 12h, 90d, 8w. Default: until revoked.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it. It is shown once: only a hash is kept."""
    lasts = lifetime(expires) if expires is not None else None
    with _keys() as keys:
        key, token = keys.add(name, scope or ["submit", "read"], lasts=lasts)
    if as_json:
        print(json.dumps({**_facts(key), "token": token}))
        return
    print(token)
    until = f" until {key.expires}" if key.expires else ""
    said = f"key '{key.name}' ({key.key_id}), scopes {', '.join(key.scopes)}{until}"
    print(printable(f"{said}; it is not shown again"), file=sys.stderr)


def list_keys(as_json: AsJson = False) -> None:
    """List every key with its scopes and when it was last used; never the key itself."""
    with _keys() as keys:
        found = keys.all()
    if as_json:
        for key in found:
            print(json.dumps(_facts(key)))
        return
    table = Table("id", "name", "scopes", "state", "expires", "last used")
    for key in found:
        row = _facts(key)
        cells = (key.key_id, key.name, " ".join(key.scopes), row["state"], key.expires, key.last_used)  # fmt: skip
        table.add_row(*(Text(printable(cell or "never")) for cell in cells))
    Console(file=sys.stdout).print(table)


def revoke(
    name: Annotated[str, typer.Argument(help="Id or name of the key.")],
) -> None:
    """End a key at once. What it made stays."""
    with _keys() as keys:
        key = keys.revoke(name)
    print(printable(f"key '{key.name}' ({key.key_id}) revoked"), file=sys.stderr)


def lifetime(text: str) -> timedelta:
    """``12h``, ``90d`` or ``8w``. Raises LikenessError."""
    found = re.fullmatch(r"([1-9]\d{0,5})([hdw])", text.strip())
    lasts = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None
    if lasts is None or lasts > _LONGEST:
        raise LikenessError("--expires: write a number of hours, days or weeks, such as 12h or 90d")
    return lasts


def _facts(key: ApiKey) -> dict[str, Any]:
    return {**asdict(key), "scopes": list(key.scopes), "state": key.state(datetime.now(UTC))}


@contextmanager
def _keys() -> Iterator[ApiKeys]:
    from service import settings
    from service.store.api_keys import ApiKeys
    from service.store.database import Database
    from service.store.secret_file import private_folder

    server = settings.server()
    private_folder(server.home)
    database = Database(server.database)
    try:
        database.migrate()
        yield ApiKeys(database)
    finally:
        database.close()
