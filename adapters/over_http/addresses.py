"""Where a result may be fetched from when the tool names another host than its own: https, and a
public address, checked at the moment of connecting so that a name cannot be turned round in between
(DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from domain.errors import LikenessError
from domain.urls import check_address, check_url

_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> tuple[str, str, int] | None:
    """(scheme, host, port) of an http or https URL, None for anything else. Host names are compared
    without regard to case, and a port that is the scheme's own may be left out."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host:
        return None
    return parts.scheme, host.lower(), port or _PORTS[parts.scheme]


def may_have_key(url: str, hosts: Iterable[str]) -> bool:
    """Whether ``url`` is https on its usual port and its host one of ``hosts``, which are names or
    patterns such as "*.example.com"."""
    origin = origin_of(url)
    if origin is None or origin[0] != "https" or origin[2] != 443:
        return False
    return any(fnmatchcase(origin[1], pattern.lower()) for pattern in hosts)


def check_result_url(url: str) -> None:
    """Pass an https URL of a public host. Raises LikenessError with the reason otherwise."""
    check_url(url)
    if not url.lower().startswith("https://"):
        raise LikenessError("only https is fetched from another host")


class _CheckedConnections(httpcore.SyncBackend):
    """Resolves a name once, refuses it if any of its addresses leads inside, and connects to the
    very address that was checked. TLS still verifies the certificate against the name."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"{host}: {error}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
        for address in addresses:
            check_address(ipaddress.ip_address(address))
        failure: Exception | None = None
        for address in addresses:
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")


class PublicOnly(httpx.HTTPTransport):
    """A transport that connects to public addresses only."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        super().__init__(verify=verify, trust_env=False)
        # httpx offers no way to hand a network backend in; tests hold on to this
        self._pool = httpcore.ConnectionPool(
            ssl_context=verify, max_connections=20, network_backend=_CheckedConnections()
        )
