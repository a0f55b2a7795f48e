"""card.html: one page with everything a reader files, safe to open, honest about what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from probes.calls import Status
from probes.card import card_of, sealed
from probes.card_gate import gate_lines
from probes.results import Tally
from service.report.probe_card import card_html
from service.report.wording import FORBIDDEN
from tests.probes.card_cases import composite, index, result, run


def text_of(page: str) -> str:
    body = re.sub(r"(?s)<style>.*?</style>|<[^>]+>", " ", page)
    return re.sub(r"\s+", " ", unescape(body))


def test_the_page_names_model_day_indices_and_what_was_declined() -> None:
    text = text_of(card_html(card_of(run())))
    assert "Baseline card of a language model · 2026-11-01 model-1" in text
    assert "Named by replies model-1-2026 (200 replies)" in text
    assert "+0.30 +0.20 to +0.40 towards men 0.02 40 names" in text
    assert "men women 98.0 % 90.0 % 2.0 % 10.0 % 0.0 % 0.0 %" in text
    assert "No limits and no earlier card were given: nothing could raise an alarm." in text


def test_an_alarm_stands_on_top_and_once() -> None:
    before = card_of(run(result(index(-0.3)), composites=()))
    made = run(composites=())
    lines = gate_lines(made, {"direction_may_not_change": True, "max_abs_index": 0.1}, before)
    page = card_html(card_of(replace(made, gate=lines), before))
    text = text_of(page)
    assert "2 alarms" in text
    assert text.count("index turned over, from towards women to towards men") == 1
    assert "−0.30 (−0.40 to −0.20) then" in text
    assert page.index("banner-bad") < page.index("Indices")


def test_passed_limits_are_shown_as_passed() -> None:
    made = run()
    page = card_html(card_of(replace(made, gate=gate_lines(made, {"max_abs_index": 0.5}))))
    text = text_of(page)
    assert "No alarm." in text
    assert "Size of an index, at most 0.5 pass 1 of 1 pass" in text


def test_an_open_limit_is_not_shown_as_a_pass() -> None:
    made = run()
    page = card_html(card_of(replace(made, gate=gate_lines(made, {"max_abs_index": 0.25}))))
    text = text_of(page)
    assert "No alarm, but not everything could be told." in text
    assert (
        "open 0 of 1 pass resume, en: index 0.30 (0.20 to 0.40), limit 0.25: inconclusive" in text
    )


def test_what_is_missing_says_why_and_shows_no_nought() -> None:
    unusable = result(usable=False, why_not="unusable for multiple choice", tests=())
    text = text_of(card_html(card_of(run(result(index(None), tests=()), unusable))))
    assert "No figure: no pair was answered" in text
    assert (
        "no verdict This model cannot be probed like this: unusable for multiple choice ." in text
    )
    assert "0.00" not in text.split("All probes together")[0]
    empty = result(tallies=(Tally("men", {Status.ANSWERED: 0}),))
    assert "men – – –" in text_of(card_html(card_of(run(empty))))


def test_strings_of_a_run_stay_strings() -> None:
    evil = "<script>alert(1)</script>\u202e"
    page = card_html(card_of(run(result(title=evil), name=evil, model=evil, purpose=evil)))
    assert "<script" not in page
    assert "\u202e" not in page
    assert "default-src 'none'" in unescape(page)


def test_the_page_passes_no_judgement_and_fits_the_house_words() -> None:
    made = run(result(), result(index(0.1), condition="guarded"))
    lines = gate_lines(made, {"max_rms": 0.5, "max_refusal_rate": 0.1, "min_answered": 0.9})
    text = text_of(card_html(card_of(replace(made, gate=lines))))
    assert FORBIDDEN.search(text) is None


def test_a_card_read_back_gives_the_same_page() -> None:
    card = card_of(run(composites=(composite(), replace(composite(-0.1), language="zh"))))
    assert card_html(sealed(card)) == card_html(card)
