"""The endpoint of a probe plan: somebody's server with its key, or a model that is started here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from pydantic import SecretStr

from domain.probe_plan import EndpointChoice
from domain.tools import RateLimit
from probes import local_model
from probes.asking.endpoint import Endpoint, TokenPrice
from service.keys import check_no_key, named_key
from service.probe_plans import LoadedProbePlan

LOCAL_URL = "http://127.0.0.1/v1"
"""Stands in for the address of a model that has not been started."""


def unasked(loaded: LoadedProbePlan) -> Endpoint:
    """The endpoint for an estimate: nothing is started and no key is read."""
    return _endpoint(loaded.plan.endpoint, None)


@contextmanager
def opened(
    loaded: LoadedProbePlan, warn: Callable[[str], object] = lambda _text: None
) -> Iterator[Endpoint]:
    """The endpoint with its key, or of the local model, which runs until the block ends. Raises
    LikenessError in one line, also when the plan's text holds the key."""
    choice = loaded.plan.endpoint
    if choice.local is None:
        key = named_key(choice.key_env, choice.key_file, loaded.folder, warn=warn)
        check_no_key(loaded.path, loaded.text)
        yield _endpoint(choice, key)
        return
    with local_model.running() as started:
        yield replace(unasked(loaded), base_url=started.base_url, model=started.model)


class LocalEndpoint(Endpoint):
    """A model that is started for each run, on another port each time: replies are kept under its
    name alone, so that a resumed run knows them again."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What a call's key is made with."""
        return f"local {self.model}"


def _endpoint(choice: EndpointChoice, key: SecretStr | None) -> Endpoint:
    price = choice.price
    kind = Endpoint if choice.local is None else LocalEndpoint
    free = TokenPrice(0.0, 0.0, source="this machine") if choice.local else None
    return kind(
        base_url=choice.base_url or LOCAL_URL,
        model=local_model.NAME if choice.local else choice.model,
        key=key,
        concurrency=min(choice.concurrency, local_model.SLOTS)
        if choice.local
        else choice.concurrency,
        rate=RateLimit.parse(choice.rate_limit) if choice.rate_limit else None,
        max_attempts=choice.max_attempts,
        max_wait_s=choice.max_wait_s,
        timeout_s=choice.timeout_s,
        price=free
        if price is None
        else TokenPrice(
            price.input_per_million, price.output_per_million, price.currency, "as the plan says"
        ),
    )
