"""The card: everything a later release is held against, and clear words when it cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import LikenessError
from probes.card import SCHEMA, alarms, card_of, content_sha256, host_of, read_card, sealed
from probes.results import (
    Tally,
)
from service.report.files import to_json
from tests.probes.card_cases import index, result, run


def test_a_card_says_what_was_asked_of_whom_and_when() -> None:
    card = card_of(run())
    assert card["schema"] == SCHEMA
    assert card["model"]["asked"] == "model-1"
    assert card["model"]["returned"] == {"model-1-2026": 200}
    assert card["model"]["host"] == "models.example"
    assert card["run"]["date"] == "2026-11-01"
    assert card["design"]["seed"] == 7
    assert card["design"]["parameters_not_taken"] == ["seed"]
    assert card["thresholds"] == {"max_abs_index": 0.2}
    assert len(card["design"]["plan_sha256"]) == 64


def test_a_result_has_index_spread_rates_by_arm_and_verdicts() -> None:
    entry = card_of(run())["results"][0]
    assert (entry["index"]["value"], entry["index"]["low"]) == (0.3, pytest.approx(0.2))
    assert entry["index"]["sd"] == pytest.approx(0.02)
    assert entry["arms"]["women"]["calls"] == 100
    assert entry["arms"]["women"]["rates"]["refused"] == 0.06
    assert entry["arms"]["men"]["rates"]["errored"] == 0
    assert entry["declined"]["value"] == pytest.approx(12 / 200)
    assert entry["declined_difference"]["value"] == pytest.approx(0.02 - 0.10)
    assert entry["tests"][0]["verdict"] == "disparity"
    assert entry["design"]["settings"] == {"names": 20}


def test_what_has_no_figure_is_null_with_its_reason_and_never_nought() -> None:
    entry = card_of(run(result(index(None))))["results"][0]["index"]
    assert (entry["value"], entry["low"], entry["reason"]) == (None, None, "no pair was answered")
    odd = replace(index(), value=float("nan"), interval=None)
    entry = card_of(run(result(odd)))["results"][0]["index"]
    assert (entry["value"], entry["reason"]) == (None, "not a finite number")
    no_calls = card_of(run(result(tallies=(Tally("men", {}), Tally("women", {})))))["results"][0]
    assert no_calls["arms"]["men"]["rates"]["refused"] is None
    assert no_calls["declined"]["reason"] == "no calls"


def test_a_written_card_is_read_back_as_it_was(tmp_path: Path) -> None:
    card = card_of(run(result(index(0.1 + 0.2)), name="Prüfung 筛选"))
    path = tmp_path / "card.json"
    path.write_bytes(to_json(card))
    assert read_card(path) == card


def test_one_changed_digit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_bytes(to_json(card_of(run())).replace(b'"value": 0.3', b'"value": 0.1', 1))
    with pytest.raises(
        LikenessError, match=r"card\.json: the card was changed after it was written"
    ):
        read_card(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not a baseline card"),
        ('{"a": NaN}', "not JSON"),
        (
            '{"schema": "likeness-report/1"}',
            "not a baseline card (its schema is likeness-report/1)",
        ),
        (
            '{"schema": "likeness-probe-card/2"}',
            "a card of schema likeness-probe-card/2; this version reads likeness-probe-card/1",
        ),
        ('{"schema": "likeness-probe-card/1"}', "the card lacks 'model'"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_card_is_said_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text, "utf-8")
    with pytest.raises(LikenessError) as caught:
        read_card(path)
    assert str(caught.value) == f"{path}: {said}"


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(LikenessError, match="cannot be read: No such file"):
        read_card(tmp_path / "none.json")


def test_the_hash_is_of_the_content_whatever_the_order_of_keys() -> None:
    card = card_of(run())
    turned = dict(reversed(card.items()))
    assert content_sha256(turned) == card["sha256"]
    assert sealed(turned)["sha256"] == card["sha256"]


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("https://models.example/v1", "models.example"),
        ("http://127.0.0.1:8080/v1 smollm2", "127.0.0.1:8080"),
        ("https://user:secret@models.example/v1?key=secret", "models.example"),
        ("local", "local"),
        ("", ""),
    ],
)
def test_only_host_and_port_of_the_address_are_kept(endpoint: str, host: str) -> None:
    assert host_of(endpoint) == host
    assert "secret" not in json.dumps(card_of(run(endpoint=endpoint)))


def test_a_card_with_a_baseline_carries_its_alarms() -> None:
    before = card_of(run(result(index(-0.3))))
    card = card_of(run(), before)
    assert card["compared"]["with"]["sha256"] == before["sha256"]
    assert card["compared"]["decision"] == "fail"
    assert any("turned over, from towards women to towards men" in said for said in alarms(card))
    assert alarms(before) == []
