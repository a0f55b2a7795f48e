"""What every fake server does, seen through a made-up maker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import Any, cast

import cv2
import httpx
import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import LikenessError
from service.fake_servers.contract import FakeModule, FakeServer, provider, providers, start
from service.fake_servers.desk import COMMON, Desk, decode, encode, seen_of


def made_up(desk: Desk) -> Starlette:
    async def edit(request: Request) -> Response:
        if not desk.has_bearer(request):
            return Response("who are you", 401)
        picture = seen_of(request).files.get("picture")
        behaviour = desk.turn(picture)
        if behaviour in {"refuse", "own_words"}:
            return Response(behaviour, 403)
        common = desk.common(behaviour)
        return common or Response(desk.edit(picture or b""), media_type="image/png")

    return Starlette(routes=[Route("/edit", edit, methods=["POST"])])


MAKER = cast(
    FakeModule,
    SimpleNamespace(NAME="made_up", DOES="edits", BEHAVIOURS={"own_words": "403"}, app=made_up),
)


def running(**options: Any) -> FakeServer:
    return FakeServer(MAKER, Desk("secret-key", MAKER.BEHAVIOURS, **options), 0)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with running(slow_s=0.05) as made:
        yield made


def send(server: FakeServer, picture: bytes, key: str = "secret-key") -> httpx.Response:
    with httpx.Client(trust_env=False, verify=False, timeout=10) as client:
        return client.post(
            f"{server.url}/edit",
            files={"picture": ("a.png", picture, "image/png")},
            data={"strength": "0.4"},
            headers={"authorization": f"Bearer {key}"},
        )


def test_it_listens_on_loopback_only_at_a_port_of_its_own(server: FakeServer) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    assert host == "127.0.0.1"
    assert int(port) > 1023


def test_what_came_is_recorded_by_part(server: FakeServer, picture: bytes) -> None:
    send(server, picture)
    (seen,) = server.seen
    assert (seen.method, seen.path, seen.played) == ("POST", "/edit", "ok")
    assert seen.fields == {"strength": "0.4"}
    assert seen.files == {"picture": picture}
    assert seen.file_types == {"picture": "image/png"}
    assert seen.headers["authorization"] == "Bearer secret-key"


def test_a_record_shows_neither_key_nor_picture(server: FakeServer, picture: bytes) -> None:
    send(server, picture)
    shown = repr(server.seen)
    assert "secret-key" not in shown
    assert "PNG" not in shown


def test_a_call_without_the_key_uses_up_nothing_that_was_queued(
    server: FakeServer, picture: bytes
) -> None:
    server.next("429")
    assert send(server, picture, key="wrong").status_code == 401
    assert server.seen[-1].played == ""
    assert send(server, picture).status_code == 429
    assert send(server, picture).status_code == 200


def test_queued_behaviours_are_played_in_order_then_all_is_well(
    server: FakeServer, picture: bytes
) -> None:
    server.next("500", "own_words", "503")
    assert [send(server, picture).status_code for _ in range(4)] == [500, 403, 503, 200]
    assert [s.played for s in server.seen] == ["500", "own_words", "503", "ok"]


def test_a_429_names_its_wait(server: FakeServer, picture: bytes) -> None:
    server.next("429")
    assert send(server, picture).headers["retry-after"] == "1"


def test_an_unknown_behaviour_is_said_with_the_near_miss(server: FakeServer) -> None:
    with pytest.raises(LikenessError, match="did you mean 'truncated'"):
        server.next("truncatd")


def test_an_unknown_server_is_said_with_the_near_miss() -> None:
    with pytest.raises(LikenessError, match="no fake server 'opanai'; did you mean 'openai'"):
        start("opanai")


def test_a_port_that_is_taken_is_one_clear_line(server: FakeServer) -> None:
    with pytest.raises(LikenessError, match="cannot be used"):
        start("openai", port=int(server.url.rpartition(":")[2]))


def test_a_truncated_answer_ends_before_its_declared_length(
    server: FakeServer, picture: bytes
) -> None:
    server.next("truncated")
    with pytest.raises(httpx.RemoteProtocolError, match=r"received [0-9]+ bytes, expected [0-9]+"):
        send(server, picture)
    assert send(server, picture).status_code == 200


def test_a_web_page_and_an_empty_body_come_with_a_200(server: FakeServer, picture: bytes) -> None:
    server.next("html", "empty")
    page, nothing = send(server, picture), send(server, picture)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (nothing.status_code, nothing.content) == (200, b"")


def test_a_skewed_clock_is_ten_minutes_fast(server: FakeServer, picture: bytes) -> None:
    server.next("ok", "skewed")
    right, wrong = send(server, picture), send(server, picture)
    apart = parsedate_to_datetime(wrong.headers["date"]) - parsedate_to_datetime(
        right.headers["date"]
    )
    assert 598 <= apart.total_seconds() <= 660
    assert len(right.headers.get_list("date")) == 1


def test_a_slow_answer_outlasts_a_short_patience_and_is_the_usual_one(picture: bytes) -> None:
    with (
        running(slow_s=600.0) as server,
        httpx.Client(trust_env=False, verify=False, timeout=0.2) as client,
    ):
        server.next("slow")
        with pytest.raises(httpx.ReadTimeout):
            client.post(f"{server.url}/edit", headers={"authorization": "Bearer secret-key"})
    with running(slow_s=0.01) as server:
        server.next("slow")
        assert send(server, picture).headers["content-type"] == "image/png"


def test_closing_ends_slow_answers_and_leaves_no_thread_behind(picture: bytes) -> None:
    before = set(threading.enumerate())
    server = running(slow_s=600.0)
    server.next("slow")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(send, server, picture)
        while not server.seen or not server.seen[0].played:
            threading.Event().wait(0.01)
        server.close()
        assert waiting.result(20).status_code == 200
    server.close()
    assert set(threading.enumerate()) == before
    with pytest.raises(httpx.ConnectError):
        send(server, picture)


def test_many_calls_at_once_each_get_their_own_answer(server: FakeServer) -> None:
    sizes = [(16 + i, 20 + i) for i in range(24)]
    pictures = [encode(np.full((h, w, 3), 90, np.uint8)) for w, h in sizes]
    server.next(*["429"] * 5)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda p: send(server, p), pictures))
    assert sorted(a.status_code for a in answers) == [200] * 19 + [429] * 5
    for answer, (width, height) in zip(answers, sizes, strict=True):
        if answer.status_code == 200:
            assert decode(answer.content).shape == (height, width, 3)
    assert len(server.seen) == 24


def test_the_refusal_rule_strikes_the_picture_it_names(picture: bytes) -> None:
    other = encode(np.zeros((8, 8, 3), np.uint8))
    with running(refuse=lambda data: data == picture) as server:
        assert send(server, picture).text == "refuse"
        assert send(server, other).status_code == 200


def test_only_so_many_requests_are_remembered(picture: bytes) -> None:
    with running(keep=2) as server:
        for _ in range(3):
            send(server, picture)
        assert len(server.seen) == 2


def test_the_pretended_edit_softens_where_the_mask_is_white_and_drifts_elsewhere(
    picture: bytes,
) -> None:
    mask = np.zeros((96, 64), np.uint8)
    mask[48:] = 255
    before = decode(picture).astype(int)
    after = decode(Desk("").edit(picture, encode(mask))).astype(int)
    assert 0 < np.abs(after - before)[:48].max() <= 2
    assert after[60:].std() < 0.8 * before[60:].std()
    assert Desk("").edit(picture, encode(mask)) == Desk("").edit(picture, encode(mask))


def test_the_pretended_edit_comes_at_the_size_and_kind_asked_for(picture: bytes) -> None:
    jpeg = Desk("").edit(picture, size=(32, 48), kind="jpg")
    assert jpeg[:3] == b"\xff\xd8\xff"
    assert cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).shape == (48, 32, 3)


@pytest.mark.parametrize("name", sorted(providers()))
def test_every_maker_says_what_it_does_and_what_it_can_play(name: str) -> None:
    module = provider(name)
    assert name == module.NAME
    assert module.DOES.strip()
    assert all(text.strip() for text in module.BEHAVIOURS.values())
    # a maker's word may stand beside a common one, but never mean "refuse"
    assert "refuse" not in module.BEHAVIOURS
    assert set(COMMON) >= {"ok", "refuse", "429", "500", "slow", "truncated", "html", "empty"}


def test_an_empty_key_asks_for_none() -> None:
    assert Desk("").has_key(None)
    assert not Desk("k").has_key(None)
    assert not Desk("k").has_key("kk")
