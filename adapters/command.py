"""Any program as a tool: ``program {input} {output}``, without a shell, with a time limit."""

from __future__ import annotations

import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from adapters.codec import size_note, write_png
from adapters.contract import Adapter, MaskSupport, ToolSpec
from adapters.guard import Settings, failures_are_answers, one_line, read_settings
from adapters.local.command_process import Ended, run_program
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.sizing import SizeRule

SPEC = ToolSpec(
    id="command",
    name="A program of your own",
    tasks=tuple(Task),
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    licence="the program's own",
    path_settings=("cwd",),
)
COPY = "import shutil, sys; shutil.copy(*sys.argv[1:])"
EXAMPLE: Mapping[str, Any] = {
    "argv": [sys.executable, "-c", COPY, "{input}", "{output}"],
}
PLACEHOLDERS = ("input", "output", "mask", "seed", "prompt", "width", "height")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class CommandSettings(Settings):
    """``argv`` is the program and its arguments, each handed over as it is; the placeholders
    {input} {output} {mask} (files), {seed} {prompt} {width} {height} may stand anywhere in them.
    ``timeout_s`` ends the program and all it started. ``pass_env`` names the variables it may see
    besides PATH, HOME and the language. ``refused_exit`` lists exit statuses that mean "will not
    do it". ``cwd`` is where it runs (default: here). The size keys are those of ``SizeRule``.
    """

    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    pass_env: tuple[str, ...] = ()
    refused_exit: int | tuple[int, ...] = ()
    tasks: tuple[Task, ...] = ()
    output_suffix: Annotated[str, Field(pattern=r"^\.[A-Za-z0-9]{1,8}$")] = ".png"
    max_output_mb: Annotated[float, Field(gt=0, le=4096)] = 64.0
    cwd: str = ""
    model: str = ""
    mask_support: MaskSupport = "advisory"
    deterministic: bool = False
    sizes: tuple[tuple[int, int], ...] = ()
    multiple: Annotated[int, Field(ge=1)] = 1
    min_side: Annotated[int, Field(ge=1)] = 1
    max_side: Annotated[int, Field(ge=1)] = 8192
    aspect: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _placeholders_are_known(self) -> Self:
        used = {name for part in self.argv[1:] for name in _PLACEHOLDER.findall(part)}
        if strange := sorted(used - set(PLACEHOLDERS)):
            known = " ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"argv: unknown placeholder {{{strange[0]}}}; known: {known}")
        if "output" not in used:
            raise ValueError("argv: {output} is missing, so the program cannot hand anything back")
        return self


def build(settings: Mapping[str, Any]) -> Adapter:
    """Make the tool. Raises LikenessError on a wrong setting or a program that is not there."""
    checked = read_settings(CommandSettings, settings, SPEC.id)
    program = None
    if checked.cwd:  # a program beside the plan comes before one on the PATH
        program = shutil.which(str(Path(checked.cwd, checked.argv[0])))
    program = program or shutil.which(checked.argv[0])
    if program is None:
        raise LikenessError(f"tool 'command': program '{checked.argv[0]}' was not found")
    if checked.cwd and not Path(checked.cwd).is_dir():
        raise LikenessError(f"tool 'command': folder '{checked.cwd}' (cwd) was not found")
    return CommandTool(checked, str(Path(program).absolute()))


class CommandTool:
    """Runs the program once a picture, in a temporary folder that is removed afterwards."""

    def __init__(self, settings: CommandSettings, program: str) -> None:
        self._settings, self._program = settings, program
        used = {name for part in settings.argv[1:] for name in _PLACEHOLDER.findall(part)}
        self._used = used
        rule = SizeRule(
            settings.sizes,
            settings.multiple,
            settings.min_side,
            settings.max_side,
            settings.aspect,
        )
        self.spec = replace(
            SPEC,
            tasks=settings.tasks or SPEC.tasks,
            size=rule,
            mask_support=settings.mask_support if "mask" in used else "none",
            takes_prompt="prompt" in used,
            seedable="seed" in used,
            deterministic=settings.deterministic,
            generates="input" not in used,
        )
        self.model = settings.model or f"command {Path(program).name}"

    @failures_are_answers
    def edit(self, request: EditRequest) -> EditOutcome:
        """What the program wrote to {output}, byte for byte; any other end with its reason."""
        if "input" in self._used and not request.picture:
            return Failed("the request has no picture, and the program wants {input}")
        if "mask" in self._used and request.mask is None:
            return Failed("the request has no mask, and the program wants {mask}")
        with tempfile.TemporaryDirectory(prefix="likeness-command-") as folder:
            place = Path(folder)
            output = place / f"output{self._settings.output_suffix}"
            ended = run_program(
                self._arguments(request, place, output),
                scratch=place,
                output=output,
                cwd=self._settings.cwd or None,
                pass_env=self._settings.pass_env,
                timeout_s=self._settings.timeout_s,
                max_output_bytes=self._limit,
            )
            return self._outcome(ended, output, request)

    def close(self) -> None:
        """Nothing outlives an edit."""

    @property
    def _limit(self) -> int:
        return int(self._settings.max_output_mb * 1_000_000)

    def _arguments(self, request: EditRequest, place: Path, output: Path) -> list[str]:
        suffix = ".jpg" if request.media_type == "image/jpeg" else ".png"
        source, mask = place / f"input{suffix}", place / "mask.png"
        if request.picture is not None:
            source.write_bytes(request.picture)
        if request.mask is not None and "mask" in self._used:
            mask.write_bytes(write_png(request.mask.values))
        values = {
            "input": str(source),
            "output": str(output),
            "mask": str(mask),
            "seed": str(request.seed),
            "prompt": request.prompt.replace("\0", " "),
            "width": str(request.width),
            "height": str(request.height),
        }
        # one pass, so that a placeholder inside a prompt stays text
        rest = [_PLACEHOLDER.sub(lambda m: values[m[1]], part) for part in self._settings.argv[1:]]
        return [self._program, *rest]

    def _outcome(self, ended: Ended, output: Path, request: EditRequest) -> EditOutcome:
        said = f": {ended.said}" if ended.said else ""
        refusals = self._settings.refused_exit
        if ended.stopped:
            return Failed(one_line(f"{ended.stopped}{said}", 300))
        if ended.status in ((refusals,) if isinstance(refusals, int) else refusals):
            return Refused("policy", f"exit {ended.status}", ended.said)
        if ended.status != 0:
            return Failed(one_line(f"the program ended with exit status {ended.status}{said}", 300))
        return self._read(output, said, request)

    def _read(self, output: Path, said: str, request: EditRequest) -> EditOutcome:
        try:
            facts = output.lstat()
        except FileNotFoundError:
            return Failed(one_line(f"the program ended well but wrote no {{output}}{said}", 300))
        if not stat.S_ISREG(facts.st_mode):
            return Failed("the program's {output} is not a plain file")
        if facts.st_size == 0:
            return Failed(one_line(f"the program's {{output}} is empty{said}", 300))
        if facts.st_size > self._limit:
            return Failed(f"the program's {{output}} is over {self._settings.max_output_mb:g} MB")
        data = output.read_bytes()
        return Edited(data, size_note(data, request))
