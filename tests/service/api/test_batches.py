"""Batches through the door: what is sent, what is told of each file, who may see it."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from preprocess.decode import encode_png
from service.api import batch_intake
from service.limits import Limits
from service.store.access_log import AccessLog
from service.store.batches import Batches
from tests.service.api.conftest import Service, Start

pytestmark = pytest.mark.usefixtures("shared_decoders")
CSV = "text/csv"


def png(level: int) -> bytes:
    return encode_png(np.full((8, 8, 3), level, np.uint8))


def send(
    client: httpx.Client,
    files: Mapping[str, bytes],
    manifest: str | None = None,
    **how: Any,
) -> httpx.Response:
    parts: list[Any] = [("files", (name, data)) for name, data in files.items()]
    if manifest is not None:
        parts.append(("manifest", ("m.csv", manifest.encode(), CSV)))
    return client.post("/v1/batches", files=parts, **how)


def zipped(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def told(answer: httpx.Response) -> list[tuple[str, str, str | None]]:
    assert answer.status_code == 201, answer.text
    return [(i["name"], i["state"], i["code"]) for i in answer.json()["items"]]


def slug(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].removeprefix("/problems/")


def pictures_kept(service: Service) -> int:
    return sum(p.is_file() for p in Path(service.context.server.blobs).glob("??/*"))


def test_every_file_gets_its_own_answer_and_what_is_accepted_is_stored(service: Service) -> None:
    answer = send(service.client, {"a.png": png(1), "b.jpg": b"<html>", "c.png": b""})
    assert told(answer) == [
        ("a.png", "accepted", None),
        ("b.jpg", "rejected", "html"),
        ("c.png", "rejected", "empty"),
    ]
    batch = answer.json()
    assert (batch["state"], batch["accepted"], batch["rejected"]) == ("ready", 1, 2)
    assert answer.headers["location"] == f"/v1/batches/{batch['batch_id']}"
    items = service.client.get(answer.headers["location"] + "/items").json()["items"]
    assert service.client.get(items[0]["picture"]).content == png(1)
    assert [i["reason"] for i in items] == [None, "not an image: looks like HTML", "empty file"]
    assert service.client.get(answer.headers["location"]).json()["accepted"] == 1


def test_a_manifest_gives_attributes_and_its_faults_are_items_too(service: Service) -> None:
    manifest = "file,subject_id,gender\na.png,s1,x\nlost.png,s2,y\n"
    answer = send(
        service.client, {"a.png": png(1), "b.png": png(2)}, manifest, data={"name": " Tues\nday "}
    )
    assert told(answer) == [
        ("a.png", "accepted", None),
        ("b.png", "accepted", None),
        ("lost.png", "rejected", "no_picture"),
    ]
    assert (answer.json()["name"], answer.json()["without_row"]) == ("Tues day", 1)
    items = service.client.get(answer.headers["location"] + "/items").json()["items"]
    assert items[0]["attributes"] == {"file": "a.png", "subject_id": "s1", "gender": "x"}
    assert items[1]["attributes"] == {}


def test_a_refused_picture_keeps_its_attributes_so_that_it_counts_in_its_group(
    service: Service,
) -> None:
    answer = send(service.client, {"a.png": b"nothing"}, "file,gender\na.png,x\n")
    (item,) = service.client.get(answer.headers["location"] + "/items").json()["items"]
    assert (item["state"], item["attributes"]["gender"]) == ("rejected", "x")


def test_a_manifest_before_the_files_is_as_good_as_one_behind_them(service: Service) -> None:
    parts: list[Any] = [
        ("manifest", (None, "file,gender\na.png,x\n")),
        ("files", ("a.png", png(1))),
    ]
    answer = service.client.post("/v1/batches", files=parts)
    assert told(answer) == [("a.png", "accepted", None)]
    assert answer.json()["without_row"] == 0


def test_a_zip_comes_with_its_manifest_and_folders(service: Service) -> None:
    data = zipped(
        {
            "set/a.png": png(1),
            "set/b.png": png(2),
            "set/manifest.csv": b"file,gender\nset/b.png,x\na.png,y\n",
            "notes.txt": b"text",
        }
    )
    how = {"content": data, "headers": {"Content-Type": "application/zip"}}
    answer = service.client.post("/v1/batches?name=Zipped", **how)  # type: ignore[arg-type]
    assert told(answer) == [
        ("set/a.png", "accepted", None),
        ("set/b.png", "accepted", None),
        ("notes.txt", "skipped", "not_image"),
    ]
    batch = answer.json()
    assert (batch["name"], batch["rejected"], batch["skipped"]) == ("Zipped", 0, 1)
    items = service.client.get(answer.headers["location"] + "/items?state=accepted").json()["items"]
    assert [i["attributes"]["gender"] for i in items] == ["y", "x"]


def test_a_zip_in_a_form_goes_beside_files_and_a_manifest_of_the_form_counts(
    service: Service,
) -> None:
    data = zipped({"a.png": png(1), "manifest.csv": b"file,gender\na.png,wrong\n"})
    parts: list[Any] = [
        ("archive", ("x.zip", data)),
        ("files", ("b.png", png(2))),
        ("manifest", (None, "file,gender\na.png,right\n")),
    ]
    answer = service.client.post("/v1/batches", files=parts)
    assert [name for name, _, _ in told(answer)] == ["a.png", "b.png"]
    items = service.client.get(answer.headers["location"] + "/items").json()["items"]
    assert items[0]["attributes"]["gender"] == "right"


def test_a_zip_among_the_files_is_told_to_be_no_picture(service: Service) -> None:
    answer = send(service.client, {"x.jpg": zipped({"a.png": png(1)})})
    assert told(answer) == [("x.jpg", "rejected", "archive")]


def test_names_are_kept_apart_and_never_become_paths(service: Service) -> None:
    parts: list[Any] = [("files", (n, png(1))) for n in ("../../etc/x.png", "a.png", "A.png")]
    answer = service.client.post("/v1/batches", files=parts)
    assert [n for n, _, _ in told(answer)] == ["../../etc/x.png", "a.png", "A (2).png"]
    home = service.context.server.home
    assert not [p for p in home.rglob("*") if p.name.lower().endswith(".png")]
    assert pictures_kept(service) == 1


@pytest.mark.parametrize(
    ("files", "manifest", "wanted"),
    [
        ({"a.png": png(1)}, "name\nx\n", (422, "bad-manifest")),
        ({"a.png": png(1)}, "file\na.png\na.png\n", (422, "bad-manifest")),
        ({}, "file\na.png\n", (422, "no-pictures")),
    ],
)
def test_a_broken_envelope_keeps_nothing(
    service: Service, files: dict[str, bytes], manifest: str, wanted: tuple[int, str]
) -> None:
    assert slug(send(service.client, files, manifest)) == wanted
    assert service.client.get("/v1/batches").json()["items"] == []
    assert pictures_kept(service) == 0


@pytest.mark.parametrize(
    ("kind", "body", "wanted"),
    [
        ("multipart/form-data", b"x", (400, "bad-upload")),
        ("multipart/form-data; boundary=b", b"--b\r\n", (400, "bad-upload")),
        ("application/zip", b"", (422, "bad-archive")),
        ("application/zip", b"PK\3\4nothing", (422, "bad-archive")),
        ("application/json", b"{", (400, "bad-request")),
        ("application/json", b"[]", (422, "invalid")),
        ("application/json", b'{"urls": []}', (422, "invalid")),
        ("application/json", b'{"urls": [{"url": "x", "key": 1}]}', (422, "invalid")),
        ("text/plain", b"x", (415, "media-type")),
        ("", b"", (415, "media-type")),
    ],
)
def test_a_body_that_is_none_is_a_problem(
    service: Service, kind: str, body: bytes, wanted: tuple[int, str]
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    assert slug(service.client.post("/v1/batches", content=body, headers=headers)) == wanted


def test_a_field_that_is_not_known_is_refused_rather_than_left_aside(service: Service) -> None:
    answer = service.client.post("/v1/batches", files=[("pictures", ("a.png", png(1)))])
    assert slug(answer) == (400, "bad-upload")
    assert "'pictures' is not known" in answer.json()["detail"]


def test_limits_hold_for_one_file_for_all_of_them_and_for_their_number(
    start_service: Start,
) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, max_file_bytes=200, max_items=2))
    answer = send(service.client, {"a.png": png(1), "large.png": b"x" * 201})
    assert told(answer)[1] == ("large.png", "rejected", "too_large")
    many = send(service.client, {f"{i}.png": png(1) for i in range(3)})
    assert slug(many) == (413, "too-large")
    how = {"content": zipped({f"{i}.png": png(1) for i in range(3)})}
    zips = service.client.post("/v1/batches", headers={"Content-Type": "application/zip"}, **how)  # type: ignore[arg-type]
    assert slug(zips) == (413, "too-large")
    assert len(service.client.get("/v1/batches").json()["items"]) == 1


def test_a_key_holds_so_many_batches_and_no_more(start_service: Start) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, max_batches=1))
    first = send(service.client, {"a.png": png(1)})
    assert slug(send(service.client, {"a.png": png(1)})) == (409, "too-many-batches")
    service.client.delete(first.headers["location"])
    assert send(service.client, {"a.png": png(1)}).status_code == 201


def test_the_same_request_sent_again_makes_one_batch(service: Service) -> None:
    # the boundary is part of the request: a client that repeats one sends the same bytes
    request = service.client.build_request(
        "POST", "/v1/batches", files=[("files", ("a.png", png(1)))]
    )
    body, headers = request.read(), {"Idempotency-Key": "k1"}
    headers["Content-Type"] = request.headers["content-type"]
    first = service.client.post("/v1/batches", content=body, headers=headers)
    again = service.client.post("/v1/batches", content=body, headers=headers)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert len(service.client.get("/v1/batches").json()["items"]) == 1


def test_a_batch_is_seen_by_the_key_that_sent_it_and_by_administrators(service: Service) -> None:
    mine, theirs = service.with_scopes("submit", "read"), service.with_scopes("submit", "read")
    place = send(mine, {"a.png": png(1)}).headers["location"]
    for path in ("", "/items", "/items/1/picture"):
        assert mine.get(place + path).status_code == 200
        assert service.client.get(place + path).status_code == 200
        assert slug(theirs.get(place + path)) == (404, "not-found")
    assert slug(theirs.delete(place)) == (404, "not-found")
    assert theirs.get("/v1/batches").json()["items"] == []
    assert len(mine.get("/v1/batches").json()["items"]) == 1


def test_each_operation_needs_its_scope(service: Service) -> None:
    place = send(service.client, {"a.png": png(1)}).headers["location"]
    reader, sender = service.with_scopes("read"), service.with_scopes("submit")
    assert send(reader, {"a.png": png(1)}).status_code == 403
    assert reader.delete(place).status_code == 403
    assert sender.get("/v1/batches").status_code == 403
    assert service.bearer(None).get(place).status_code == 401


def test_reading_and_deleting_pictures_is_entered_in_the_access_log(service: Service) -> None:
    place = send(service.client, {"a.png": png(1)}).headers["location"]
    batch_id = place.rpartition("/")[2]
    service.client.get(f"{place}/items/1/picture")
    service.client.delete(place)
    acts = [(a["action"], a["target"]) for a in AccessLog(service.context.database).page(10)]
    assert ("read picture", f"{batch_id}/1") in acts
    assert ("delete batch", batch_id) in acts


def test_a_picture_is_answered_so_that_no_browser_runs_or_keeps_it(service: Service) -> None:
    place = send(service.client, {"<b>.png": png(1)}).headers["location"]
    headers = service.client.get(f"{place}/items/1/picture").headers
    assert headers["content-type"] == "image/png"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["content-disposition"].startswith('attachment; filename="b_')
    assert "no-store" in headers["cache-control"]
    assert headers["x-content-type-options"] == "nosniff"


def test_pictures_that_are_not_there_say_why(service: Service) -> None:
    place = send(service.client, {"a.png": b"x"}).headers["location"]
    assert slug(service.client.get(f"{place}/items/1/picture")) == (404, "not-found")
    assert slug(service.client.get(f"{place}/items/9/picture")) == (404, "not-found")
    assert slug(service.client.get(f"{place}/items/0/picture")) == (422, "invalid")


def test_lists_come_in_pages_that_fit_together(service: Service) -> None:
    sent = [
        send(service.client, {f"{i}.png": png(i) for i in range(number + 1)}).json()["batch_id"]
        for number in range(5)
    ]
    seen: list[str] = []
    page = service.client.get("/v1/batches?limit=2").json()
    while True:
        seen += [b["batch_id"] for b in page["items"]]
        if page["next"] is None:
            break
        page = service.client.get("/v1/batches", params={"limit": 2, "cursor": page["next"]}).json()
    assert sorted(seen) == sorted(sent)
    place = f"/v1/batches/{sent[3]}/items"  # four files; those of one second come in any order
    first = service.client.get(place, params={"limit": 2}).json()
    rest = service.client.get(place, params={"limit": 2, "cursor": first["next"]}).json()
    seqs = [i["seq"] for i in first["items"] + rest["items"]]
    assert seqs == [1, 2, 3, 4]
    assert slug(service.client.get("/v1/batches", params={"cursor": first["next"]})) == (
        400,
        "bad-cursor",
    )


def test_a_batch_in_which_nothing_was_accepted_is_a_batch_all_the_same(service: Service) -> None:
    answer = send(service.client, {"a.txt": b"text"})
    assert (answer.status_code, answer.json()["accepted"]) == (201, 0)


def test_addresses_inside_are_refused_one_by_one(service: Service) -> None:
    urls = [{"url": u} for u in ("http://127.0.0.1/a.png?sig=secret", "http://10.0.0.1/b.png")]
    answer = service.client.post("/v1/batches", json={"urls": urls, "name": "N"})
    assert told(answer) == [
        ("a.png", "rejected", "address_refused"),
        ("b.png", "rejected", "address_refused"),
    ]
    assert "secret" not in answer.text
    assert Batches(service.context.database).get(answer.json()["batch_id"])


def test_too_many_addresses_are_refused_whole(start_service: Start) -> None:
    service = start_service(limits=Limits(min_free_bytes=0, max_urls=1))
    body = {"urls": [{"url": "http://x.example/"}] * 2}
    assert slug(service.client.post("/v1/batches", json=body)) == (413, "too-large")


@pytest.fixture
def site() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A server on loopback with pictures: its address, and its pages by path."""
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path.partition("?")[0])
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html")  # content decides, not what it says
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}", pages
    server.shutdown()
    thread.join()
    server.server_close()


def test_pictures_are_fetched_and_judged_by_what_came(
    start_service: Start, site: tuple[str, dict[str, bytes]]
) -> None:
    host, pages = site
    pages |= {"/a.png": png(1), "/b.png": b"<html>", "/large": b"x" * 2001}
    limits = Limits(min_free_bytes=0, max_url_bytes=2000)
    service = start_service(limits=limits, fetch_allow=(host,))
    body = {
        "name": "fetched",
        "urls": [
            {"url": f"http://{host}/a.png?sig=1", "attributes": {"subject_id": "s1"}},
            {"url": f"http://{host}/b.png"},
            {"url": f"http://{host}/none.png"},
            {"url": f"http://{host}/large", "name": "large.png"},
            {"url": "http://169.254.169.254/latest/meta-data"},
        ],
        "manifest": "file,gender\na.png,x\n",
    }
    answer = service.client.post("/v1/batches", json=body)
    assert told(answer) == [
        ("a.png", "accepted", None),
        ("b.png", "rejected", "html"),
        ("none.png", "rejected", "http_status"),
        ("large.png", "rejected", "too_large"),
        ("meta-data", "rejected", "address_refused"),
    ]
    first = service.client.get(answer.headers["location"] + "/items").json()["items"][0]
    assert first["attributes"] == {"file": "a.png", "gender": "x", "subject_id": "s1"}
    assert service.client.get(first["picture"]).content == png(1)


def test_the_description_shows_three_kinds_of_body(service: Service) -> None:
    drawn = service.client.get("/openapi.json").json()
    kinds = drawn["paths"]["/v1/batches"]["post"]["requestBody"]["content"]
    assert list(kinds) == ["multipart/form-data", "application/zip", "application/json"]
    assert "$ref" not in str(kinds)


ONCE = "b_" + "1" * 24


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are repeats of one whose process died before it answered."""
    monkeypatch.setattr(batch_intake, "once_id", lambda _request, _prefix: ONCE)


@pytest.mark.usefixtures("repeated")
def test_a_request_repeated_after_its_process_died_half_way_begins_anew(service: Service) -> None:
    batches = Batches(service.context.database)
    batches.create("k", service.context.clock(), None, ONCE)
    key = service.context.blobs.put(b"half")
    batches.add_item({"batch_id": ONCE, "seq": 1, "name": "half", "blob": key, "state": "accepted"})
    assert told(send(service.client, {"a.png": png(1)})) == [("a.png", "accepted", None)]
    assert not service.context.blobs.exists(key)


@pytest.mark.usefixtures("repeated")
def test_a_request_repeated_after_its_process_died_before_the_answer_makes_nothing_twice(
    service: Service,
) -> None:
    first = send(service.client, {"a.png": png(1)})
    again = send(service.client, {"a.png": png(1)})
    assert (first.json()["batch_id"], again.json()) == (ONCE, first.json())
    assert len(service.client.get("/v1/batches").json()["items"]) == 1
