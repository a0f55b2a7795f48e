"""What a Stable Diffusion tool is asked for when the plan gives no prompt: one caption a task.

Captions, where ``prompts`` has instructions: these models draw what the words describe and follow no
orders. None names a group, and each is the same for every portrait: a caption that said "woman" would
be part of what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.edits import EditRequest, Task

PROMPTS: Mapping[Task, str] = {
    Task.INPAINT_BACKGROUND: "a plain light grey studio background",
    Task.INPAINT_FACE: "portrait photograph of a person, natural skin texture, sharp focus",
    Task.INPAINT_LOWER_FACE: "portrait photograph, mouth and chin of a person, natural skin texture",
    Task.RETOUCH: "portrait photograph, professional retouching, natural skin texture",
    Task.RESTYLE: "an oil painting of the person, visible brush strokes",
    Task.ENHANCE: "a sharp, well lit portrait photograph, fine detail",
}
INPAINTING = frozenset({Task.INPAINT_BACKGROUND, Task.INPAINT_FACE, Task.INPAINT_LOWER_FACE})
"""The tasks that come with a mask."""
SEEDS = 2**32
"""Seeds are taken modulo this: every sampler takes them, and -1, which means "at random" to several
servers, becomes a number."""


def prompt_for(request: EditRequest) -> str:
    """The plan's prompt, else the task's own."""
    return request.prompt.strip() or PROMPTS.get(request.task, "portrait photograph of a person")
