"""The checks of ``likeness doctor``. Each returns what was found and, where wrong, what mends it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path
from typing import Any, Literal

from adapters.contract import discover
from preprocess import models, programs

CV2_DISTRIBUTIONS = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)
DISTRIBUTION = "likeness-audit"
OLDEST_PYTHON = (3, 11)
NEEDED_DISK_GB = 2.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor. ``mend`` is a command or a sentence, "" when nothing is wrong."""

    name: str
    status: Literal["ok", "note", "problem"]
    found: str
    mend: str = ""

    def as_json(self) -> dict[str, Any]:
        """The four fields by name."""
        return asdict(self)


def run_all() -> list[Check]:
    """Every check, in the order in which one would mend things. A check that breaks is a problem."""
    steps: tuple[Callable[[], Iterable[Check]], ...] = (
        _python, _packages, _one_cv2, _models, _exiftool, _gpu, _threads, _disk, _browser,
    )  # fmt: skip
    found: list[Check] = []
    for step in steps:
        name = step.__name__.strip("_")
        try:
            found.extend(step())
        except Exception as error:  # the doctor must outlive every patient
            found.append(
                Check(name, "problem", f"the check broke: {type(error).__name__}: {error}")
            )
    return found


def licences() -> dict[str, str]:
    """What binds a user of the results: model weights, then the tools under test."""
    found = {
        model.name: model.licence + (f". {model.note}" if model.note else "")
        for model in models.manifest().values()
    }
    for tool_id, (spec, _module) in discover().items():
        if spec.licence and not spec.control:
            found[f"tool {tool_id}"] = spec.licence
    return found


def cv2_distributions() -> list[str]:
    """Installed distributions that bring the module cv2. Two of them overwrite each other's files."""
    names = {str(d.metadata["Name"]).lower().replace("_", "-") for d in distributions()}
    return [name for name in CV2_DISTRIBUTIONS if name in names]


def _python() -> list[Check]:
    text = f"{platform.python_version()} ({sys.executable}) on {platform.platform()}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return [Check("python", "problem", text, "install Python 3.11 or newer, then: make setup")]
    return [Check("python", "ok", text)]


def _packages() -> list[Check]:
    try:
        needed = [r for r in requires(DISTRIBUTION) or [] if "extra ==" not in r]
    except PackageNotFoundError:
        return [Check("packages", "problem", f"{DISTRIBUTION} is not installed", "make setup")]
    found, missing = [], []
    for requirement in needed:
        match = _REQUIREMENT.match(requirement)
        name = match.group(1) if match else requirement
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    checks = [
        Check("packages", "ok", f"{DISTRIBUTION} {version(DISTRIBUTION)}; {', '.join(found)}")
    ]
    if missing:
        checks.append(Check("packages", "problem", f"missing: {', '.join(missing)}", "make setup"))
    return checks


def _one_cv2() -> list[Check]:
    found = cv2_distributions()
    if len(found) == 1:
        return [Check("cv2", "ok", f"{found[0]} {version(found[0])}, the only one")]
    wanted = "opencv-python-headless"
    mend = f"pip uninstall -y {' '.join(found) or wanted} && make setup"
    what = f"{len(found)} distributions bring cv2 ({', '.join(found)}) and overwrite each other"
    return [Check("cv2", "problem", what if found else f"{wanted} is missing", mend)]


def _models() -> list[Check]:
    checks = []
    for name in models.manifest():
        state = models.state(name)
        if state.path is None:
            checks.append(Check("model", "problem", str(state.problem), models.FETCH_COMMAND))
        else:
            text = f"{name}, sha256 {state.model.sha256[:12]}... verified, {state.path}"
            checks.append(Check("model", "ok", text))
    return checks


def _exiftool() -> list[Check]:
    program = programs.exiftool()
    if program is None:
        mend = programs.EXIFTOOL_REMEDY
        return [Check("exiftool", "problem", "the program is not on this machine", mend)]
    try:
        done = subprocess.run(  # noqa: S603 - a program found by its fixed name
            [program, "-ver"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        text = f"{program} does not run: {error}"
        return [Check("exiftool", "problem", text, programs.EXIFTOOL_REMEDY)]
    return [Check("exiftool", "ok", f"{done.stdout.strip()} ({program})")]


def _gpu() -> list[Check]:
    import torch  # takes a second to import, and only this check needs it

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return [Check("gpu", "ok", f"{', '.join(names)}; CUDA {torch.version.cuda}")]
    built = f"torch {torch.__version__}"
    if shutil.which("nvidia-smi"):
        text = f"{built} sees no GPU though this machine has NVIDIA's driver"
        return [Check("gpu", "note", text, "install a CUDA build of torch: docs/install.md")]
    return [Check("gpu", "note", f"none; {built} works on the processor")]


def _threads() -> list[Check]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [Check("threads", "ok", f"{cores} cores may be used; one thread a process is set")]


def _disk() -> list[Check]:
    checks = []
    for label, folder in (("models", models.directory()), ("work", Path.cwd())):
        place = folder
        while not place.exists():
            place = place.parent
        free = shutil.disk_usage(place).free / 1e9
        text = f"{free:.1f} GB free for {label} ({folder})"
        if free < NEEDED_DISK_GB:
            mend = f"free {NEEDED_DISK_GB:.0f} GB there, or work in another folder"
            checks.append(Check("disk", "problem", text, mend))
        else:
            checks.append(Check("disk", "ok", text))
    return checks


def _browser() -> list[Check]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found:
        return [Check("browser", "ok", f"{found} (for the report's own tests)")]
    text = "no Chromium; only the report's browser test needs it"
    return [Check("browser", "note", text, "as root: apt install chromium")]
