"""The pull variant: the phone asks this side for work, as device farms make it do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from adapters import mobile
from adapters.contract import Adapter
from adapters.guard import EditEnded
from adapters.phone.links import PullLink
from adapters.phone.pull import Job, PullHost
from domain.edits import Edited, Failed
from domain.errors import LikenessError
from service.phone_agent.agent import PhoneAgent
from service.phone_agent.pull import Puller
from service.phone_agent.sdk import Sdk
from tests.adapters.phone_portraits import portrait, request

TOKEN = "shared-token-0123456789"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "X-Device-Id": "one"}


@pytest.fixture
def host() -> Iterator[PullHost]:
    made = PullHost("127.0.0.1:0", TOKEN, max_bytes=5_000_000)
    yield made
    made.close()


@pytest.fixture
def client(host: PullHost) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=host.url, headers=HEADERS, trust_env=False) as made:
        yield made


def build(**pull: Any) -> tuple[Adapter, str]:
    tool = mobile.build(
        {"pull": {"listen": "127.0.0.1:0", **pull}, "key": SecretStr(TOKEN), "total_s": 30}
    )
    assert isinstance(tool, mobile.MobileTool)
    assert isinstance(tool._link, PullLink)
    return tool, tool._link.host.url


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_phone_that_asks_for_work_does_an_edit() -> None:
    tool, url = build()
    agent = PhoneAgent(Sdk())
    puller = Puller(agent, url, TOKEN, "phone-7")
    puller.wait_s = 1
    thread = in_thread(puller.run)
    outcome = tool.edit(request())
    puller.stop()
    tool.close()
    thread.join(20)
    puller.close()
    agent.close()
    assert isinstance(outcome, Edited), outcome
    assert outcome.meta["returned"]["quality_mode"] == "HIGH_ACCURACY"
    assert outcome.meta["fine_detail_kept"] > 0.8
    assert tool.model.startswith("reference-beautify 2.4.1")
    assert outcome.meta["device"] == "phone-7"


def test_a_phone_with_the_wrong_token_gets_nothing_and_stops_asking(host: PullHost) -> None:
    agent = PhoneAgent(Sdk())
    puller = Puller(agent, host.url, "wrong", "one")
    with pytest.raises(LikenessError, match="does not take this token"):
        puller.run()
    puller.close()
    agent.close()


def test_without_a_phone_the_edit_fails_after_the_time_that_was_set() -> None:
    tool, _ = build(wait_s=0.05)
    outcome = tool.edit(request())
    tool.close()
    assert isinstance(outcome, Failed)
    assert "no device asked for work at http://127.0.0.1:" in outcome.reason
    assert outcome.retryable


def test_a_phone_that_takes_a_job_and_never_answers_is_a_failure(
    host: PullHost, client: httpx.Client
) -> None:
    ended: list[EditEnded] = []

    def call() -> None:
        try:
            host.call(Job("edit", "{}", b"", ""), wait_s=10, total_s=0.2)
        except EditEnded as end:
            ended.append(end)

    thread = in_thread(call)
    job = client.get("/v1/device/next", params={"wait": 5}).json()
    thread.join(10)
    assert "brought no result within 0.2 s" in str(ended[0].outcome)
    late = client.post(f"/v1/device/jobs/{job['id']}/result", content=b"late")
    assert late.status_code == 404


def test_a_phone_that_lost_its_job_is_given_it_again(host: PullHost, client: httpx.Client) -> None:
    answers: list[Any] = []
    thread = in_thread(
        lambda: answers.append(
            host.call(Job("edit", '{"a": 1}', portrait(), "image/png"), wait_s=10, total_s=10)
        )
    )
    first = client.get("/v1/device/next", params={"wait": 5}).json()
    second = client.get("/v1/device/next", params={"wait": 5}).json()
    assert first == second == {"id": first["id"], "kind": "edit", "parameters": '{"a": 1}'}
    picture = client.get(f"/v1/device/jobs/{first['id']}/picture")
    assert picture.content == portrait()
    assert picture.headers["content-type"] == "image/png"
    done = client.post(
        f"/v1/device/jobs/{first['id']}/result",
        content=b"picture",
        headers={"X-Edit-Status": "409", "X-Request-Id": "r1", "Retry-After": "2"},
    )
    thread.join(10)
    assert done.status_code == 204
    assert (answers[0].status, answers[0].body, answers[0].request_id) == (409, b"picture", "r1")
    assert answers[0].headers["retry-after"] == "2"


def test_the_device_errors_of_a_phone_that_pulls_mean_the_same() -> None:
    tool, url = build()
    able = PhoneAgent(Sdk()).capabilities()
    problem = {"kind": "device", "code": "low_battery", "detail": "3 % left", "retryable": True}

    def phone() -> None:
        with httpx.Client(base_url=url, headers=HEADERS, trust_env=False) as client:
            for status, body in ((200, able), (503, problem)):
                job = client.get("/v1/device/next", params={"wait": 10}).json()
                client.post(
                    f"/v1/device/jobs/{job['id']}/result",
                    content=json.dumps(body),
                    headers={"X-Edit-Status": str(status), "Retry-After": "300"},
                )

    thread = in_thread(phone)
    outcome = tool.edit(request())
    thread.join(10)
    tool.close()
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the device: 3 % left (low_battery)"
    assert (outcome.retryable, outcome.retry_after) == (True, 300)


def test_one_phone_is_served_and_a_second_is_turned_away(
    host: PullHost, client: httpx.Client
) -> None:
    assert client.get("/v1/device/next", params={"wait": 0}).status_code == 204
    other = client.get("/v1/device/next", params={"wait": 0}, headers={"X-Device-Id": "two"})
    assert other.status_code == 409


def test_two_tools_of_one_plan_share_the_phone_and_the_last_one_closes_the_door() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
    (first, url), (second, other) = build(listen=listen), build(listen=listen)
    assert url == other
    with pytest.raises(LikenessError, match="cannot listen at"):
        mobile.build({"pull": {"listen": listen}, "key": SecretStr("another-token")})
    first.close()
    first.close()
    reply = httpx.get(f"{url}/v1/device/next?wait=0", headers=HEADERS, trust_env=False)
    assert reply.status_code == 204
    second.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer no"}, {"Authorization": "Bearer é"}])
@pytest.mark.parametrize("path", ["/v1/device/next?wait=0", "/v1/device/jobs/x/picture", "/"])
def test_nothing_is_told_without_the_token(
    host: PullHost, path: str, headers: dict[str, str]
) -> None:
    raw = {k: v.encode("utf-8") for k, v in headers.items()}
    reply = httpx.get(host.url + path, headers=raw, trust_env=False)
    assert (reply.status_code, reply.content) == (401, b"")


def test_results_that_are_too_large_or_of_no_length_are_not_read(host: PullHost) -> None:
    address = host.url.removeprefix("http://").split(":")
    for length, status in (("Content-Length: 9999999999\r\n", b"413"), ("", b"411")):
        with socket.create_connection((address[0], int(address[1])), timeout=10) as raw:
            head = (
                f"POST /v1/device/jobs/x/result HTTP/1.1\r\nHost: x\r\nX-Device-Id: one\r\n{length}"
            )
            raw.sendall(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            assert raw.recv(100).split()[1] == status


@pytest.mark.parametrize("path", ["/v1/device/jobs/../picture", "/v1/device/jobs/x", "/v2/x", "/"])
def test_paths_that_are_none_are_not_found(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404
    assert client.post(path, content=b"").status_code == 404


def test_closing_lets_a_waiting_phone_and_a_waiting_edit_go() -> None:
    tool, url = build(wait_s=30)
    outcomes: list[Any] = []
    edit = in_thread(lambda: outcomes.append(tool.edit(request())))
    with httpx.Client(base_url=url, headers=HEADERS, trust_env=False) as client:
        client.get("/v1/device/next", params={"wait": 10})
        tool.close()
        tool.close()
    edit.join(10)
    assert isinstance(outcomes[0], Failed)
    assert "closed" in outcomes[0].reason


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pull": {}}, "'pull' needs a token"),
        ({"pull": {"listen": "8643"}, "key": SecretStr(TOKEN)}, "is no address:port"),
        ({"pull": {"listen": "192.0.2.1:1"}, "key": SecretStr(TOKEN)}, "cannot listen at 192.0.2.1:1"),
        ({"pull": {"lissen": "x:1"}, "key": SecretStr(TOKEN)}, "unknown setting 'pull.lissen'"),
        ({}, "one way to the phone is needed"),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_told_in_one_line(settings: Any, said: str) -> None:
    with pytest.raises(LikenessError, match=said) as error:
        mobile.build(settings)
    assert "\n" not in str(error.value)
    assert TOKEN not in str(error.value)
