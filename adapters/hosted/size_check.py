"""Turns down a request that a tool would change the size of in silence."""

from __future__ import annotations

from domain.edits import EditRequest
from domain.sizing import SizeRule


def check_size(request: EditRequest, rule: SizeRule) -> None:
    """Pass a request with a picture whose sides are multiples within the rule's bounds. Raises
    ValueError in one clear line."""
    if not request.picture:
        raise ValueError("the request has no picture")
    for side in (request.width, request.height):
        if side % rule.multiple or not rule.min_side <= side <= rule.max_side:
            raise ValueError(
                f"{request.width}x{request.height} is not taken: sides are multiples of "
                f"{rule.multiple} within {rule.min_side}..{rule.max_side}"
            )
