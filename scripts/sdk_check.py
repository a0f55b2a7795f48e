"""Drives the fake servers through the makers' own SDKs: run by sdk_check.sh inside its environment.

Arguments: MAKER/PLAYED=URL for each running fake server, then the key. PLAYED is what that server does
at its first call; "401" is a server that is called with a wrong key.
"""

from __future__ import annotations

import base64
import io
import struct
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

WRONG = "wrong-key-0123456789"


def png(width: int = 64, height: int = 96, channels: int = 3) -> bytes:
    """A grey PNG written by hand (this environment has no picture library); RGBA: lower half clear."""
    rows = b""
    for y in range(height):
        pixel = bytes([120, 130, 140]) + (bytes([0 if y > height // 2 else 255]) if channels == 4 else b"")  # fmt: skip
        rows += b"\0" + pixel * width
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def is_png(data: bytes) -> bool:
    """Whether ``data`` begins like a PNG."""
    return data[:8] == b"\x89PNG\r\n\x1a\n"


def openai_case(url: str, key: str) -> Callable[[], Any]:
    """One images.edit through the SDK."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=2)

    def call() -> Any:
        answer = client.images.edit(
            model="gpt-image-1",
            image=("face.png", png(), "image/png"),
            mask=("mask.png", png(channels=4), "image/png"),
            prompt="a plain background",
            size="1024x1536",
            input_fidelity="high",
        )
        assert answer.usage is not None
        assert answer.usage.total_tokens > 0
        assert answer.size == "1024x1536"
        return base64.b64decode(answer.data[0].b64_json or "")

    return call


def gemini_case(url: str, key: str) -> Callable[[], Any]:
    """One generate_content through the SDK."""
    from google import genai
    from google.genai import types

    retry = types.HttpRetryOptions(attempts=3, initial_delay=0.2)
    client = genai.Client(
        api_key=key, http_options=types.HttpOptions(base_url=url, retry_options=retry)
    )

    def call() -> Any:
        answer = client.models.generate_content(
            model="gemini-3-pro-image",
            contents=[
                types.Part.from_bytes(data=png(), mime_type="image/png"),
                "a plain background",
            ],
            config=types.GenerateContentConfig(response_modalities=["TEXT", "IMAGE"]),
        )
        candidate = (answer.candidates or [None])[0]
        if candidate is None:
            return f"blocked: {answer.prompt_feedback.block_reason}"
        parts = candidate.content.parts if candidate.content else None
        pictures = [p.inline_data.data for p in parts or [] if p.inline_data]
        return pictures[0] if pictures else f"finish: {candidate.finish_reason}"

    return call


def replicate_case(url: str, key: str) -> Callable[[], Any]:
    """One run through the SDK: upload, create, poll, fetch."""
    import httpx
    import replicate

    client = replicate.Client(api_token=key, base_url=url)

    def call() -> Any:
        picture = io.BytesIO(png())
        picture.name = "face.png"
        output = client.run(
            "example/inpainter", input={"image": picture, "prompt": "a plain background"}
        )
        first = output[0] if isinstance(output, list) else output
        if isinstance(first, str):  # the SDK wraps https addresses only; this one is on loopback
            return httpx.get(first, headers={"authorization": f"Bearer {key}"}).content
        return first.read()

    return call


CASES: dict[str, Callable[[str, str], Callable[[], Any]]] = {
    "openai": openai_case,
    "gemini": gemini_case,
    "replicate": replicate_case,
}
EXPECTED = {
    "ok": "picture",
    "refuse": "refusal",
    "429": "picture after a wait",
    "401": "wrong key",
}
NEVER_REPEATS = frozenset({"replicate"})
"""Makers whose SDK does not repeat a POST: a 429 reaches the caller."""
REFUSED = ("moderation_blocked", "flagged", "finish: ", "blocked: ", "sensitive")


def outcome(maker: str, url: str, key: str) -> tuple[str, str]:
    """What came of one call: a word to compare, and details."""
    began = time.monotonic()
    try:
        result = CASES[maker](url, key)()
    except Exception as error:
        return _of_error(error)
    if isinstance(result, str):
        return "refusal", result
    if not is_png(result):
        return "fault", "no picture came"
    return "picture", f"{len(result)} bytes in {time.monotonic() - began:.1f} s"


def _of_error(error: Exception) -> tuple[str, str]:
    said = f"{type(error).__name__} {getattr(error, 'code', '')}: {error}"
    names = ("status_code", "status", "code")  # each SDK has its own
    status = next((v for n in names if isinstance(v := getattr(error, n, None), int)), None)
    if any(word in said for word in REFUSED):
        return "refusal", said
    if status == 429:
        return "rate limit", said
    wrong = status in (401, 403) or "API key not valid" in said
    return ("wrong key" if wrong else "fault"), said


def main(arguments: list[str]) -> int:
    """Print the table; 1 when anything was not as the maker's SDK expects it."""
    key, bad = arguments[-1], 0
    print(f"{'maker':10} {'played':8} {'wanted':21} {'came':10} details")
    for argument in arguments[:-1]:
        maker, _, rest = argument.partition("/")
        played, _, url = rest.partition("=")
        came, said = outcome(maker, url, WRONG if played == "401" else key)
        wanted = EXPECTED[played]
        if played == "429" and maker in NEVER_REPEATS:
            wanted = "rate limit"
        good = came == wanted.partition(" after")[0]
        bad += not good
        mark = "" if good else "  <-- differs"
        print(f"{maker:10} {played:8} {wanted:21} {came:10} {' '.join(said.split())[:110]}{mark}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
