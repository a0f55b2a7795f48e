"""The probe plan: which questions are put to which model, how often and under which conditions."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from domain.tools import RateText

PLAIN = "plain"
_WORD = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
_SECRET = re.compile(r"key|token|secret|passw|sig|code|auth", re.I)
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def _is_word(text: str) -> str:
    if not _WORD.match(text):
        raise ValueError("letters, digits, '_', '-' and '.' only, 64 at most")
    return text


Word = Annotated[str, AfterValidator(_is_word)]
"""A name that goes into files and tables."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TokenPriceChoice(_Part):
    """What a million tokens cost by your contract, in ``currency`` (an ISO 4217 code)."""

    input_per_million: Annotated[float, Field(ge=0)]
    output_per_million: Annotated[float, Field(ge=0)]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"


class EndpointChoice(_Part):
    """The model under test: ``base_url`` of any OpenAI-compatible endpoint, or ``local`` for one
    that is started here for the run. A key never stands here: ``key_env`` names a variable of the
    environment, ``key_file`` a file relative to the plan. ``rate_limit`` is written "150/10s";
    ``max_wait_s`` and ``timeout_s`` are seconds."""

    base_url: str | None = None
    local: Literal["smollm2"] | None = None
    model: str = ""
    key_env: str | None = None
    key_file: str | None = None
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    rate_limit: RateText | None = None
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    max_wait_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    price: TokenPriceChoice | None = None

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            parts = urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise ValueError("not a valid address") from None
        if parts.username is not None or parts.password is not None:
            raise ValueError("no user name or password in an address: use key_env or key_file")
        if parts.scheme not in ("http", "https") or not host or re.search(r"\s", text):
            raise ValueError("an address begins with http:// or https:// and names a host")
        if any(_SECRET.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
            raise ValueError("no key in an address: use key_env or key_file")
        return text

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.base_url is None) == (self.local is None):
            raise ValueError("give base_url or local, one of them")
        if self.key_env is not None and self.key_file is not None:
            raise ValueError("give key_env or key_file, not both")
        if self.key_env is not None and not _VARIABLE.match(self.key_env):
            # told without the value: somebody may have written the key itself
            raise ValueError("key_env names a variable of the environment, such as MODEL_KEY")
        if self.local is not None and (self.key_env or self.key_file):
            raise ValueError("a local model takes no key")
        if self.local is not None and self.model:
            raise ValueError("a local model has a name of its own: leave 'model' out")
        if self.base_url is not None and not self.model.strip():
            raise ValueError("'model' is needed: the name under which the endpoint knows it")
        return self


class SamplingChoice(_Part):
    """Stands in for what each probe would ask for, in the calls that draw text. None: as the probe
    has it."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] | None = None

    def changes(self) -> dict[str, Any]:
        """The parameters that are set, by name."""
        return self.model_dump(exclude_none=True)


class ProbeChoice(_Part):
    """One probe. ``id`` is the probe's, ``name`` tells two settings of it apart."""

    id: str
    name: Word | None = None
    languages: Annotated[list[str], Field(min_length=1)] = ["en"]
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name that reports use for this probe with these settings."""
        return self.name or self.id


class ConditionChoice(_Part):
    """What is added to every prompt, or changed in the sampling, against the plain condition.
    ``guard`` names a ready-made text that goes before the question, ``system`` is one of your own."""

    id: Word
    guard: str | None = None
    system: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _plain_is_plain(self) -> Self:
        if self.id == PLAIN and len(self.told()) > 1:
            raise ValueError("'plain' is the condition in which nothing is changed")
        return self

    def told(self) -> dict[str, Any]:
        """The keys that are set."""
        return self.model_dump(exclude_none=True)


def _condition(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


class CompositeChoice(_Part):
    """``weights`` by the probes' labels; one that is not named has weight 1."""

    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)


class GateChoice(BaseModel):
    """Limits by name (docs/probes/card.md), and the card of an earlier run to compare with, relative
    to the plan."""

    model_config = ConfigDict(extra="allow", frozen=True)

    baseline: str | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """The limits by name."""
        return dict(self.model_extra or {})


class ProbePlan(_Part):
    """See docs/probe_plan.md for the meaning of each key."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    purpose: str = ""
    endpoint: EndpointChoice
    probes: Annotated[list[ProbeChoice], Field(min_length=1)]
    conditions: Annotated[
        list[Annotated[ConditionChoice, BeforeValidator(_condition)]], Field(min_length=1)
    ] = [ConditionChoice(id=PLAIN)]
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    repeats: Annotated[int, Field(ge=1, le=1_000)] | None = None
    sampling: SamplingChoice = SamplingChoice()
    composite: CompositeChoice = CompositeChoice()
    gate: GateChoice = GateChoice()
    costs: list[dict[str, Any]] = Field(default_factory=list)

    @field_validator("conditions")
    @classmethod
    def _each_once(cls, found: list[ConditionChoice]) -> list[ConditionChoice]:
        ids = [c.id for c in found]
        twice = next((i for i in ids if ids.count(i) > 1), None)
        if twice is not None:
            raise ValueError(f"condition '{twice}' stands twice; give each its own id")
        return found
