"""A full disk, a database and a blob store that are gone for a while: 503 with Retry-After meanwhile,
then everything goes on by itself.

Run by ``make soak``: ``python docs/soak/faults.py [--seconds 30] [--only NAME]``. A small file system
is made full: that takes root, or a machine that lets users have name spaces (unshare). Prints one
line of JSON; exits 1 when a promise is missed.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.soak import rig
from docs.soak.postgres import Postgres
from docs.soak.probing import Prober
from service.store.database import SQLITE_LOCK_S
from tests.service.store.conftest import S3

DISK = "256m"
RECOVER_S = 120.0
CALL_S = 2.0
Fault = Callable[[], AbstractContextManager[object]]


def suffer(
    there: rig.Stand, fault: Fault, seconds: float, number: int, told: bool
) -> tuple[dict[str, Any], list[str]]:
    """One fault for so many seconds, amid a run and under questions. ``told``: something must be
    answered 503; a fault shorter than the service's own patience need not be."""
    prober = Prober(there, number)
    prober.begin_run()
    with prober.asking(), fault():
        time.sleep(seconds)
    try:
        took = prober.recovered(RECOVER_S)
    except TimeoutError as error:
        return dict(prober.facts()), [*prober.seen.missed, str(error)]
    facts = {**prober.facts(), "recovered_s": round(took, 1), "runs": len(prober.seen.runs)}
    said = [s for c in prober.seen.statuses.values() for s in c]
    if told and "503" not in said:
        prober.seen.missed.append("nothing answered 503: was there a fault at all?")
    return facts, prober.seen.missed


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A file system of its own at ``place``. Raises PermissionError where none can be mounted."""
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "soak", str(place)]
    if subprocess.run(made, check=False, capture_output=True).returncode:
        raise PermissionError("no small file system can be mounted here (needs root, or unshare)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)  # noqa: S607


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not one more byte fits."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as sink, suppress(OSError):
        for size in (1 << 20, 1 << 10, 1):
            with suppress(OSError):
                while sink.write(b"\0" * size):
                    pass
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another program holds SQLite's write lock."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as link:
        link.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            link.execute("ROLLBACK")


@contextmanager
def moved(folder: Path) -> Iterator[None]:
    """The folder is not there, as when it is not mounted any more."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)


@contextmanager
def stopped(store: list[S3]) -> Iterator[None]:
    """The S3 server does not listen; what it holds stays."""
    port = store[0].port
    store[0].close()
    try:
        yield
    finally:
        store[0] = S3(port)


class Faults:
    """Each by its name; those that share a service are done in turn on the same one."""

    def __init__(self, seconds: float, only: list[str], nice: int = 0) -> None:
        self._seconds, self._only, self._nice = seconds, only, nice
        self.facts: dict[str, Any] = {}
        self.missed: list[str] = []
        self._number = 0

    def all(self) -> None:
        """Those that are wanted, in turn."""
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the S3 server's many lines
        if self.wanted("disk full"):
            self.on_a_small_disk()
        if self.wanted("sqlite locked", "folder gone"):
            self.on_sqlite()
        if self.wanted("postgres stopped", "postgres frozen", "s3 gone"):
            self.on_postgres()

    def wanted(self, *names: str) -> bool:
        """Whether one of them is to be done."""
        return not self._only or bool(set(names) & set(self._only))

    def do(self, there: rig.Stand, name: str, fault: Fault, longer: float = 0.0) -> None:
        """One fault, for as long as all or ``longer``."""
        if self.wanted(name):
            self._number += 100_000
            facts, missed = suffer(
                there, fault, self._seconds + longer, self._number, told=not longer
            )
            self.facts[name] = facts
            self.missed += [f"{name}: {line}" for line in dict.fromkeys(missed)]

    def on_a_small_disk(self) -> None:
        """SQLite and pictures on a disk that fills up; the log of the service as well."""
        with rig.folder() as folder, ExitStack() as ends:
            try:
                disk = ends.enter_context(small_disk(folder / "disk"))
            except PermissionError as error:
                self.facts["disk full"] = {"not_run": str(error)}
                return
            there = ends.enter_context(self._stand(disk / "home", folder / "calls.log"))
            self.do(there, "disk full", lambda: full(disk))

    def on_sqlite(self) -> None:
        """SQLite and pictures in a folder."""
        with rig.folder() as folder, self._stand(folder / "home") as there:
            file = folder / "home" / "service.sqlite3"
            self.do(there, "sqlite locked", lambda: locked(file), SQLITE_LOCK_S / 2)
            self.do(there, "folder gone", lambda: moved(folder / "home" / "blobs"))

    def on_postgres(self) -> None:
        """PostgreSQL, and pictures in an S3-type store."""
        with rig.folder() as folder, ExitStack() as ends:
            server = ends.enter_context(closing(Postgres(folder / "pg")))
            store = [S3()]
            ends.callback(lambda: store[0].close())  # noqa: PLW0108 - whichever it is by then
            more = {"database": server.url, "blobs": store[0].url("soak")}
            there = ends.enter_context(self._stand(folder / "home", **more))
            self.do(there, "postgres stopped", server.gone)
            self.do(there, "postgres frozen", server.frozen)
            self.do(there, "s3 gone", lambda: stopped(store))

    def _stand(
        self, home: Path, calls: Path | None = None, **more: Any
    ) -> AbstractContextManager[rig.Stand]:
        return rig.stand(home, calls=calls, call_s=CALL_S, nice=self._nice, **more)


def own_mounts() -> bool:
    """Whether somebody who is not root may mount in a name space of their own here."""
    found = shutil.which("unshare")
    return bool(found) and subprocess.run([found, "-rm", "true"], check=False).returncode == 0


def main() -> int:
    """All faults."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=30.0)
    asked.add_argument("--only", action="append", default=[])
    asked.add_argument("--nice", type=int, default=0)
    asked.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = asked.parse_args()
    if os.geteuid() != 0 and not chosen.inside and own_mounts():
        line = ["unshare", "-rm", sys.executable, __file__, *sys.argv[1:], "--inside"]
        return subprocess.run(line, check=False).returncode
    rig.on_signals()
    faults = Faults(chosen.seconds, chosen.only, chosen.nice)
    faults.all()
    return rig.finish("faults", {"seconds": chosen.seconds, **faults.facts}, faults.missed)


if __name__ == "__main__":
    sys.exit(main())
