"""Requests of every kind that the OpenAPI document allows, and of many that it forbids, to a real
service: none may fail with 5xx, nor answer with a status, a media type or a shape that is not the
documented one.

Run by ``make soak``; a short one is in tests/service/api/test_contract_fuzz.py. Beside random ids the
requests name a batch and runs that are there. The last line printed is JSON: operations, cases,
answers by status, never_2xx (operations that no case got through), failures, seed, seconds, peak_mb. What
the fuzzer says of each failure goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]
from serving import REPO, RealServer  # noqa: E402

from domain.errors import LikenessError  # noqa: E402
from service.client import LikenessClient  # noqa: E402

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
NOT_SO = {("GET /v1/receipts/verify", "UnsupportedMethodResponse")}
"""What is right after all: GET there asks for the receipt called "verify", which there is none of."""
PHASES = {"short": "coverage,fuzzing", "long": "examples,coverage,fuzzing,stateful"}
REQUEST_S = 60
LONGEST = 20_000
HOOKS = Path(__file__).resolve().with_name("fuzz_hooks.py")
PLAN = "name: For the checks\ntools:\n  - {id: identity, name: copy}\ncontrols: false\ngroups: [gender]\n"
IMAGES = REPO / "samples" / "portraits" / "images"
PICTURES = ("id01_base.jpg", "id02_base.jpg")


def main() -> int:
    """Returns 0 when nothing was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--examples", type=int, default=100, help="random cases an operation")
    options.add_argument("--phases", choices=PHASES, default="long")
    options.add_argument("--seed", type=int, default=None)
    chosen = options.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="likeness-fuzz-") as name:
        home = Path(name)
        with RealServer(home / "home") as server:
            ids = seed(server)
            report = fuzz(server, home, ids, chosen)
            still = served(server)
            peak = server.memory.peak
    found = summary(report) | {"served_afterwards": still}
    found |= {"seconds": round(time.monotonic() - began), "peak_mb": round(peak / 2**20)}
    print(json.dumps(found))
    return 0 if still and found["cases"] and not found["failures"] else 1


def seed(server: RealServer) -> dict[str, list[Any]]:
    """Ids of things that are there: a batch in use, one to be deleted, runs that are over."""
    manifest = "file,subject_id,gender\n" + "".join(f"{p},{p[:4]},g{p[3]}\n" for p in PICTURES)
    from service.client_upload import Upload

    files = [Upload("files", p, IMAGES / p) for p in PICTURES]
    with LikenessClient(server.url, server.key) as client:
        batch = client.send_files(files, manifest=manifest, name="for the checks")
        other = client.send_files(files[:1], name="to be deleted")
        gone = client.send_files(files[:1], name="deleted")
        receipt = client.delete_batch(gone.batch_id)
        done = client.wait(client.start_run(batch.batch_id, PLAN).run_id)
        stopped = client.cancel(client.start_run(batch.batch_id, PLAN).run_id)
        assert done.state == "done", done
        client.wait(stopped.run_id)
        items = client._wire.ask("GET", f"/v1/runs/{done.run_id}/items")["items"]
        names = [file.name for file in client.files(done.run_id)]
    return {
        "batch_id": [batch.batch_id, gone.batch_id],
        "deletable": [other.batch_id],
        "run_id": [done.run_id, stopped.run_id],
        "item_id": [item["item_id"] for item in items],
        "receipt_id": [receipt["receipt_id"]],
        "seq": [1, 2, 3],
        "name": [*names, "absent.txt"],
        "slug": ["not-found", "invalid"],
    }


def settings_of(ids: dict[str, list[Any]]) -> str:
    """The fuzzer's file of settings: what is there is named four times in five."""
    lines = [f'hooks = "{HOOKS}"', "[parameters]"]
    lines += [f'"path.{n}" = {{ dictionary = "{n}", probability = 0.8 }}' for n in ids if n != "deletable"]  # fmt: skip
    lines.append('"body.batch_id" = { dictionary = "batch_id", probability = 0.8 }')
    for name, values in ids.items():
        lines += [f"[dictionaries.{name}]", f"values = {json.dumps(values)}"]
    # the batch in use stays: without it there would be nothing to read any more
    lines += ["[[operations]]", 'include-operation-id = "delete_batch"']
    lines.append(f'parameters = {{ "path.batch_id" = "{ids["deletable"][0]}" }}')
    return "\n".join(lines) + "\n"


def fuzz(
    server: RealServer, folder: Path, ids: dict[str, list[Any]], chosen: argparse.Namespace
) -> dict[str, Any]:
    """The fuzzer's own report."""
    (folder / "settings.toml").write_text(settings_of(ids), "utf-8")
    good = {"run": {"batch_id": ids["batch_id"][0], "plan": PLAN}, "pair": ["original", "edited"]}
    (folder / "good.json").write_text(json.dumps(good), "utf-8")
    for name in good["pair"]:
        (folder / name).write_bytes((IMAGES / PICTURES[0]).read_bytes())
    report = folder / "report.json"
    line = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", "settings.toml",
        "run", f"{server.url}/openapi.json",
        "--header", f"Authorization: Bearer {server.key}",
        "--phases", PHASES[chosen.phases], "--max-examples", str(chosen.examples),
        "--checks", ",".join(CHECKS), "--continue-on-failure", "--no-shrink", "--no-color",
        "--generation-database", "none", "--suppress-health-check", "all",
        "--request-timeout", str(REQUEST_S), "--warnings", "off",
        "--report", "json", "--report-json-path", str(report),
    ]  # fmt: skip
    if chosen.seed is not None:
        line += ["--seed", str(chosen.seed)]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if not report.is_file():
        raise SystemExit(f"the fuzzer wrote no report: {done.stdout[-1500:]}{done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    found["answers"] = json.loads((folder / "answers.json").read_text("utf-8"))
    if found["failures"] or found["errors"]:
        print(done.stdout[-LONGEST:], file=sys.stderr)
    return found


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """What was asked and what was found."""
    known = {line.rpartition(" ")[0] for line in report["answers"]}
    good = {line.rpartition(" ")[0] for line in report["answers"] if line[-3:] < "300"}
    statuses = Counter[str]()
    for line, count in report["answers"].items():
        statuses[line[-3:]] += count
    return {
        "operations": report["operations"]["tested"],
        "cases": report["test_cases"]["generated"],
        "answers": dict(sorted(statuses.items())),
        "never_2xx": sorted(known - good),
        "failures": [
            {"check": f.get("title"), "operation": operation}
            for f in (*report["failures"], *report["errors"])
            for operation in f.get("operations", [f.get("operation", "?")])
            if (operation, f.get("type")) not in NOT_SO
        ],
        "seed": report["seed"],
    }


def served(server: RealServer) -> bool:
    """Whether the service still answers as it should."""
    try:
        with LikenessClient(server.url, server.key) as client:
            return server.alive and bool(client._wire.ask("GET", "/v1/presets")["items"])
    except LikenessError:
        return False


if __name__ == "__main__":
    raise SystemExit(main())
