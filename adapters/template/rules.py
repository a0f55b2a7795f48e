"""Refusal rules of a request template: which answers mean "will not do it"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from adapters.guard import Settings, one_line
from adapters.over_http.wire import Reply, Wire
from adapters.template.paths import JsonPath, check_path, look_up
from domain.edits import Refused


class RefusalRule(Settings):
    """An answer is a refusal when all that the rule names holds: its ``status``; the value at
    ``jsonpath`` is there, ``equals`` this, ``matches`` this regular expression (without regard to case);
    ``header`` ("x-filtered") is there, or has the value that ``equals`` or ``matches`` asks for. ``code``
    is a word, or a JSONPath of the API's own; without it the value that was found. ``text`` is the
    JSONPath of its sentence."""

    status: Annotated[int, Field(ge=100, le=599)] | None = None
    jsonpath: JsonPath = ""
    header: str = ""
    equals: str | int | float | bool | None = None
    matches: str = ""
    stage: Literal["input", "output", "policy"] = "policy"
    code: str = ""
    text: JsonPath = ""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.status is None and not self.jsonpath and not self.header:
            raise ValueError("a rule needs a status, a jsonpath or a header")
        if self.jsonpath and self.header:
            raise ValueError("a rule looks at a jsonpath or at a header, not at both")
        asks = self.equals is not None or bool(self.matches)
        if asks and not (self.jsonpath or self.header):
            raise ValueError("equals and matches need a jsonpath or a header to look at")
        if self.equals is not None and self.matches:
            raise ValueError("equals and matches: give one of them, not both")
        try:
            re.compile(self.matches)
        except re.error as error:
            raise ValueError(f"matches: no regular expression: {error}") from None
        if self.code.startswith("$"):
            check_path(self.code)
        return self

    def struck(self, reply: Reply, body: Any) -> tuple[bool, Any]:
        """Whether ``reply`` is a refusal by this rule, and the value that says so."""
        if self.status is not None and reply.status != self.status:
            return False, None
        if not self.jsonpath and not self.header:
            return True, reply.status
        value = look_up(self.jsonpath, body) if self.jsonpath else reply.headers.get(self.header)
        return (value is not None and self._suits(value)), value

    def _suits(self, value: Any) -> bool:
        if self.matches:
            return bool(re.search(self.matches, _as_text(value), re.IGNORECASE))
        if self.equals is None:
            return True
        if self.header:
            return bool(value.strip().lower() == _as_text(self.equals).lower())
        # True is no 1 here
        same = type(value) is type(self.equals) or _numbers(value, self.equals)
        return bool(same and value == self.equals)


def refusal_of(
    rules: Iterable[RefusalRule], reply: Reply, wire: Wire, meta: Mapping[str, Any]
) -> Refused | None:
    """``reply`` by the first rule that strikes."""
    body = reply.json_or_none()
    for rule in rules:
        struck, value = rule.struck(reply, body)
        if struck:
            own = look_up(rule.code, body) if rule.code.startswith("$") else rule.code
            code = one_line(wire.redact(_as_text(own or value)), 100)
            text = look_up(rule.text, body)
            return Refused(
                rule.stage, code, "" if text is None else wire.redact(_as_text(text)), meta
            )
    return None


def _numbers(a: Any, b: Any) -> bool:
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
