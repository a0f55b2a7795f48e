"""Reports, verdicts, files, items and pictures over REST."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from metrics.contract import specs
from service.api.reports import policy_of
from service.report.files import report_json, to_json
from service.report.groups import grouping
from service.report.html import render
from service.store.access_log import AccessLog
from tests.service.api.conftest import Service
from tests.service.api.seeded import (
    a_run,
    finish_item,
    finish_run,
    give_pictures,
    item_id,
    lease,
    refuse_item,
    write_items,
)
from tests.service.report.conftest import run_data  # noqa: F401 - a fixture

BROWSER = Path("/usr/bin/chromium")
PAGE = (
    b"<!doctype html>\n<html><head>"
    b'<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; '
    b'script-src &#39;sha256-abc=&#39;"></head><body>report</body></html>'
)
REPORT: dict[str, Any] = {"controls_ok": True, "verdicts": [{"verdict": "disparity"}], "paired": []}
FILES = {
    "report.html": PAGE,
    "report.json": to_json(REPORT),
    "measurements.csv": b"item_id\n",
    "review.csv": b"item_id\n",
}


def a_finished_run(service: Service, files: dict[str, bytes] | None = None) -> str:
    run_id = a_run(service.context)
    finish_run(service.context, lease(service.context), FILES if files is None else files)
    return run_id


def acts(service: Service) -> list[tuple[str, str]]:
    return [(a["action"], a["target"]) for a in AccessLog(service.context.database).page(50)]


def get(service: Service, run_id: str, part: str, **headers: str) -> httpx.Response:
    return service.client.get(f"/v1/runs/{run_id}/{part}", headers=headers)


# Reports ------------------------------------------------------------------------------------------


def test_a_report_is_a_page_unless_json_is_asked_for(service: Service) -> None:
    run_id = a_finished_run(service)
    page = get(service, run_id, "report", Accept="*/*")
    assert page.content == PAGE
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["etag"] == f'"{hashlib.sha256(PAGE).hexdigest()}"'
    data = get(service, run_id, "report", Accept="application/json")
    assert data.json() == REPORT
    assert data.headers["etag"] != page.headers["etag"]
    assert get(service, run_id, "report", Accept="image/png").status_code == 406


def test_a_report_that_is_there_already_is_not_sent_again(service: Service) -> None:
    run_id = a_finished_run(service)
    tag = get(service, run_id, "report").headers["etag"]
    for sent in (tag, f'W/{tag}, "x"', "*"):
        again = get(service, run_id, "report", **{"If-None-Match": sent})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert get(service, run_id, "report", **{"If-None-Match": '"x"'}).status_code == 200


def test_head_tells_all_but_the_report_itself(service: Service) -> None:
    run_id = a_finished_run(service)
    whole = get(service, run_id, "report")
    head = service.client.head(f"/v1/runs/{run_id}/report")
    assert head.status_code == 200
    assert head.content == b""
    for name in ("etag", "content-length", "content-type"):
        assert head.headers[name] == whole.headers[name]


def test_before_the_end_there_is_no_report_but_a_time_to_ask_again(service: Service) -> None:
    run_id = a_run(service.context)
    for part in ("report", "verdicts"):
        answer = get(service, run_id, part)
        assert answer.status_code == 409
        assert answer.json()["type"] == "/problems/run-not-finished"
        assert answer.json()["state"] == "queued"
        assert int(answer.headers["retry-after"]) > 0


def test_a_cancelled_run_has_no_report_and_no_time_to_ask_again(service: Service) -> None:
    run_id = a_run(service.context)
    service.client.post(f"/v1/runs/{run_id}/cancel")
    answer = get(service, run_id, "report")
    assert answer.json()["type"] == "/problems/run-ended"
    assert "retry-after" not in answer.headers


def test_verdicts_are_those_of_the_report(service: Service) -> None:
    run_id = a_finished_run(service)
    found = get(service, run_id, "verdicts").json()
    assert found == {"run_id": run_id, **REPORT}


def test_files_are_listed_with_their_hash_and_sent_as_they_are(service: Service) -> None:
    run_id = a_finished_run(service)
    listed = get(service, run_id, "files").json()["items"]
    assert {f["name"] for f in listed} == set(FILES)
    for file in listed:
        answer = service.client.get(file["href"])
        assert answer.content == FILES[file["name"]]
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
        assert answer.headers["etag"] == f'"{file["sha256"]}"'
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert (
        "attachment"
        in get(service, run_id, "files/measurements.csv").headers["content-disposition"]
    )


@pytest.mark.parametrize(
    "name", ["other.html", "..%2f..%2fsecret.key", "%2e%2e", "a%00b", "report.html%0d%0ax: y"]
)
def test_a_name_that_is_no_file_of_the_run_is_nothing(service: Service, name: str) -> None:
    run_id = a_finished_run(service)
    answer = get(service, run_id, f"files/{name}")
    assert answer.status_code in (400, 404, 422)


def test_a_file_whose_time_is_over_is_gone_and_not_a_fault(service: Service) -> None:
    run_id = a_finished_run(service)
    service.context.blobs.delete(hashlib.sha256(PAGE).hexdigest())
    answer = get(service, run_id, "report")
    assert answer.status_code == 410
    assert answer.json()["type"] == "/problems/file-gone"
    assert get(service, a_finished_run(service, {}), "report").status_code == 410
    assert get(service, a_finished_run(service, {}), "verdicts").status_code == 410


def test_every_reading_of_a_report_is_on_record(service: Service) -> None:
    run_id = a_finished_run(service)
    get(service, run_id, "report")
    get(service, run_id, "report", Accept="application/json")
    get(service, run_id, "verdicts")
    get(service, run_id, "files/review.csv")
    assert acts(service) == [
        ("read report", f"{run_id}/{name}")
        for name in ("review.csv", "verdicts", "report.json", "report.html")
    ]


def test_the_page_brings_its_own_policy_in_the_header(service: Service) -> None:
    run_id = a_finished_run(service)
    policy = get(service, run_id, "report").headers["content-security-policy"]
    assert policy == ("default-src 'none'; script-src 'sha256-abc='; frame-ancestors 'none'")


@pytest.mark.parametrize(
    "page",
    [b"<html>", b"", PAGE.replace(b"sha256", b"\r\nSet-Cookie: x"), PAGE.replace(b"sha", b"\xff")],
)
def test_a_page_without_a_policy_of_ours_runs_nothing(page: bytes) -> None:
    assert policy_of(page) == "default-src 'none'; sandbox"


# Items and pictures -------------------------------------------------------------------------------


def test_items_are_there_from_the_moment_they_were_planned(service: Service) -> None:
    run_id = a_run(service.context)
    ledger = write_items(service.context, run_id, 5)
    finish_item(ledger, 0)
    refuse_item(ledger, 1)
    seen: list[dict[str, Any]] = []
    path: str | None = f"/v1/runs/{run_id}/items?limit=2"
    while path:
        answer = service.client.get(path)
        seen += answer.json()["items"]
        path = answer.links["next"]["url"] if "next" in answer.links else None
    assert [i["item_id"] for i in seen] == [item_id(n) for n in range(5)]
    assert [i["state"] for i in seen] == ["done", "done", *["planned"] * 3]
    assert [i["outcome"] for i in seen][:2] == ["measured", "refused"]
    planned = get(service, run_id, "items?state=planned").json()["items"]
    assert len(planned) == 3
    assert len(get(service, run_id, "items?outcome=refused").json()["items"]) == 1
    assert get(service, run_id, "items?tool=another").json()["items"] == []


def test_one_item_tells_facts_figures_and_calls(service: Service) -> None:
    run_id = a_run(service.context)
    ledger = write_items(service.context, run_id, 2)
    give_pictures(service.context, ledger, 0)
    finish_item(ledger, 0, None)
    found = get(service, run_id, f"items/{item_id(0)}").json()
    assert found["portrait"]["facts"] == {"ied": 61.5}
    assert found["portrait"]["attributes"] == {"gender": "female"}
    assert [(f["metric"], f["value"], f["reason"]) for f in found["figures"]] == [
        ("pdl", None, "too small"), ("flrr", None, "too small"),
    ]  # fmt: skip
    assert [(c["attempt"], c["result"], c["model"]) for c in found["calls"]] == [
        (1, "edited", "m1")
    ]
    assert sorted(found["pictures"]) == ["edited", "original"]
    assert get(service, run_id, f"items/{item_id(9)}").status_code == 404


def test_pictures_come_byte_for_byte_with_their_type(service: Service) -> None:
    run_id = a_run(service.context)
    ledger = write_items(service.context, run_id, 1)
    made = give_pictures(service.context, ledger, 0)
    for which, data in made.items():
        answer = get(service, run_id, f"items/{item_id(0)}/{which}")
        assert answer.content == data
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == (
            f'inline; filename="{item_id(0)}-{which}.png"'
        )
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert "no-cache" in answer.headers["cache-control"]
        again = get(
            service,
            run_id,
            f"items/{item_id(0)}/{which}",
            **{"If-None-Match": answer.headers["etag"]},
        )
        assert again.status_code == 304
    assert len(acts(service)) == 4
    assert set(acts(service)) == {
        ("read picture", f"{run_id}/{item_id(0)}/{which}") for which in made
    }


@pytest.mark.parametrize(
    "data", [b"<html><script>alert(1)</script>", b"<svg onload='alert(1)'/>", b"%PDF-1.7", b"x"]
)
def test_what_is_no_picture_is_never_shown_by_a_browser(service: Service, data: bytes) -> None:
    run_id = a_run(service.context)
    ledger = write_items(service.context, run_id, 1)
    call = ledger.begin_call(item_id(0), 1)
    ledger.end_call(call, item_id(0), {}, {"edited": service.context.blobs.put(data)})
    answer = get(service, run_id, f"items/{item_id(0)}/edited")
    assert answer.content == data
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment; ")


def test_a_picture_that_is_not_there_and_one_that_was_deleted(service: Service) -> None:
    run_id = a_run(service.context)
    ledger = write_items(service.context, run_id, 1)
    here = f"items/{item_id(0)}"
    assert get(service, run_id, f"{here}/mask").json()["type"] == "/problems/no-picture"
    made = give_pictures(service.context, ledger, 0)
    service.context.blobs.delete(hashlib.sha256(made["edited"]).hexdigest())
    answer = get(service, run_id, f"{here}/edited")
    assert answer.status_code == 410
    assert answer.json()["type"] == "/problems/picture-gone"
    assert get(service, run_id, f"{here}/else").status_code == 422


def test_pictures_of_one_run_cannot_be_had_through_another(service: Service) -> None:
    first, second = a_run(service.context), a_run(service.context)
    give_pictures(service.context, write_items(service.context, first, 1), 0)
    write_items(service.context, second, 1)
    assert get(service, first, f"items/{item_id(0)}/edited").status_code == 200
    assert get(service, second, f"items/{item_id(0)}/edited").status_code == 404


# Hostile text, all the way into a browser ---------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_report(run_data: Any) -> dict[str, bytes]:  # noqa: F811
    """A report in which every text that a stranger can choose tries to become code."""
    nasty = "<script>window.harmed=1</script><img src=x onerror='window.harmed=1'>\"'`\u202e\0=cmd|' '!A"
    items = [
        replace(
            i, tool=f"{i.tool}{nasty}", portrait_id=f"{i.portrait_id}{nasty}", model=nasty,
            reason=nasty, warnings=[nasty],
            attributes={**i.attributes, "gender": f"{i.attributes.get('gender', '')}{nasty}", nasty: nasty},
        )
        for i in run_data.items
    ]  # fmt: skip
    plan = run_data.plan.model_copy(update={"name": nasty, "purpose": nasty})
    data = replace(run_data, items=items, plan=plan, plan_text=f"name: '{nasty}'")
    groups = grouping(data)
    return {
        "report.html": render(data, groups, specs()).encode(),
        "report.json": to_json(report_json(data, groups, specs())),
    }


def test_no_text_of_a_stranger_becomes_markup(
    service: Service, hostile_report: dict[str, bytes]
) -> None:
    page = get(service, a_finished_run(service, hostile_report), "report").text
    assert "<script>window.harmed" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "\0" not in page
    assert json.loads(hostile_report["report.json"])


@pytest.mark.slow
def test_no_script_of_a_stranger_runs_in_a_browser(
    service: Service, hostile_report: dict[str, bytes]
) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    if not BROWSER.exists():
        pytest.skip(f"{BROWSER} is absent")
    run_id = a_finished_run(service, hostile_report)
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(extra_http_headers={"Authorization": f"Bearer {service.key}"})
        refused: list[str] = []
        page.on("console", lambda m: refused.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: refused.append(str(e)))
        page.goto(f"{service.url}/v1/runs/{run_id}/report", wait_until="load")
        assert page.evaluate("document.scripts.length") >= 1
        assert page.title()
        assert page.evaluate("typeof window.harmed") == "undefined"
        assert refused == []
        browser.close()
