"""Writes the files of a probe run: report.html, report.json, junit.xml, and the manifest of all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.errors import LikenessError
from service.report.files import to_json, write_atomically
from service.report.junit import to_xml
from service.report.probe_html import render_probes
from service.report.probe_json import probe_json
from service.report.probe_junit import of_probes
from service.report.probe_model import ProbeRun


def probe_files(run: ProbeRun, beside: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Every file by name. ``beside`` are files made elsewhere (replies, cards) that belong to the
    run: they are passed on, and stand in the manifest like the others."""
    made: dict[str, bytes] = {
        "report.html": render_probes(run).encode(),
        "report.json": to_json(probe_json(run)),
        "junit.xml": to_xml(of_probes(run)),
        **(beside or {}),
    }
    return made | {"manifest.json": to_json(_manifest(run, made))}


def write_probe_files(
    run: ProbeRun, out: Path, beside: Mapping[str, bytes] | None = None
) -> dict[str, Path]:
    """Write them into ``out`` (made when absent), each whole or not at all. Raises LikenessError
    naming the file that could not be written and why."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LikenessError(f"cannot make folder {out}: {error.strerror or error}") from error
    made = probe_files(run, beside)
    return {name: write_atomically(out / name, content) for name, content in made.items()}


def _manifest(run: ProbeRun, made: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "schema": "likeness-probe-manifest/1",
        "run_id": run.run_id,
        "started": run.started,
        "finished": run.finished,
        "seed": run.seed,
        "plan_sha256": hashlib.sha256(run.plan_text.encode()).hexdigest(),
        "model_asked": run.model,
        "models_returned": dict(run.stats.models),
        "inputs": {name: {"sha256": sha} for name, sha in run.inputs.items()},
        "outputs": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in made.items()
        },
        "versions": dict(run.versions),
    }
