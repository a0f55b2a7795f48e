"""From where a result may be fetched, checked by text and again when it is connected to."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpcore
import httpx
import pytest

from adapters.over_http.addresses import (
    PublicOnly,
    _CheckedConnections,
    check_result_url,
    may_have_key,
    origin_of,
)
from domain.errors import LikenessError

Found = list[tuple[Any, ...]]


@pytest.mark.parametrize(
    "url",
    [
        "https://replicate.delivery/pbxt/x/out-0.png",
        "https://delivery-eu1.bfl.ai/results/x.png?se=2026&sig=a%2Bb",
        "HTTPS://Example.COM/x",
        "https://example.com:8443/x",
        "https://[2606:4700::6810:84e5]/x",
    ],
)
def test_https_of_a_public_host_passes(url: str) -> None:
    check_result_url(url)


@pytest.mark.parametrize("url", ["http://example.com/x", "HTTP://example.com/x"])
def test_plain_http_of_another_host_is_refused(url: str) -> None:
    with pytest.raises(LikenessError, match="only https"):
        check_result_url(url)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://example.com/x", ("https", "example.com", 443)),
        ("HTTPS://EXAMPLE.com:443", ("https", "example.com", 443)),
        ("http://127.0.0.1:8188/view", ("http", "127.0.0.1", 8188)),
        ("http://[::1]:80", ("http", "::1", 80)),
        ("https://example.com:x/", None),
        ("https://", None),
        ("ftp://example.com", None),
        ("example.com", None),
        ("https://[::1", None),
        ("", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: tuple[str, str, int] | None) -> None:
    assert origin_of(url) == origin


def test_a_key_goes_over_https_to_named_hosts_only() -> None:
    hosts = ("*.bfl.ai", "api.example.com")
    assert may_have_key("https://api.us1.bfl.ai/v1/get_result", hosts)
    assert may_have_key("https://api.example.com/", hosts)
    for url in (
        "http://api.us1.bfl.ai/",
        "https://bfl.ai/",
        "https://api.bfl.ai.example.org/",
        "https://xbfl.ai/",
        "https://api.bfl.ai:444/",
        "https://other.example.com/",
        "nonsense",
    ):
        assert not may_have_key(url, hosts)
    assert not may_have_key("https://api.bfl.ai/", ())


class Network:
    """Stands in for the resolver and the sockets: who was looked up, and who was connected to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.looked_up: list[str] = []
        self.connected: list[str] = []
        self.dead: set[str] = set()
        monkeypatch.setattr(socket, "getaddrinfo", self._resolve)
        monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", self._connect)

    def _resolve(self, host: str, port: int, **_: Any) -> Found:
        self.looked_up.append(host)
        turns = self.names.get(host)
        if not turns:
            raise socket.gaierror(-2, "Name or service not known")
        addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port))
            for a in addresses
        ]

    def _connect(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        self.connected.append(host)
        if host in self.dead:
            raise httpcore.ConnectError("refused")
        return httpcore.MockStream([])


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    yield Network(monkeypatch)


def connect(host: str) -> None:
    _CheckedConnections().connect_tcp(host, 443)


def test_the_address_that_was_checked_is_the_one_connected_to(network: Network) -> None:
    network.names["results.example.com"] = [["93.184.216.34"]]
    connect("results.example.com")
    assert network.connected == ["93.184.216.34"]
    assert network.looked_up == ["results.example.com"]


def test_a_name_that_is_turned_round_after_the_check_changes_nothing(network: Network) -> None:
    network.names["results.example.com"] = [["93.184.216.34"], ["127.0.0.1"]]
    connect("results.example.com")
    assert network.connected == ["93.184.216.34"]
    with pytest.raises(LikenessError, match="private address"):
        connect("results.example.com")
    assert network.connected == ["93.184.216.34"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::a00:1",
        "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fd00:ec2::254",
    ],
)  # fmt: skip
def test_names_that_lead_inside_are_refused_at_the_moment_of_connecting(
    network: Network, address: str
) -> None:
    network.names["innocent.example.com"] = [[address]]
    with pytest.raises(LikenessError, match="private address"):
        connect("innocent.example.com")
    assert network.connected == []


def test_one_bad_address_among_good_ones_is_enough(network: Network) -> None:
    network.names["mixed.example.com"] = [["93.184.216.34", "10.0.0.1"]]
    with pytest.raises(LikenessError, match="private address"):
        connect("mixed.example.com")
    assert network.connected == []


def test_a_scoped_link_local_address_is_refused_and_not_a_crash(network: Network) -> None:
    network.names["scoped.example.com"] = [["fe80::1%eth0"]]
    with pytest.raises(LikenessError, match="link-local"):
        connect("scoped.example.com")


def test_the_next_address_is_tried_when_one_is_dead(network: Network) -> None:
    network.names["two.example.com"] = [["93.184.216.34", "93.184.216.35", "93.184.216.34"]]
    network.dead = {"93.184.216.34"}
    connect("two.example.com")
    assert network.connected == ["93.184.216.34", "93.184.216.35"]


def test_a_name_that_nobody_knows_is_a_connection_fault(network: Network) -> None:
    with pytest.raises(httpcore.ConnectError, match="Name or service not known"):
        connect("nowhere.example.com")


def test_the_transport_uses_the_checked_connections(network: Network) -> None:
    network.names["results.example.com"] = [["10.9.8.7"]]
    client = httpx.Client(transport=PublicOnly(ssl.create_default_context()), trust_env=False)
    with client, pytest.raises(LikenessError, match="private address"):
        client.get("https://results.example.com/x.png")
    assert network.connected == []


def test_a_dead_host_is_httpx_own_fault_so_that_callers_know_it(network: Network) -> None:
    network.names["dead.example.com"] = [["93.184.216.34"]]
    network.dead = {"93.184.216.34"}
    client = httpx.Client(transport=PublicOnly(ssl.create_default_context()), trust_env=False)
    with client, pytest.raises(httpx.ConnectError):
        client.get("https://dead.example.com/x.png")
