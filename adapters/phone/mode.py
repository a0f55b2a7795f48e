"""Which quality mode worked: by the device's word, and by the picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.phone.answers import size_of
from adapters.phone.detail import LEAST, Detail
from adapters.phone.settings import HIGH


def doubt_of(asked: str, facts: Mapping[str, Any], detail: Detail, size: tuple[int, int]) -> str:
    """Why the mode that was asked for was not the one that worked; "" when it was. ``facts`` are the
    answer's (mobile_answers.facts_of), ``size`` the frame's (width, height)."""
    used = facts.get("quality_mode")
    if used is None:
        return f"the device does not say which quality mode it used ({asked} was asked for)"
    if used != asked:
        hot = facts.get("thermal_before", "not told")
        return f"the device answered in {used}, not in {asked} (thermal state {hot})"
    if asked != HIGH:
        return ""
    working = size_of(facts.get("working_size", ""))
    if working is not None and (working[0] < size[0] or working[1] < size[1]):
        return f"the device says {used}, but worked at {working[0]}x{working[1]}"
    if detail.lost:
        return (
            f"the device says {used}, but the picture looks scaled down inside: of its finest detail "
            f"{detail.where} {detail.kept:.0%} agrees with what was sent ({LEAST:.0%} needed)"
        )
    return ""
