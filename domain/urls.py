"""Which URLs of pictures may be asked for at all; nothing is fetched or resolved here.

``check_address`` is for every address that a name resolves to, by whoever connects: the check of the
text alone does not protect against a name that points inside.
"""

from __future__ import annotations

import ipaddress
import socket
import unicodedata
from urllib.parse import SplitResult, urlsplit

from domain.errors import LikenessError

_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain")
_TUNNELS = {
    "64:ff9b::/96": "NAT64",
    "64:ff9b:1::/48": "NAT64",
    "2002::/16": "6to4",
    "2001::/32": "Teredo",
}
_NOBODYS = [
    ipaddress.ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
]
"""Special networks that older tables of the standard library take for public ones."""
_MAX_LENGTH = 2048

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(text: str) -> None:
    """Pass an http(s) URL to a public host. Raises LikenessError with the reason otherwise."""
    if not text.strip():
        raise LikenessError("empty URL")
    if len(text) > _MAX_LENGTH:
        raise LikenessError(f"URL too long, limit {_MAX_LENGTH} characters")
    if any(unicodedata.category(c)[0] == "C" or c == "\\" for c in text):
        raise LikenessError("URL holds control characters or backslashes")
    try:
        parts = urlsplit(text.strip())
        host = parts.hostname
    except ValueError as error:
        raise LikenessError("not a valid URL") from error
    if not parts.scheme:
        raise LikenessError("not a URL: no scheme (http or https is needed)")
    if parts.scheme not in ("http", "https"):
        raise LikenessError(f"scheme {parts.scheme}: not accepted (http or https is needed)")
    if not host:
        raise LikenessError("URL without a host")
    if parts.username is not None or parts.password is not None:
        raise LikenessError("URL with a user name or password is not accepted")
    _check_port(parts)
    _check_host(host)


def _check_port(parts: SplitResult) -> None:
    try:
        port = parts.port
    except ValueError as error:
        raise LikenessError("port is not a number between 1 and 65535") from error
    if port == 0:
        raise LikenessError("port is not a number between 1 and 65535")


def _check_host(host: str) -> None:
    address = _literal(host)
    if address is not None:
        check_address(address)
        return
    labels = host.rstrip(".").lower()
    if any(labels == name or labels.endswith(f".{name}") for name in _LOCAL_NAMES):
        raise LikenessError("private address (a local host name)")
    if "." not in labels:
        raise LikenessError("private address (a host name without a domain)")


def _literal(host: str) -> Address | None:
    """The address a host text stands for: short, octal and whole-number forms included, and digits
    of other scripts, which a resolver takes for ours."""
    host = unicodedata.normalize("NFKC", host).replace("\u3002", ".")
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:  # 2130706433, 0x7f.1, 127.1: what C libraries take for addresses
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return None


def check_address(address: Address) -> None:
    """Refuse addresses that lead inside: private, loopback, link-local (metadata services), CGNAT,
    multicast, reserved, and IPv6 forms that carry an IPv4 address. Raises LikenessError."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            check_address(address.ipv4_mapped)
            return
        for network, name in _TUNNELS.items():
            if address in ipaddress.ip_network(network):
                raise LikenessError(f"private address (may lead inside through {name})")
    if address.is_loopback or address.is_unspecified:
        raise LikenessError("private address (this machine)")
    if address.is_link_local:
        raise LikenessError("private address (link-local, as metadata services have)")
    nobodys = any(address in network for network in _NOBODYS)
    if nobodys or not address.is_global or address.is_multicast or address.is_reserved:
        raise LikenessError("private address (not reachable from the internet)")
