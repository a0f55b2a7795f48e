"""What the makers' own SDKs were found to need of the fake servers (scripts/sdk_check.sh)."""

from __future__ import annotations

import base64
from collections.abc import Callable

import httpx
import pytest

from service.fake_servers.contract import FakeServer

SDK_FILE = set(
    "id name content_type size etag checksums metadata created_at expires_at urls".split()
)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_gemini_is_found_under_both_versions_and_takes_both_alphabets(
    fake: Callable[..., FakeServer], picture: bytes, version: str
) -> None:
    server = fake("gemini")
    data = base64.urlsafe_b64encode(picture).decode().rstrip("=")
    assert "-" in data
    assert "_" in data
    answer = httpx.post(
        f"{server.url}/{version}/models/gemini-3-pro-image:generateContent",
        json={"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}, {"text": "x"}]}]},
        headers={"x-goog-api-key": server.key},
        trust_env=False,
        verify=False,
    )  # fmt: skip
    assert answer.status_code == 200
    assert answer.json()["candidates"][0]["finishReason"] == "STOP"


def test_a_file_uploaded_to_replicate_is_described_in_full(
    fake: Callable[..., FakeServer], picture: bytes
) -> None:
    server = fake("replicate")
    answer = httpx.post(
        f"{server.url}/v1/files",
        files={"content": ("a.png", picture, "image/png")},
        headers={"authorization": f"Bearer {server.key}"},
        trust_env=False,
        verify=False,
    )
    assert answer.status_code == 201
    assert set(answer.json()) >= SDK_FILE
    assert answer.json()["content_type"] == "image/png"
