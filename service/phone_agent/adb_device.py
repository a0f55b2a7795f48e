"""The device's end of the Android Debug Bridge, over TCP, as much of it as port forwarding needs: so
that the real ``adb`` program can be used where there is no phone.

Protocol: AOSP, packages/modules/adb/protocol.txt. Messages are six little-endian words and data;
streams are opened by OPEN, every WRTE is answered by OKAY before the next, CLSE ends a stream.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Mapping

_VERSION, _MAX_DATA = 0x01000001, 256 * 1024
_HEADER = struct.Struct("<6I")
_COMMANDS = {
    name: struct.unpack("<I", name)[0] for name in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"WRTE", b"CLSE")
}  # fmt: skip
_NAMES = {value: name for name, value in _COMMANDS.items()}
_AUTH_TOKEN = 1


class AdbDevice:
    """Listens for ``adb connect``. ``sockets`` maps what a stream may be opened to ("tcp:8642",
    "localabstract:likeness") to the TCP port of this machine that answers it."""

    def __init__(
        self, sockets: Mapping[str, int], *, port: int = 0, authorised: bool = True
    ) -> None:
        """``authorised`` False: the phone still asks its user whether this computer is trusted."""
        self.sockets, self.authorised = dict(sockets), authorised
        self._listener = socket.create_server(("127.0.0.1", port))
        self.serial = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True, name="adb-device").start()

    def close(self) -> None:
        """Pull the cable: every connection ends. May come twice."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else accept goes on beyond the close
        self._listener.close()
        with self._lock:
            connections, self._open = list(self._open), set()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
            link = _Link(connection, self)
            threading.Thread(target=link.serve, daemon=True, name="adb-device-link").start()


class _Link:
    """One connection from an adb server, with its streams."""

    def __init__(self, connection: socket.socket, device: AdbDevice) -> None:
        self._connection, self._device = connection, device
        self._sending = threading.Lock()
        self._streams: dict[int, _Stream] = {}
        self._numbers = itertools.count(1)

    def send(self, command: bytes, arg0: int, arg1: int, data: bytes = b"") -> None:
        word = _COMMANDS[command]
        head = _HEADER.pack(word, arg0, arg1, len(data), sum(data), word ^ 0xFFFFFFFF)
        with self._sending:
            self._connection.sendall(head + data)

    def serve(self) -> None:
        """Read messages until the connection ends."""
        try:
            while True:
                word, arg0, arg1, length, _, magic = _HEADER.unpack(self._read(_HEADER.size))
                if magic != word ^ 0xFFFFFFFF or length > _MAX_DATA or word not in _NAMES:
                    return
                self._take(_NAMES[word], arg0, arg1, self._read(length))
        except OSError:
            pass
        finally:
            for stream in list(self._streams.values()):
                stream.close()
            self._connection.close()

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._connection.recv(count - len(parts))
            if not part:
                raise OSError("the connection ended")
            parts += part
        return bytes(parts)

    def _take(self, command: bytes, arg0: int, arg1: int, data: bytes) -> None:
        if command in (b"CNXN", b"AUTH"):
            if self._device.authorised:
                banner = b"device::ro.product.name=reference;ro.product.model=Phone_agent;"
                self.send(b"CNXN", _VERSION, _MAX_DATA, banner + b"ro.product.device=reference;")
            elif command == b"CNXN" or arg0 != 3:  # 3: the public key, which now waits for the user
                self.send(b"AUTH", _AUTH_TOKEN, 0, bytes(range(20)))
        elif command == b"OPEN":
            self._open(arg0, data.rstrip(b"\0").decode("utf-8", "replace"))
        elif arg1 in self._streams:
            self._streams[arg1].take(command, data)

    def _open(self, remote: int, service: str) -> None:
        port = self._device.sockets.get(service)
        try:
            if port is None:
                raise OSError(f"nothing listens at {service}")
            local = socket.create_connection(("127.0.0.1", port), timeout=10)
        except OSError:
            self.send(b"CLSE", 0, remote)
            return
        local.settimeout(None)
        number = next(self._numbers)
        self._streams[number] = _Stream(self, number, remote, local)
        self.send(b"OKAY", number, remote)
        threading.Thread(target=self._streams[number].pump, daemon=True).start()

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)


class _Stream:
    """One forwarded connection."""

    def __init__(self, link: _Link, number: int, remote: int, local: socket.socket) -> None:
        self._link, self._number, self._remote, self._local = link, number, remote, local
        self._taken = threading.Event()

    def pump(self) -> None:
        """From the agent to adb, a piece at a time, each one waited for."""
        try:
            while data := self._local.recv(_MAX_DATA // 4):
                self._taken.clear()
                self._link.send(b"WRTE", self._number, self._remote, data)
                self._taken.wait()
        except OSError:
            pass
        with contextlib.suppress(OSError):
            self._link.send(b"CLSE", self._number, self._remote)
        self.close()

    def take(self, command: bytes, data: bytes) -> None:
        """A message from adb."""
        if command == b"OKAY":
            self._taken.set()
        elif command == b"CLSE":
            self.close()
        elif command == b"WRTE":
            try:
                self._local.sendall(data)
                self._link.send(b"OKAY", self._number, self._remote)
            except OSError:
                self.close()

    def close(self) -> None:
        self._link.forget(self._number)
        self._taken.set()
        with contextlib.suppress(OSError):
            self._local.shutdown(socket.SHUT_RDWR)
        self._local.close()
