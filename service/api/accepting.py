"""Which form of an answer a caller would have, by its header Accept (RFC 9110)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from service.api.problems import Problem


def best_of(request: Request, forms: Sequence[str]) -> str:
    """The form that is liked most; of equals the first of ``forms``. Raises Problem 406 where none
    is taken."""
    asked = ",".join(request.headers.getlist("accept"))
    if not asked.strip():
        return forms[0]
    ranges = [_range(part) for part in asked.split(",") if part.strip()]
    liked = {form: _quality(form, ranges) for form in forms}
    best = max(forms, key=lambda form: liked[form])
    if liked[best] <= 0:
        raise Problem(406, "not-acceptable", f"this answer exists as {', '.join(forms)}")
    return best


def _range(part: str) -> tuple[str, float]:
    """A media range with its quality; one that cannot be read as a number counts as 1."""
    name, *parameters = (p.strip().lower() for p in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                quality = min(1.0, max(0.0, float(value)))
            except ValueError:
                quality = 1.0
    return name, quality


def _quality(form: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Of the most exact range that names ``form``."""
    kind = form.partition("/")[0]
    for name in (form, f"{kind}/*", "*/*"):
        found = [quality for given, quality in ranges if given == name]
        if found:
            return max(found)
    return 0.0
