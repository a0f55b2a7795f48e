"""What can be put before a question, or changed in how it is asked, to see whether answers differ less.

A guard tells the model what to judge by. It is one way to lessen a difference and no proof of one: the
same probes are run with it and without it, and ``comparing`` says what changed, refusals included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from domain.errors import LikenessError, did_you_mean
from probes.calls import PLAIN, Call

SCENARIOS = ("hiring", "education", "health", "lending", "customer_service", "general")
LANGUAGES = ("en", "zh", "de")
UNALIGNED = "unaligned"
GUARDED = "guarded"
LOW_TEMPERATURE = "low_temperature"
LOW = 0.3
"""Temperature of the condition "low_temperature" where the plan names none."""
UNALIGNED_NOTICE = (
    "The condition 'unaligned' asks for the commonest associations in text. It changes what is"
    " measured: its figures describe what the model can be made to say, not what it says when it is"
    " used, and they stand in no composite index."
)
LOW_NOTICE = (
    "At a low temperature a model gives its likeliest answer almost every time: a small lean becomes a"
    " large difference of rates. Read these figures as a diagnosis and not as a rate in use."
)
_FOLDER = Path(__file__).parent / "data" / "guards"
_JOINERS = {"zh": ""}
_SAMPLING = ("temperature", "top_p")


@dataclass(frozen=True, slots=True)
class Condition:
    """What is done to every call of a run. ``system`` goes before the question, "" for nothing;
    ``sampling`` are parameters that change; ``notice`` is a sentence a report must show."""

    id: str
    system: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    notice: str = ""

    def put(self, call: Call) -> Call:
        """``call`` under this condition."""
        return call if self.id == PLAIN else call.under(self.id, self.system, **self.sampling)

    @property
    def digest(self) -> str:
        """Sha256 over the words and parameters: two conditions of one name may differ in them."""
        told = f"{self.system}\n{sorted(self.sampling.items())}"
        return hashlib.sha256(told.encode()).hexdigest()


def guard(scenario: str, language: str) -> str:
    """The guard for ``scenario`` (see SCENARIOS) in ``language`` ("en", "zh" or "de").

    Raises LikenessError for a scenario or language that there is no text for.
    """
    texts = _texts(language)
    scenarios: Mapping[str, list[str]] = texts["scenarios"]
    if scenario not in scenarios:
        hint = did_you_mean(scenario, scenarios)
        known = ", ".join(scenarios)
        raise LikenessError(f"no guard for scenario '{scenario}'{hint} (known: {known})")
    return _joined((*scenarios[scenario], *texts["common"]), language)


def guard_version(language: str) -> str:
    """Version and short sha256 of the texts of ``language``, to be kept with results."""
    sha = hashlib.sha256((_FOLDER / f"{language}.yaml").read_bytes()).hexdigest()
    return f"{_texts(language)['version']} ({sha[:12]})"


def condition_of(choice: str | Mapping[str, Any], language: str) -> Condition:
    """The condition that a plan names: "plain", "low_temperature", "unaligned", "guarded", or a
    mapping with ``id`` and any of ``guard`` (a scenario), ``system`` (own words), ``temperature``
    and ``top_p``. "guarded" without a scenario takes "general".

    Raises LikenessError for keys, ids or scenarios that are not known, and for a condition that
    would change nothing.
    """
    told = {"id": choice} if isinstance(choice, str) else _set_keys(choice)
    name = str(told.get("id", ""))
    unknown = sorted(set(told) - {"id", "guard", "system", *_SAMPLING})
    if unknown:
        raise LikenessError(f"condition '{name}': unknown key '{unknown[0]}'")
    if name == PLAIN:
        if len(told) > 1:
            raise LikenessError(f"condition '{PLAIN}' is the one in which nothing is changed")
        return Condition(PLAIN)
    sampling = {key: float(told[key]) for key in _SAMPLING if key in told}
    if name == LOW_TEMPERATURE:
        sampling.setdefault("temperature", LOW)
    if name == GUARDED and "system" not in told:
        told.setdefault("guard", "general")
    system = _system(name, told, language)
    if not system and not sampling:
        hint = did_you_mean(name, (PLAIN, GUARDED, LOW_TEMPERATURE, UNALIGNED))
        raise LikenessError(
            f"condition '{name}' changes nothing{hint}; give it a guard or a temperature"
        )
    notice = {UNALIGNED: UNALIGNED_NOTICE, LOW_TEMPERATURE: LOW_NOTICE}.get(name, "")
    return Condition(name, system, sampling, notice)


def _set_keys(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in choice.items() if value is not None}


def _system(name: str, told: Mapping[str, Any], language: str) -> str:
    parts = []
    if name == UNALIGNED:
        parts.append(_joined(_texts(language)["unaligned"], language))
    if "guard" in told:
        parts.append(guard(str(told["guard"]), language))
    if "system" in told:
        parts.append(str(told["system"]).strip())
    if len(parts) > 1:
        raise LikenessError(f"condition '{name}': give one of guard, system or the id 'unaligned'")
    return parts[0] if parts else ""


def _joined(lines: tuple[str, ...] | list[str], language: str) -> str:
    return _JOINERS.get(language, " ").join(lines)


@cache
def _texts(language: str) -> dict[str, Any]:
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise LikenessError(f"no guards in language '{language}' (known: {known})")
    loaded: dict[str, Any] = yaml.safe_load((_FOLDER / f"{language}.yaml").read_text("utf-8"))
    return loaded
