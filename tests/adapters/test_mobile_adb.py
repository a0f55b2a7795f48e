"""The phone tool through the real ``adb`` program, to a device's end of its protocol on loopback. The
adb server is one of its own, on a port of its own: the user's is left alone."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from adapters import mobile
from adapters.contract import Adapter
from adapters.phone.adb import Adb, _choose
from domain.edits import Edited, Failed
from domain.errors import LikenessError
from service.fake_servers.contract import KEY, FakeServer, start
from service.phone_agent.adb_device import AdbDevice
from tests.adapters.phone_portraits import request

ADB = shutil.which("adb") or ""
needs_adb = pytest.mark.skipif(not ADB, reason="the program 'adb' is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a private adb server, ended afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    subprocess.run(
        [ADB, "-P", str(port), "start-server"], capture_output=True, timeout=60, check=True
    )
    yield port
    subprocess.run(
        [ADB, "-P", str(port), "kill-server"], capture_output=True, timeout=60, check=True
    )


@pytest.fixture(scope="module")
def phone() -> Iterator[FakeServer]:
    with start("phone") as made:
        yield made


@pytest.fixture
def plug(server: int, phone: FakeServer) -> Iterator[Callable[..., AdbDevice]]:
    """Plug a device in; all are unplugged at the end."""
    devices: list[AdbDevice] = []

    def connect(**options: Any) -> AdbDevice:
        agent = int(phone.url.rpartition(":")[2])
        made = AdbDevice({"tcp:8642": agent, "localabstract:likeness": agent}, **options)
        devices.append(made)
        adb(server, "connect", made.serial)
        return made

    yield connect
    for device in devices:
        device.close()
    adb(server, "disconnect")


def adb(server: int, *arguments: str) -> str:
    done = subprocess.run(
        [ADB, "-P", str(server), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def build(server: int, **settings: Any) -> Adapter:
    key = SecretStr(KEY)
    return mobile.build({"adb": True, "adb_server_port": server, "key": key, **settings})


@needs_adb
@pytest.mark.parametrize("way", [{}, {"socket": "likeness"}], ids=["tcp", "localabstract"])
def test_an_edit_goes_through_adb_forward_and_the_port_is_closed_again(
    server: int, plug: Callable[..., AdbDevice], way: dict[str, str]
) -> None:
    device = plug()
    tool = build(server, **way)
    during = adb(server, "forward", "--list")
    outcome = tool.edit(request())
    tool.close()
    tool.close()
    assert isinstance(outcome, Edited), outcome
    assert outcome.meta["fine_detail_kept"] > 0.8
    assert outcome.meta["device"].startswith(f"adb:{device.serial}/")
    assert device.serial in during
    assert adb(server, "forward", "--list").strip() == ""


@needs_adb
def test_other_peoples_forwards_are_left_alone(server: int, plug: Callable[..., AdbDevice]) -> None:
    device = plug()
    theirs = adb(server, "-s", device.serial, "forward", "tcp:0", "tcp:7912").strip()
    build(server).close()
    assert f"tcp:{theirs} tcp:7912" in adb(server, "forward", "--list")
    adb(server, "forward", "--remove", f"tcp:{theirs}")


@needs_adb
def test_no_device_is_told(server: int) -> None:
    with pytest.raises(LikenessError, match="adb sees no device: plug a phone in"):
        build(server)


@needs_adb
def test_a_device_that_has_not_allowed_this_computer_is_told(
    server: int, plug: Callable[..., AdbDevice]
) -> None:
    device = plug(authorised=False)
    with pytest.raises(LikenessError, match=f"{device.serial} has not allowed this computer"):
        build(server)


@needs_adb
def test_several_devices_need_a_serial_and_one_that_is_not_there_is_told(
    server: int, plug: Callable[..., AdbDevice]
) -> None:
    first, second = plug(), plug()
    with pytest.raises(LikenessError, match=r"several devices .*: choose one .* 'serial'"):
        build(server)
    with pytest.raises(LikenessError, match="no device 'ABC123'; connected: "):
        build(server, serial="ABC123")
    tool = build(server, serial=second.serial)
    outcome = tool.edit(request())
    tool.close()
    assert isinstance(outcome, Edited)
    assert second.serial in outcome.meta["device"]
    assert first.serial != second.serial


@needs_adb
def test_an_app_that_does_not_run_is_told_and_leaves_no_port_open(
    server: int, plug: Callable[..., AdbDevice]
) -> None:
    plug()
    with pytest.raises(LikenessError, match=r"agent at tcp:9 on .*is the app running\?"):
        build(server, port=9)
    assert adb(server, "forward", "--list").strip() == ""


@needs_adb
def test_a_pulled_cable_is_told_and_a_device_that_came_back_is_used_again(
    server: int, plug: Callable[..., AdbDevice]
) -> None:
    device = plug()
    tool = build(server)
    device.close()
    gone = tool.edit(request())
    assert isinstance(gone, Failed)
    assert f"{device.serial} is lost (adb says: " in gone.reason
    assert gone.retryable
    adb(server, "disconnect", device.serial)
    plug(port=int(device.serial.rpartition(":")[2]))
    # the old port went with the old connection: the first call finds that out, the next one works
    outcomes = [tool.edit(request()) for _ in range(2)]
    tool.close()
    assert isinstance(outcomes[1], Edited), getattr(outcomes[1], "reason", "")


@needs_adb
def test_the_error_tree_comes_through_adb(
    server: int, phone: FakeServer, plug: Callable[..., AdbDevice]
) -> None:
    plug()
    phone.next("busy")
    tool = build(server)
    outcome = tool.edit(request())
    tool.close()
    assert isinstance(outcome, Failed)
    assert (outcome.retryable, outcome.retry_after) == (True, 1)


def test_a_missing_adb_program_is_told() -> None:
    with pytest.raises(LikenessError, match="'no-such-adb' is not there: install Android"):
        mobile.build({"adb": True, "adb_program": "no-such-adb"})


@pytest.mark.parametrize(
    ("devices", "serial", "said"),
    [
        ({"A": "offline"}, "", "A is offline"),
        ({"A": "no permissions (user in plugdev group; ...)"}, "", "add a udev rule"),
        ({"A": "authorizing"}, "A", "has not allowed this computer yet"),
        ({"A": "recovery"}, "", "is in the state 'recovery'"),
    ],
)
def test_every_state_of_a_device_that_cannot_be_used_is_named(
    devices: dict[str, str], serial: str, said: str
) -> None:
    with pytest.raises(LikenessError, match=said):
        _choose(devices, serial)


def test_the_one_device_that_is_ready_is_taken_among_others_that_are_not() -> None:
    assert _choose({"A": "offline", "B": "device"}, "") == "B"


@needs_adb
def test_a_port_is_open_until_it_is_closed(server: int, plug: Callable[..., AdbDevice]) -> None:
    device = plug()
    bridge = Adb("adb", device.serial, server)
    port = bridge.forward("tcp:8642")
    assert bridge.forwarded(port)
    bridge.remove(port)
    assert not bridge.forwarded(port)
    with pytest.raises(LikenessError, match="adb: "):
        bridge.remove(port)
