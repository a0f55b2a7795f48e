"""What a maker of language models turns away before any model runs, in the maker's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.fake_servers.chat_personality import REASONING_REJECTS, Personality
from service.fake_servers.chat_troubles import Error, error

MOST_LOGPROBS = 20
_ROLES = {"system", "developer", "user", "assistant", "tool"}
_UNSUPPORTED = "Unsupported parameter: '{name}' is not supported with this model."
_RENAMED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
    "instead."
)
_DEFAULT_ONLY = (
    "Unsupported value: '{name}' does not support {value} with this model. Only the default (1) value "
    "is supported."
)


class Rejected(Exception):
    """The request is turned away with ``error``."""

    def __init__(self, told: Error) -> None:
        super().__init__(told[0])
        self.error = told


@dataclass(frozen=True, slots=True)
class Order:
    """A request that is in order. ``text`` is the whole conversation, roles left out."""

    model: str
    text: str
    chat: bool
    wish: Mapping[str, Any]

    @property
    def budget(self) -> int:
        """Tokens that may be written."""
        told = self.wish.get("max_completion_tokens", self.wish.get("max_tokens"))
        return told if isinstance(told, int) else 4096

    @property
    def logprobs(self) -> int:
        """How many likely tokens are wanted for each place; 0: none."""
        if self.chat:
            return int(self.wish.get("top_logprobs") or 0) if self.wish.get("logprobs") else 0
        return int(self.wish.get("logprobs") or 0)


def read_order(told: Any, chat: bool, who: Personality, number: int) -> Order:
    """The request whose JSON is ``told``, the ``number``-th of all. Raises Rejected."""
    if not isinstance(told, dict):
        raise _wrong("We could not parse the JSON body of your request.")
    model = told.get("model")
    if not isinstance(model, str) or not model:
        raise _wrong("you must provide a model parameter", "model")
    text = _conversation(told.get("messages"), who, number) if chat else told.get("prompt")
    if not isinstance(text, str) or not text:
        raise _wrong("'prompt' is a required property", "prompt")
    _check_parameters(told, who, number)
    return Order(model, text, chat, told)


def _conversation(messages: Any, who: Personality, number: int) -> str:
    if not isinstance(messages, list) or not messages:
        raise _wrong("'messages' is a required property", "messages")
    said = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if role not in _ROLES or not isinstance(content, str):
            raise _wrong("Invalid value in 'messages'", "messages")
        if role == "system" and _rejects(who, "system", number):
            raise _wrong("System role not supported", "messages")
        said.append(content)
    return "\n".join(said)


def _check_parameters(told: Mapping[str, Any], who: Personality, number: int) -> None:
    for name in told:
        if not _rejects(who, name, number):
            continue
        if name == "max_tokens":
            raise _wrong(_RENAMED, name, "unsupported_parameter")
        if name in ("temperature", "top_p"):
            if told[name] != 1:
                said = _DEFAULT_ONLY.format(name=name, value=told[name])
                raise _wrong(said, name, "unsupported_value")
            continue
        raise _wrong(_UNSUPPORTED.format(name=name), name, "unsupported_parameter")
    logprobs = told.get("top_logprobs")
    if logprobs is not None and not (isinstance(logprobs, int) and 0 <= logprobs <= MOST_LOGPROBS):
        raise _wrong(f"Invalid 'top_logprobs': at most {MOST_LOGPROBS}", "top_logprobs")
    if logprobs and told.get("logprobs") is not True:
        raise _wrong("'top_logprobs' needs 'logprobs' to be true", "top_logprobs")
    temperature = told.get("temperature")
    if temperature is not None and not 0 <= temperature <= 2:
        raise _wrong("Invalid 'temperature': expected a value of at most 2", "temperature")


def _rejects(who: Personality, name: str, number: int) -> bool:
    names = who.rejects | REASONING_REJECTS if who.reasoning else who.rejects
    return number >= who.rejects_from and name in names


def _wrong(message: str, param: str | None = None, code: str | None = None) -> Rejected:
    return Rejected(error(400, message, "invalid_request_error", code, param=param))
