"""A local server that speaks S3, for the tests that need one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.store.worlds import World

SECRET = "s3cr3t/with+signs"


class S3:
    """A local server that speaks S3, with one bucket."""

    def __init__(self, port: int = 0) -> None:
        import boto3
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
        self.server.start()
        host, self.port = self.server.get_host_and_port()
        self.endpoint = f"http://{host}:{self.port}"
        self.client: Any = boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1",
            aws_access_key_id="user", aws_secret_access_key=SECRET,
        )  # fmt: skip
        if not self.client.list_buckets()["Buckets"]:  # the server keeps them when it is stopped
            self.client.create_bucket(Bucket="pictures")

    def url(self, prefix: str, bucket: str = "pictures") -> str:
        secret = SECRET.replace("/", "%2F").replace("+", "%2B")
        return f"s3://user:{secret}@{bucket}/{prefix}?endpoint_url={self.endpoint}&region=us-east-1"

    def close(self) -> None:
        self.client.close()
        self.server.stop()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    opened = S3()
    yield opened
    opened.close()


@pytest.fixture
def another_s3() -> Callable[[int], S3]:
    """Starts one more, on a port of choice (0: any)."""
    return S3


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Stores with nothing in them, once on SQLite and once on PostgreSQL."""
    url = f"sqlite:///{tmp_path / 'service.sqlite3'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
    made = World(url, tmp_path)
    yield made
    made.database.close()
