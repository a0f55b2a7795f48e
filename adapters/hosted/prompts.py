"""What a prompt-driven tool is asked for when the plan gives no prompt: the same words to every tool,
so that their results compare. None describes a person: the picture alone says who is in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.edits import EditRequest, Task

DEFAULT_PROMPTS: Mapping[Task, str] = {
    Task.RECONSTRUCT: "Reproduce this photograph exactly as it is.",
    Task.RESTYLE: (
        "Redraw this portrait as a watercolour painting. Keep the pose, the expression and the "
        "person recognisable."
    ),
    Task.RETOUCH: (
        "Retouch this portrait the way a professional photographer would: even out the light and "
        "remove temporary blemishes. Change nothing else about the person or the background."
    ),
    Task.ENHANCE: (
        "Improve the technical quality of this photograph: sharper, less noise, natural colours. "
        "Change nothing about the person."
    ),
    Task.INPAINT_BACKGROUND: (
        "A plain, evenly lit, light grey studio wall behind the person. Leave the person exactly "
        "as they are."
    ),
    Task.INPAINT_FACE: (
        "A natural, unretouched photograph of the person's face, in keeping with the rest of the "
        "picture."
    ),
    Task.INPAINT_LOWER_FACE: (
        "A natural, unretouched photograph of the lower half of the person's face with a neutral "
        "expression, in keeping with the rest of the picture."
    ),
}


def prompt_of(request: EditRequest) -> str:
    """The plan's prompt, else the default of the task."""
    return request.prompt.strip() or DEFAULT_PROMPTS[request.task]
