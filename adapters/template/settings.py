"""Settings of ``http_template``, with every mistake in a template found before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from adapters.contract import MaskSupport, ToolSpec
from adapters.guard import Settings
from adapters.hosted.mask_forms import MaskForm
from adapters.over_http.wire import HttpSettings
from adapters.template.paths import JsonPath
from adapters.template.rules import RefusalRule
from adapters.template.text import ENCODED, FILES, KEY, TEXTS, check_names, fill, names_in
from domain.edits import Task
from domain.sizing import SizeRule

MASKED = (Task.INPAINT_BACKGROUND, Task.INPAINT_FACE, Task.INPAINT_LOWER_FACE)
UNMASKED = (Task.RETOUCH, Task.RESTYLE, Task.ENHANCE)
SPEC = ToolSpec(
    id="http_template",
    name="An HTTP API of your own description",
    tasks=tuple(Task),
    mask_support="advisory",
    takes_prompt=True,
    seedable=True,
    price_note="whatever the API charges: give the plan a price",
    licence="the API's own",
    remote=True,
    concurrency=1,
    key_env="",
    refuses=("What the template's refusal rules say.",),
)
_HEADER_NAME = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
_IN_ADDRESS = ("seed", "width", "height")


class Poll(Settings):
    """How an answer that is no result yet is followed. ``url`` is the JSONPath of the address to
    ask, or ``path`` one with {id}, taken from the JSONPath ``id``. ``state`` is the JSONPath of the
    job's state; ``done``, ``failed`` and ``running`` list its words. Without ``running`` every other
    word means that it still runs. ``cancel`` is posted to, with {id}, when time is up."""

    url: JsonPath = ""
    path: str = ""
    id: JsonPath = ""
    state: JsonPath
    done: Annotated[tuple[str, ...], Field(min_length=1)]
    failed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    every_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    cancel: str = ""

    @model_validator(mode="after")
    def _knows_where(self) -> Self:
        if bool(self.url) == bool(self.path):
            raise ValueError("give url (a JSONPath) or path (with {id}), one of them")
        if not self.state:
            raise ValueError("state: a JSONPath is needed")
        for name, text in (("path", self.path), ("cancel", self.cancel)):
            check_names(text, name, ("id",))
            if text and "id" in names_in(text) and not self.id:
                raise ValueError(f"{name}: {{id}} is used, but id (its JSONPath) is not given")
        words = [*self.done, *self.failed, *self.running]
        if twice := sorted({w for w in words if words.count(w) > 1}):
            raise ValueError(f"the state '{twice[0]}' is listed twice")
        return self


class TemplateSettings(HttpSettings):
    """See docs/tools/http_template.md. The body is ``multipart`` (a value that is {picture} or {mask}
    alone is a file) or ``json_body``. The result is the answer's body, or lies in it as base64
    (``result_base64``) or as an address (``result_url``), both JSONPaths. ``mask`` is the form that the
    API takes. ``model`` names it in reports; ``model_path`` is where an answer says it."""

    method: Literal["POST", "PUT", "PATCH"] = "POST"
    path: str
    query: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    multipart: dict[str, str] = Field(default_factory=dict)
    json_body: Any = None
    mask: MaskForm = "white_is_edit"
    result_base64: JsonPath = ""
    result_url: JsonPath = ""
    result_with_key: bool = False
    poll: Poll | None = None
    refusals: tuple[RefusalRule, ...] = ()
    error_text: JsonPath = ""
    request_id: JsonPath = ""
    model: str = ""
    model_path: JsonPath = ""
    seed_below: Annotated[int, Field(ge=1, le=2**64)] = 2**31
    tasks: tuple[Task, ...] = ()
    mask_support: MaskSupport = "advisory"
    deterministic: bool = False
    sizes: tuple[tuple[int, int], ...] = ()
    multiple: Annotated[int, Field(ge=1)] = 1
    min_side: Annotated[int, Field(ge=1)] = 1
    max_side: Annotated[int, Field(ge=1)] = 8192
    aspect: Annotated[float, Field(gt=0)] | None = None

    @field_validator("path")
    @classmethod
    def _is_relative(cls, path: str) -> str:
        if "://" in path.partition("?")[0] or path.startswith("//"):
            raise ValueError("what follows base_url is needed, such as /v1/edits")
        check_names(path, "path", _IN_ADDRESS)
        return path

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER_NAME.match(name):
                raise ValueError(f"'{name}' is no name of a header")
            if not (value.isascii() and value.isprintable()):
                raise ValueError(f"'{name}' has a character that no header may have")
            if name.lower() in ("content-type", "content-length", "host"):
                raise ValueError(f"'{name}' follows from the body and is not set by hand")
            check_names(value, name, (KEY, *_IN_ADDRESS))
        return headers

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if bool(self.multipart) == (self.json_body is not None):
            raise ValueError("give multipart or json_body, one of them")
        if self.result_base64 and self.result_url:
            raise ValueError("give result_base64 or result_url, not both")
        if self.query and "?" in self.path:
            raise ValueError("path: its own ? and query do not go together")
        check_names(self.query, "query", _IN_ADDRESS)
        check_names(self.json_body, "json_body", (*TEXTS, *ENCODED))
        check_names(self.multipart, "multipart", (*TEXTS, *ENCODED, *FILES))
        for name, value in self.multipart.items():
            for file in set(names_in(value)) & set(FILES):
                if value != f"{{{file}}}":
                    raise ValueError(f"multipart: {name}: {{{file}}} is a file and stands alone")
        uses_key = KEY in names_in(self.headers)
        if uses_key and self.key is None:
            raise ValueError(
                "headers: {key} is used, but there is no key: name it with key_env or key_file"
            )
        if self.key is not None and not uses_key:
            raise ValueError("headers: a key is given, but {key} stands in none of them")
        if set(self.tasks) & set(MASKED) and not self.used("mask"):
            raise ValueError("tasks: an inpainting task needs {mask} somewhere in the body")
        return self

    def used(self, kind: str) -> bool:
        """Whether the body holds ``kind`` ("picture", "mask", "prompt", "seed") in any form."""
        names = self.names
        return any(n == kind or n.startswith(f"{kind}_") for n in names)

    @property
    def names(self) -> set[str]:
        """Every placeholder outside the headers."""
        return (
            names_in(self.multipart)
            | names_in(self.json_body)
            | names_in(self.query)
            | names_in(self.path)
        )

    def spec(self) -> ToolSpec:
        """The tool with these settings."""
        masked = self.used("mask")
        rule = SizeRule(self.sizes, self.multiple, self.min_side, self.max_side, self.aspect)
        return replace(
            SPEC,
            tasks=self.tasks or (MASKED if masked else UNMASKED),
            size=rule,
            mask_support=self.mask_support if masked else "none",
            takes_prompt="prompt" in self.names,
            seedable="seed" in self.names or "seed" in names_in(self.headers),
            deterministic=self.deterministic,
            generates=not self.used("picture"),
            key_needed=self.key is not None,
        )


def without_pictures(template: Any, values: Mapping[str, Any]) -> Any:
    """For the record: the template's texts filled in, pictures named and not shown."""
    shown = {name: f"[{name}]" for name in (*ENCODED, *FILES)}
    return fill(template, {**values, **shown})
