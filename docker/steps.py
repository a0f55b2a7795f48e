"""Reads a Dockerfile into its steps, so that they can be run and checked without Docker.

Understands what this project's Dockerfile uses: ARG, FROM, ENV, WORKDIR, COPY, RUN with --mount, LABEL, USER,
VOLUME, EXPOSE, STOPSIGNAL, HEALTHCHECK, ENTRYPOINT, CMD. Anything else is an error, never skipped.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

KNOWN = frozenset(
    "ARG FROM ENV WORKDIR COPY RUN LABEL USER VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD".split()
)
_FLAG = re.compile(r"--([a-z-]+)=(\S+)\s*")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class DockerfileError(ValueError):
    """The Dockerfile says something that this reader does not know."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: its ``name`` in capitals, its ``flags`` in order, the ``text`` behind them, its first ``line``."""

    name: str
    flags: tuple[tuple[str, str], ...]
    text: str
    line: int

    def flag(self, name: str) -> str | None:
        """The value of ``--name=value``, None without it."""
        return next((value for key, value in self.flags if key == name), None)

    def mounts(self) -> list[dict[str, str]]:
        """The ``--mount`` flags, each as its fields."""
        rows = [value for key, value in self.flags if key == "mount"]
        return [dict(part.split("=", 1) for part in row.split(",")) for row in rows]

    def words(self) -> list[str]:
        """The text as words: a JSON list as it stands, else split as a shell would."""
        if self.text.startswith("["):
            return [str(word) for word in json.loads(self.text)]
        return shlex.split(self.text)

    def pairs(self) -> dict[str, str]:
        """The text of ENV, LABEL or ARG as ``name=value`` pairs; an ARG without a default gives ""."""
        return {
            name: value for name, _, value in (w.partition("=") for w in shlex.split(self.text))
        }


@dataclass(slots=True)
class Stage:
    """One FROM and what follows: ``base`` as written, ``name`` (its number without AS)."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Dockerfile:
    """The ``arguments`` before the first FROM with their defaults, and the ``stages`` in order."""

    arguments: dict[str, str]
    stages: list[Stage]

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise DockerfileError(f"no stage is called {name}")

    def last(self, instruction: str) -> Step:
        """The last such instruction of the last stage: the one in force (CMD, USER, HEALTHCHECK ...)."""
        found = [step for step in self.stages[-1].steps if step.name == instruction]
        if not found:
            raise DockerfileError(f"the last stage has no {instruction}")
        return found[-1]

    def settings(self) -> dict[str, str]:
        """The environment variables of the last stage itself."""
        rows = [step.pairs() for step in self.stages[-1].steps if step.name == "ENV"]
        return {name: value for row in rows for name, value in row.items()}


def read(path: Path) -> Dockerfile:
    """Parse the file. Raises DockerfileError naming the line that is not understood."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for step in _steps(path.read_text("utf-8")):
        if step.name == "FROM":
            words = step.text.split()
            named = len(words) == 3 and words[1].upper() == "AS"
            if not named and len(words) != 1:
                raise DockerfileError(f"line {step.line}: FROM {step.text}")
            stages.append(Stage(words[0], words[2] if named else str(len(stages))))
        elif stages:
            stages[-1].steps.append(step)
        elif step.name == "ARG":
            arguments.update(step.pairs())
        else:
            raise DockerfileError(f"line {step.line}: {step.name} before the first FROM")
    return Dockerfile(arguments, stages)


def expand(text: str, variables: dict[str, str]) -> str:
    """``$NAME`` and ``${NAME}`` replaced; an unknown name gives "" as in Docker."""
    return _VARIABLE.sub(lambda m: variables.get(m.group(1) or m.group(2), ""), text)


def _steps(text: str) -> list[Step]:
    """The instructions: comment lines dropped, also inside a continued one; continuations joined as lines."""
    found, gathered, first = [], [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        first = first if gathered else number
        if line.rstrip().endswith("\\"):
            gathered.append(line.rstrip()[:-1])
            continue
        found.append(_step(" ".join([*gathered, line]).strip(), first))
        gathered = []
    if gathered:
        raise DockerfileError(f"line {first}: the instruction has no end")
    return found


def _step(text: str, line: int) -> Step:
    name, _, rest = text.partition(" ")
    name, rest = name.upper(), rest.strip()
    if name not in KNOWN:
        raise DockerfileError(f"line {line}: unknown instruction {name}")
    flags = []
    while (match := _FLAG.match(rest)) is not None and name in {"COPY", "RUN", "HEALTHCHECK"}:
        flags.append((match.group(1), match.group(2)))
        rest = rest[match.end() :]
    return Step(name, tuple(flags), rest, line)
