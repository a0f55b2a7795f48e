"""Where a tool's pictures go: to a program of this machine, or over the network to whom."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import adapters.contract
from adapters.over_http.wire import HttpSettings, Wire


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
    """Where ``adapter`` sends: the host of its wire, else the ``device`` at the end of a cable. A service on this machine's own address counts as this machine,
    although it may pass on what it gets."""
    parts = list(_held(adapter))
    host = next((h for h in map(_host, parts) if h), "")
    device = next((d for p in parts if isinstance(d := getattr(p, "device", None), str) and d), "")
    return _to(host or device, adapter.spec.remote)


def destination_by_settings(
    spec: adapters.contract.ToolSpec, settings: Mapping[str, Any]
) -> Destination:
    """Where a tool that could not be built would send, as far as its ``base_url`` tells."""
    url = settings.get("base_url")
    return _to(_of_url(url) if isinstance(url, str) else "", spec.remote)


def _to(host: str, remote: bool) -> Destination:
    return Destination(host, remote and not is_loopback(host.rpartition(":")[0]))


def is_loopback(name: str) -> bool:
    """Whether ``name`` (without a port) is this machine's own address."""
    bare = name.strip("[]").lower().rstrip(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def _held(holder: Any, depth: int = 2) -> Iterator[Any]:
    """The parts of an adapter, whatever it calls them, and the parts of those of ours."""
    names = list(getattr(holder, "__dict__", {}))
    for kind in type(holder).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    parts = [getattr(holder, name, None) for name in dict.fromkeys(names)]
    yield from parts
    for part in parts:
        if depth > 1 and type(part).__module__.startswith("adapters."):
            yield from _held(part, depth - 1)


def _host(part: Any) -> str:
    """ "api.example.com:443" of a wire or of HTTP settings, "" of anything else."""
    if not isinstance(part, Wire | HttpSettings):
        return ""
    return _of_url(part.base_url)


def _of_url(text: str) -> str:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return ""
    if not url.hostname:
        return ""
    port = port or (443 if url.scheme == "https" else 80)
    name = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return f"{name}:{port}"
