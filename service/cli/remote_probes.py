"""``likeness probe PLAN --server URL``: the questions are put by a service, to a model that it offers."""

from __future__ import annotations

import json
import time
from pathlib import Path

from probes.card_gate import gate_decision
from probes.results import GateLine
from service.cli.audit import Bars
from service.cli.escape import printable
from service.cli.remote import RemoteRun, client
from service.gate import OF_DECISION, ExitCode
from service.report.probe_reading import read_probe_report
from service.report.probe_view import in_short


def probe_on_server(url: str, plan: Path, out: Path, as_json: bool) -> ExitCode | None:
    """Let the service at ``url`` run the plan, or go on with the run that ``out`` belongs to; fetch
    its files and tell what was found. Returns what the plan's limits come to, None without any."""
    began = time.monotonic()
    with client(url) as server, Bars() as bars:
        run = RemoteRun(server, out, bars)
        files = run.to_the_end(run.again() if run.there else run.begin_probes(plan))
    report = read_probe_report(out)
    limits = [GateLine(**line) for line in report["gate"]]
    decision = OF_DECISION[gate_decision(limits)] if limits else None
    if as_json:
        told = {name: str(path) for name, path in sorted(files.items())}
        print(json.dumps({"run_id": report["run"]["id"], "files": told, "report": report}))
        return decision
    for _, sentence in in_short(report):
        print(printable(sentence))
    for line in limits:
        print(printable(f"{line.state}: {line.sentence}"))
    print(f"report: {files['report.html']}")
    print(f"total time: {time.monotonic() - began:.0f} s")
    return decision
