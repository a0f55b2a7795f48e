"""Where a tool's key comes from: a variable of the environment or a secret file, never a plan."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr

from adapters.contract import ToolSpec
from domain.errors import LikenessError, PlanError
from service import secrets, settings

Keys = Literal["real", "placeholder"]
"""``placeholder`` builds a tool that can tell what it would do, but calls nobody."""
PLACEHOLDER = "no-key-was-read"
LARGEST = 16 * 1024
"""Bytes. A file beyond it is something else than a key."""
NO_LITERAL = "a plan holds no key; name a variable with key_env or a file with key_file"
_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")


def with_key(
    spec: ToolSpec,
    chosen: Mapping[str, Any],
    folder: Path,
    *,
    keys: Keys = "real",
    warn: Callable[[str], object] = lambda _text: None,
) -> dict[str, Any]:
    """A tool's settings with ``key`` in place of ``key_env`` and ``key_file``.

    ``folder`` is the plan's: ``key_file`` is relative to it. A key that the tool needs and that is
    not there raises LikenessError in one line that names the variable. ``warn`` is told of a file
    that others may read. A tool that knows no key gets its settings as they are.
    """
    found = dict(chosen)
    _remember_passed_on(found)
    if spec.key_env is None:
        return found
    if "key" in found:
        raise LikenessError(f"setting 'key': {NO_LITERAL}")
    variable, file = found.pop("key_env", None), found.pop("key_file", None)
    for name, value in (("key_env", variable), ("key_file", file)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise LikenessError(f"setting '{name}': a name is needed")
    if variable is not None and file is not None:
        raise LikenessError("settings 'key_env' and 'key_file': give one of them, not both")
    if keys == "placeholder":
        if variable or file or spec.key_needed:
            found["key"] = SecretStr(PLACEHOLDER)
        return found
    key = _of_file(folder, file, warn) if file else _of_variable(spec, variable)
    if key is not None:
        secrets.remember(key)
        found["key"] = SecretStr(key)
    return found


def named_key(
    variable: str | None,
    file: str | None,
    folder: Path,
    *,
    warn: Callable[[str], object] = lambda _text: None,
) -> SecretStr | None:
    """The key that a plan names by ``key_env`` or ``key_file`` (relative to ``folder``), None where
    it names neither. Raises LikenessError in one line; ``warn`` as for ``with_key``."""
    if file:
        key = _of_file(folder, file, warn)
    elif variable:
        key = _named_variable(variable)
    else:
        return None
    secrets.remember(key)
    return SecretStr(key)


def check_no_key(path: Path, text: str) -> None:
    """Pass a plan's ``text`` that holds no key which this process has read: it goes into the ledger
    and the report. Raises PlanError with the line."""
    for number, line in enumerate(text.splitlines(), 1):
        if secrets.holds_secret(line.encode()):
            raise PlanError(f"{path}:{number}: here stands the key itself: {NO_LITERAL}")


def _of_variable(spec: ToolSpec, named: str | None) -> str | None:
    variable = named or spec.key_env or ""
    if named or (variable and spec.key_needed):
        return _named_variable(variable)
    value = (settings.variable(variable) or "").strip() if variable else ""
    if value:
        return _checked(value, f"the environment variable {variable}")
    if spec.key_needed:
        raise LikenessError("a key is needed: name a variable with key_env or a file with key_file")
    return None


def _named_variable(variable: str) -> str:
    value = (settings.variable(variable) or "").strip()
    if value:
        return _checked(value, f"the environment variable {variable}")
    raise LikenessError(
        f"the environment variable {variable} is not set; set it to your key, "
        "or name a file that holds it with key_file"
    )


def _of_file(folder: Path, name: str, warn: Callable[[str], object]) -> str:
    path = folder / Path(name).expanduser()
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise LikenessError(f"key_file {path}: not a plain file")
        if facts.st_size > LARGEST:
            raise LikenessError(f"key_file {path}: over {LARGEST // 1024} kB, so not a key")
        text = path.read_bytes().decode("utf-8-sig").strip()
    except OSError as error:
        raise LikenessError(f"key_file {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LikenessError(f"key_file {path}: not a text file") from None
    if not text:
        raise LikenessError(f"key_file {path}: empty")
    if facts.st_mode & 0o077:
        warn(f"key_file {path}: others on this machine may read it; mend it with: chmod 600 {path}")
    return _checked(text, f"key_file {path}")


def _checked(value: str, source: str) -> str:
    """A key as HTTP can carry it. The message never quotes it."""
    if len(value.splitlines()) > 1:
        raise LikenessError(f"{source}: more than one line, where a key is one")
    if not (value.isascii() and value.isprintable()):
        raise LikenessError(f"{source}: holds a character that no key has, such as a curly quote")
    return value


def _remember_passed_on(chosen: Mapping[str, Any]) -> None:
    """What a program is handed from the environment may come back in its last words."""
    named = chosen.get("pass_env", ())
    for name in named if isinstance(named, list | tuple) else ():
        if isinstance(name, str) and name.upper().endswith(_SECRET_NAMES):
            value = (settings.variable(name) or "").strip()
            if value:
                secrets.remember(value)
