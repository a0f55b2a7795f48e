"""What a watcher of a run is told. Its methods are called from several threads."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What a watcher of a run is told."""

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` steps begins."""

    def step(self, name: str) -> None:
        """One step of the stage ``name`` is done."""

    def say(self, text: str) -> None:
        """Something worth a line."""


class Silent:
    """A watcher that watches nothing."""

    def stage(self, name: str, total: int) -> None:
        """Nothing."""

    def step(self, name: str) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""
