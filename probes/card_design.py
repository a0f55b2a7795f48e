"""Why two results are not of the same question, and what else two cards differ in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "seed": "the seed",
    "repeats": "the number of repeats",
    "not_taken": "the parameters that the server did not take",
    "condition": "the words or parameters of the condition",
    "arms": "the arms",
    "axis": "the attribute",
}
_PARTS = {"settings": "setting", "sampling": "sampling", "versions": "version"}


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Reasons why the figures of two results cannot be compared; empty where they can."""
    first, second = a["design"], b["design"]
    found = []
    for key, words in _WORDS.items():
        if first.get(key) != second.get(key):
            hidden = key == "condition"  # hashes say nothing to a reader
            found.append(
                f"{words} changed"
                + (
                    ""
                    if hidden
                    else f" ({_said(first.get(key))} then, {_said(second.get(key))} now)"
                )
            )
    for key, words in _PARTS.items():
        one, two = first.get(key) or {}, second.get(key) or {}
        for name in sorted(set(one) | set(two)):
            if one.get(name) != two.get(name):
                said = f"{_said(one.get(name))} then, {_said(two.get(name))} now"
                found.append(f"{words} '{name}' changed ({said})")
    if a["index_means"] != b["index_means"]:
        found.append("the ends of the index have another meaning")
    return found


def unusable(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Why their indices say nothing, whatever the figures; empty where they do."""
    return [
        f"{which} the model cannot be probed like this ({result['why_not'] or 'unusable'})"
        for which, result in (("then", a), ("now", b))
        if not result["usable"]
    ]


def card_notices(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """What a reader must know of two cards before their figures."""
    one, two = a["model"], b["model"]
    found = []
    if one["asked"] != two["asked"]:
        found.append(f"Another model was asked: {one['asked']} then, {two['asked']} now.")
    if sorted(one["returned"]) != sorted(two["returned"]):
        found.append(
            f"Replies name another model: {_names(one['returned'])} then,"
            f" {_names(two['returned'])} now."
        )
    elif sorted(one["fingerprints"]) != sorted(two["fingerprints"]):
        found.append(
            "The same model string with another fingerprint: the system behind it changed."
        )
    for which, model in (("earlier", one), ("later", two)):
        if len(model["returned"]) > 1:
            found.append(
                f"In the {which} run replies name several models ({_names(model['returned'])}):"
                " its figures mix them."
            )
    if one["host"] != two["host"]:
        found.append(f"Another endpoint: {one['host']} then, {two['host']} now.")
    if a["design"]["plan_sha256"] != b["design"]["plan_sha256"]:
        found.append(
            "The text of the plan changed; each figure below says whether that concerns it."
        )
    for which, card in (("earlier", a), ("later", b)):
        if card["run"]["stopped_by"]:
            found.append(f"The {which} run was stopped early: {card['run']['stopped_by']}.")
    return [*found, *_verdicts(a, b), *_versions(a, b)]


def _verdicts(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    first = {_place(r): r for r in a["results"]}
    found: list[str] = []
    for after in b["results"]:
        before = first.get(_place(after))
        if before is None:
            continue
        known = {t["id"]: t["verdict"] for t in before["tests"]}
        found.extend(
            f"{after['probe']}, {after['language']}: the test '{t['id']}' said"
            f" {known[t['id']]} then and says {t['verdict']} now."
            for t in after["tests"]
            if t["id"] in known and known[t["id"]] != t["verdict"]
        )
    return found


def _versions(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    one, two = a["versions"], b["versions"]
    changed = sorted(n for n in set(one) | set(two) if one.get(n) != two.get(n))
    return [f"Other versions of: {', '.join(changed)}."] if changed else []


def _place(result: Mapping[str, Any]) -> tuple[str, str, str]:
    return (result["probe"], result["language"], result["condition"])


def _names(counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(counts)) or "none"


def _said(value: object) -> str:
    """Short, for a sentence: long settings are told by their beginning."""
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(str(v) for v in value) or "none"
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
