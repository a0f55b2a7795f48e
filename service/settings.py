"""The only reader of the environment. Everything else is handed what it needs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from domain.errors import LikenessError

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """``models`` is the folder of model files; ``data`` the folder of shared test data;
    ``workers`` the number of measuring processes (None: one a core)."""

    models: Path
    data: Path | None
    workers: int | None


def load() -> Settings:
    """Read LIKENESS_MODELS, LIKENESS_DATA and LIKENESS_WORKERS; unset means the default."""
    data = os.environ.get("LIKENESS_DATA")
    workers = os.environ.get("LIKENESS_WORKERS", "")
    models = os.environ.get("LIKENESS_MODELS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Settings(
        models=Path(models) if models else cache / "likeness" / "models",
        data=Path(data) if data else None,
        workers=int(workers) if workers.isdigit() and int(workers) > 0 else None,
    )


@dataclass(frozen=True, slots=True)
class Server:
    """Where the service keeps its things. ``database`` and ``blobs`` are URLs, which may hold a
    password and therefore never show in a text of this object; a plain path is a folder.
    ``hosts`` are the names, beside this machine's own, under which it may be reached; ``tools`` is
    the operator's file of ready-made tools (``service.offers``); ``fetch_allow`` are "host" or
    "host:port" that pictures may be fetched from although they lie inside."""

    home: Path
    database: str = field(repr=False)
    blobs: str = field(repr=False)
    secret_file: Path
    hosts: tuple[str, ...] = ()
    tools: Path | None = None
    fetch_allow: tuple[str, ...] = ()


def server() -> Server:
    """Read LIKENESS_HOME, LIKENESS_DATABASE, LIKENESS_BLOBS, LIKENESS_SECRET_FILE, LIKENESS_HOSTS
    and LIKENESS_FETCH_ALLOW (separated by commas) and LIKENESS_TOOLS (a file); unset means everything under HOME."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    home = Path(os.environ.get("LIKENESS_HOME") or Path(data) / "likeness").expanduser().absolute()
    secret, tools = os.environ.get("LIKENESS_SECRET_FILE"), os.environ.get("LIKENESS_TOOLS")
    return Server(
        home=home,
        database=_database(home),
        blobs=os.environ.get("LIKENESS_BLOBS") or str(home / "blobs"),
        secret_file=Path(secret).expanduser() if secret else home / "secret.key",
        hosts=tuple(h.lower() for h in _listed("LIKENESS_HOSTS")),
        tools=Path(tools).expanduser() if tools else None,
        fetch_allow=tuple(h.lower() for h in _listed("LIKENESS_FETCH_ALLOW")),
    )


def _database(home: Path) -> str:
    """LIKENESS_DATABASE, with the password in the file that LIKENESS_DATABASE_PASSWORD_FILE names.

    An orchestrator hands a password over as a file; in a variable it would show in ``inspect``.
    """
    url = os.environ.get("LIKENESS_DATABASE") or f"sqlite:///{home / 'service.sqlite3'}"
    place = os.environ.get("LIKENESS_DATABASE_PASSWORD_FILE")
    if not place:
        return url
    try:
        password = Path(place).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        message = f"the file {place} of LIKENESS_DATABASE_PASSWORD_FILE cannot be read: {why}"
        raise LikenessError(message) from None
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).set(password=password).render_as_string(hide_password=False)
    except ArgumentError:
        raise LikenessError("LIKENESS_DATABASE is not the address of a database") from None


def token() -> str | None:
    """The key for somebody else's server: LIKENESS_TOKEN, else what stands in the file that
    LIKENESS_TOKEN_FILE names; None for neither. Raises LikenessError for a file that is not there."""
    place = os.environ.get("LIKENESS_TOKEN_FILE")
    if os.environ.get("LIKENESS_TOKEN") or not place:
        return os.environ.get("LIKENESS_TOKEN", "").strip() or None
    try:
        return Path(place).expanduser().read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        message = f"the file {place} of LIKENESS_TOKEN_FILE cannot be read: {why}"
        raise LikenessError(message) from None


def _listed(name: str) -> list[str]:
    return [part.strip() for part in os.environ.get(name, "").split(",") if part.strip()]


def variable(name: str) -> str | None:
    """One variable of the environment by its name: where a plan or a tool says that its key lies."""
    return os.environ.get(name)


def pin_threads() -> None:
    """One thread a process, set before numpy, torch or OpenCV start theirs.

    Several processes with several threads each on few cores run up to a hundred times slower,
    and thread counts change the last bits of sums, so results would not repeat.
    """
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
    # mediapipe and TensorFlow Lite write start-up chatter to stderr, where progress bars live
    os.environ.setdefault("GLOG_minloglevel", "3")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
