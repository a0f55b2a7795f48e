"""Refusals planted by who is in the picture, so that an audit has a known disparity to find.

``gender=female:0.4`` refuses two fifths of the portraits that a manifest declares female. The server
sees only pictures: it recognises the portrait by its looks and never refuses a stranger's.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from domain.errors import LikenessError, PictureRejected, did_you_mean
from domain.portraits import Portrait
from preprocess.decode import open_picture
from service.fake_servers.recognise import Album, Pixels
from service.portraits import read_manifest


@dataclass(frozen=True, slots=True)
class Planted:
    """Refuse ``share`` (0-1) of the portraits whose ``attribute`` has ``value``."""

    attribute: str
    value: str
    share: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """``text`` such as "gender=female:0.4". Raises LikenessError with an example."""
        head, _, share = text.rpartition(":")
        attribute, equals, value = head.partition("=")
        try:
            part = float(share)
        except ValueError:
            part = -1.0
        if not (attribute.strip() and equals and value.strip() and 0 <= part <= 1):
            raise LikenessError(
                f"'{text}' is no planted refusal; write ATTRIBUTE=VALUE:SHARE, such as "
                "gender=female:0.4 (share 0-1)"
            )
        return cls(attribute.strip(), value.strip(), part)


def refused_portraits(
    portraits: Sequence[Portrait], planted: Iterable[Planted], seed: int = 0
) -> frozenset[str]:
    """Ids of the portraits to refuse: of each group the share asked for, to the nearest portrait, those
    first in an order drawn by ``seed``. The same manifest and seed give the same portraits.

    Raises LikenessError for an attribute or a value that no portrait has."""
    chosen: set[str] = set()
    for rule in planted:
        group = [p.portrait_id for p in portraits if _has(p, rule, portraits)]
        group.sort(key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
        chosen.update(group[: round(rule.share * len(group))])
    return frozenset(chosen)


def _has(portrait: Portrait, rule: Planted, portraits: Sequence[Portrait]) -> bool:
    values = {p.attributes.get(rule.attribute) for p in portraits} - {None}
    if not values:
        known = sorted({name for p in portraits for name in p.attributes})
        hint = did_you_mean(rule.attribute, known) or f"; known: {', '.join(known)}"
        raise LikenessError(f"the manifest has no attribute '{rule.attribute}'{hint}")
    if rule.value not in values:
        known = sorted(str(v) for v in values)
        hint = did_you_mean(rule.value, known) or f"; known: {', '.join(known)}"
        raise LikenessError(f"no portrait has {rule.attribute}={rule.value}{hint}")
    return portrait.attributes.get(rule.attribute) == rule.value


class PlantedRefusals:
    """A rule for ``Desk.refuse``: true for a picture made from one of ``refused``."""

    def __init__(self, album: Album, refused: frozenset[str]) -> None:
        self.album, self.refused = album, refused
        self._known: dict[bytes, str | None] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_manifest(cls, manifest: Path, planted: Sequence[Planted], seed: int = 0) -> Self:
        """Learn the portraits of ``manifest``. Pictures that cannot be read are left out: no tool gets
        them either. Raises LikenessError as ``refused_portraits`` and ``read_manifest`` do."""
        portraits = read_manifest(manifest)
        refused = refused_portraits(portraits, planted, seed)
        return cls(Album(_looks(portraits)), refused)

    def __call__(self, picture: bytes) -> bool:
        """Whether ``picture``, encoded, shows a portrait that is refused."""
        digest = hashlib.sha256(picture).digest()
        with self._lock:
            if digest in self._known:
                return self._known[digest] in self.refused
        name = self.album.recognise(picture)
        with self._lock:
            self._known[digest] = name
        return name in self.refused


def _looks(portraits: Iterable[Portrait]) -> Iterable[tuple[str, Pixels]]:
    for portrait in portraits:
        try:
            pixels = open_picture(portrait.path).pixels
        except (PictureRejected, OSError):
            continue
        yield portrait.portrait_id, np.ascontiguousarray(pixels[..., ::-1])
