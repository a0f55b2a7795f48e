"""Lists of addresses are fetched a few at a time, gently, and within one time for all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from adapters.over_http.download import NotFetched
from domain.errors import LikenessError
from service.intake import url_list
from service.intake.url_list import GAP_S, PER_HOST, Fetched, FetchLimits, Wanted, fetch_all


class Internet:
    """Stands in for ``download``: every URL answers with itself, as often as is looked at."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.asked: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self.met = threading.Barrier(1)

    def download(self, url: str, into: BinaryIO, **how: Any) -> int:
        host = url.split("/")[2]
        with self._lock:
            self.asked.append({"url": url, **how})
            for name in (host, "all"):
                self.now[name] += 1
                self.most[name] = max(self.most[name], self.now[name])
        try:
            self.met.wait(20)
            if "bad" in url:
                raise NotFetched("the server answered 404", "http_status")
            return into.write(url.encode())
        finally:
            with self._lock:
                for name in (host, "all"):
                    self.now[name] -= 1


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    made = Internet()
    monkeypatch.setattr(url_list, "download", made.download)
    return made


class Clock:
    """A clock that waiting moves on."""

    def __init__(self) -> None:
        self.time = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


def limits(**changed: Any) -> FetchLimits:
    usual: dict[str, Any] = {
        "file_bytes": 1000, "file_s": 10.0, "all_bytes": 10_000, "all_s": 60.0, "at_once": 4,
    }  # fmt: skip
    return FetchLimits(**{**usual, **changed})


def fetch(urls: list[str], folder: Path, clock: Clock | None = None, **how: Any) -> list[Fetched]:
    clock = clock or Clock()
    return list(fetch_all([Wanted(u) for u in urls], folder, limits(**how), clock, clock.wait))


def test_answers_come_in_the_order_of_the_list(internet: Internet, tmp_path: Path) -> None:
    urls = [f"http://h{n % 5}.example/{n}" for n in range(20)]
    found = fetch(urls, tmp_path)
    assert [f.wanted.url for f in found] == urls
    assert [f.path.read_bytes().decode() for f in found if f.path] == urls


def test_one_host_is_asked_for_few_files_at_a_time_and_with_gaps(
    internet: Internet, tmp_path: Path
) -> None:
    clock = Clock()
    fetch([f"http://one.example/{n}" for n in range(12)], tmp_path, clock, at_once=8)
    assert internet.most["one.example"] <= PER_HOST
    assert sum(wait > 0 for wait in clock.waits) == 11
    assert max(clock.waits) == pytest.approx(11 * GAP_S)


def test_only_so_many_are_in_flight_at_all(internet: Internet, tmp_path: Path) -> None:
    internet.met = threading.Barrier(4)
    fetch([f"http://h{n}.example/" for n in range(16)], tmp_path, at_once=4)
    assert internet.most["all"] == 4


def test_a_reader_that_is_slow_holds_the_fetching_back(internet: Internet, tmp_path: Path) -> None:
    clock = Clock()
    wanted = [Wanted(f"http://h{n}.example/") for n in range(100)]
    found: Iterator[Fetched] = fetch_all(wanted, tmp_path, limits(), clock, clock.wait)
    next(found)
    assert len(internet.asked) <= 2 * 4
    found.close()  # type: ignore[attr-defined]
    assert len(internet.asked) <= 2 * 4


def test_one_that_fails_is_a_reason_of_its_own_and_leaves_no_file(
    internet: Internet, tmp_path: Path
) -> None:
    bad, good = fetch(["http://x.example/bad", "http://x.example/good"], tmp_path)
    assert (bad.path, bad.code, bad.reason) == (None, "http_status", "the server answered 404")
    assert good.path is not None
    assert list(tmp_path.iterdir()) == [good.path]


def test_when_the_time_for_all_is_over_the_rest_is_not_asked_for(
    internet: Internet, tmp_path: Path
) -> None:
    found = fetch(["http://x.example/1", "http://x.example/2"], tmp_path, all_s=0.0)
    assert [f.code for f in found] == ["timeout", "timeout"]
    assert internet.asked == []


def test_what_is_left_of_the_time_for_all_bounds_each(internet: Internet, tmp_path: Path) -> None:
    fetch(["http://x.example/1"], tmp_path, all_s=3.0, allowed=("x.example",))
    assert internet.asked[0]["seconds"] == 3.0
    assert internet.asked[0]["allowed"] == ("x.example",)


def test_all_files_together_have_a_limit_too(internet: Internet, tmp_path: Path) -> None:
    url = "http://x.example/" + "1" * 23
    found = fetch([url] * 4, tmp_path, all_bytes=100, at_once=1)
    assert [f.code for f in found] == ["", "", "batch_too_large", "batch_too_large"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"": "x"},
        {"a" * 61: "x"},
        {"a\nb": "x"},
        {"a": "x" * 501},
        {f"c{n}": "x" for n in range(101)},
    ],
)
def test_attributes_have_the_limits_of_a_manifest(attributes: dict[str, str]) -> None:
    with pytest.raises(LikenessError):
        Wanted("http://x.example/a.png", attributes=attributes).row()


def test_an_entry_is_called_as_its_sender_says_or_else_by_its_path() -> None:
    assert Wanted("http://x.example/a.png?sig=1").called == "a.png"
    assert Wanted("http://x.example/a.png", name="b\n.png").called == "b .png"
    assert Wanted("http://x.example/", attributes={"a": " x ", "b": " "}).row() == {"a": "x"}
