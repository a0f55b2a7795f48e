"""Runs the stages of a Dockerfile one after another, each in a root of its own."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from roots import SYSTEM_PATH, Bare, Chroot, StepFailed, empty_debian
from steps import Dockerfile, Stage, Step, expand

PLACES = ("/opt/likeness", "/src", "/wheels", "/data")
_SUITE = re.compile(r"^debian:([a-z]+)")
_NEVER_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.sqlite3*", "*.key", ".env")


@dataclass(slots=True)
class Build:
    """``context`` is the repository, ``work`` an empty folder, ``arguments`` what --build-arg gives, ``wheels`` a
    folder in place of the stage of that name."""

    file: Dockerfile
    context: Path
    work: Path
    arguments: Mapping[str, str]
    wheels: Path | None
    say: Callable[[str], None]
    roots: dict[str, Chroot | Bare] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)

    def whole(self) -> Chroot:
        """Every stage in an empty Debian; the last stage's root. Raises StepFailed."""
        for stage in self.file.stages:
            root = Chroot(self.work / stage.name)
            base = expand(stage.base, {**self.file.arguments, **self.arguments})
            self._start(root, base)
            self.roots[stage.name] = root
            self._stage(stage, root, dict(self.settings.get(base, {"PATH": SYSTEM_PATH})))
        return root

    def bare(self, name: str) -> Bare:
        """One stage's pip steps in a bare folder: what apt would install must be on this machine already."""
        root = Bare(self.work / name, PLACES)
        root.folder.mkdir(parents=True)
        self.roots["wheels"] = Bare(self.wheels or self.work / "wheels", PLACES)
        self.roots["wheels"].folder.mkdir(exist_ok=True)
        self._stage(self.file.stage(name), root, {})
        return root

    def log(self, stage: str) -> Path:
        """What the steps of that stage said."""
        return self.work / f"{stage}.log"

    def _start(self, root: Chroot, base: str) -> None:
        if base == "scratch":
            root.folder.mkdir(parents=True)
        elif base in self.roots:
            command = ["cp", "-a", str(self.roots[base].folder), str(root.folder)]
            subprocess.run(command, check=True)  # noqa: S603 - our own folders
        elif (match := _SUITE.match(base)) is not None:
            started = time.monotonic()
            empty_debian(root.folder, match.group(1), self.log("debian"))
            self.say(f"an empty Debian {match.group(1)} ({time.monotonic() - started:.0f} s)")
        else:
            raise StepFailed(f"only a Debian can be made here, not {base}")

    def _stage(self, stage: Stage, root: Chroot | Bare, env: dict[str, str]) -> None:
        arguments: dict[str, str] = {}
        folder = "/"
        for step in stage.steps:
            known = {**arguments, **env}
            if step.name == "ARG":
                arguments.update({k: self.arguments.get(k, v) for k, v in step.pairs().items()})
            elif step.name == "ENV":
                env.update({key: expand(value, known) for key, value in step.pairs().items()})
            elif step.name == "WORKDIR":
                folder = step.text
                root.at(folder).mkdir(parents=True, exist_ok=True)
            elif step.name == "COPY":
                self._copy(step, root, folder)
            elif step.name == "RUN":
                self._run(stage.name, step, root, known, folder)
        self.settings[stage.name] = env

    def _run(
        self, stage: str, step: Step, root: Chroot | Bare, env: Mapping[str, str], folder: str
    ) -> None:
        if not root.whole and "apt-get" in step.text:
            self.say(f"line {step.line} left out: it wants root and apt")
            return
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            for mount in step.mounts():
                if mount["type"] == "secret":
                    stack.enter_context(root.machines_pip(mount["target"]))
                else:
                    source = self.roots[mount["from"]].folder
                    stack.enter_context(root.lent(self.wheels or source, mount["target"]))
            try:
                root.run(step.text, env, folder, self.log(stage))
            except StepFailed as error:
                raise StepFailed(f"Dockerfile line {step.line}: {error}") from None
        self.say(f"{stage}: line {step.line} ran ({time.monotonic() - started:.0f} s)")

    def _copy(self, step: Step, root: Chroot | Bare, folder: str) -> None:
        *sources, target = step.words()
        origin = step.flag("from")
        place = root.at(target if target.startswith("/") else f"{folder}/{target}")
        for name in sources:
            source = self.roots[origin].at(name) if origin else self.context / name
            if source.is_dir() and origin:  # the venv: 2 GB that need not lie here twice
                place.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-al", str(source), str(place)], check=True)  # noqa: S603, S607
            elif source.is_dir():
                shutil.copytree(source, place, ignore=_NEVER_COPIED, dirs_exist_ok=True)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, place)
