"""A small audit asked of a running service over REST, with nothing but the standard library."""

from __future__ import annotations

import csv
import io
import json
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

PICTURES = 4
PLAN = "name: clean root\ntools:\n  - {id: identity, name: copy}\ngroups: [gender]\nseed: 7\n"
PATIENCE_S = 180.0


def run(url: str, key: str, samples: Path) -> dict[str, Any]:
    """Send pictures, begin a run, wait for its end, fetch its report. Returns the run as the service tells it, with
    ``report_bytes`` added. Raises OSError where the service refuses or takes longer than PATIENCE_S."""
    batch = _ask(f"{url}/v1/batches?name=clean-root", key, _archive(samples), "application/zip")
    body = json.dumps({"batch_id": batch["batch_id"], "plan": PLAN}).encode()
    found = _ask(f"{url}/v1/runs", key, body, "application/json")
    until = time.monotonic() + PATIENCE_S
    while found["state"] in ("queued", "running"):
        if time.monotonic() > until:
            raise OSError(f"the run is still {found['state']}")
        time.sleep(1.0)
        found = _ask(f"{url}/v1/runs/{found['run_id']}", key)
    report = b""
    if found["state"] == "done":
        report = _fetch(f"{url}/v1/runs/{found['run_id']}/report", key)
    return {**found, "report_bytes": len(report)}


def ready(url: str) -> dict[str, Any]:
    """What /readyz says."""
    return dict(json.loads(_fetch(f"{url}/readyz", "")))


def _archive(samples: Path) -> bytes:
    """A zip of the first sample portraits that are nobody's variant, with their manifest."""
    with (samples / "manifest.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["pair_id"]][:PICTURES]
    kept = ("file", "subject_id", "gender", "age_group", "skin_tone")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, kept, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("manifest.csv", text.getvalue())
        for row in rows:
            archive.write(samples / row["file"], row["file"])
    return packed.getvalue()


def _ask(url: str, key: str, body: bytes | None = None, media_type: str = "") -> dict[str, Any]:
    return dict(json.loads(_fetch(url, key, body, media_type)))


def _fetch(url: str, key: str, body: bytes | None = None, media_type: str = "") -> bytes:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if body is not None:
        headers["Content-Type"] = media_type
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - our own service on loopback
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        said = error.read(600).decode("utf-8", "replace")
        raise OSError(f"{request.selector} answered {error.code}: {said}") from None
