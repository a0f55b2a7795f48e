"""Two kinds of place in which the Dockerfile's steps run: an empty Debian (as root), or a bare folder (as anyone)."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEVICES = ("null", "zero", "full", "random", "urandom")


class StepFailed(RuntimeError):
    """A step ended with an error; the text holds the end of what it said."""


class Chroot:
    """A root file system of its own under ``folder``. Needs root, in mount and process namespaces of our own."""

    whole = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def at(self, path: str) -> Path:
        """Where the root's ``path`` lies on this machine."""
        return self.folder / path.lstrip("/")

    def run(self, script: str, env: Mapping[str, str], folder: str, log: Path) -> None:
        """Run a shell line inside, its words added to ``log``. Raises StepFailed."""
        with self.systems():
            command = ["chroot", str(self.folder), "/bin/sh", "-c", f'cd "{folder}" && {script}']
            _logged(command, {"PATH": SYSTEM_PATH, "HOME": "/var/empty", **env}, log)

    @contextlib.contextmanager
    def systems(self) -> Iterator[None]:
        """/proc and a /dev with the five devices every program expects, for as long as the block runs."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(mounted(self.at("proc"), "-t", "proc", "proc"))
            stack.enter_context(mounted(self.at("dev"), "-t", "tmpfs", "-o", "mode=755", "tmpfs"))
            for name in DEVICES:
                self.at(f"dev/{name}").touch()
                stack.enter_context(mounted(self.at(f"dev/{name}"), "--bind", f"/dev/{name}"))
            stack.enter_context(
                mounted(self.at("dev/shm"), "-t", "tmpfs", "-o", "mode=1777", "tmpfs")
            )
            for number, name in enumerate(("stdin", "stdout", "stderr")):
                self.at(f"dev/{name}").symlink_to(f"/proc/self/fd/{number}")
            self.at("dev/fd").symlink_to("/proc/self/fd")
            yield

    @contextlib.contextmanager
    def machines_pip(self, target: str) -> Iterator[None]:
        """This machine's pip configuration at ``target``, and the local folders and files that it names."""
        text = pip_configuration()
        with contextlib.ExitStack() as stack:
            for path in local_paths(text):
                stack.enter_context(self.lent(path, str(path)))
            self.at(target).write_text(text, "utf-8")
            stack.callback(self.at(target).unlink, missing_ok=True)
            yield

    @contextlib.contextmanager
    def lent(self, source: Path, target: str) -> Iterator[None]:
        """``source`` seen at ``target`` inside, read-only; no trace is left of it."""
        there = self.at(target)
        made = [p for p in (there, *there.parents) if not p.exists()]
        with contextlib.ExitStack() as stack:
            if source.is_dir():
                there.mkdir(parents=True, exist_ok=True)
            else:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.touch()
            stack.callback(_remove_empty, made)
            stack.enter_context(mounted(there, "--bind", str(source)))
            _quiet("mount", "-o", "remount,ro,bind", str(there))
            yield


class Bare:
    """A folder that stands for the root: paths in the steps are rewritten to lie in it. Needs no rights, and
    shares the machine's libraries, so it shows less than a Chroot."""

    whole = False

    def __init__(self, folder: Path, places: Sequence[str]) -> None:
        self.folder = folder
        self._place = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, places))})(?![\w-])")

    def at(self, path: str) -> Path:
        """Where the root's ``path`` lies on this machine."""
        return self.folder / path.lstrip("/")

    def inside(self, text: str) -> str:
        """``text`` with the root's own places turned to where they lie."""
        return self._place.sub(lambda m: f"{self.folder}{m.group(1)}", text)

    def run(self, script: str, env: Mapping[str, str], folder: str, log: Path) -> None:
        """Run a shell line with the root's places rewritten. Raises StepFailed."""
        settings = {key: self.inside(value) for key, value in env.items()}
        pip = (
            self.folder / "pip.conf"
        )  # HOME is another one here, so pip would not find the machine's
        pip.write_text(pip_configuration(), "utf-8")
        home = {"HOME": str(self.folder), "PATH": SYSTEM_PATH, "PIP_CONFIG_FILE": str(pip)}
        _logged(
            ["/bin/sh", "-c", f'cd "{self.at(folder)}" && {self.inside(script)}'],
            {**home, **settings},
            log,
        )

    @contextlib.contextmanager
    def machines_pip(self, _target: str) -> Iterator[None]:
        """Nothing to do: pip reads the machine's own configuration."""
        yield

    @contextlib.contextmanager
    def lent(self, source: Path, target: str) -> Iterator[None]:
        """``source`` seen at ``target``, by a link."""
        self.at(target).parent.mkdir(parents=True, exist_ok=True)
        self.at(target).symlink_to(source)
        try:
            yield
        finally:
            self.at(target).unlink()


@contextlib.contextmanager
def mounted(target: Path, *arguments: str) -> Iterator[None]:
    """``mount ARGUMENTS TARGET`` for as long as the block runs."""
    target.mkdir(parents=True, exist_ok=True) if not target.exists() else None
    _quiet("mount", *arguments, str(target))
    try:
        yield
    finally:
        _quiet("umount", "--lazy", str(target))


def empty_debian(folder: Path, suite: str, log: Path) -> None:
    """A minimal Debian from the mirror this machine uses, with its package sources. Raises StepFailed."""
    mirror = debian_mirror()
    _logged(["debootstrap", "--variant=minbase", suite, str(folder), *mirror], None, log)
    shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
    kept = _answer("apt-config", "dump", "Acquire")
    (folder / "etc/apt/apt.conf.d/99machine").write_text(kept, "utf-8")
    source = Path("/etc/apt/sources.list.d/debian.sources")
    if source.is_file() and f" {suite}" in source.read_text("utf-8"):
        shutil.copy(source, folder / "etc/apt/sources.list.d")
        (folder / "etc/apt/sources.list").unlink(missing_ok=True)


def debian_mirror() -> list[str]:
    """The first Debian mirror among this machine's package sources; empty: debootstrap's own."""
    places = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    texts = [p.read_text("utf-8", errors="replace") for p in places if p.is_file()]
    found = re.findall(
        r"(?m)^(?:URIs:|deb(?: \[[^\]]*\])?) +(\S+/debian)/?(?:\s|$)", "\n".join(texts)
    )
    return found[:1]


def pip_configuration() -> str:
    """This machine's pip configuration, its files and variables in one, as the text of a pip.conf."""
    rows = _answer("python3", "-m", "pip", "config", "list")
    kept: dict[str, str] = {}
    for section, key, value in re.findall(r"(?m)^(\S+?)\.([\w-]+)='(.*)'$", rows):
        if section in {"global", "install", "download", ":env:"}:
            kept[key] = value.replace("\\n", "\n  ")
    return "\n".join(["[global]", *(f"{key} = {value}" for key, value in kept.items()), ""])


def local_paths(text: str) -> list[Path]:
    """The files and folders of this machine that a pip.conf names; of a local index the folder above, since an
    index points to files beside itself."""
    named = [
        Path(path).parent if scheme and Path(path).parent != Path("/") else Path(path)
        for scheme, path in re.findall(r"(?<![\w:/])(file://)?(/[^\s/'\"][^\s'\"]*)", text)
    ]
    return [path for path in dict.fromkeys(named) if path.exists()]


def _logged(command: Sequence[str], env: Mapping[str, str] | None, log: Path) -> None:
    with log.open("ab") as out:
        start = out.tell()
        done = subprocess.run(  # noqa: S603 - the Dockerfile's own steps
            command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
    if done.returncode != 0:
        said = log.read_bytes()[start:].decode("utf-8", "replace").splitlines()[-12:]
        raise StepFailed("\n".join([f"ended with {done.returncode}; its last words:", *said]))


def _answer(*command: str) -> str:
    """What a program of this machine prints; "" where it fails."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603


def _quiet(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise StepFailed(f"{' '.join(command)}: {done.stderr.strip()}")


def _remove_empty(paths: Sequence[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()
