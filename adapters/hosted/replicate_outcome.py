"""What a finished Replicate prediction means: a picture's address, a refusal, or a failure.

Models say "no" in free words, so refusals are known by wording. Sources: the error codes page
(replicate.com/docs/reference/error-codes), model errors quoted on public trackers ("NSFW content
detected", "flagged as sensitive (E005)"), replicate-python#397 (a filtered picture can be a
"succeeded" with an empty list).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from domain.edits import Failed, Refused

RUNNING = frozenset({"starting", "processing", "queued"})
DONE = frozenset({"succeeded", "successful"})
_REFUSALS = (
    r"\bnsfw\b",
    r"\bflagged\s+(?:as|by|for)\b",
    r"\bE005\b",
    r"\b(?:content|safety|usage)[\s_-]+(?:polic\w+|moderation|guidelines?|violation)",
    r"\b(?:safety|content|moderation)[\s_-]+(?:filter|system|checker|check)\b[^.]{0,60}"
    r"\b(?:flagged|reject\w*|block\w*|trigger\w*|detect\w*|refus\w*)",
    r"\b(?:blocked|rejected|refused|filtered)\b[^.]{0,40}\b(?:safety|moderation|content filter)",
    r"\bmoderat(?:ed|ion)\b[^.]{0,40}\b(?:content|prompt|image|input|output|request)\b",
    r"\b(?:content|prompt|image|input|output|request)\b[^.]{0,40}\bmoderated\b",
    r"\b(?:sensitive|inappropriate|prohibited|harmful|sexually explicit)\s+(?:content|words?|material|image)",
    r"\bviolat\w+\b[^.]{0,60}\b(?:polic\w+|terms|guidelines?)",
)
_AGAIN = re.compile(r"\b(?:E1000|E6716|E8367)\b|try again (?:later|in)|temporar|high demand", re.I)
_CODE = re.compile(r"\bE\d{3,4}\b")
_INPUT = re.compile(
    r"\b(?:input|prompt|request|uploaded \w+)\b[^.]{0,30}"
    r"\b(?:flagged|rejected|blocked|moderated|refused|violat\w+|contains?)\b",
    re.IGNORECASE,
)
_OUTPUT = re.compile(r"\b(?:output|result|generated|outputs)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wording:
    """Knows a refusal by its words."""

    more: tuple[str, ...] = ()

    def refuses(self, text: str) -> str:
        """The words by which ``text`` is a refusal, "" when it is none."""
        for pattern in (*_REFUSALS, *self.more):
            found = re.search(pattern, text, re.IGNORECASE)
            if found and found[0]:
                return found[0]
        return ""

    def refusal(self, text: str, said: str, meta: Mapping[str, Any]) -> Refused | None:
        """``text`` as a refusal; ``said`` is what of it may be shown. Its stage is "input" only when
        the words name the input alone."""
        words = self.refuses(text)
        if not words:
            return None
        stage = "input" if _INPUT.search(text) and not _OUTPUT.search(text) else "output"
        code = _CODE.search(text)
        return Refused(stage, code[0] if code else words.lower()[:60], said, meta)

    def of_failed(self, text: str, said: str, meta: Mapping[str, Any]) -> Refused | Failed:
        """A prediction with status "failed" and ``text`` for its error."""
        refused = self.refusal(text, said, meta)
        if refused is not None:
            return refused
        whole = {**meta, "maybe_billed": True}
        return Failed(f"the model failed: {said or 'no reason given'}", bool(_AGAIN.search(text)), None, whole)  # fmt: skip


def addresses(output: Any, key: str = "") -> list[str]:
    """Every address or data URI of an output: a string, a list of strings, or an object (of which
    ``key`` alone counts, if given)."""
    if isinstance(output, Mapping):
        chosen = [output.get(key)] if key else list(output.values())
        return [a for part in chosen for a in addresses(part)]
    if isinstance(output, str):
        return [output] if re.match(r"(?:https?://|data:)", output, re.IGNORECASE) else []
    if isinstance(output, Iterable) and not isinstance(output, bytes):
        return [a for part in output for a in addresses(part)]
    return []
