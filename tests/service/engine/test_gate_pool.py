"""The gate's pool: a pair may die, hang or be given up; every other one gets its answer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import cv2
import psutil
import pytest

from preprocess.limits import Limits
from service import settings
from service.answers import of_pair
from service.engine import gate_member, gate_process
from service.engine.gate_pool import GateAnswer, GatePool, Pair, PoolFull, Room
from service.gate import ExitCode
from service.measuring import Instrument

REPO = Path(__file__).resolve().parents[3]
FACE = (REPO / "samples" / "portraits" / "images" / "id01_base.jpg").read_bytes()
DEADLY, HANGING, LARGE = b"ends its process", b"hangs", b"grows"


def played(link: object, models_dir: Path, limits: Limits) -> None:
    """A measuring process without an instrument: pictures are words that say what to do."""
    gate_process._prepare = lambda _models: None
    gate_process._answer = _played  # type: ignore[assignment]
    gate_process.serve(link, models_dir, limits)  # type: ignore[arg-type]


def _played(head: dict[str, object], sources: list[bytes], _limits: Limits) -> GateAnswer:
    word = sources[1]
    if word == DEADLY or (word.startswith(b"/") and once(Path(word.decode()))):
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == HANGING:
        time.sleep(600)
    return GateAnswer(ExitCode.PASS, b'{"word": "%s"}' % word, seconds=float(os.getpid()))


def once(mark: Path) -> bool:
    """True at the first call with this path."""
    if mark.exists():
        return False
    mark.touch()
    return True


def answered(answer: GateAnswer) -> str:
    return str(answer.answer().get("word"))


def until(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        time.sleep(0.005)
    raise AssertionError("it never came about")


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., GatePool]]:
    """Pools of played processes."""
    monkeypatch.setattr(gate_member, "serve", played)
    made: list[GatePool] = []

    def pool(processes: int = 1, **room: float) -> GatePool:
        made.append(GatePool(Path("nowhere"), Room(processes, **room)))  # type: ignore[arg-type]
        return made[-1]

    yield pool
    for one in made:
        one.close()


def ask(pool: GatePool, word: bytes) -> GateAnswer:
    return pool.submit(Pair(b"", word)).future.result(60)


def test_a_pair_that_kills_its_process_twice_gets_a_clear_answer_and_no_other_is_touched(
    make: Callable[..., GatePool],
) -> None:
    pool = make(2)
    words = [b"a", DEADLY, b"b", b"c", DEADLY, b"d"]
    answers = [t.future.result(60) for t in [pool.submit(Pair(b"", w)) for w in words]]
    assert [answered(a) for a in answers if a.code is ExitCode.PASS] == ["a", "b", "c", "d"]
    bad = [a for a in answers if a.code is not ExitCode.PASS]
    assert [(a.code, a.cause, a.body) for a in bad] == [(ExitCode.COULD_NOT_RUN, "died", b"")] * 2
    assert bad[0].reason == "the measuring process died on this pair, twice"
    assert pool.state()["died"] == 4


def test_a_pair_whose_process_dies_once_is_measured_by_a_fresh_one(
    make: Callable[..., GatePool], tmp_path: Path
) -> None:
    pool = make()
    mark = tmp_path / "died once"
    answer = ask(pool, str(mark).encode())
    assert answer.code is ExitCode.PASS and mark.exists() and pool.state()["died"] == 1


def test_a_process_killed_while_idle_costs_nobody_a_try(make: Callable[..., GatePool]) -> None:
    pool = make()
    assert answered(ask(pool, b"before")) == "before"
    process = psutil.Process(pool.pids()[0])
    process.kill()
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    assert answered(ask(pool, b"after")) == "after"
    assert pool.state()["died"] == 0


def test_a_pair_that_takes_too_long_is_ended_and_its_place_is_free(
    make: Callable[..., GatePool],
) -> None:
    pool = make(pair_s=0.3)
    answer = ask(pool, HANGING)
    assert (answer.code, answer.cause) == (ExitCode.COULD_NOT_RUN, "too_slow")
    assert answer.reason == "took longer than 0.3 s"
    assert answered(ask(pool, b"next")) == "next"


def test_who_gives_up_leaves_the_queue_or_ends_the_pair_under_way(
    make: Callable[..., GatePool],
) -> None:
    pool = make(abandoned_s=0.1)
    running = pool.submit(Pair(b"", HANGING))
    until(lambda: pool.state()["measuring"] == 1)
    waiting, last = pool.submit(Pair(b"", b"waiting")), pool.submit(Pair(b"", b"last"))
    pool.abandon(waiting)
    assert pool.state()["waiting"] == 1 and waiting.future.cancelled()
    pool.abandon(running)
    assert answered(last.future.result(60)) == "last"


def test_the_queue_is_bounded_by_pairs_and_says_when_to_come_back(
    make: Callable[..., GatePool],
) -> None:
    pool = make(waiting=2, abandoned_s=0.1)
    running = pool.submit(Pair(b"", HANGING))
    until(lambda: pool.state()["measuring"] == 1)
    for _ in range(2):
        pool.submit(Pair(b"", b"w"))
    with pytest.raises(PoolFull) as full:
        pool.submit(Pair(b"", b"w"))
    assert 1 <= full.value.retry_after <= 60
    pool.abandon(running)
    until(lambda: pool.state()["waiting"] == 0)
    assert answered(ask(pool, b"again")) == "again"


def test_the_queue_is_bounded_by_bytes_but_one_large_pair_always_fits(
    make: Callable[..., GatePool],
) -> None:
    pool = make(waiting_bytes=1000, abandoned_s=0.1)
    running = pool.submit(Pair(b"", HANGING))
    until(lambda: pool.state()["measuring"] == 1)
    pool.submit(Pair(bytes(5000), b"large"))
    with pytest.raises(PoolFull):
        pool.submit(Pair(bytes(10), b"small"))
    pool.abandon(running)


def test_a_process_that_has_done_its_share_is_replaced_without_a_pause(
    make: Callable[..., GatePool],
) -> None:
    pool = make(recycle=3)
    seen: list[int] = []
    until(lambda: bool(seen.append(pid_of(pool)) or len(set(seen)) >= 3))
    assert pool.state()["died"] == 0
    runs = [sum(p == pid for p in seen) for pid in dict.fromkeys(seen)]
    assert all(run >= 3 for run in runs[:-1])


def test_a_process_that_has_grown_is_replaced(make: Callable[..., GatePool]) -> None:
    pool = make(process_bytes=1)
    first = pid_of(pool)
    until(lambda: pid_of(pool) != first)


def pid_of(pool: GatePool) -> int:
    ask(pool, b"w")
    return (pool.pids() or [0])[0]


def test_a_frozen_process_is_taken_for_dead(
    make: Callable[..., GatePool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_member, "STALL_S", 1)
    pool = make()
    ask(pool, b"warm")
    held = psutil.Process(pool.pids()[0])
    held.suspend()
    # more than the pipe holds, so that handing it over would last for ever
    answer = pool.submit(Pair(bytes(5_000_000), b"w")).future.result(60)
    assert answered(answer) == "w" and not held.is_running()


def test_closing_cancels_what_waits_and_ends_every_process(make: Callable[..., GatePool]) -> None:
    pool = make(2, abandoned_s=0.1)
    for word in (b"a", b"b"):
        ask(pool, word)
    until(lambda: len(pool.pids()) == 2)
    children = [psutil.Process(pid) for pid in pool.pids()]
    hanging = [pool.submit(Pair(b"", HANGING)) for _ in range(2)]
    until(lambda: pool.state()["measuring"] == 2)
    waiting = pool.submit(Pair(b"", b"w"))
    pool.close()
    assert not any(c.is_running() for c in children)
    assert all(h.future.result(5).code is ExitCode.COULD_NOT_RUN for h in hanging)
    with pytest.raises(CancelledError):
        waiting.future.result(5)
    with pytest.raises(PoolFull):
        pool.submit(Pair(b"", b"late"))


def test_where_no_process_can_start_the_answer_says_so(
    make: Callable[..., GatePool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_member, "serve", played)
    monkeypatch.setattr(
        "multiprocessing.context.SpawnProcess.start", raises(OSError(11, "no more processes"))
    )
    answer = ask(make(), b"w")
    assert (answer.code, answer.cause) == (ExitCode.COULD_NOT_RUN, "not_ready")
    assert "no more processes" in answer.reason


def raises(error: Exception) -> Callable[..., None]:
    def start(*_: object) -> None:
        raise error

    return start


# With the instrument -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Iterator[GatePool]:
    with GatePool(settings.load().models, Room(1)) as pool:
        yield pool


def test_the_answer_is_that_of_the_instrument_itself(real: GatePool) -> None:
    blurred = cv2.GaussianBlur(cv2.imdecode(to_array(FACE), cv2.IMREAD_COLOR), (0, 0), 3)
    edit = cv2.imencode(".png", blurred)[1].tobytes()
    for profile, least in (("document", 85.0), ("even", 40.0), ("document", 10.0)):
        answer = real.submit(Pair(FACE, edit, None, "mediapipe", profile, least)).future.result(60)
        instrument = Instrument("mediapipe", profile, least)
        assert answer.answer() == of_pair(instrument.measure_files(FACE, edit))


def to_array(data: bytes) -> object:
    import numpy as np

    return np.frombuffer(data, np.uint8)


def test_files_may_be_named_by_their_path(real: GatePool, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(FACE)
    by_path = real.submit(Pair(path, path)).future.result(60)
    assert by_path.body == real.submit(Pair(FACE, FACE)).future.result(60).body


def test_what_cannot_be_read_names_the_part_and_the_cause(real: GatePool) -> None:
    for pair, part in (
        (Pair(b"<html>", FACE), "original"),
        (Pair(FACE, b"<html>"), "edited"),
        (Pair(FACE, FACE, b"<html>"), "mask"),
    ):
        answer = real.submit(pair).future.result(60)
        assert answer.code is ExitCode.COULD_NOT_RUN
        assert (answer.cause, answer.part) == ("unreadable", part)
        assert answer.reason == "not an image: looks like HTML"


def test_the_limits_of_the_decode_gate_hold_in_the_process() -> None:
    with GatePool(settings.load().models, Room(1), Limits(max_bytes=1000)) as pool:
        answer = pool.submit(Pair(FACE, FACE)).future.result(60)
    assert (answer.cause, answer.part) == ("unreadable", "original")
    assert "file too large" in answer.reason


def test_missing_models_are_told_and_not_taken_for_a_crash(tmp_path: Path) -> None:
    with GatePool(tmp_path, Room(1)) as pool:
        answer = pool.submit(Pair(FACE, FACE)).future.result(60)
        assert (answer.code, answer.cause) == (ExitCode.COULD_NOT_RUN, "not_ready")
        assert "face_landmarker.task" in answer.reason and pool.state()["died"] == 0


def test_many_callers_get_their_own_answers(make: Callable[..., GatePool]) -> None:
    pool = make(2, waiting=1000)
    got: dict[str, str] = {}

    def call(n: int) -> None:
        for m in range(20):
            word = f"{n}-{m}"
            got[word] = answered(ask(pool, word.encode()))

    callers = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(got) == 160 and all(k == v for k, v in got.items())
