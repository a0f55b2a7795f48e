"""POST /v1/gate: the decision of the command line, over HTTP, with nothing kept."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import cv2
import httpx
import numpy as np
import psutil
import pytest
import typer

from domain.errors import LikenessError
from service.cli.gate import gate
from service.engine.gate_pool import GatePool
from service.gate import WORDS, ExitCode
from service.limits import Limits

REPO = Path(__file__).resolve().parents[3]
FACE = REPO / "samples" / "portraits" / "images" / "id01_base.jpg"
Files = dict[str, bytes]


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    return cv2.imencode(".png", pixels)[1].tobytes()


@pytest.fixture(scope="module")
def pictures() -> Files:
    pixels = cv2.imread(str(FACE))
    mask = np.zeros(pixels.shape[:2], np.uint8)
    mask[300:500, 200:400] = 255
    return {
        "face": FACE.read_bytes(),
        "blur": png(cv2.GaussianBlur(pixels, (0, 0), 4)),
        "blank": png(pixels * 0),
        "mask": png(mask),
        "small": png(mask[:90, :80]),
        "html": b"<html>",
    }


def send(
    client: httpx.Client, pictures: Files, original: str, edited: str, **fields: Any
) -> httpx.Response:
    files = {"original": ("o", pictures[original]), "edited": ("e", pictures[edited])}
    if "mask" in fields:
        files["mask"] = ("m", pictures[fields.pop("mask")])
    return client.post("/v1/gate", files=files, data=fields)


@pytest.fixture
def gate_service(start_service: Any) -> Any:
    """A service whose gate has one process."""
    return start_service(limits=Limits(min_free_bytes=0, gate_processes=1))


PAIRS = {
    "pass": ("face", "face"),
    "fail": ("face", "blank"),
    "worse": ("face", "blur"),
    "inconclusive": ("blank", "face"),
    "original_unreadable": ("html", "face"),
    "edited_unreadable": ("face", "html"),
}


def likeness(
    capsys: pytest.CaptureFixture[str], *paths: Path, **options: Any
) -> tuple[int, str, str]:
    """``likeness gate`` in this process: its exit code, what it printed, and the error's line."""
    capsys.readouterr()
    try:
        gate(*paths, as_json=True, **options)
    except typer.Exit as end:
        return end.exit_code, capsys.readouterr().out, ""
    except LikenessError as error:
        return ExitCode.COULD_NOT_RUN, capsys.readouterr().out, str(error)
    raise AssertionError("the command ends with an exit code")


@pytest.mark.slow
def test_the_api_the_command_line_and_junit_say_the_same_of_the_same_pairs(
    gate_service: Any, pictures: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in pictures.items():
        (tmp_path / name).write_bytes(content)
    lines = [f"{o},{e},{name}" for name, (o, e) in PAIRS.items()]
    (tmp_path / "pairs.csv").write_text("\n".join(["original,edited,name", *lines]))
    junit, endings = tmp_path / "junit.xml", {0: "pass", 1: "failure", 2: "error", 3: "skipped"}
    _, printed, _ = likeness(capsys, batch=tmp_path / "pairs.csv", junit=junit)
    rows = {row["name"]: row for row in map(json.loads, printed.splitlines())}
    cases = {c.attrib["name"]: c for c in ET.parse(junit).getroot().findall("testsuite/testcase")}
    codes = {}
    for name, (original, edited) in PAIRS.items():
        answer = send(gate_service.client, pictures, original, edited)
        code, out, error = likeness(capsys, tmp_path / original, tmp_path / edited)
        row, case, codes[name] = rows[name], cases[name], code
        assert (case[0].tag if len(case) else "pass") == endings[code]
        assert row["decision"] == WORDS[ExitCode(code)]
        if answer.status_code == 200:
            assert answer.text + "\n" == out, "not the bytes of likeness gate --json"
            assert {**row, **answer.json(), "reason": row["reason"]} == row
            assert answer.json()["health"]["decision"] == row["decision"]
        else:
            assert (answer.status_code, out) == (422, "")
            assert answer.json()["type"] == "/problems/unreadable-picture"
            said = answer.json()["detail"]
            assert row["reason"] == said == case[0].attrib["message"]
            assert error.endswith(said.split(": ", 1)[1])
    assert list(codes.values()) == [0, 1, codes["worse"], 3, 2, 2]


def test_profile_threshold_and_mask_count(gate_service: Any, pictures: Files) -> None:
    strict = send(
        gate_service.client, pictures, "face", "blur", mask="mask", profile="even", min_score="99.5"
    ).json()
    assert strict["health"]["profile"] == "even" and strict["health"]["min_score"] == 99.5
    assert strict["health"]["decision"] == "fail"
    assert strict["metrics"]["outside_mask_drift"]["value"] > 0
    plain = send(gate_service.client, pictures, "face", "blur").json()
    assert plain["health"]["profile"] == "document" and plain["health"]["min_score"] == 85.0
    assert plain["metrics"]["outside_mask_drift"]["value"] is None
    wrong = send(gate_service.client, pictures, "face", "face", mask="small")
    assert wrong.status_code == 422 and wrong.json()["part"] == "mask"
    assert "80 x 90 pixels where the original has" in wrong.json()["detail"]


def test_a_request_that_is_no_pair_is_a_problem_that_names_the_mistake(
    gate_service: Any, pictures: Files
) -> None:
    alone = gate_service.client.post("/v1/gate", files={"original": pictures["face"]})
    assert alone.status_code == 422 and alone.json()["errors"][0]["pointer"] == "#/edited"
    for field, value in (("min_score", "nan"), ("min_score", "101"), ("profile", "x")):
        answer = send(gate_service.client, pictures, "face", "face", **{field: value})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == f"#/{field}"
    assert gate_service.client.post("/v1/gate", json={}).status_code in (415, 422)


def test_only_a_key_that_may_submit_gets_a_decision(gate_service: Any, pictures: Files) -> None:
    assert send(gate_service.with_scopes("read"), pictures, "face", "face").status_code == 403
    assert send(gate_service.bearer(None), pictures, "face", "face").status_code == 401
    assert send(gate_service.with_scopes("submit"), pictures, "face", "html").status_code == 422


def test_a_picture_over_the_limit_is_413(start_service: Any, pictures: Files) -> None:
    most = len(pictures["face"]) - 1
    service = start_service(limits=Limits(min_free_bytes=0, max_file_bytes=most))
    answer = send(service.client, pictures, "face", "face")
    assert answer.status_code == 413
    assert answer.json()["part"] == "original" and answer.json()["limit"] == most


def test_nothing_of_a_pair_is_stored(gate_service: Any, pictures: Files) -> None:
    before = tree(gate_service.context.server.home)
    assert send(gate_service.client, pictures, "face", "face").status_code == 200
    assert tree(gate_service.context.server.home) == before


def tree(home: Path) -> set[str]:
    return {str(p) for p in home.rglob("*") if "sqlite3" not in p.name}


def test_a_repeated_key_gets_the_same_decision_without_measuring_again(
    gate_service: Any, pictures: Files
) -> None:
    files = {"original": pictures["face"], "edited": pictures["face"]}
    first, second = (
        gate_service.client.post("/v1/gate", files=files, headers={"Idempotency-Key": "pair 1"})
        for _ in range(2)
    )
    assert first.status_code == second.status_code == 200
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"


# A pool under pressure ---------------------------------------------------------------------------


def until(true: Callable[[], bool]) -> None:
    for _ in range(3000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it never came about")


@pytest.fixture
def busy(start_service: Any, pictures: Files) -> Iterator[tuple[Any, GatePool]]:
    """A service with one measuring process, which is held still, and room for one more pair."""
    limits = Limits(min_free_bytes=0, gate_processes=1, gate_waiting=1)
    service = start_service(limits=limits)
    assert send(service.client, pictures, "face", "face").status_code == 200
    pool: GatePool = service.app.state.gate.pool(service.context)
    held = psutil.Process(pool.pids()[0])
    held.suspend()
    yield service, pool
    if held.is_running():
        held.resume()


def raw_request(service: Any, pictures: Files) -> socket.socket:
    """A pair sent by hand, so that the connection can be dropped before the answer."""
    request = httpx.Request(
        "POST", f"{service.url}/v1/gate",
        files={"original": pictures["face"], "edited": pictures["face"]},
        headers={"Authorization": f"Bearer {service.key}"},
    )  # fmt: skip
    head = ["POST /v1/gate HTTP/1.1", *(f"{k}: {v}" for k, v in request.headers.items())]
    link = socket.create_connection((request.url.host, request.url.port))
    link.sendall("\r\n".join([*head, "", ""]).encode() + request.read())
    return link


def test_a_full_queue_is_503_with_retry_after_and_who_leaves_frees_the_place(
    busy: tuple[Any, GatePool], pictures: Files
) -> None:
    service, pool = busy
    first = raw_request(service, pictures)
    until(lambda: pool.state()["measuring"] == 1)
    second = raw_request(service, pictures)
    until(lambda: pool.state()["waiting"] == 1)
    refused = send(service.client, pictures, "face", "face")
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert refused.json()["type"] == "/problems/busy"
    second.close()
    until(lambda: pool.state()["waiting"] == 0)
    first.close()  # its process stands still: it is ended, and a fresh one takes the next pair
    assert send(service.client, pictures, "face", "face").status_code == 200


@pytest.mark.slow
def test_a_killed_process_costs_its_pair_one_try_and_no_other(
    busy: tuple[Any, GatePool], pictures: Files
) -> None:
    service, pool = busy
    got: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: got.append(send(service.client, pictures, "face", "face"))
    )
    asking.start()
    until(lambda: pool.state()["measuring"] == 1)
    psutil.Process(pool.pids()[0]).kill()
    asking.join()
    assert got[0].status_code == 200 and got[0].json()["health"]["decision"] == "pass"
    assert pool.state()["died"] == 1


def test_the_processes_end_with_the_service(start_service: Any, pictures: Files) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, gate_processes=1))
    assert send(service.client, pictures, "face", "face").status_code == 200
    (pid,) = service.app.state.gate.pool(service.context).pids()
    service.app.state.gate.close()
    assert not psutil.pid_exists(pid)
    assert send(service.client, pictures, "face", "face").status_code == 503
