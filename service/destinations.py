"""Where a tool's pictures go: to a program of this machine, or over the network to whom."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import adapters.contract
from adapters.http_wire import HttpSettings, Wire


@dataclass(frozen=True, slots=True)
class Destination:
    """``host`` is a name or address with its port, "" for a tool without one. ``remote`` is true
    when pictures leave this machine, as far as the tool's address tells."""

    host: str
    remote: bool

    def __str__(self) -> str:
        if not self.remote:
            return f"this machine ({self.host})" if self.host else "this machine"
        return self.host or "another machine, whose address the tool does not tell"


def destination_of(adapter: adapters.contract.Adapter) -> Destination:
    """Where ``adapter`` sends. A service on this machine's own address counts as this machine,
    although it may pass on what it gets."""
    host = next((h for h in map(_host, _held(adapter)) if h), "")
    return Destination(host, adapter.spec.remote and not is_loopback(host.rpartition(":")[0]))


def is_loopback(name: str) -> bool:
    """Whether ``name`` (without a port) is this machine's own address."""
    bare = name.strip("[]").lower().rstrip(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def _held(adapter: Any) -> Iterator[Any]:
    """The parts of an adapter, whatever it calls them."""
    names = list(getattr(adapter, "__dict__", {}))
    for kind in type(adapter).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    yield from (getattr(adapter, name, None) for name in dict.fromkeys(names))


def _host(part: Any) -> str:
    """ "api.example.com:443" of a wire or of HTTP settings, "" of anything else."""
    if not isinstance(part, Wire | HttpSettings):
        return ""
    url = urlsplit(part.base_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return f"{name}:{port}"
