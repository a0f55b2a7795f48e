"""The Android Debug Bridge through the real ``adb`` program: which phone, and a port to it.

Source: ``adb help`` (platform-tools 29): ``devices``, ``-s``, ``forward tcp:0 REMOTE`` prints the
port that it chose, ``forward --remove``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from adapters.guard import one_line
from adapters.local.command_process import KEPT_ENVIRONMENT
from domain.errors import LikenessError

LIMIT_S = 30.0
_PASSED = (*KEPT_ENVIRONMENT, "ANDROID_ADB_SERVER_PORT", "ANDROID_USER_HOME", "ADB_VENDOR_KEYS")
_STATES = {
    "unauthorized": "has not allowed this computer: unlock it and accept 'Allow USB debugging'",
    "authorizing": "has not allowed this computer yet: unlock it and accept 'Allow USB debugging'",
    "offline": "is offline: unplug it and plug it in again, or `adb reconnect`",
    "no permissions": "may not be opened by this user: add a udev rule for it",
    "connecting": "is still connecting",
}


class Adb:
    """One phone. Nothing is changed but the ports that ``forward`` opens."""

    def __init__(self, program: str, serial: str = "", server_port: int | None = None) -> None:
        """``server_port`` picks another adb server than the usual one. Raises LikenessError when
        there is no phone that can be used, or more than one and no ``serial``."""
        self._start = [program] + ([] if server_port is None else ["-P", str(server_port)])
        self.serial = _choose(self.devices(), serial)

    def devices(self) -> dict[str, str]:
        """Serial number to state ("device" is the good one)."""
        lines = self._run(["devices"]).splitlines()
        rows = [line.split(None, 1) for line in lines if line and line[0] not in "*L"]
        return {row[0]: row[1].strip() for row in rows if len(row) == 2}

    def state(self) -> str:
        """What adb says of the phone: "device" when all is well, "gone" without it."""
        return self.devices().get(self.serial, "gone")

    def forward(self, remote: str) -> int:
        """Open a port of this machine to ``remote`` ("tcp:8642", "localabstract:name") on the phone."""
        said = self._run(["-s", self.serial, "forward", "tcp:0", remote]).strip()
        if not said.isdigit():
            raise LikenessError(f"adb: forwarding to {remote} gave no port: {one_line(said, 80)}")
        return int(said)

    def forwarded(self, port: int) -> bool:
        """Whether that port still leads to the phone: adb drops them when a phone goes."""
        rows = [line.split() for line in self._run(["forward", "--list"]).splitlines()]
        return [self.serial, f"tcp:{port}"] in [row[:2] for row in rows]

    def remove(self, port: int) -> None:
        """Close a port. Raises LikenessError when adb knows none such."""
        self._run(["-s", self.serial, "forward", "--remove", f"tcp:{port}"])

    def _run(self, arguments: Sequence[str]) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the user's own program, an argument list
                [*self._start, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
                env={name: os.environ[name] for name in _PASSED if name in os.environ},
            )
        except FileNotFoundError:
            raise LikenessError(
                f"the program '{self._start[0]}' is not there: install Android platform-tools, or "
                "name it with the setting 'adb_program'"
            ) from None
        except OSError as error:
            raise LikenessError(f"adb cannot be run: {error.strerror or error}") from None
        except subprocess.TimeoutExpired:
            raise LikenessError(f"adb {arguments[-1]}: no answer in {LIMIT_S:g} s") from None
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
            raise LikenessError(f"adb: {one_line(said[-1].removeprefix('adb: '), 160)}")
        return done.stdout


def _choose(devices: dict[str, str], serial: str) -> str:
    """The phone to use, or one clear line why there is none."""
    if serial and serial not in devices:
        known = ", ".join(devices) or "none"
        raise LikenessError(f"adb sees no device '{serial}'; connected: {known}")
    if not devices:
        raise LikenessError("adb sees no device: plug a phone in, with USB debugging on")
    ready = [name for name, state in devices.items() if state == "device"]
    if not serial and len(ready) > 1:
        raise LikenessError(
            f"adb sees several devices ({', '.join(ready)}): choose one with the setting 'serial'"
        )
    if not serial and ready:
        return ready[0]
    name = serial or next(iter(devices))
    state = devices[name]
    if state != "device":
        why = next((text for word, text in _STATES.items() if state.startswith(word)), "")
        raise LikenessError(
            f"the device {name} {why or f'is in the state {one_line(state, 60)!r}'}"
        )
    return name
