"""Settings of ``replicate`` and what they say about the tool."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from adapters.contract import MaskSupport, ToolSpec
from adapters.hosted.mask_forms import MaskForm
from adapters.over_http.wire import HttpSettings
from domain.edits import Task
from domain.sizing import SizeRule
from domain.tools import RateLimit

MASKED = (Task.INPAINT_BACKGROUND, Task.INPAINT_FACE, Task.INPAINT_LOWER_FACE)
UNMASKED = (Task.RETOUCH, Task.RESTYLE, Task.ENHANCE)
SPEC = ToolSpec(
    id="replicate",
    name="A model on Replicate",
    tasks=(*MASKED, *UNMASKED),
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    price_note="by the second or by the picture, as the model's own page says",
    licence="the model's own",
    remote=True,
    concurrency=4,
    # replicate.com/docs/topics/predictions/rate-limits
    rate=RateLimit(600, 60.0),
    key_env="REPLICATE_API_TOKEN",
    key_needed=True,
    refuses=(
        "What the model's own safety filter flags, in the picture, the prompt or the result.",
        "Inputs that the model's schema does not know.",
    ),
)
_MODEL = re.compile(r"^[\w.-]+/[\w.-]+(?::[0-9a-f]{64})?$")


class ReplicateSettings(HttpSettings):
    """``model`` is "owner/name" (official models; with ``deployment`` a deployment of yours) or
    "owner/name:VERSION". The ``*_field`` keys name the model's inputs, "" for one it has not;
    "image_input[]" is a list of one. ``inputs`` are sent with every picture as they are.

    ``mask`` says how the model reads masks. Pictures over ``inline_kb`` go up as files, which are
    deleted again. ``wait_s`` holds the first answer open (0 to 60). ``output_key`` picks the picture
    of an output that is an object. ``refusal_words`` are regular expressions beside the built-in
    ones. The size keys are those of ``SizeRule``."""

    base_url: str = "https://api.replicate.com"
    model: str
    deployment: bool = False
    picture_field: Annotated[str, Field(min_length=1)] = "image"
    mask_field: str = ""
    prompt_field: str = "prompt"
    seed_field: str = "seed"
    width_field: str = ""
    height_field: str = ""
    inputs: dict[str, Any] = Field(default_factory=dict)
    mask: MaskForm = "white_is_edit"
    mask_support: MaskSupport = "advisory"
    inline_kb: Annotated[float, Field(ge=0, le=1024)] = 256.0
    wait_s: Annotated[int, Field(ge=0, le=60)] = 60
    poll_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    output_key: str = ""
    refusal_words: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    multiple: Annotated[int, Field(ge=1)] = 1
    min_side: Annotated[int, Field(ge=1)] = 1
    max_side: Annotated[int, Field(ge=1)] = 2048
    aspect: Annotated[float, Field(gt=0)] | None = None

    @field_validator("model")
    @classmethod
    def _names_a_model(cls, text: str) -> str:
        if not _MODEL.match(text):
            raise ValueError("owner/name is needed, or owner/name:VERSION with 64 hex digits")
        return text

    @field_validator("refusal_words")
    @classmethod
    def _are_patterns(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            try:
                re.compile(word)
            except re.error as error:
                raise ValueError(f"'{word}' is no regular expression: {error}") from None
        return words

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        named = [self.picture_field, self.mask_field, self.prompt_field, self.seed_field,
                 self.width_field, self.height_field]  # fmt: skip
        names = [name.removesuffix("[]") for name in named if name]
        for name in names:
            if names.count(name) > 1 or name in self.inputs:
                raise ValueError(f"input '{name}' is filled twice")
        if self.deployment and ":" in self.model:
            raise ValueError("model: a deployment has no version")
        if not self.mask_field and set(self.tasks) & set(MASKED):
            raise ValueError("tasks: an inpainting task needs mask_field")
        return self

    @property
    def path(self) -> str:
        """Where predictions are made."""
        owner_name, _, version = self.model.partition(":")
        if version:
            return "v1/predictions"
        return f"v1/{'deployments' if self.deployment else 'models'}/{owner_name}/predictions"

    @property
    def version(self) -> str:
        """64 hex digits, or "" for whichever is current."""
        return self.model.partition(":")[2]

    def spec(self) -> ToolSpec:
        """The tool with these settings."""
        masked = bool(self.mask_field)
        rule = SizeRule(self.sizes, self.multiple, self.min_side, self.max_side, self.aspect)
        return replace(
            SPEC,
            tasks=self.tasks or (MASKED if masked else UNMASKED),
            size=rule,
            mask_support=self.mask_support if masked else "none",
            takes_prompt=bool(self.prompt_field),
            seedable=bool(self.seed_field),
        )
