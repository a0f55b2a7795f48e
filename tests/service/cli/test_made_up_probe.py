"""A stranger adds a probe as one file in a package of his own; a plan takes it like any other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.fake_servers.chat import Personality, Rule, serve

REPO = Path(__file__).resolve().parents[3]
PAGE = REPO / "docs" / "adding_a_probe.md"
KEY = "sk-made-up-0123456789"
PLAN = """\
name: a made-up probe
endpoint: {{base_url: "{url}/v1", model: m-1, key_env: MADE_UP_KEY}}
probes:
  - id: promotion
    languages: [en]
    settings: {{pairs: 4, repeats: 2}}
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the page's example is installed under the page's entry point, and beside
    it a probe that cannot be loaded."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (toml,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    entry = re.fullmatch(
        r'\[project\.entry-points\."(.+)"\]\n(\w+) = "my_package\.promotion"', toml.strip()
    )
    assert entry is not None
    site = tmp_path / "site"
    info = site / "my_package-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "my_package").mkdir()
    (site / "my_package" / "__init__.py").write_text("", encoding="utf-8")
    (site / "my_package" / "promotion.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{entry[1]}]\n{entry[2]} = my_package.promotion\nlost = my_package.lost\n"
    )
    return {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1", "MADE_UP_KEY": KEY}


def likeness(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service.cli.main", *arguments],
        cwd=REPO, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_one_file_with_an_entry_point_is_listed_and_run(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    listed = json.loads(likeness(installed, "probe", "list", "--json").stdout)
    (own,) = [probe for probe in listed["probes"] if probe["id"] == "promotion"]
    assert own["languages"] == ["en", "de"] and {"resume", "association"} <= {
        probe["id"] for probe in listed["probes"]
    }
    assert listed["broken"] == {"lost": "ModuleNotFoundError: No module named 'my_package.lost'"}, (
        "a probe that cannot be loaded is told and costs the others nothing"
    )
    plan, out = tmp_path / "plan.yaml", tmp_path / "out"
    with serve(Personality(rules=(Rule("be promoted", {"yes": 1.0}),)), key=KEY) as server:
        plan.write_text(PLAN.format(url=server.url), encoding="utf-8")
        done = likeness(installed, "probe", str(plan), "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    lines = (out / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    replies = [json.loads(line) for line in lines]
    assert len(replies) == 16 and {reply["label"] for reply in replies} == {"yes"}
    (result,) = json.loads((out / "report.json").read_text(encoding="utf-8"))["results"]
    assert (result["probe"], result["index"]["value"]) == ("promotion", 0.0)
    assert "Promotion" in (out / "report.html").read_text(encoding="utf-8")
    assert KEY not in done.stdout + done.stderr
