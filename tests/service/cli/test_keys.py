"""``likeness keys``: a key is shown once, listed without its secret, and ended by its name."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from domain.errors import LikenessError
from service.cli.keys import lifetime
from service.cli.main import build_app
from service.store.api_keys import ApiKeys
from service.store.database import Database


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "likeness"
    monkeypatch.setenv("LIKENESS_HOME", str(home))
    for name in ("LIKENESS_DATABASE", "LIKENESS_SECRET_FILE"):
        monkeypatch.delenv(name, raising=False)
    return home


def keys(*words: str) -> Result:
    return CliRunner().invoke(build_app(), ["keys", *words])


def listed() -> list[dict[str, object]]:
    return [json.loads(line) for line in keys("list", "--json").stdout.splitlines()]


def test_a_new_key_is_printed_alone_on_stdout_and_shown_once(home: Path) -> None:
    done = keys("add", "ci", "--scope", "submit", "--scope", "read", "--expires", "90d")
    token = done.stdout.strip()
    assert done.exit_code == 0
    assert re.fullmatch("lk_[0-9a-f]{12}_[0-9a-f]{64}", token)
    assert "ci" in done.stderr and "not shown again" in done.stderr
    assert token[-64:] not in done.stderr + keys("list").output + keys("list", "--json").output


def test_a_key_made_here_opens_the_service(home: Path) -> None:
    token = keys("add", "ci").stdout.strip()
    database = Database(f"sqlite:///{home / 'service.sqlite3'}")
    found = ApiKeys(database).check(token, 1.8e9, 60.0)
    database.close()
    assert found is not None
    assert found.scopes == ("submit", "read")


def test_the_folder_is_for_its_owner_alone(home: Path) -> None:
    keys("list")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_keys_are_listed_with_scopes_and_state(home: Path) -> None:
    assert listed() == []
    keys("add", "anna", "--scope", "admin")
    keys("add", "ben", "--expires", "12h")
    keys("revoke", "anna")
    found = {k["name"]: k for k in listed()}
    assert found["anna"]["state"] == "revoked" and found["anna"]["scopes"] == ["admin"]
    assert found["ben"]["state"] == "active" and found["ben"]["expires"]
    table = keys("list").stdout
    assert "anna" in table and "revoked" in table and "never" in table


def test_a_name_stands_for_one_key_in_use(home: Path) -> None:
    keys("add", "ci")
    assert isinstance(keys("add", "ci").exception, LikenessError)
    keys("revoke", "ci")
    assert keys("add", "ci").exit_code == 0


def test_a_key_is_ended_by_its_id_too(home: Path) -> None:
    keys("add", "ci")
    keys("revoke", str(listed()[0]["key_id"]))
    assert listed()[0]["state"] == "revoked"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "ci", "--scope", "write"), "no scope 'write'; known: submit, read, review, admin"),
        (("add", ""), "a key needs a name"),
        (("add", "a\x1b[31m"), "a key needs a name"),
        (("add", "ci", "--expires", "soon"), "--expires: write a number"),
        (("revoke", "nobody"), "no key 'nobody' in use"),
    ],
)
def test_mistakes_are_one_clear_line(home: Path, words: tuple[str, ...], said: str) -> None:
    error = keys(*words).exception
    assert isinstance(error, LikenessError)
    assert said in str(error) and "\n" not in str(error)


@pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("90d", 2160), ("8w", 1344), ("1h", 1)])
def test_a_lifetime_is_a_number_of_hours_days_or_weeks(text: str, hours: int) -> None:
    assert lifetime(text).total_seconds() == hours * 3600


@pytest.mark.parametrize("text", ["0d", "-1d", "1", "d", "1y", "99999w", "1.5d", "\u0661d", ""])
def test_other_lifetimes_are_refused(text: str) -> None:
    with pytest.raises(LikenessError):
        lifetime(text)


def test_a_password_in_the_databases_address_shows_nowhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://likeness:canary-55@127.0.0.1:9/none"
    monkeypatch.setenv("LIKENESS_DATABASE", url)
    done = keys("list")
    assert isinstance(done.exception, LikenessError)
    assert "canary-55" not in done.output + str(done.exception)
