"""Audit eight tools on the 102 neutral London portraits and check what the report must show.

Two phone agents, a hosted maker's stand-in that turns more women away, and a tiny untrained diffusion model
are started here; the audit itself is the `likeness audit` that anybody runs. Prints one line a
finding, and ends with 1 when one is missing. Takes about fifteen minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

from docs.findings.expected import check  # noqa: E402
from service import settings  # noqa: E402

PLAN = """\
name: Real tools on the London portraits
purpose: Eight tools, each called as a user calls it, on 102 neutral portraits taken in one studio.
portraits: {{manifest: {manifest}, where: {{expression: [neutral]}}{limit}}}
tools:
  - {{id: super_resolution, name: Real-ESRGAN}}
  - {{id: style_transfer, name: style transfer 0, settings: {{style: 0, strength: 0.7}}}}
  - {{id: inr, name: neural representation, settings: {{steps: 80}}}}
  - id: mobile
    name: "phone, high accuracy"
    tasks: [retouch]
    settings: {{base_url: "{phone}", max_side: 1024}}
  - id: mobile
    name: "phone, low power in silence"
    tasks: [retouch]
    settings: {{base_url: "{liar}", max_side: 1024, require_high_accuracy: false}}
  - id: stable_diffusion
    name: "diffusion (untrained), raw"
    tasks: [inpaint_background]
    settings: {{model: {model}, steps: 4, composite: false, max_side: 512}}
  - id: stable_diffusion
    name: "diffusion (untrained), composited"
    tasks: [inpaint_background]
    settings: {{model: {model}, steps: 4, composite: true, seam: 0, max_side: 512}}
  - id: stability
    name: hosted stand-in
    tasks: [inpaint_background]
    concurrency: 2
    settings: {{base_url: "{hosted}", key_file: key.txt}}
tasks: [enhance, restyle, reconstruct, retouch]
groups: [gender, ethnicity]
claims:
  - {{metric: detail_change, attribute: gender, tools: [Real-ESRGAN]}}
  - {{metric: delta_l, attribute: ethnicity, tools: [style transfer 0]}}
  - {{metric: flrr, attribute: ethnicity, tools: [style transfer 0]}}
  - {{metric: "outcome:refused", attribute: gender, tools: [hosted stand-in]}}
margins: {{flrr: 5, detail_change: 0.25, delta_l: 3}}
controls: true
seed: 20
"""
PLANTED = "gender=female:0.3"
KEY = "stand-in-key-0123456789"


@contextmanager
def started(*arguments: str, ready: str) -> Iterator[str]:
    """A program that prints a line with ``ready`` and an address; yields the address."""
    process = subprocess.Popen(arguments, cwd=REPO, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        for line in process.stdout:
            if ready in line:
                yield line.split(ready)[1].split()[0]
                break
        else:
            sys.exit(f"{' '.join(arguments[1:4])} did not start")
    finally:
        process.terminate()
        process.wait(20)


def run(out: Path, data: Path, people: int) -> None:
    """Start what must be there, write the plan, audit."""
    manifest = data / "faces" / "london" / "manifest.csv"
    if not manifest.is_file():
        sys.exit(f"the London portraits are not in {manifest.parent}; set LIKENESS_DATA")
    out.mkdir(parents=True, exist_ok=True)
    (out / "key.txt").write_text(KEY)
    (out / "key.txt").chmod(0o600)
    python = sys.executable
    if not (out / "tiny").exists():
        subprocess.run(
            [python, "scripts/tiny_diffusion.py", str(out / "tiny")], cwd=REPO, check=True
        )
    agent = (python, "samples/phone_agent/agent.py", "--port", "0", "--thermal", "load:0")
    fake = (
        python, "-m", "service.cli.main", "fake-server", "stability", "--port", "0", "--key", KEY,
        "--portraits", str(manifest), "--refuse", PLANTED,
    )  # fmt: skip
    with ExitStack() as stack:
        at = stack.enter_context
        plan = out / "plan.yaml"
        plan.write_text(
            PLAN.format(
                manifest=json.dumps(str(manifest)),
                limit=f", limit: {people}" if people else "",
                phone=at(started(*agent, ready="phone agent at ")),
                liar=at(started(*agent, "--lies", ready="phone agent at ")),
                model=json.dumps(str(out / "tiny")),
                hosted=at(started(*fake, ready="fake stability at ")),
            )
        )
        audit = (python, "-m", "service.cli.main", "audit", str(plan), "--out", str(out / "run"))
        began = time.monotonic()
        ended = subprocess.run([*audit, "--json"], cwd=REPO, stdout=subprocess.PIPE, check=False)
        if ended.returncode:
            sys.exit(ended.returncode)
        answer: Mapping[str, object] = json.loads(ended.stdout)
        print(f"audit: {answer['outcomes']}, {time.monotonic() - began:.0f} s")
        print(f"report: {out / 'run' / 'report.html'}")


def main() -> int:
    """Audit, then check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=REPO / "out" / "findings")
    parser.add_argument("--people", type=int, default=0, help="only the first so many portraits")
    parser.add_argument("--check-only", action="store_true", help="of a run that is there")
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    if not chosen.check_only:
        run(out, settings.load().data or REPO.parent / "shared" / "data", chosen.people)
    return check(out / "run")


if __name__ == "__main__":
    sys.exit(main())
