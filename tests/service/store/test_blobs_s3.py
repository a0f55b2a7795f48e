"""Pictures in an S3-type store: in parts, through outages, and without its key in any message."""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.errors import LedgerError, StoreUnavailable
from service.store import blob_ages
from service.store.blob_places import PART
from service.store.blobs import Blobs


def test_a_large_file_goes_up_in_parts_and_small_ones_at_once(s3: Any, tmp_path: Path) -> None:
    blobs = Blobs(s3.url(tmp_path.name))
    (tmp_path / "large").write_bytes(os.urandom(2 * PART + 5))
    large, small = blobs.put_file(tmp_path / "large"), blobs.put(b"small")
    listed = s3.client.list_objects_v2(Bucket="pictures", Prefix=tmp_path.name)["Contents"]
    tags = {entry["Key"].rsplit("/", 1)[-1]: entry["ETag"] for entry in listed}
    assert re.search(r"-3\"?$", tags[large]) and "-" not in tags[small]


def test_a_store_that_is_gone_is_unavailable_and_then_goes_on_without_hands(
    another_s3: Callable[[int], Any],
) -> None:
    first = another_s3(0)
    blobs = Blobs(first.url("p"))
    key = blobs.put(b"picture")
    first.close()
    for ask in (lambda: blobs.get(key), lambda: blobs.put(b"new"), blobs.ping):
        with pytest.raises(StoreUnavailable) as caught:
            ask()
        assert "s3cr3t" not in str(caught.value) and "\n" not in str(caught.value)
        assert str(caught.value).startswith("s3://pictures/p: ")
    again = another_s3(first.port)
    try:
        assert blobs.get(blobs.put(b"picture")) == b"picture"
    finally:
        again.close()


def test_a_bucket_that_is_missing_is_not_taken_for_a_missing_picture(s3: Any) -> None:
    blobs = Blobs(s3.url("p", bucket="nowhere"))
    for ask in (lambda: blobs.get("0" * 64), lambda: blobs.put(b"x"), blobs.ping):
        with pytest.raises(StoreUnavailable):
            ask()


def test_the_key_in_the_url_is_in_no_message_and_unknown_options_are_refused(s3: Any) -> None:
    assert Blobs(s3.url("p")).name == "s3://pictures/p"
    with pytest.raises(LedgerError, match="s3://b/p: nothing is known of 'endpont'") as caught:
        Blobs("s3://user:hush@b/p?endpont=x")
    assert "hush" not in str(caught.value)


def test_a_bucket_is_listed_in_pages_and_other_objects_in_it_are_passed_over(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_ages, "PAGE", 3)
    blobs, other = Blobs(s3.url(tmp_path.name)), Blobs(s3.url(f"{tmp_path.name}-other"))
    keys = [blobs.put(b"%d" % number) for number in range(10)]
    other.put(b"of another prefix")
    for name in ("notes.txt", f"zz/{keys[0]}", f"x/{keys[0][:2]}/{keys[0]}"):
        s3.client.put_object(Bucket="pictures", Key=f"{tmp_path.name}/{name}", Body=b"")
    assert sorted(blobs.older(time.time() + 60)) == sorted(keys)
    with pytest.raises(StoreUnavailable, match="cannot be listed"):
        list(Blobs(s3.url("p", bucket="nowhere")).older(time.time()))


def test_a_process_opens_the_same_store_by_its_url(s3: Any, tmp_path: Path) -> None:
    blobs = Blobs(s3.url(tmp_path.name))
    key = blobs.put(b"picture")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_size, (blobs.url, key)) == 7


def _size(url: str, key: str) -> int:
    return Blobs(url).size(key)
