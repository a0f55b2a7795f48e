"""Deletion through the door, and receipts that a third party can check."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert, update

from preprocess.decode import encode_png
from service.receipts import NotAReceipt, PublicKey, Signer, canonical
from service.store.access_log import AccessLog
from service.store.batches import iso
from service.store.jobs import DONE, Jobs, new_run_id
from service.store.retention import Retention, sweep
from service.store.service_tables import deletions, jobs
from tests.service.api.conftest import Service

pytestmark = pytest.mark.usefixtures("shared_decoders")
PNG = encode_png(np.full((8, 8, 3), 90, np.uint8))


def a_batch(service: Service) -> str:
    answer = service.client.post("/v1/batches", files=[("files", ("a.png", PNG))])
    return str(answer.json()["batch_id"])


def test_a_deletion_answers_with_a_receipt_that_verifies(service: Service) -> None:
    batch_id = a_batch(service)
    receipt = service.client.delete(f"/v1/batches/{batch_id}").json()
    assert receipt["deleted"]["originals"]["count"] == 1
    checked = service.client.post("/v1/receipts/verify", json=receipt).json()
    assert checked == {"valid": True, "reason": ""}
    key = service.bearer(None).get("/v1/signing-key").json()
    assert key["key_id"] == receipt["signing_key"]
    assert PublicKey.from_pem(key["public_key"]).fault(receipt) == ""


def test_the_signature_holds_for_a_program_of_somebody_else(
    service: Service, tmp_path: Path
) -> None:
    receipt = service.client.delete(f"/v1/batches/{a_batch(service)}").json()
    signature = base64.b64decode(receipt.pop("signature"))
    text = json.dumps(receipt, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    (tmp_path / "text").write_bytes(text.encode())
    (tmp_path / "signature").write_bytes(signature)
    (tmp_path / "key.pem").write_text(service.client.get("/v1/signing-key").json()["public_key"])
    words = "pkeyutl -verify -pubin -inkey key.pem -rawin -in text -sigfile signature".split()
    try:
        done = subprocess.run(
            ["openssl", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("the program openssl is not installed")
    assert "Signature Verified Successfully" in done.stdout, done.stderr


def test_deleting_again_gives_the_same_receipt_and_it_can_be_asked_for(service: Service) -> None:
    batch_id = a_batch(service)
    first = service.client.delete(f"/v1/batches/{batch_id}")
    assert service.client.delete(f"/v1/batches/{batch_id}").content == first.content
    receipt = first.json()
    assert service.client.get(f"/v1/receipts/{receipt['receipt_id']}").json() == receipt
    assert service.client.get(f"/v1/batches/{batch_id}").json()["state"] == "deleted"
    gone = service.client.get(f"/v1/batches/{batch_id}/items/1/picture")
    assert (gone.status_code, gone.json()["type"]) == (410, "/problems/picture-gone")


def test_a_receipt_is_seen_by_the_batchs_owner_alone(service: Service) -> None:
    mine = service.with_scopes("submit", "read")
    batch = mine.post("/v1/batches", files=[("files", ("a.png", PNG))]).json()["batch_id"]
    place = f"/v1/receipts/{mine.delete(f'/v1/batches/{batch}').json()['receipt_id']}"
    assert mine.get(place).status_code == 200
    assert service.with_scopes("read").get(place).status_code == 404
    assert service.client.get("/v1/receipts/d_" + "0" * 24).status_code == 404


def test_what_retention_deleted_has_a_signed_receipt_too(service: Service) -> None:
    batch_id = a_batch(service)
    far = service.context.clock() + 31 * 86_400
    sweep(service.context.database, service.context.blobs, far, retention=Retention())
    receipt = service.client.delete(f"/v1/batches/{batch_id}").json()
    assert (receipt["by"], receipt["reason"]) == ("retention", "retention")
    assert service.client.post("/v1/receipts/verify", json=receipt).json()["valid"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"at": "2020-01-01T00:00:00+00:00"}, "altered"),
        ({"deleted": {}}, "altered"),
        ({"more": 1}, "altered"),
        ({"signature": "AAAA"}, "altered"),
        ({"signature": "no base64!"}, "altered"),
        ({"signing_key": "0" * 16}, "another key"),
    ],
)
def test_an_altered_receipt_is_told_from_a_real_one(
    service: Service, change: dict[str, Any], reason: str
) -> None:
    receipt = service.client.delete(f"/v1/batches/{a_batch(service)}").json() | change
    checked = service.client.post("/v1/receipts/verify", json=receipt).json()
    assert checked["valid"] is False
    assert reason in checked["reason"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": "other/1"},
        {"schema": "likeness-receipt/1"},
        {"schema": "likeness-receipt/1", "signature": 1, "signing_key": "x"},
    ],
)
def test_what_is_no_receipt_is_a_problem(service: Service, body: dict[str, Any]) -> None:
    answer = service.client.post("/v1/receipts/verify", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/not-a-receipt")


def test_only_what_a_receipt_can_hold_has_a_canonical_form() -> None:
    assert canonical({"b": 1, "a": "\xe9", "signature": "x"}) == '{"a":"\xe9","b":1}'.encode()
    for strange in ({"a": 0.5}, {"\xe9": 1}, {"a": [[[[[[[[[[1]]]]]]]]]]}, {"a": "\ud800"}):
        with pytest.raises(NotAReceipt):
            canonical(strange)


def test_the_key_follows_from_the_secret_and_shows_nothing_of_it() -> None:
    secret = b"0123456789abcdef" * 2
    one, same, other = Signer(secret), Signer(secret), Signer(b"x" * 32)
    assert one.public == same.public != other.public
    assert secret not in one.public.raw
    assert (
        other.public.fault(one.sign({"schema": "likeness-receipt/1"})) == "signed with another key"
    )


def with_job(service: Service, batch_id: str, state: str) -> str:
    run_id = new_run_id()
    Jobs(service.context.database).submit(run_id, batch_id, "k", "r", "name: r")
    with service.context.database.begin() as link:
        far = service.context.clock() + 600
        mine = update(jobs).where(jobs.c.run_id == run_id)
        link.execute(mine.values(state=state, lease_owner="w", lease_until=far))
    return run_id


def test_a_batch_in_use_is_not_deleted_unless_its_runs_are_to_be_cancelled(
    service: Service,
) -> None:
    batch_id = a_batch(service)
    run_id = with_job(service, batch_id, "queued")
    refused = service.client.delete(f"/v1/batches/{batch_id}")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/batch-busy")
    assert refused.json()["runs"] == [run_id]
    assert int(refused.headers["retry-after"]) > 0
    deleted = service.client.delete(f"/v1/batches/{batch_id}", params={"cancel": True})
    assert deleted.status_code == 200
    assert deleted.json()["runs"] == [run_id]
    job = Jobs(service.context.database).get(run_id)
    assert job is not None and job["state"] == "cancelled"


def test_a_deletion_waits_for_the_run_under_way_that_it_cancels(service: Service) -> None:
    batch_id = a_batch(service)
    run_id = with_job(service, batch_id, "running")
    asked = threading.Event()

    def worker() -> None:
        while not asked.wait(0.02):
            job = Jobs(service.context.database).get(run_id)
            if job is not None and job["cancel_requested"]:
                asked.set()
        with service.context.database.begin() as link:
            mine = update(jobs).where(jobs.c.run_id == run_id)
            link.execute(mine.values(state=DONE, finished=iso(0)))

    thread = threading.Thread(target=worker)
    thread.start()
    try:
        deleted = service.client.delete(f"/v1/batches/{batch_id}", params={"cancel": True})
    finally:
        asked.set()
        thread.join()
    assert deleted.status_code == 200


def test_the_deletion_is_in_the_access_log(service: Service) -> None:
    batch_id = a_batch(service)
    service.client.delete(f"/v1/batches/{batch_id}")
    acts = AccessLog(service.context.database).page(10, target=batch_id)
    assert [act["action"] for act in acts] == ["delete batch"]


def test_a_repeat_of_the_upload_does_not_show_names_of_what_was_deleted(service: Service) -> None:
    request = service.client.build_request("POST", "/v1/batches", files=[("files", ("a.png", PNG))])
    body = request.read()
    headers = {"Idempotency-Key": "k", "Content-Type": request.headers["content-type"]}
    first = service.client.post("/v1/batches", content=body, headers=headers).json()["batch_id"]
    service.client.delete(f"/v1/batches/{first}")
    again = service.client.post("/v1/batches", content=body, headers=headers)
    assert "idempotent-replayed" not in again.headers


def test_a_receipt_without_its_batch_is_not_there(service: Service) -> None:
    batch_id = a_batch(service)
    row = {"receipt_id": "d_" + "1" * 24, "batch_id": "b_" + "1" * 24, "at": "", "receipt": {}}
    with service.context.database.begin() as link:
        link.execute(insert(deletions).values(**row))
    assert service.client.get("/v1/receipts/d_" + "1" * 24).status_code == 404
    assert service.client.get(f"/v1/batches/{batch_id}").status_code == 200
