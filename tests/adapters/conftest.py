"""Fixtures for tools on the other end of a wire, and settings with which every tool can be built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pydantic import SecretStr

from adapters.contract import discover
from service.fake_servers.contract import FakeServer, start

Settings: TypeAlias = Mapping[str, Any]


def tiny_diffusion(folder: Path) -> Settings:
    """A pipeline with random weights, made on the spot."""
    from tests.adapters.tiny_diffusion import tiny_pipeline

    return {"model": str(tiny_pipeline(folder))}


PREPARE: dict[str, Callable[[Path], Settings]] = {"stable_diffusion": tiny_diffusion}
"""Settings of a tool's example that must be made first (a tiny model's files): tool id to a function
that fills the given empty folder and returns the settings."""


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Settings]]:
    """``example("openai_images")`` gives settings with which that tool can be built: its ``EXAMPLE``,
    what ``PREPARE`` makes for it, and address and key of the fake server that its ``FAKE`` names."""
    found, running = discover(), {}
    made: dict[str, Settings] = {}

    def settings(tool: str) -> Settings:
        if tool in made:
            return made[tool]
        module = found[tool][1]
        values = dict(getattr(module, "EXAMPLE", {}))
        if tool in PREPARE:
            values |= PREPARE[tool](tmp_path_factory.mktemp(tool))
        name = getattr(module, "FAKE", "")
        if name:
            server = running[name] = running.get(name) or start(name)
            values |= at(server)
        made[tool] = values
        return values

    yield settings
    for server in running.values():
        server.close()


def at(server: FakeServer) -> dict[str, Any]:
    """The settings that lead a tool to ``server``."""
    return {"base_url": server.url, "key": SecretStr(server.key)}
