"""A tool's key comes from the environment or a secret file, and from nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import adapters.contract
from adapters.contract import ToolSpec
from domain.edits import Edited
from domain.errors import LikenessError, PlanError
from service import runs, secrets
from service.keys import with_key
from service.plans import load_plan
from tests.service.scripted import SPEC, Scripted, write_plan

CANARY = "sk-canary-0123456789"
HOSTED = replace(SPEC, key_env="SCRIPTED_API_KEY", key_needed=True, remote=True)
OPTIONAL = replace(HOSTED, key_env="", key_needed=False)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(secrets, "_known", set())
    monkeypatch.delenv("SCRIPTED_API_KEY", raising=False)
    yield


def key_of(spec: ToolSpec, settings: dict[str, Any], folder: Path, **options: Any) -> str | None:
    found = with_key(spec, settings, folder, **options)
    assert not {"key_env", "key_file"} & set(found), "they are not the adapter's"
    key = found.get("key")
    assert key is None or isinstance(key, SecretStr)
    return key.get_secret_value() if key else None


def test_the_tools_own_variable_is_read_unless_the_plan_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_API_KEY", f"  {CANARY}\n")
    monkeypatch.setenv("SECOND_ACCOUNT", "another-key")
    assert key_of(HOSTED, {}, tmp_path) == CANARY
    assert key_of(HOSTED, {"key_env": "SECOND_ACCOUNT"}, tmp_path) == "another-key"
    assert secrets.scrub_text(f"{CANARY} another-key") == "[key] [key]"


def test_a_key_file_is_relative_to_the_plan_and_stripped(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    file = tmp_path / "secret" / "key.txt"
    file.write_bytes(b"\xef\xbb\xbf" + CANARY.encode() + b"\r\n")
    file.chmod(0o600)
    warnings: list[str] = []
    settings = {"key_file": "secret/key.txt"}
    assert key_of(HOSTED, settings, tmp_path, warn=warnings.append) == CANARY
    assert warnings == []


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_key_file_that_others_may_read_is_warned_of(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key.txt"
    file.write_text(CANARY)
    file.chmod(mode)
    warnings: list[str] = []
    assert key_of(HOSTED, {"key_file": "key.txt"}, tmp_path, warn=warnings.append) == CANARY
    [warning] = warnings
    assert "others on this machine may read it" in warning and CANARY not in warning


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (f"{CANARY}\n{CANARY}\n".encode(), "more than one line"),
        (b"k" * (16 * 1024 + 1), "over 16 kB"),
        (b"\xff\xfe\x00", "not a text file"),
        (f"“{CANARY}”".encode(), "a character that no key has"),
        (None, "No such file"),
    ],
    ids=["empty", "blank", "two lines", "huge", "binary", "curly quotes", "absent"],
)
def test_a_file_that_holds_no_key_is_refused_in_one_line_that_does_not_quote_it(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "key.txt").write_bytes(content)
        (tmp_path / "key.txt").chmod(0o600)
    with pytest.raises(LikenessError, match=said) as caught:
        with_key(HOSTED, {"key_file": "key.txt"}, tmp_path)
    assert "key.txt" in str(caught.value) and "\n" not in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_folder_is_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="not a plain file"):
        with_key(HOSTED, {"key_file": "."}, tmp_path)


def test_a_key_that_is_needed_and_missing_names_its_variable(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="variable SCRIPTED_API_KEY is not set"):
        with_key(HOSTED, {}, tmp_path)
    with pytest.raises(LikenessError, match="variable MY_OTHER is not set"):
        with_key(OPTIONAL, {"key_env": "MY_OTHER"}, tmp_path)
    with pytest.raises(LikenessError, match="key_env or a file with key_file"):
        with_key(replace(OPTIONAL, key_needed=True), {}, tmp_path)


def test_an_optional_key_may_be_absent(tmp_path: Path) -> None:
    assert key_of(OPTIONAL, {}, tmp_path) is None
    assert key_of(replace(HOSTED, key_needed=False), {}, tmp_path) is None


def test_both_sources_at_once_are_a_slip(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="give one of them"):
        with_key(HOSTED, {"key_env": "A", "key_file": "b"}, tmp_path)


def test_a_tool_that_knows_no_key_gets_its_settings_untouched(tmp_path: Path) -> None:
    settings = {"key_env": "PATH", "quality": 3}
    assert with_key(SPEC, settings, tmp_path) == settings


def test_an_estimate_is_made_without_any_key(tmp_path: Path) -> None:
    placeholder = key_of(HOSTED, {"key_file": "absent"}, tmp_path, keys="placeholder")
    assert placeholder and key_of(OPTIONAL, {}, tmp_path, keys="placeholder") is None
    assert secrets.known() == []


def test_what_a_program_is_handed_from_the_environment_is_a_secret_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", CANARY)
    monkeypatch.setenv("VENDOR_MODE", "thorough")
    with_key(SPEC, {"pass_env": ["VENDOR_API_KEY", "VENDOR_MODE"]}, tmp_path)
    assert secrets.scrub_text(f"{CANARY} thorough") == "[key] thorough"


# In a plan ------------------------------------------------------------------------------------


class Hosted:
    """A module as discovery finds it."""

    SPEC = HOSTED

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []

    def build(self, settings: Any) -> Scripted:
        self.given.append(dict(settings))
        return Scripted(Edited(b"x"), key_env="SCRIPTED_API_KEY", remote=True)


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Hosted:
    module = Hosted()
    monkeypatch.setattr(adapters.contract, "discover", lambda: {"scripted": (module.SPEC, module)})
    return module


def test_a_literal_key_in_a_plan_is_refused_with_its_line_and_not_quoted(
    tmp_path: Path, hosted: Hosted
) -> None:
    plan = write_plan(tmp_path, f"\n  - id: scripted\n    settings:\n      key: {CANARY}\n")
    with pytest.raises(PlanError) as caught:
        load_plan(plan)
    said = str(caught.value)
    assert f"{plan}:6: tools.0.settings.key: a plan holds no key; name a variable" in said
    assert CANARY not in said


def test_a_key_hidden_elsewhere_in_a_plan_is_refused_with_its_line(
    tmp_path: Path, hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_API_KEY", CANARY)
    plan = write_plan(tmp_path, "[{id: scripted}]", more=f"purpose: with {CANARY}\n")
    with pytest.raises(PlanError) as caught:
        runs.begin(load_plan(plan), tmp_path / "out", resume=False)
    assert f"{plan}:5: here stands the key itself" in str(caught.value)
    assert CANARY not in str(caught.value) and not (tmp_path / "out").exists()


def test_a_missing_key_is_told_in_one_line_before_anything_is_made(
    tmp_path: Path, hosted: Hosted
) -> None:
    plan = write_plan(tmp_path, "[{id: scripted, name: vendor A}]")
    with pytest.raises(LikenessError) as caught:
        runs.begin(load_plan(plan), tmp_path / "out", resume=False)
    said = str(caught.value)
    assert said.startswith(f"{plan}: tool 'vendor A': the environment variable SCRIPTED_API_KEY")
    assert "\n" not in said and not (tmp_path / "out").exists()


def test_the_adapter_gets_the_key_and_the_plans_settings_do_not(
    tmp_path: Path, hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    plan = write_plan(tmp_path, "[{id: scripted, settings: {key_env: MY_KEY, quality: high}}]")
    loaded = load_plan(plan)
    runs.build_tool(loaded, loaded.plan.tools[0])
    assert hosted.given == [{"quality": "high", "key": SecretStr(CANARY)}]
    assert CANARY not in repr(hosted.given) + repr(loaded)


def test_a_local_tool_that_is_not_made_for_threads_refuses_them_with_the_line(
    tmp_path: Path,
) -> None:
    plan = write_plan(tmp_path, "\n  - id: identity\n    concurrency: 4\n")
    with pytest.raises(PlanError, match=r":5: tools\.0\.concurrency: 'identity' runs here"):
        load_plan(plan)
