"""``likeness receipt``: whether a receipt of a deletion is real."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.errors import LikenessError
from service import settings
from service.cli.escape import printable

if TYPE_CHECKING:
    from service.receipts import PublicKey

_LARGEST = 64 * 1024 * 1024


def register(app: typer.Typer) -> None:
    """Add ``receipt verify``."""
    group = typer.Typer(help="Receipts of deletions.", no_args_is_help=True)
    group.callback()(_group)
    group.command("verify")(verify)
    app.add_typer(group, name="receipt")


def _group() -> None:
    """Receipts of deletions."""


def verify(
    file: Annotated[Path, typer.Argument(help="The receipt, as the service answered it.")],
    key: Annotated[
        Path | None,
        typer.Option(
            help="The service's public key in PEM form, as GET /v1/signing-key gives it. Default: "
            "that of the service of this machine."
        ),
    ] = None,
) -> None:
    """Check the signature of a receipt: exit 0 when it is real and unaltered, 1 when it is not.

    Needs no connection: only the receipt and the public key.
    """
    receipt = _json(file)
    fault = _key(key).fault(receipt)
    if fault:
        print(f"{file}: NOT valid: {fault}")
        sys.exit(1)
    said = f"{receipt.get('batch_id')}, deleted {receipt.get('at')}"
    print(printable(f"{file}: valid: {said}"))


def _key(path: Path | None) -> PublicKey:
    from service.receipts import PublicKey, Signer
    from service.store.secret_file import read_secret

    if path is not None:
        return PublicKey.from_pem(_text(path))
    secret = settings.server().secret_file
    if not secret.exists():  # reading it would make a new one, which has signed nothing
        raise LikenessError(
            f"{secret}: there is no service on this machine; name its key with --key"
        )
    return Signer(read_secret(secret)).public


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError):
        raise LikenessError(f"{path}: not JSON") from None
    if not isinstance(found, dict):
        raise LikenessError(f"{path}: not a receipt")
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise LikenessError(f"{path}: too large")
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise LikenessError(f"{path}: not text") from None
    except OSError as error:
        raise LikenessError(f"{path}: cannot be read: {error.strerror or error}") from None
