"""What a stranger names is fetched from public addresses only, within bounds, and no further."""

from __future__ import annotations

import gzip
import io
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpcore
import pytest

from adapters.over_http.download import NotFetched, download, is_allowed

LIMIT = 1000


def fetch(url: str, allowed: tuple[str, ...] = (), **how: Any) -> bytes:
    into = io.BytesIO()
    size = download(url, into, **{"limit": LIMIT, "seconds": 20.0, "allowed": allowed, **how})
    assert size == len(into.getvalue())
    return into.getvalue()


class Network:
    """Stands in for the resolver and the sockets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[list[str]] = [["93.184.216.34"]]
        self.connected: list[str] = []
        self.page = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok"]
        monkeypatch.setattr(socket, "getaddrinfo", self._resolve)
        monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", self._connect)

    def _resolve(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        turn = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in turn]

    def _connect(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        self.connected.append(f"{host}:{port}")
        return httpcore.MockStream(list(self.page))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


@pytest.mark.parametrize(
    ("url", "peer"),
    [
        ("http://pictures.example.com/a.jpg", "93.184.216.34:80"),
        ("http://pictures.example.com./a.jpg", "93.184.216.34:80"),
        ("http://pictures.example.com:8080/a.jpg", "93.184.216.34:8080"),
    ],
)
def test_http_of_a_public_host_is_fetched_from_the_address_that_was_checked(
    network: Network, url: str, peer: str
) -> None:
    assert fetch(url) == b"ok"
    assert network.connected == [peer]


INSIDE = {
    "loopback": "127.0.0.1", "loopback, other": "127.8.9.10", "this host": "0.0.0.0",
    "this network": "0.1.2.3", "private 10": "10.0.0.1", "private 172": "172.31.255.255",
    "private 192": "192.168.0.1", "link-local": "169.254.1.1", "metadata": "169.254.169.254",
    "CGNAT": "100.64.0.1", "CGNAT metadata": "100.100.100.200", "IETF": "192.0.0.8",
    "documentation": "192.0.2.1", "documentation 2": "198.51.100.1",
    "documentation 3": "203.0.113.1", "benchmark": "198.18.0.1", "multicast": "224.0.0.251",
    "reserved": "240.0.0.1", "broadcast": "255.255.255.255", "loopback 6": "::1",
    "unspecified 6": "::", "link-local 6": "fe80::1", "site-local 6": "fec0::1",
    "unique local 6": "fd00::1", "metadata 6": "fd00:ec2::254", "multicast 6": "ff02::1",
    "documentation 6": "2001:db8::1", "mapped loopback": "::ffff:127.0.0.1",
    "mapped metadata": "::ffff:169.254.169.254", "compatible": "::127.0.0.1",
    "NAT64": "64:ff9b::7f00:1", "NAT64 local": "64:ff9b:1::a00:1", "6to4": "2002:7f00:1::1",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
}  # fmt: skip


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE)
def test_a_name_that_leads_inside_is_refused_before_anything_is_connected(
    network: Network, address: str
) -> None:
    network.answers = [["93.184.216.34", address]]
    with pytest.raises(NotFetched, match="private address") as caught:
        fetch("http://innocent.example.com/x.jpg")
    assert caught.value.code == "address_refused"
    assert network.connected == []


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE)
def test_an_address_inside_is_refused_as_it_is_written(network: Network, address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(NotFetched, match="private address"):
        fetch(f"http://{host}/x.jpg")
    assert network.connected == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://2130706433/", "this machine"),
        ("http://0x7f000001/", "this machine"),
        ("http://0x7f.1/", "this machine"),
        ("http://0177.0.0.1/", "this machine"),
        ("http://127.1/", "this machine"),
        ("http://127.0.0.1./", "this machine"),
        ("http://[::ffff:7f00:1]/", "this machine"),
        ("http://\uff11\uff12\uff17.0.0.1/", "this machine"),
        ("http://localhost/", "local host name"),
        ("http://LOCALHOST./", "local host name"),
        ("http://a.localhost/", "local host name"),
        ("http://metadata.google.internal/", "local host name"),
        ("http://printer/", "without a domain"),
        ("http://user@example.com/", "user name"),
        ("http://user:hunter2@example.com/", "user name"),
        ("http://example.com\\@127.0.0.1/", "backslashes"),
        ("http://example.com:22/", "port not accepted"),
        ("http://example.com:6379/", "port not accepted"),
        ("http://example.com:0/", "port"),
        ("http://example.com:99999/", "port"),
        ("http://example.com:x/", "port"),
        ("ftp://example.com/x", "scheme ftp"),
        ("file:///etc/passwd", "scheme file"),
        ("gopher://example.com/x", "scheme gopher"),
        ("data:image/png;base64,AAAA", "scheme data"),
        ("//example.com/x", "no scheme"),
        ("", "empty URL"),
        ("http://example.com/\r\nHost: inside", "control characters"),
        ("http://example.com/" + "x" * 3000, "too long"),
    ],
)
def test_urls_that_hide_where_they_lead_are_refused(
    network: Network, url: str, reason: str
) -> None:
    with pytest.raises(NotFetched, match=reason) as caught:
        fetch(url)
    assert network.connected == []
    assert "hunter2" not in str(caught.value)


def test_a_name_that_is_turned_round_between_check_and_connection_changes_nothing(
    network: Network,
) -> None:
    network.answers = [["93.184.216.34"], ["127.0.0.1"]]
    assert fetch("http://rebinding.example.com/x.jpg") == b"ok"
    assert network.connected == ["93.184.216.34:80"]
    with pytest.raises(NotFetched, match="private address"):
        fetch("http://rebinding.example.com/x.jpg")
    assert network.connected == ["93.184.216.34:80"]


def test_nothing_behind_the_host_shows_in_a_reason(network: Network) -> None:
    network.page = [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"]
    with pytest.raises(NotFetched) as caught:
        fetch("http://pictures.example.com/a.jpg?X-Amz-Signature=secret")
    assert str(caught.value) == "the server answered 403"


# Against a real server, which an operator has to allow ----------------------------------------


class Site:
    """A server on loopback that plays one page after another."""

    def __init__(self) -> None:
        self.pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.seen: list[dict[str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.seen.append({k.lower(): v for k, v in self.headers.items()})
                site.pages[self.path.partition("?")[0]](self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self._server.server_port
        self.allow = (f"127.0.0.1:{self.port}",)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def page(
    body: bytes, status: int = 200, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if "content_length" not in headers:
            handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_loopback_is_refused_unless_the_operator_allows_that_very_host(site: Site) -> None:
    site.pages["/a"] = page(b"bytes")
    for allowed in ((), ("127.0.0.1:1",), ("localhost",), ("127.0.0.2",)):
        with pytest.raises(NotFetched, match="private address"):
            fetch(site.url("/a"), allowed)
    assert site.seen == []
    assert fetch(site.url("/a"), site.allow) == b"bytes"
    assert fetch(site.url("/a"), ("127.0.0.1",)) == b"bytes"


def test_an_allowed_host_is_no_way_round_by_a_user_name_before_it() -> None:
    assert is_allowed("http://127.0.0.1:8123/x", ["127.0.0.1:8123"])
    assert is_allowed("http://[::1]:80/x", ["[::1]:80"])
    assert not is_allowed("http://127.0.0.1:8123@10.0.0.1/x", ["127.0.0.1:8123"])
    assert not is_allowed("http://127.0.0.1.example.com/x", ["127.0.0.1"])
    assert not is_allowed("nonsense", ["nonsense"])


def test_redirects_are_not_followed(site: Site) -> None:
    site.pages["/a"] = page(b"", 302, Location=site.url("/b"))
    site.pages["/b"] = page(b"secret")
    with pytest.raises(NotFetched, match=r"redirects \(302\)") as caught:
        fetch(site.url("/a"), site.allow)
    assert caught.value.code == "redirect"
    assert len(site.seen) == 1


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (page(b"", 404), "http_status"),
        (page(b"", 204), "http_status"),
        (page(b"x" * 1001), "too_large"),
        (page(b"", content_length="99999999999"), "too_large"),
        (page(b"abc", content_length="10"), "broken_answer"),
        (page(gzip.compress(b"x" * 10_000_000, mtime=0), content_encoding="gzip"), "broken_answer"),
    ],
)
def test_an_answer_that_is_no_whole_file_within_bounds_is_refused(
    site: Site, answer: Callable[[BaseHTTPRequestHandler], None], code: str
) -> None:
    site.pages["/a"] = answer
    with pytest.raises(NotFetched) as caught:
        fetch(site.url("/a"), site.allow)
    assert caught.value.code == code


def test_a_body_without_end_is_cut_off_at_the_limit(site: Site) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 100)

    site.pages["/a"] = endless
    into = io.BytesIO()
    with pytest.raises(NotFetched, match="too large"):
        download(site.url("/a"), into, limit=LIMIT, seconds=20.0, allowed=site.allow)
    assert len(into.getvalue()) <= LIMIT


def test_a_server_that_trickles_is_cut_off_by_the_clock_not_by_silence(site: Site) -> None:
    ticks = itertools.count()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b"x")

    site.pages["/a"] = trickle
    with pytest.raises(NotFetched, match="in time") as caught:
        fetch(
            site.url("/a"), site.allow, seconds=12.0, clock=lambda: float(next(ticks)), limit=10**9
        )
    assert caught.value.code == "timeout"


def test_a_reader_that_stops_ends_the_download(site: Site) -> None:
    site.pages["/a"] = page(b"x")
    with pytest.raises(NotFetched, match="in time"):
        fetch(site.url("/a"), site.allow, stopped=lambda: True)


def test_no_cookie_and_no_key_goes_from_one_request_to_the_next(site: Site) -> None:
    site.pages["/a"] = page(b"x", Set_Cookie="a=b")
    fetch(site.url("/a"), site.allow)
    fetch(site.url("/a"), site.allow)
    for seen in site.seen:
        assert {"cookie", "authorization", "referer"}.isdisjoint(seen)
        assert seen["accept-encoding"] == "identity"


def test_a_server_that_is_not_there_is_told_as_such(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotFetched, match="cannot be reached"):
        fetch(f"http://127.0.0.1:{port}/", ("127.0.0.1",))


def test_https_of_a_server_without_a_valid_certificate_is_refused(site: Site) -> None:
    site.pages["/a"] = page(b"x")
    with pytest.raises(NotFetched) as caught:
        fetch(site.url("/a").replace("http:", "https:"), site.allow)
    assert caught.value.code == "unreachable"
