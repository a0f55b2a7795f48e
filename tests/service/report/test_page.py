"""The page in a real browser: a dot is clicked, the diagnosis appears, nothing is fetched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from domain.measurements import Outcome
from metrics.contract import MetricSpec
from service.report.files import write_all
from service.report.model import RunData

pytestmark = pytest.mark.slow
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def report(
    run_data: RunData, specs: Mapping[str, MetricSpec], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Six portraits; one result without a picture; one hostile name."""
    portraits = {r.portrait_id for r in run_data.instrument[:6]}
    items = [i for i in run_data.items if i.portrait_id in portraits]
    last = len(items) - 3
    items[last] = replace(
        items[last], original=None, outcome=Outcome.REFUSED, reason="<img src=x onerror=alert(1)>"
    )
    return write_all(replace(run_data, items=items), tmp_path_factory.mktemp("r"), specs)[
        "report.html"
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium on this machine")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


class Watched:
    """A page with everything it complained of or asked for."""

    def __init__(self, browser: Any, report: Path, suffix: str = "", **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on(
            "console",
            lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(report.as_uri() + suffix)

    def asked_for(self) -> set[str]:
        return {u.split(":", 1)[0] for u in self.requests}


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_a_clicked_dot_opens_its_diagnosis(
    browser: Any, report: Path, size: tuple[int, int]
) -> None:
    seen = Watched(browser, report, viewport={"width": size[0], "height": size[1]})
    page = seen.page
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.locator("#boxes .dot").first.click(force=True)
    dialog = page.locator("dialog#detail")
    assert dialog.is_visible()
    assert dialog.locator(".trio svg").count() == 3
    assert dialog.locator(".trio svg").nth(0).locator(".pt").count() == 68
    assert "Figures by part of the face" in dialog.inner_text()
    assert "#view:item=" in page.url
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert seen.complaints == []
    assert seen.asked_for() <= {"file", "data"}
    assert [u for u in seen.requests if u.startswith("file:")] == [report.as_uri()]
    page.close()


def test_displaced_points_are_ringed_in_the_result(browser: Any, report: Path) -> None:
    seen = Watched(browser, report)
    rings = seen.page.locator("#worst .worst-tool", has_text="style transfer").locator(".ring")
    assert rings.count() >= 20
    seen.page.close()


def test_the_keyboard_reaches_a_result_and_comes_back(browser: Any, report: Path) -> None:
    seen = Watched(browser, report)
    page = seen.page
    button = page.locator("#items tbody button").first
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog#detail").is_visible()
    first = page.locator("#detail-title").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#detail-title").inner_text() != first
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.querySelector('#items tbody button')")
    assert seen.complaints == []
    page.close()


def test_a_link_brings_back_the_same_view(browser: Any, report: Path) -> None:
    seen = Watched(browser, report)
    page = seen.page
    page.locator("#filters select[name=metric]").select_option("csi")
    page.locator("#filters select[name=group]").select_option("skin_tone")
    page.locator("#tool-boxes input").nth(0).uncheck()
    assert page.locator("#boxes .panel").count() == 2
    address = page.url
    page.close()
    again = Watched(browser, report, "#" + address.split("#", 1)[1])
    assert again.page.locator("#filters select[name=metric]").input_value() == "csi"
    assert again.page.locator("#filters select[name=group]").input_value() == "skin_tone"
    assert again.page.locator("#boxes .panel").count() == 2
    assert again.complaints == []
    again.page.close()


def test_a_wrong_link_still_shows_the_report(browser: Any, report: Path) -> None:
    seen = Watched(
        browser, report, "#view:metric=nonsense&region=x&group=y&tool=z&item=q&heatRow=a"
    )
    assert seen.page.locator("#boxes .dot").count() > 0
    assert seen.complaints == []
    seen.page.close()


def test_a_result_without_a_picture_says_why(browser: Any, report: Path) -> None:
    seen = Watched(browser, report)
    page = seen.page
    page.locator("#item-filters select[name=ended]").select_option("refused")
    page.locator("#items tbody button").first.click()
    assert (
        "the tool refused (<img src=x onerror=alert(1)>)"
        in page.locator("dialog#detail").inner_text()
    )
    assert page.locator("dialog#detail img").count() == 0
    assert seen.complaints == []
    page.close()


def test_a_cell_of_the_heat_map_narrows_the_list(browser: Any, report: Path) -> None:
    seen = Watched(browser, report)
    page = seen.page
    everything = page.locator("#items tbody tr").count()
    page.locator("#heat td button").first.click()
    assert 0 < page.locator("#items tbody tr").count() < everything
    assert "few" in page.locator("#heat td.thin").first.inner_text()
    assert seen.complaints == []
    page.close()
