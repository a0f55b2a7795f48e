"""The whole way: a server and its worker as processes of their own, portraits in, a report out, and
the same figures as the command line gives."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from service.engine.children import command
from service.store.api_keys import ApiKeys
from service.store.database import Database
from tests.service.api.test_events import Told, parsed

pytestmark = pytest.mark.slow
PORTRAITS = Path(__file__).resolve().parents[3] / "samples" / "portraits"
COUNT = 6
HOSTILE = "<script>window.harmed=1</script>"
PLAN = f"""\
name: 'Whole way {HOSTILE}'
portraits: {{manifest: portraits/manifest.csv}}
tools:
  - {{id: style_transfer, settings: {{style: 0, strength: 0.7}}}}
groups: [gender, skin_tone]
claims:
  - {{metric: flrr, attribute: gender}}
seed: 20
"""


def folder_with_portraits(folder: Path) -> Path:
    """Six rendered heads with their manifest; one attribute is what an attacker might declare."""
    (folder / "images").mkdir(parents=True)
    with (PORTRAITS / "manifest.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:COUNT]
    for row, note in zip(
        rows, (HOSTILE, "=cmd|' /C calc'!A1", "@SUM(1)", "+1", "-x", "plain"), strict=True
    ):
        (folder / row["file"]).write_bytes((PORTRAITS / row["file"]).read_bytes())
        row["remark"] = note
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder


def zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, str(path.relative_to(folder)))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("whole") / "home"
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LIKENESS_")}
    models = {k: v for k, v in os.environ.items() if k in ("LIKENESS_MODELS", "LIKENESS_DATA")}
    return kept | models | {"LIKENESS_HOME": str(home), "LIKENESS_WORKERS": "1"}


@pytest.fixture(scope="module")
def client(environment: dict[str, str]) -> Iterator[httpx.Client]:
    """``likeness serve`` on a free port, with a worker process and a key that may submit and read."""
    home = Path(environment["LIKENESS_HOME"])
    home.mkdir()
    database = Database(f"sqlite:///{home / 'service.sqlite3'}")
    database.migrate()
    token = ApiKeys(database).add("whole way", ("submit", "read"))[1]
    database.close()
    log = (home.parent / "serve.log").open("w")
    with log, subprocess.Popen(
        command("serve", "--port", "0"), env=environment, stdout=subprocess.PIPE, stderr=log,
        stdin=subprocess.DEVNULL, text=True,
    ) as served:  # fmt: skip
        assert served.stdout is not None
        url = served.stdout.readline().partition("likeness: ")[2].strip().removesuffix("/v1")
        headers = {"Authorization": f"Bearer {token}"}
        try:
            with httpx.Client(base_url=url, headers=headers, timeout=300, trust_env=False) as found:
                yield found
        finally:
            served.terminate()
            served.wait(60)


@pytest.fixture(scope="module")
def portraits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_portraits(tmp_path_factory.mktemp("plan") / "portraits")


@pytest.fixture(scope="module")
def at_the_command_line(portraits: Path, environment: dict[str, str]) -> Path:
    """The folder that ``likeness audit`` made of the same portraits and the same plan."""
    plan = portraits.parent / "plan.yaml"
    plan.write_text(PLAN)
    out = portraits.parent / "out"
    done = subprocess.run(
        command("audit", str(plan), "--out", str(out)), env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def batch(client: httpx.Client, portraits: Path) -> dict[str, Any]:
    answer = client.post(
        "/v1/batches", content=zipped(portraits), headers={"Content-Type": "application/zip"}
    )
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    assert made["accepted"] == COUNT
    return made


@pytest.fixture(scope="module")
def followed(client: httpx.Client, batch: dict[str, Any]) -> tuple[str, Told]:
    """The run that was begun, followed to its end over a connection that is cut again and again."""
    answer = client.post("/v1/runs", json={"batch_id": batch["batch_id"], "plan": PLAN})
    assert answer.status_code == 202, answer.text
    there, told = answer.headers["location"], []
    while not told or told[-1][1] not in ("done", "failed", "cancelled"):
        last = {"Last-Event-ID": str(told[-1][0])} if told else {}
        text = ""
        with client.stream("GET", f"{there}/events", headers=last) as stream:
            assert stream.status_code == 200
            for piece in stream.iter_text():
                text += piece
                if len(parsed(text)) >= 3:
                    break
        told += parsed(text)
    return there, told


def test_events_tell_the_whole_run_without_gap_or_double(
    client: httpx.Client, followed: tuple[str, Told]
) -> None:
    there, told = followed
    assert told[-1][1] == "done", client.get(there).json()["error"]
    assert [kind for _, kind, _ in told][:2] == ["queued", "running"]
    assert parsed(client.get(f"{there}/events").text) == told
    last = next(data for _, kind, data in reversed(told) if kind == "progress")
    assert last["measured"]["done"] == last["measured"]["total"] > COUNT


def test_the_run_tells_that_every_item_has_ended(
    client: httpx.Client, followed: tuple[str, Told]
) -> None:
    run = client.get(followed[0]).json()
    assert run["state"] == "done"
    assert run["items"] == {"done": sum(run["outcomes"].values())}
    assert run["eta_s"] == 0


def test_figures_are_byte_for_byte_those_of_the_command_line(
    client: httpx.Client, followed: tuple[str, Told], at_the_command_line: Path
) -> None:
    there = followed[0]
    written = (at_the_command_line / "measurements.csv").read_bytes()
    assert client.get(f"{there}/files/measurements.csv").content == written
    asked = client.get(f"{there}/measurements", headers={"Accept": "text/csv"})
    assert asked.content == written
    assert (
        client.get(f"{there}/files/review.csv").content
        == (at_the_command_line / "review.csv").read_bytes()
    )


def test_json_and_parquet_tell_the_same_as_the_table(
    client: httpx.Client, followed: tuple[str, Told]
) -> None:
    there = f"{followed[0]}/measurements"
    text = client.get(there, headers={"Accept": "text/csv"}).text
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 250}
    while True:
        page = client.get(there, params=query).json()
        assert page["complete"] is True
        found += page["items"]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert [(r["item_id"], r["metric"] or "", r["standing"]) for r in found] == [
        (r["item_id"], r["metric"], r["standing"]) for r in rows
    ]
    parquet = client.get(there, headers={"Accept": "application/vnd.apache.parquet"}).content
    columns = pq.read_table(io.BytesIO(parquet)).to_pydict()
    assert columns["value"] == [r["value"] for r in found]
    assert [v is None for v in columns["value"]] == [r["value"] == "" for r in rows]
    assert {r["attributes"]["remark"] for r in found} >= {HOSTILE, "=cmd|' /C calc'!A1"}


def test_verdicts_are_those_of_the_command_line(
    client: httpx.Client, followed: tuple[str, Told], at_the_command_line: Path
) -> None:
    report = json.loads((at_the_command_line / "report.json").read_text())
    found = client.get(f"{followed[0]}/verdicts").json()
    assert found["verdicts"] == report["verdicts"]
    assert found["controls_ok"] == report["controls_ok"]
    assert found["verdicts"]


def test_the_report_holds_no_markup_of_a_stranger(
    client: httpx.Client, followed: tuple[str, Told]
) -> None:
    page = client.get(f"{followed[0]}/report")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["etag"] == f'"{hashlib.sha256(page.content).hexdigest()}"'
    assert HOSTILE not in page.text
    assert "window.harmed" in page.text  # told as text
    assert "script-src 'sha256-" in page.headers["content-security-policy"]


def test_pictures_of_an_item_are_there(client: httpx.Client, followed: tuple[str, Told]) -> None:
    items = client.get(f"{followed[0]}/items", params={"outcome": "measured"}).json()["items"]
    detail = client.get(f"{followed[0]}/items/{items[0]['item_id']}").json()
    assert detail["figures"]
    assert detail["portrait"]["face_found"] is True
    for which in ("original", "edited"):
        picture = client.get(detail["pictures"][which])
        assert picture.status_code == 200
        assert picture.headers["content-type"] in ("image/png", "image/jpeg")
