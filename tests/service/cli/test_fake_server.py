"""``likeness fake-server`` says how to use it, answers on loopback and ends at Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import cv2
import httpx
import numpy as np
import pytest
import yaml

from adapters.contract import discover
from domain.errors import LikenessError
from service.cli import fake_server as command
from service.fake_servers.contract import start

REPO = Path(__file__).resolve().parents[3]


def test_the_list_names_every_maker_and_what_it_can_play(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command.fake_server(listed=True)
    out = capsys.readouterr().out
    assert "openai: " in out
    assert "  moderation_blocked: " in out
    assert "  truncated: " in out


def test_an_unknown_maker_is_one_clear_line() -> None:
    with pytest.raises(LikenessError, match="no fake server 'opnai'; did you mean 'openai'"):
        command.fake_server("opnai")


def test_no_maker_is_asked_for() -> None:
    with pytest.raises(LikenessError, match="which maker"):
        command.fake_server()


def test_refusals_need_the_portraits_they_speak_of() -> None:
    with pytest.raises(LikenessError, match="--refuse needs --portraits"):
        command.fake_server("openai", port=0, refuse=["gender=female:0.4"])


def test_a_behaviour_it_cannot_play_is_said_before_it_waits() -> None:
    with pytest.raises(LikenessError, match="cannot play '42'"):
        command.fake_server("openai", port=0, play="429, 42")


def test_what_it_prints_is_a_plan_that_leads_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    served = {m.FAKE: s for s, m in discover().values() if hasattr(m, "FAKE")}
    with start("openai") as server:
        command._announce(server)
    out = capsys.readouterr().out
    plan = yaml.safe_load(out.partition("in a plan:\n")[2].partition("Ctrl-C")[0])
    (tool,) = plan["tools"]
    assert tool["id"] == served["openai"].id
    assert tool["settings"]["base_url"] == server.url
    assert tool["settings"]["key_env"] == "FAKE_KEY"
    assert server.key not in str(plan)


def test_it_answers_until_ctrl_c_ends_it_cleanly() -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "service.cli.main", "fake-server", "openai", "--port", "0", "--play", "500"],
        cwd=REPO,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert run.stdout is not None
        address = run.stdout.readline().split()[-1]
        key = run.stdout.readline().split()[-1]
        while "Ctrl-C" not in run.stdout.readline():
            assert run.poll() is None
        picture = cv2.imencode(".png", np.zeros((8, 8, 3), np.uint8))[1].tobytes()
        with httpx.Client(trust_env=False, verify=False, timeout=60) as client:
            statuses = [
                client.post(
                    f"{address}/v1/images/edits",
                    files={"image": ("a.png", picture, "image/png")},
                    data={"prompt": "x"},
                    headers={"authorization": f"Bearer {key}"},
                ).status_code
                for _ in range(2)
            ]
        assert statuses == [500, 200]
    finally:
        run.send_signal(signal.SIGINT)
        out, error = run.communicate(timeout=60)
    assert (run.returncode, error) == (0, "")
    assert out.rstrip().endswith("ended")
