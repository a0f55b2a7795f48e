"""``likeness receipt`` and ``likeness sweep``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from domain.errors import LikenessError
from service.cli.main import build_app
from service.receipts import Signer
from service.store.batches import Batches
from service.store.blobs import Blobs
from service.store.database import Database
from service.store.erasure import erase, receipt_of
from service.store.secret_file import read_secret

LONG_AGO = 1_000_000_000.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LIKENESS_DATABASE", "LIKENESS_BLOBS", "LIKENESS_SECRET_FILE"):
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "home"
    monkeypatch.setenv("LIKENESS_HOME", str(place))
    return place


def likeness(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(build_app(), list(words))
    if isinstance(done.exception, LikenessError):
        raise done.exception
    return done.exit_code, done.stdout


def old_batch(home: Path) -> str:
    """A batch of long ago in the service's own stores."""
    read_secret(home / "secret.key")
    database = Database(f"sqlite:///{home / 'service.sqlite3'}")
    database.migrate()
    batches = Batches(database)
    batch_id = batches.create("k", LONG_AGO, None)
    key = Blobs(str(home / "blobs")).put(b"a face")
    batches.add_item(
        {"batch_id": batch_id, "seq": 1, "name": "a", "blob": key, "state": "accepted"}
    )
    batches.make_ready(batch_id, "", {}, [])
    database.close()
    return batch_id


def receipt(home: Path, batch_id: str) -> dict[str, object]:
    database = Database(f"sqlite:///{home / 'service.sqlite3'}")
    try:
        found = receipt_of(database, batch_id)
    finally:
        database.close()
    assert found is not None
    return found


def test_sweep_deletes_what_is_past_its_time_and_counts_it(home: Path) -> None:
    batch_id = old_batch(home)
    code, said = likeness("sweep", "--json")
    assert (code, json.loads(said)["batches"]) == (0, 1)
    assert not [p for p in home.glob("blobs/??/*") if p.is_file()]
    key = Signer(read_secret(home / "secret.key")).public
    assert key.fault(receipt(home, batch_id)) == ""
    assert "batches" not in likeness("sweep")[1]


def test_sweep_counts_the_pictures_that_no_row_named(home: Path) -> None:
    old_batch(home)
    key = Blobs(str(home / "blobs")).put(b"a face that nothing names")
    (lost,) = home.glob(f"blobs/??/{key}")
    os.utime(lost, (LONG_AGO, LONG_AGO))
    assert likeness("sweep")[1].splitlines()[-1] == "unnamed: 1"
    assert not lost.exists()


def test_a_receipt_is_checked_without_any_connection(home: Path, tmp_path: Path) -> None:
    batch_id = old_batch(home)
    signer = Signer(read_secret(home / "secret.key"))
    database = Database(f"sqlite:///{home / 'service.sqlite3'}")
    blobs = Blobs(str(home / "blobs"))
    made = erase(database, blobs, batch_id, now=LONG_AGO, key_id="k", sign=signer.sign)
    database.close()
    file, pem = tmp_path / "receipt.json", tmp_path / "key.pem"
    file.write_text(json.dumps(made, indent=2))
    pem.write_text(signer.public.pem)
    for more in ((), ("--key", str(pem))):
        code, said = likeness("receipt", "verify", str(file), *more)
        assert (code, f"valid: {batch_id}" in said) == (0, True)
    file.write_text(json.dumps(made | {"by": "somebody else"}))
    code, said = likeness("receipt", "verify", str(file), "--key", str(pem))
    assert (code, "NOT valid: altered" in said) == (1, True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"{", "not JSON"), (b"[]", "not a receipt"), (b"\xff", "not text"), (b"{}", "not a receipt")],
)
def test_what_is_no_receipt_is_named(
    home: Path, tmp_path: Path, content: bytes, reason: str
) -> None:
    read_secret(home / "secret.key")
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(LikenessError, match=reason):
        likeness("receipt", "verify", str(file))


def test_without_a_service_here_a_key_has_to_be_named_and_none_is_made(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    with pytest.raises(LikenessError, match="--key"):
        likeness("receipt", "verify", str(file))
    assert not home.exists()
    with pytest.raises(LikenessError, match="cannot be read"):
        likeness("receipt", "verify", str(file), "--key", str(tmp_path / "none.pem"))
