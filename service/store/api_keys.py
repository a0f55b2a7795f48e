"""API keys: who may come in, and what for. Only a hash of each is kept."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, or_, select, update

from domain.errors import LikenessError, StoreUnavailable
from service.store.database import Database
from service.store.service_tables import api_keys

SCOPES = ("submit", "read", "review", "admin")
PREFIX = "lk"
_NOBODY = hashlib.sha256(b"nobody's key").hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is listed; the secret itself is nowhere."""

    key_id: str
    name: str
    scopes: tuple[str, ...]
    created: str
    expires: str | None
    revoked: str | None
    last_used: str | None

    def state(self, now: datetime) -> str:
        """``active``, ``revoked`` or ``expired``."""
        if self.revoked:
            return "revoked"
        if self.expires and datetime.fromisoformat(self.expires) <= now:
            return "expired"
        return "active"


def digest(secret: str) -> str:
    """What is stored of a secret. Plain SHA-256 and no slow password hash: the secret holds 256
    random bits, which nobody guesses, however fast each guess is; and this runs at every request."""
    return hashlib.sha256(secret.encode()).hexdigest()


def split(token: str) -> tuple[str, str] | None:
    """(key id, secret) of ``lk_<key id>_<secret>``; None for anything else."""
    prefix, _, rest = token.partition("_")
    key_id, sign, secret = rest.partition("_")
    whole = prefix == PREFIX and sign and key_id and len(secret) == 64 and token.isascii()
    return (key_id, secret) if whole else None


class ApiKeys:
    """The keys in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        lasts: timedelta | None = None,
        now: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its token, which is shown now and never again. Raises LikenessError."""
        now = now or datetime.now(UTC)
        unknown = [s for s in scopes if s not in SCOPES]
        if unknown or not scopes:
            said = f"no scope '{unknown[0]}'" if unknown else "a key needs at least one scope"
            raise LikenessError(f"{said}; known: {', '.join(SCOPES)}")
        if not name.strip() or len(name) > 100 or not name.isprintable():
            raise LikenessError("a key needs a name of 1 to 100 printable characters")
        key_id, secret = secrets.token_hex(6), secrets.token_hex(32)
        row = {
            "key_id": key_id,
            "name": name.strip(),
            "secret_sha256": digest(secret),
            "scopes": [s for s in SCOPES if s in scopes],
            "created": _iso(now),
            "expires": _iso(now + lasts) if lasts is not None else None,
            "revoked": None,
            "last_used": None,
        }
        with self._database.begin() as link:
            taken = select(api_keys.c.key_id).where(
                api_keys.c.name == row["name"], api_keys.c.revoked.is_(None)
            )
            if link.execute(taken).first():
                raise LikenessError(
                    f"there is a key named '{name.strip()}' already; revoke it first"
                )
            link.execute(insert(api_keys), [row])
        return _key(row), f"{PREFIX}_{key_id}_{secret}"

    def all(self) -> list[ApiKey]:
        """Every key, the oldest first."""
        query = select(api_keys).order_by(api_keys.c.created, api_keys.c.key_id)
        return [_key(row) for row in self._database.rows(query)]

    def any_made(self) -> bool:
        """Whether a key was ever made, revoked ones included: a service that had keys stays shut."""
        return bool(self._database.rows(select(api_keys.c.key_id).limit(1)))

    def revoke(self, name: str) -> ApiKey:
        """End the key of this id or name. Raises LikenessError when there is none in use."""
        which = or_(api_keys.c.key_id == name, api_keys.c.name == name)
        with self._database.begin() as link:
            query = select(api_keys).where(which, api_keys.c.revoked.is_(None))
            row = link.execute(query).mappings().first()
            if row is None:
                raise LikenessError(f"no key '{name}' in use")
            revoked = _iso(datetime.now(UTC))
            same = api_keys.c.key_id == row["key_id"]
            link.execute(update(api_keys).where(same).values(revoked=revoked))
        return _key({**row, "revoked": revoked})

    def check(self, token: str, now: float, seen_s: float) -> ApiKey | None:
        """The key of ``token`` when it is good at ``now`` (epoch seconds), else None. "Last used" is
        written once in ``seen_s`` seconds, so that reading stays reading."""
        parts = split(token)
        moment = datetime.fromtimestamp(now, UTC)
        query = select(api_keys).where(api_keys.c.key_id == (parts[0] if parts else ""))
        row = next(iter(self._database.rows(query)), None)
        # an unknown id costs as much as a wrong secret, and neither tells how much of it was right
        stored = row["secret_sha256"] if row is not None else _NOBODY
        same = hmac.compare_digest(stored, digest(parts[1] if parts else token))
        if row is None or not same:
            return None
        key = _key(row)
        if key.state(moment) != "active":
            return None
        last = datetime.fromisoformat(key.last_used) if key.last_used else None
        if last is None or (moment - last).total_seconds() >= seen_s:
            self._used(key.key_id, moment)
        return key

    def _used(self, key_id: str, moment: datetime) -> None:
        # a full disk must not keep out who only reads
        with contextlib.suppress(StoreUnavailable), self._database.begin() as link:
            mine = update(api_keys).where(api_keys.c.key_id == key_id)
            link.execute(mine.values(last_used=_iso(moment)))


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _key(row: Mapping[str, Any] | Any) -> ApiKey:
    return ApiKey(
        key_id=row["key_id"],
        name=row["name"],
        scopes=tuple(row["scopes"]),
        created=row["created"],
        expires=row["expires"],
        revoked=row["revoked"],
        last_used=row["last_used"],
    )
