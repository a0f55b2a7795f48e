"""The one HTTP conversation: what can go wrong between here and a tool, against raw sockets."""

from __future__ import annotations

import gzip
import hashlib
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any

import httpcore
import httpx
import pytest
from pydantic import SecretStr

from adapters.guard import EditEnded, read_settings
from adapters.over_http.body import TooLarge, Unreadable, _Unpacker
from adapters.over_http.wire import HttpSettings, Reply, Wire
from domain.edits import Failed
from domain.errors import LikenessError

KEY = "sk-canary-0123456789abcdef"


class RawServer:
    """Answers each connection with the next prepared bytes, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answers: list[bytes] = []
        self.hold: threading.Event | None = None
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                self.asked.append(self._read(connection))
                if self.hold is not None:
                    self.hold.wait(10)
                    continue
                connection.sendall(self.answers.pop(0) if self.answers else b"")

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                while len(body) < int(line.split(b":")[1]):
                    body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        if self.hold is not None:
            self.hold.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[RawServer]:
    made = RawServer()
    yield made
    made.close()


@pytest.fixture
def wire(server: RawServer) -> Iterator[Wire]:
    made = make(server.url)
    yield made
    made.close()


def make(url: str, **changes: Any) -> Wire:
    hosts = changes.pop("key_hosts", ())
    settings = HttpSettings(base_url=url, key=SecretStr(KEY), **changes)
    return Wire(settings, {"authorization": f"Bearer {KEY}"}, hosts)


def answer(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    given = {"content-length": str(len(body)), "connection": "close", **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def ended(act: Callable[[], object]) -> Failed:
    with pytest.raises(EditEnded) as caught:
        act()
    assert isinstance(caught.value.outcome, Failed)
    return caught.value.outcome


def reply_of(status: int, body: bytes = b"", skew: float | None = None, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, httpx.Headers(named), body, 0.1, skew, "api.example.com")


# Bytes


def test_bytes_go_up_and_come_down_untouched(server: RawServer, wire: Wire) -> None:
    picture = bytes(range(256)) * 300
    server.answers = [answer(picture, content_type="image/png")]
    reply = wire.send("POST", "v1/edit", content=picture)
    assert hashlib.sha256(reply.body).digest() == hashlib.sha256(picture).digest()
    assert server.asked[0].endswith(b"\r\n\r\n" + picture)


def test_a_packed_answer_is_unpacked_whether_gzip_or_deflate(server: RawServer, wire: Wire) -> None:
    text = b'{"a": "' + b"x" * 5000 + b'"}'
    server.answers = [
        answer(gzip.compress(text), content_encoding="gzip"),
        answer(zlib.compress(text), content_encoding="deflate"),
        answer(gzip.compress(text[:100]) + gzip.compress(text[100:]), content_encoding="x-gzip"),
        answer(text, content_encoding="identity"),
    ]
    assert [wire.send("GET", "a").body for _ in range(4)] == [text] * 4


def test_a_gzip_bomb_ends_at_the_limit(server: RawServer) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 60_000
    server.answers = [answer(bomb, content_encoding="gzip")]
    small = make(server.url, max_result_mb=1)
    failed = ended(lambda: small.send("GET", "a"))
    small.close()
    assert failed.reason == "the answer is over 1 MB"
    assert failed.meta["maybe_billed"] is True
    assert not failed.retryable


def test_no_piece_of_a_bomb_is_held_beyond_the_limit() -> None:
    packed, sizes = gzip.compress(bytes(50_000_000)), []
    unpacker = _Unpacker(10_000)
    original = unpacker._inner

    class Watched:
        def decompress(self, raw: bytes, most: int) -> bytes:
            sizes.append(len(piece := original.decompress(raw, most)))
            return piece

        def __getattr__(self, name: str) -> Any:
            return getattr(original, name)

    unpacker._inner = Watched()  # type: ignore[assignment]
    with pytest.raises(TooLarge):
        unpacker.feed(packed)
    assert max(sizes) <= 10_001


@pytest.mark.parametrize("packing", ["br", "zstd", "gzip, gzip", "gzip, br", "compress"])
def test_a_packing_nobody_asked_for_is_a_failure(
    server: RawServer, wire: Wire, packing: str
) -> None:
    server.answers = [answer(gzip.compress(b"x"), content_encoding=packing)]
    failed = ended(lambda: wire.send("GET", "a"))
    assert "cannot be unpacked" in failed.reason
    assert packing in failed.reason


@pytest.mark.parametrize(
    "body", [b"not gzip at all", gzip.compress(b"x" * 999, mtime=0)[:-9]], ids=["plain", "cut"]
)
def test_a_body_that_is_not_what_it_was_packed_as_is_a_failure(
    server: RawServer, wire: Wire, body: bytes
) -> None:
    server.answers = [answer(body, content_encoding="gzip")]
    assert "cannot be unpacked" in ended(lambda: wire.send("GET", "a")).reason


def test_an_unpacker_that_was_fed_nothing_is_content() -> None:
    _Unpacker(10).finish()
    broken = _Unpacker(10)
    broken.feed(gzip.compress(b"xyz")[:12])
    with pytest.raises(Unreadable, match="end is missing"):
        broken.finish()


def test_the_limit_counts_plain_bytes_too(server: RawServer) -> None:
    server.answers = [answer(bytes(200_000))]
    small = make(server.url, max_result_mb=0.1)
    assert ended(lambda: small.send("GET", "a")).reason == "the answer is over 0.1 MB"
    small.close()


# Faults


def test_nobody_listening_is_retryable_and_bills_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    refused = make(f"http://127.0.0.1:{port}")
    failed = ended(lambda: refused.send("POST", "a", content=b"x"))
    refused.close()
    assert "127.0.0.1 cannot be reached" in failed.reason
    assert failed.retryable
    assert "maybe_billed" not in failed.meta


def test_an_answer_that_breaks_off_may_be_billed(server: RawServer, wire: Wire) -> None:
    server.answers = [answer(b"half", content_length="8")]
    failed = ended(lambda: wire.send("GET", "a"))
    assert "broke off its answer" in failed.reason
    assert failed.retryable
    assert failed.meta["maybe_billed"] is True


def test_a_connection_that_closes_without_a_word_may_be_billed(
    server: RawServer, wire: Wire
) -> None:
    failed = ended(lambda: wire.send("POST", "a", content=b"x"))
    assert failed.retryable
    assert failed.meta["maybe_billed"] is True


def test_silence_ends_at_the_time_limit(server: RawServer) -> None:
    server.hold = threading.Event()
    quick = make(server.url, timeout_s=0.1)
    failed = ended(lambda: quick.send("POST", "a", content=b"x"))
    quick.close()
    assert failed.reason == "127.0.0.1 gave no answer in time"
    assert failed.retryable
    assert failed.meta["maybe_billed"] is True


def test_a_trickle_ends_when_the_whole_time_is_up(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [answer(bytes(1000))]
    slow = make(server.url, total_s=5)
    ticks = iter([0.0, 6.0])
    monkeypatch.setattr("adapters.over_http.wire.time.monotonic", lambda: next(ticks, 9.0))
    failed = ended(lambda: slow.send("GET", "a"))
    slow.close()
    assert failed.reason == "the answer was not complete after 5 s"


def test_nonsense_instead_of_http_is_a_failure(server: RawServer, wire: Wire) -> None:
    server.answers = [b"SSH-2.0-OpenSSH_9.2\r\n"]
    assert "broke off its answer" in ended(lambda: wire.send("GET", "a")).reason


def test_an_unknown_certificate_is_not_tried_again() -> None:
    def stranger(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")

    made = make("https://api.example.com")
    made._own = httpx.Client(transport=httpx.MockTransport(stranger))
    failed = ended(lambda: made.send("GET", "a"))
    made.close()
    assert not failed.retryable
    assert "ca_file" in failed.reason


# Addresses and keys


def test_the_key_goes_to_the_tool_itself(server: RawServer, wire: Wire) -> None:
    server.answers = [answer(b"{}")] * 2
    wire.send("GET", "v1/a")
    wire.send("GET", f"{server.url}/v1/b")
    assert all(KEY.encode() in asked for asked in server.asked)


def test_a_result_is_fetched_without_the_key_unless_it_is_asked_for(
    server: RawServer, wire: Wire
) -> None:
    server.answers = [answer(b"x")] * 2
    wire.fetch("/files/1.png")
    wire.fetch(f"{server.url}/files/1.png", with_key=True)
    assert KEY.encode() not in server.asked[0]
    assert KEY.encode() in server.asked[1]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x.png",
        "http://203.0.113.9/x.png",
        "https://127.0.0.1/x.png",
        "https://localhost/x.png",
        "https://169.254.169.254/latest",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://2130706433/x",
        "https://0x7f.1/x",
        "https://100.64.0.1/x",
        "https://user:pw@example.com/x",
        "ftp://example.com/x.png",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "//127.0.0.1/x",
        "https://example.com\\@127.0.0.1/",
        "https://example.com:99999/x",
        "https://" + "a" * 3000 + ".com/",
    ],
)
def test_an_address_that_leads_inside_or_is_no_https_is_never_fetched(
    wire: Wire, server: RawServer, url: str
) -> None:
    for act in (lambda: wire.fetch(url), lambda: wire.send("GET", url)):
        failed = ended(act)
        if url.startswith(("//", "data:")) and "an address" not in failed.reason:
            continue  # for ``send`` these are paths of the tool's own host
        assert failed.reason.startswith("the tool named an address that is not fetched")
    assert all(b"GET /" in asked and b"127.0.0.1:1" not in asked for asked in server.asked)


def recorded(made: Wire, body: bytes = b"{}") -> list[httpx.Request]:
    """Lets the wire speak to other hosts without a network, and keeps what it would have sent."""
    seen: list[httpx.Request] = []

    def transport(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(body))

    made._others.close()
    made._others = httpx.Client(transport=httpx.MockTransport(transport))
    return seen


@pytest.mark.parametrize(
    ("url", "gets_key"),
    [
        ("https://api.eu1.bfl.ai/v1/get_result?id=1", True),
        ("https://API.EU1.BFL.AI:443/v1/get_result", True),
        ("https://api.eu1.bfl.ai:8443/v1/get_result", False),
        ("https://bfl.ai.example.com/x", False),
        ("https://evilbfl.ai/x", False),
        ("https://example.com/.bfl.ai", False),
        ("https://example.com/?x=api.bfl.ai", False),
    ],
)
def test_only_the_makers_own_hosts_get_the_key(url: str, gets_key: bool) -> None:
    made = make("https://api.bfl.ai", key_hosts=("*.bfl.ai",))
    seen = recorded(made)
    made.send("GET", url)
    made.close()
    assert ("authorization" in seen[0].headers) is gets_key


def test_another_host_never_gets_the_key_with_a_result() -> None:
    made = make("https://api.bfl.ai", key_hosts=("*.bfl.ai",))
    seen = recorded(made)
    made.fetch("https://delivery.eu1.bfl.ai/x.png", with_key=True)
    made.close()
    assert KEY not in str(seen[0].headers.raw)


def test_the_same_host_written_otherwise_is_still_the_tool() -> None:
    made = make("https://api.example.com")
    made._others, made._own = made._own, made._others
    seen = recorded(made)
    made._others, made._own = made._own, made._others
    made.send("GET", "https://API.example.com:443/x")
    made.send("GET", "v1/edit?callback=https://example.org/x")
    made.close()
    assert [r.url.host for r in seen] == ["api.example.com"] * 2


def test_a_name_that_turns_inside_when_it_is_connected_to_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def inside(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.5", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", inside)
    made = make("https://api.example.com")
    failed = ended(lambda: made.fetch("https://results.example.org/x.png"))
    made.close()
    assert "private address" in failed.reason


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect"])
def test_redirects_are_not_followed(server: RawServer, wire: Wire, status: str) -> None:
    server.answers = [answer(b"", status, location=f"{server.url}/elsewhere")] * 2
    assert wire.send("GET", "a").status < 400
    failed = ended(lambda: wire.fetch("/x.png"))
    assert "redirects are not followed" in failed.reason
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", ["403 Forbidden", "404 Not Found", "410 Gone"])
def test_a_result_that_has_gone_is_a_clear_failure(
    server: RawServer, wire: Wire, status: str
) -> None:
    server.answers = [answer(b"<Error/>", status)]
    failed = ended(lambda: wire.fetch("/x.png"))
    assert failed.reason == f"the result's address has expired (HTTP {status[:3]})"
    assert not failed.meta.get("stop")
    assert failed.meta["maybe_billed"] is True


def test_a_result_behind_a_login_does_not_stop_the_run(server: RawServer, wire: Wire) -> None:
    server.answers = [answer(b"who are you", "401 Unauthorized")]
    failed = ended(lambda: wire.fetch("/x.png"))
    assert "fetching the result: who are you" in failed.reason
    assert "stop" not in failed.meta


# What an answer says


def test_the_clock_is_compared_with_the_servers(server: RawServer, wire: Wire) -> None:
    ahead = formatdate(time.time() + 600, usegmt=True)
    server.answers = [answer(b"{}", date=ahead), answer(b"{}"), answer(b"{}", date="yesterday")]
    assert wire.send("GET", "a").skew_s == pytest.approx(600, abs=3)
    assert wire.send("GET", "a").skew_s is None
    assert wire.send("GET", "a").skew_s is None


def test_a_skewed_clock_is_named_where_it_may_be_the_cause(wire: Wire) -> None:
    for status in (401, 403):
        behind = wire.failure(reply_of(status, b"bad signature", skew=600.0))
        assert "this machine's clock is 600 s behind the server's" in behind.reason
    ahead = wire.failure(reply_of(401, b"bad signature", skew=-90.0))
    assert "90 s ahead of the server's" in ahead.reason
    assert "clock" not in wire.failure(reply_of(401, b"bad key", skew=1.0)).reason
    assert "clock" not in wire.failure(reply_of(500, b"oh", skew=600.0)).reason


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_wrong_key_and_no_credit_stop_the_run(wire: Wire, status: int) -> None:
    failed = wire.failure(reply_of(status, b"{}"))
    assert failed.meta["stop"] is True
    assert not failed.retryable


def test_a_named_wait_is_kept_wherever_it_stands(wire: Wire) -> None:
    assert wire.failure(reply_of(429, retry_after="7")).retry_after == 7
    assert wire.failure(reply_of(429, retry_after_ms="250")).retry_after == 0.25
    said = reply_of(429, b'{"error": {"message": "Please try again in 6m0s."}}')
    assert wire.failure(said).retry_after == 360
    assert wire.failure(said, "slow down").retry_after == 360
    assert wire.failure(reply_of(400, retry_after="7")).retry_after is None


def test_a_server_that_says_so_decides_about_retries(wire: Wire) -> None:
    assert not wire.failure(reply_of(429, x_should_retry="false")).retryable
    assert wire.failure(reply_of(409, x_should_retry="true")).retryable
    assert wire.failure(reply_of(529)).retryable
    assert not wire.failure(reply_of(422)).retryable


def test_an_error_of_bytes_is_told_by_length_and_type_alone(wire: Wire) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0" + bytes(range(256))
    for kind in ("image/png", "application/octet-stream", ""):
        reason = wire.failure(reply_of(500, picture, content_type=kind)).reason
        assert reason == f"HTTP 500: {len(picture)} bytes of {kind or 'no text'}"


def test_of_a_web_page_the_title_is_told(wire: Wire) -> None:
    page = b"<!doctype html><html><head><TITLE>502 Bad\n Gateway</TITLE></head><body>nginx</body>"
    assert wire.failure(reply_of(502, page)).reason == "HTTP 502: 502 Bad Gateway"


def test_neither_key_nor_picture_is_in_a_failure_wherever_the_text_is_cut(wire: Wire) -> None:
    face = b"iVBORw0KGgo" * 300
    for before in (b"", b"x " * 140, b"x " * 145, b"y " * 9_985, face):
        for key in (KEY.encode(), KEY.encode().hex().encode()):
            failed = wire.failure(reply_of(400, before + key + b" " + face + b" " + key))
            assert KEY[:9] not in failed.reason
            assert KEY.encode().hex()[:20] not in failed.reason
            assert "iVBORw0KGgoiVBORw0KGgo" not in failed.reason
            assert len(failed.reason) <= 300


def test_deep_json_is_no_json() -> None:
    deep = reply_of(500, b"[" * 200_000)
    assert deep.json_or_none() is None
    with pytest.raises(ValueError, match="not JSON"):
        deep.json()


# Settings


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"base_url": "example.com"}, "an http or https address is needed"),
        ({"base_url": "ftp://example.com"}, "an http or https address is needed"),
        ({"base_url": "https://"}, "an http or https address is needed"),
        ({"base_url": "https://example.com:port"}, "an http or https address is needed"),
        ({"base_url": "https://me:secret@example.com"}, "no user name or password"),
        ({"base_url": "https://example.com", "proxy": "socks5://p:1"}, "setting 'proxy'"),
        ({"base_url": "https://example.com", "key": SecretStr(f"{KEY}\nx")}, "setting 'key'"),
        ({"base_url": "https://example.com", "key": SecretStr("  ")}, "setting 'key'"),
        ({"base_url": "https://example.com", "key": SecretStr(f"“{KEY}”")}, "setting 'key'"),
    ],
)
def test_a_wrong_address_proxy_or_key_is_told_without_the_secret(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(LikenessError) as caught:
        read_settings(HttpSettings, given, "tool")
    assert told in str(caught.value)
    assert KEY not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_from_a_file_may_end_in_a_line_break() -> None:
    settings = HttpSettings(base_url="https://example.com", key=SecretStr(f"{KEY}\n"))
    assert settings.key is not None
    assert settings.key.get_secret_value() == KEY


def test_a_missing_authority_file_is_told() -> None:
    with pytest.raises(LikenessError, match="ca_file"):
        make("https://example.com", ca_file="no/such/file.pem")


def test_a_proxys_password_is_a_secret_too() -> None:
    made = make("https://example.com", proxy="http://me:proxy-password@127.0.0.1:1")
    failed = ended(lambda: made.send("GET", "a"))
    assert "cannot be reached" in failed.reason
    assert "proxy-password" not in made.redact("407 for me:proxy-password")
    made.close()


def test_a_key_is_not_sent_in_clear_over_the_internet() -> None:
    with pytest.raises(LikenessError, match="use https"):
        read_settings(HttpSettings, {"base_url": "http://api.example.com", "key": KEY}, "tool")
    for near in ("http://127.0.0.1:7860", "http://localhost:1", "http://192.168.1.5", "http://gpu"):
        read_settings(HttpSettings, {"base_url": near, "key": KEY}, "tool")
    read_settings(HttpSettings, {"base_url": "http://api.example.com"}, "tool")


def test_what_one_item_was_answered_does_not_follow_the_next(server: RawServer, wire: Wire) -> None:
    server.answers = [answer(b"{}", set_cookie="session=abc; Path=/")] * 2
    wire.send("GET", "a")
    wire.send("GET", "a")
    assert b"cookie" not in server.asked[1].lower()


def test_closing_twice_is_harmless(wire: Wire) -> None:
    wire.close()
    wire.close()


def test_the_pool_for_results_is_the_checking_one() -> None:
    made = make("https://api.example.com")
    transport = made._others._transport
    assert isinstance(transport, httpx.HTTPTransport)
    backend = transport._pool._network_backend  # type: ignore[attr-defined]
    assert isinstance(backend, httpcore.SyncBackend)
    assert type(backend).__name__ == "_CheckedConnections"
    made.close()
