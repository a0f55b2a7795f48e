"""Webhooks: genuine by the rules of Standard Webhooks, never sent inside, never given up too soon."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapters.over_http.deliver import NotDelivered, deliver
from domain.errors import LikenessError
from service import webhooks
from service.limits import Limits
from service.store.database import Database
from service.store.deliveries import Deliveries
from service.store.jobs import Jobs
from service.webhooks import WAITS_S, message_of, secret_of, send_due
from tests.service.store.service_rows import submit

SECRET = b"s" * 32
LIMITS = Limits(webhook_timeout_s=5.0)


@dataclass
class Receiver:
    """Answers with ``statuses`` one after the other, the last one for ever."""

    url: str = ""
    place: str = ""
    statuses: list[int] = field(default_factory=lambda: [204])
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.seen.append((self.path, headers, body))
            status = found.statuses[min(len(found.seen), len(found.statuses)) - 1]
            self.send_response(status)
            self.send_header("location", found.url + "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.place = f"127.0.0.1:{server.server_port}"
    found.url = f"http://{found.place}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    opened.migrate()
    yield opened
    opened.close()


def ended(database: Database, url: str, state: str = "done") -> str:
    """A run that has ended in ``state`` and was asked to tell ``url``."""
    run_id = submit(database, webhook=url)
    jobs = Jobs(database)
    lease = jobs.lease("w1", 1000)
    assert lease is not None
    if state == "failed":
        jobs.fail(lease, "no groups", message_of(lease.row, state, "no groups"))
    else:
        jobs.finish(lease, message_of(lease.row, state))
    return run_id


def send(database: Database, clock: Clock, *allowed: str) -> int:
    deliveries = Deliveries(database, clock)
    return send_due(deliveries, SECRET, LIMITS, allowed=allowed, clock=clock, chance=lambda: 0.0)


def verify(secret: str, headers: dict[str, str], body: bytes, now: float) -> bool:
    """Written from the specification alone: the secret is base64 behind "whsec_"; signed is
    "id.timestamp.body"; the header lists "v1,<base64>" parted by spaces; five minutes of tolerance."""
    key = base64.b64decode(secret.split("_", 1)[1])
    stamp = headers["webhook-timestamp"]
    if abs(now - int(stamp)) > 300:
        return False
    signed = b".".join([headers["webhook-id"].encode(), stamp.encode(), body])
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = [part.split(",", 1) for part in headers["webhook-signature"].split(" ")]
    return any(kind == "v1" and hmac.compare_digest(value, wanted) for kind, value in given)


def test_the_signature_is_the_one_of_the_specifications_own_example() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    said = webhooks.signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert said == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_can_tell_that_a_message_is_genuine(
    database: Database, receiver: Receiver
) -> None:
    clock = Clock()
    run_id = ended(database, receiver.url + "/hook")
    assert send(database, clock, receiver.place) == 1
    ((path, headers, body),) = receiver.seen
    assert path == "/hook" and headers["content-type"] == "application/json"
    secret = secret_of(SECRET, "k_one")
    assert secret.startswith("whsec_") and len(base64.b64decode(secret[6:])) == 32
    assert verify(secret, headers, body, clock.now)
    assert not verify(secret_of(SECRET, "k_two"), headers, body, clock.now), "another key's secret"
    assert not verify(secret, headers, body + b" ", clock.now), "a changed body"
    told = json.loads(body)
    assert told["type"] == "run.finished"
    assert told["data"] | {"batch_id": None} == {
        "run_id": run_id, "batch_id": None, "name": "a run", "state": "done", "error": None,
    }  # fmt: skip
    assert Deliveries(database).counts() == {"pending": 0, "done": 1, "failed": 0}
    assert send(database, clock, receiver.place) == 0, "what has arrived is not sent again"


def test_a_failure_is_told_with_its_reason(database: Database, receiver: Receiver) -> None:
    ended(database, receiver.url, "failed")
    send(database, Clock(), receiver.place)
    told = json.loads(receiver.seen[0][2])
    assert told["type"] == "run.failed" and told["data"]["error"] == "no groups"


def test_who_asked_for_no_webhook_gets_none(database: Database) -> None:
    run_id = submit(database)
    job = Jobs(database).get(run_id)
    assert job is not None and message_of(job, "done") is None


def test_a_message_that_fails_is_sent_again_with_the_same_id_and_a_new_signature(
    database: Database, receiver: Receiver
) -> None:
    clock = Clock()
    receiver.statuses = [500, 302, 200]
    ended(database, receiver.url)
    for wait in WAITS_S[:2]:
        assert send(database, clock, receiver.place) == 1
        clock.now += wait - 1
        assert send(database, clock, receiver.place) == 0, "not before its time"
        clock.now += 1
    assert send(database, clock, receiver.place) == 1
    assert len({headers["webhook-id"] for _, headers, _ in receiver.seen}) == 1
    assert len({headers["webhook-signature"] for _, headers, _ in receiver.seen}) == 3
    secret = secret_of(SECRET, "k_one")
    assert verify(secret, receiver.seen[2][1], receiver.seen[2][2], clock.now)
    assert [path for path, _, _ in receiver.seen] == ["/"] * 3, "the redirect was not followed"
    assert Deliveries(database).counts()["done"] == 1


def test_a_message_is_given_up_after_about_a_day(database: Database, receiver: Receiver) -> None:
    clock = Clock()
    receiver.statuses = [503]
    run_id = ended(database, receiver.url)
    began = clock.now
    tries = 0
    while Deliveries(database).counts()["pending"]:
        tries += send(database, clock, receiver.place)
        (row,) = Deliveries(database).of_run(run_id)
        clock.now = max(clock.now, row["next_at"])
    assert tries == len(WAITS_S) + 1 == 8
    assert 23 * 3600 < clock.now - began <= 24 * 3600 + 120
    (row,) = Deliveries(database).of_run(run_id)
    assert (row["state"], row["last_status"]) == ("failed", 503)


def test_a_receiver_that_is_gone_for_good_is_not_asked_again(
    database: Database, receiver: Receiver
) -> None:
    receiver.statuses = [410]
    ended(database, receiver.url)
    send(database, Clock(), receiver.place)
    assert Deliveries(database).counts()["failed"] == 1


def test_one_dead_receiver_holds_up_no_other(database: Database, receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    ended(database, f"http://127.0.0.1:{port}/")
    ended(database, receiver.url)
    assert send(database, Clock(), receiver.place, f"127.0.0.1:{port}") == 2
    assert len(receiver.seen) == 1
    assert Deliveries(database).counts() == {"pending": 1, "done": 1, "failed": 0}


def test_two_senders_never_take_the_same_message(database: Database) -> None:
    ended(database, "https://example.com/")
    clock = Clock()
    first, second = Deliveries(database, clock), Deliveries(database, clock)
    assert first.claim(60) is not None
    assert second.claim(60) is None
    clock.now += 61  # the first was killed over it
    again = second.claim(60)
    assert again is not None and again["attempts"] == 2


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/", "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://2130706433/",
        "file:///etc/passwd", "gopher://example.com/", "http://user:word@example.com/",
        "http://example.com:22/", "http://intranet/", "", "example.com",
    ],
)  # fmt: skip
def test_an_address_that_leads_inside_is_refused_and_never_connected_to(url: str) -> None:
    with pytest.raises(LikenessError):
        webhooks.check_target(url)
    with pytest.raises(NotDelivered):
        deliver(url, b"{}", {}, seconds=5)


def test_a_name_that_turns_inside_between_check_and_connection_is_not_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhooks.check_target("http://public.example.com:8080/")
    port = int(receiver.place.rpartition(":")[2])
    inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: inside)
    with pytest.raises(NotDelivered, match="private address"):
        deliver("http://public.example.com:8080/", b"{}", {}, seconds=5)
    assert receiver.seen == []


def test_the_reason_holds_nothing_of_the_address_behind_its_host() -> None:
    with pytest.raises(NotDelivered) as caught:
        deliver("http://127.0.0.1/?token=tell-nobody", b"{}", {}, seconds=5)
    assert "tell-nobody" not in str(caught.value)


def test_a_receiver_that_sends_a_byte_now_and_then_is_left_in_time() -> None:
    now = iter(range(1000))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = threading.Event()

        def drip() -> None:
            peer, _ = server.accept()
            with peer:
                peer.settimeout(5)
                for _ in range(200):
                    if done.is_set():
                        return
                    try:
                        peer.sendall(b"HTTP/1.1 200 OK\r\nx: y\r\n"[:1])
                    except OSError:
                        return
                    done.wait(0.02)

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(NotDelivered):
            deliver(
                f"http://127.0.0.1:{port}/", b"{}", {}, seconds=20,
                allowed=[f"127.0.0.1:{port}"], clock=lambda: float(next(now)),
            )  # fmt: skip
        done.set()
        thread.join()
