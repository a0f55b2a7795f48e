"""Runs over REST: begun, listed, cancelled, resumed."""

from __future__ import annotations

import threading

import httpx
import pytest

from service.api.waiting import wait_in
from service.limits import Limits
from service.store.api_keys import ApiKeys
from service.store.jobs import Jobs
from service.store.service_tables import batches, deliveries, events
from tests.service.api.conftest import Service, Start
from tests.service.api.seeded import (
    PLAN,
    a_batch,
    a_run,
    finish_item,
    finish_run,
    lease,
    refuse_item,
    write_items,
)


def begin(service: Service, **body: object) -> httpx.Response:
    body.setdefault("batch_id", a_batch(service.context))
    if "preset" not in body:
        body.setdefault("plan", PLAN)
    return service.client.post("/v1/runs", json=body)


def problem(answer: httpx.Response, status: int, slug: str) -> dict[str, object]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, object] = answer.json()
    assert found["type"] == f"/problems/{slug}"
    return found


def test_a_run_is_accepted_with_its_place_and_when_to_ask(service: Service) -> None:
    answer = begin(service, name="mine")
    assert answer.status_code == 202
    run = answer.json()
    assert answer.headers["location"] == f"/v1/runs/{run['run_id']}"
    assert int(answer.headers["retry-after"]) > 0
    assert run["state"] == "queued"
    assert run["name"] == "mine"
    assert run["eta_s"] is None
    assert run["eta_reason"] == "the run waits for a worker"
    assert service.client.get(answer.headers["location"]).json() == run


def test_the_plan_may_be_an_object_and_is_kept_as_text(service: Service) -> None:
    plan = {"name": "as an object", "tools": [{"id": "identity"}]}
    run = begin(service, plan=plan).json()
    assert run["name"] == "as an object"
    job = Jobs(service.context.database).get(run["run_id"])
    assert job is not None
    assert job["plan_text"].startswith("name: as an object\ntools:")


def test_every_preset_runs_over_any_batch(service: Service) -> None:
    names = [p["name"] for p in service.client.get("/v1/presets").json()["items"]]
    assert names
    for name in names:
        assert begin(service, preset=name).status_code == 202


def test_an_unknown_preset_is_told_with_the_near_miss(service: Service) -> None:
    found = problem(begin(service, preset="self-tests"), 422, "plan")
    assert "did you mean 'self-test'?" in str(found["detail"])


def test_mistakes_of_a_plan_are_told_with_line_and_key(service: Service) -> None:
    plan = "name: x\ntools:\n  - id: identity\n    promt: y\nalpha: 7\n"
    found = problem(begin(service, plan=plan), 422, "plan")
    errors = found["errors"]
    assert isinstance(errors, list)
    assert [e.get("line") for e in errors] == [4, 5]
    assert errors[0]["detail"].startswith("tools.0.promt: unknown key; did you mean 'prompt'?")
    assert errors[1]["detail"].startswith("alpha: ")
    assert "/" not in "".join(e["detail"] for e in errors)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("name: [", "not valid YAML"),
        ("just text", "a plan is a mapping"),
        ("name: x\ntools: [{id: command, settings: {argv: [id]}}]\n", "does not offer 'command'"),
        ("name: x\ntools: [{id: identity}]\ngroups: [eye_colour]\n", "no portrait declares"),
        ("name: x\ntools: [{id: style_transfer, settings: {strength: 5}}]\n", "strength"),
        (
            "name: x\nportraits: {where: {gender: [none]}}\ntools: [{id: identity}]\n",
            "no portrait is left",
        ),
        ("a: &a [1]\nb: *a\n", "references"),
    ],
)
def test_a_plan_that_cannot_run_over_the_batch_is_not_begun(
    service: Service, plan: str, said: str
) -> None:
    found = problem(begin(service, plan=plan), 422, "plan")
    assert said in str(found)
    assert Jobs(service.context.database).counts()["queued"] == 0


def test_the_manifest_of_a_plan_is_the_batch_whatever_it_names(service: Service) -> None:
    plan = PLAN + "portraits: {manifest: ../../etc/passwd}\n"
    assert begin(service, plan=plan).status_code == 202


def test_either_a_plan_or_a_preset(service: Service) -> None:
    batch_id = a_batch(service.context)
    for more in ({}, {"plan": PLAN, "preset": "self-test"}):
        answer = service.client.post("/v1/runs", json={"batch_id": batch_id, **more})
        assert "either 'plan' or 'preset'" in str(problem(answer, 422, "invalid"))


def test_a_plan_larger_than_the_limit_is_refused(service: Service) -> None:
    plan = PLAN + "#" * service.context.limits.max_plan_bytes
    problem(begin(service, plan=plan), 413, "too-large")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/x", "http://169.254.169.254/", "ftp://example.org/", "http://[::1]/"]
)
def test_a_webhook_goes_to_no_address_inside(service: Service, url: str) -> None:
    found = problem(begin(service, webhook_url=url), 422, "invalid")
    assert found["errors"][0]["pointer"] == "#/webhook_url"  # type: ignore[index]


def test_a_batch_that_is_not_there_not_ready_or_deleted(service: Service) -> None:
    problem(begin(service, batch_id="b_" + "0" * 24), 404, "not-found")
    receiving = a_batch(service.context, state="receiving")
    problem(begin(service, batch_id=receiving), 409, "batch-not-ready")
    problem(begin(service, batch_id=a_batch(service.context, people=())), 409, "batch-not-ready")
    problem(begin(service, batch_id=a_batch(service.context, state="deleted")), 410, "gone")


def test_a_queue_has_an_end(start_service: Start) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, max_queued=1))
    assert begin(service).status_code == 202
    answer = begin(service)
    problem(answer, 503, "busy")
    assert int(answer.headers["retry-after"]) > 0


def test_the_same_request_twice_begins_one_run(service: Service) -> None:
    body = {"batch_id": a_batch(service.context), "plan": PLAN}
    once = {"Idempotency-Key": "tuesday"}
    first = service.client.post("/v1/runs", json=body, headers=once)
    again = service.client.post("/v1/runs", json=body, headers=once)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert again.content == first.content
    assert Jobs(service.context.database).counts()["queued"] == 1


# Who may ----------------------------------------------------------------------------------------


def test_a_run_of_another_key_is_not_to_be_seen(service: Service) -> None:
    stranger = service.with_scopes("read", "submit")
    run_id = a_run(service.context)
    for path in ("", "/items", "/measurements", "/events", "/report", "/verdicts", "/files"):
        problem(stranger.get(f"/v1/runs/{run_id}{path}"), 404, "not-found")
    for act in ("cancel", "resume"):
        problem(stranger.post(f"/v1/runs/{run_id}/{act}"), 404, "not-found")
    assert stranger.get("/v1/runs").json()["items"] == []
    body = {"batch_id": a_batch(service.context), "plan": PLAN}
    problem(stranger.post("/v1/runs", json=body), 404, "not-found")


def test_scopes_divide_reading_from_starting(service: Service) -> None:
    reader, submitter = service.with_scopes("read"), service.with_scopes("submit")
    run_id = a_run(service.context)
    body = {"batch_id": a_batch(service.context), "plan": PLAN}
    assert reader.post("/v1/runs", json=body).status_code == 403
    assert reader.post(f"/v1/runs/{run_id}/cancel").status_code == 403
    assert reader.post(f"/v1/runs/{run_id}/resume").status_code == 403
    assert submitter.get(f"/v1/runs/{run_id}").status_code == 403
    assert submitter.get("/v1/runs").status_code == 403
    nobody = service.bearer(None)
    assert nobody.get(f"/v1/runs/{run_id}").status_code == 401
    assert nobody.post("/v1/runs", json=body).status_code == 401


def test_whoever_began_a_run_can_read_it(service: Service) -> None:
    mine = service.with_scopes("read", "submit", name="mine")
    keys = ApiKeys(service.context.database).all()
    owner = next(key.key_id for key in keys if key.name == "mine")
    body = {"batch_id": a_batch(service.context, owner), "plan": PLAN}
    made = mine.post("/v1/runs", json=body)
    assert made.status_code == 202
    assert mine.get(made.headers["location"]).status_code == 200
    assert [r["run_id"] for r in mine.get("/v1/runs").json()["items"]] == [made.json()["run_id"]]


def test_each_key_has_its_own_webhook_secret(service: Service) -> None:
    one, other = service.with_scopes("submit"), service.with_scopes("submit")
    secrets = {c.get("/v1/webhook-secret").json()["secret"] for c in (one, other, service.client)}
    assert len(secrets) == 3
    assert all(s.startswith("whsec_") for s in secrets)
    assert service.with_scopes("read").get("/v1/webhook-secret").status_code == 403


# Following ----------------------------------------------------------------------------------------


def test_counts_progress_and_outcomes_are_told(service: Service) -> None:
    run_id = a_run(service.context)
    held = lease(service.context)
    ledger = write_items(service.context, run_id, 4)
    finish_item(ledger, 0)
    refuse_item(ledger, 1)
    stages = {"portraits": {"done": 2, "total": 2}, "measured": {"done": 2, "total": 4}}
    Jobs(service.context.database).progress(held, stages)
    run = service.client.get(f"/v1/runs/{run_id}").json()
    assert run["state"] == "running"
    assert run["items"] == {"planned": 2, "done": 2}
    assert run["outcomes"] == {"measured": 1, "refused": 1}
    assert run["progress"] == stages
    assert run["eta_s"] is None
    assert run["eta_reason"] == "too little is measured to tell"


def test_the_time_left_goes_by_the_pace_of_this_worker(service: Service) -> None:
    run_id = a_run(service.context)
    held = lease(service.context)
    jobs = Jobs(service.context.database)
    for done in (2, 6):
        jobs.progress(held, {"measured": {"done": done, "total": 16}})
    with service.context.database.begin() as link:
        for newer, at in ((False, "00:00:00"), (True, "00:00:20")):
            rows = link.execute(
                events.select().where(events.c.kind == "progress").order_by(events.c.event_id)
            ).all()
            one = events.update().where(events.c.event_id == rows[newer].event_id)
            link.execute(one.values(at=f"2026-01-01T{at}.000+00:00"))
    run = service.client.get(f"/v1/runs/{run_id}").json()
    assert run["eta_s"] == 50.0  # 4 items took 20 s, 10 are left
    assert run["eta_reason"] is None


def test_nothing_new_is_said_in_a_word(service: Service) -> None:
    run_id = a_run(service.context)
    first = service.client.get(f"/v1/runs/{run_id}")
    tag = {"If-None-Match": first.headers["etag"]}
    assert service.client.get(f"/v1/runs/{run_id}", headers=tag).status_code == 304
    lease(service.context)
    changed = service.client.get(f"/v1/runs/{run_id}", headers=tag)
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


def test_prefer_wait_answers_when_the_run_has_ended(service: Service) -> None:
    run_id = a_run(service.context)
    held = lease(service.context)
    ends = threading.Timer(0.3, finish_run, (service.context, held, {}))
    ends.start()
    answer = service.client.get(f"/v1/runs/{run_id}", headers={"Prefer": "wait=60"})
    ends.join()
    assert answer.json()["state"] == "done"
    assert answer.headers["preference-applied"] == "wait=60"
    assert "retry-after" not in answer.headers


def test_prefer_wait_on_beginning_answers_in_time_though_nobody_works(service: Service) -> None:
    batch_id = a_batch(service.context)
    body = {"batch_id": batch_id, "plan": PLAN}
    answer = service.client.post("/v1/runs", json=body, headers={"Prefer": "respond-async, wait=0"})
    assert answer.status_code == 202
    assert answer.headers["preference-applied"] == "wait=0"


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (None, None), ("", None), ("wait=5", 5), ("respond-async, wait=7", 7), ("WAIT=3", 3),
        ('wait="4"', 4), ("wait=999999", 60), ("wait=-1", None), ("wait=x", None),
        ("wait = 6 ; foo", 6), ("wait=1, wait=9", 1),
    ],
)  # fmt: skip
def test_the_time_to_wait_is_read_as_rfc_7240_has_it(sent: str | None, seconds: int | None) -> None:
    assert wait_in(sent) == seconds


# Lists ----------------------------------------------------------------------------------------------


def test_pages_of_runs_neither_double_nor_lose_while_runs_come_in(service: Service) -> None:
    batch_id = a_batch(service.context)
    old = [a_run(service.context, batch_id=batch_id) for _ in range(5)]
    seen: list[str] = []
    path: str | None = "/v1/runs?limit=2"
    while path:
        answer = service.client.get(path)
        page = answer.json()
        seen += [r["run_id"] for r in page["items"]]
        a_run(service.context, batch_id=batch_id)
        path = answer.links["next"]["url"] if "next" in answer.links else None
        assert (page["next"] is None) == (path is None)
    assert seen == list(reversed(old))


def test_runs_can_be_listed_by_state(service: Service) -> None:
    first, second = a_run(service.context), a_run(service.context)
    held = lease(service.context)
    assert held.run_id == first
    ids = [r["run_id"] for r in service.client.get("/v1/runs?state=queued").json()["items"]]
    assert ids == [second]
    problem(service.client.get("/v1/runs?state=lost"), 422, "invalid")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x"])
def test_a_page_has_between_1_and_1000_rows(service: Service, query: str) -> None:
    problem(service.client.get(f"/v1/runs?{query}"), 422, "invalid")


def test_a_cursor_of_another_list_is_refused(service: Service) -> None:
    for _ in range(2):
        a_run(service.context)
    cursor = service.client.get("/v1/runs?limit=1").json()["next"]
    problem(service.client.get(f"/v1/runs?state=queued&cursor={cursor}"), 400, "bad-cursor")
    problem(service.client.get("/v1/runs?cursor=AAAA"), 400, "bad-cursor")


# Cancelling and resuming ---------------------------------------------------------------------------


def test_a_run_that_waits_is_cancelled_at_once_and_again_without_effect(service: Service) -> None:
    run_id = a_run(service.context)
    for _ in range(2):
        answer = service.client.post(f"/v1/runs/{run_id}/cancel")
        assert answer.status_code == 200
        assert answer.json()["state"] == "cancelled"


def test_a_run_under_way_is_asked_to_stop(service: Service) -> None:
    run_id = a_run(service.context)
    held = lease(service.context)
    for _ in range(2):
        answer = service.client.post(f"/v1/runs/{run_id}/cancel")
        assert answer.status_code == 202
        assert answer.json()["cancel_requested"] is True
    assert Jobs(service.context.database).heartbeat(held, 60)
    answer = service.client.post(f"/v1/runs/{run_id}/resume")
    assert "being cancelled" in str(problem(answer, 409, "cannot-resume"))


def test_a_run_that_is_over_cannot_be_cancelled(service: Service) -> None:
    run_id = a_run(service.context)
    finish_run(service.context, lease(service.context), {})
    problem(service.client.post(f"/v1/runs/{run_id}/cancel"), 409, "cannot-cancel")
    problem(service.client.post(f"/v1/runs/{run_id}/resume"), 409, "cannot-resume")


def test_a_failed_run_tells_why_and_goes_on_when_resumed(service: Service) -> None:
    run_id = a_run(service.context)
    Jobs(service.context.database).fail(lease(service.context), "the disk is full")
    run = service.client.get(f"/v1/runs/{run_id}").json()
    assert (run["state"], run["error"]) == ("failed", "the disk is full")
    problem(service.client.post(f"/v1/runs/{run_id}/cancel"), 409, "cannot-cancel")
    for _ in range(2):
        answer = service.client.post(f"/v1/runs/{run_id}/resume")
        assert answer.status_code == 202
        assert answer.json()["state"] == "queued"
        assert answer.json()["error"] is None


def test_a_run_whose_batch_was_deleted_cannot_go_on(service: Service) -> None:
    run_id = a_run(service.context)
    service.client.post(f"/v1/runs/{run_id}/cancel")
    with service.context.database.begin() as link:
        link.execute(batches.update().values(state="deleted"))
    found = problem(service.client.post(f"/v1/runs/{run_id}/resume"), 409, "cannot-resume")
    assert "batch was deleted" in str(found["detail"])


def test_cancelling_a_waiting_run_tells_its_webhook(service: Service) -> None:
    answer = begin(service, webhook_url="https://example.org/hook")
    service.client.post(f"/v1/runs/{answer.json()['run_id']}/cancel")
    rows = service.context.database.rows(deliveries.select())
    assert [(r["url"], r["state"]) for r in rows] == [("https://example.org/hook", "pending")]


@pytest.mark.parametrize("run_id", ["r_1", "x", "r_" + "0" * 24 + "%00", "..%2f.."])
def test_an_id_that_is_none_is_no_run(service: Service, run_id: str) -> None:
    assert service.client.get(f"/v1/runs/{run_id}").status_code in (400, 404, 422)
