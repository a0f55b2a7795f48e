"""The client against a server that is scripted: what it sends, what it repeats, what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from python_multipart.multipart import parse_options_header

from domain.errors import LikenessError
from service import settings
from service.client import LikenessClient, PairOptions, Patience, Picture, ServerProblem
from service.client_events import events_in
from service.client_upload import Form, Upload, files_of
from service.client_wire import Unreachable, line_of

TOKEN = "lk_0123456789ab_a-secret-that-nobody-may-see"
RUN = "r_" + "0" * 24
BATCH = "b_" + "0" * 24
Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Script(httpx.BaseTransport):
    """Answers in the order given, and remembers what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.seen: list[tuple[httpx.Request, bytes]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append((request, request.read()))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    @property
    def asked(self) -> list[str]:
        return [f"{r.method} {r.url.raw_path.decode()}" for r, _ in self.seen]


def client(*answers: Answer, waits: list[float] | None = None) -> tuple[LikenessClient, Script]:
    script = Script(*answers)
    slept = [] if waits is None else waits
    patience = Patience(sleep=slept.append, chance=lambda: 0.0)
    return LikenessClient("http://127.0.0.1:1", TOKEN, patience=patience, transport=script), script


def problem(
    status: int, slug: str, detail: str, headers: Any = None, **more: Any
) -> httpx.Response:
    body = {"type": f"/problems/{slug}", "title": "x", "status": status, "detail": detail, **more}
    head = {"Content-Type": "application/problem+json", **(headers or {})}
    return httpx.Response(status, content=json.dumps(body), headers=head)


def a_run(state: str = "done", **more: Any) -> dict[str, Any]:
    known = {
        "run_id": RUN, "batch_id": BATCH, "name": "spring", "state": state, "created": "now",
        "started": None, "finished": None, "error": None, "items": {}, "outcomes": {},
        "progress": {}, "eta_s": None, "something_new": 1,
    }  # fmt: skip
    return known | more


def ok(said: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=said)


def stream(*events: tuple[int, str, dict[str, Any]], cut: bool = False) -> httpx.Response:
    def content() -> Iterator[bytes]:
        yield b"retry: 2000\n\n: nothing new\n\n"
        for number, kind, data in events:
            yield f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()
        if cut:
            raise httpx.ReadError("connection reset")

    return httpx.Response(200, content=content(), headers={"Content-Type": "text/event-stream"})


class Watch:
    def __init__(self) -> None:
        self.told: list[str] = []

    def stage(self, name: str, total: int) -> None:
        self.told.append(f"{name} of {total}")

    def step(self, name: str) -> None:
        self.told.append(name)

    def say(self, text: str) -> None:
        self.told.append(f"says {text}")


# -- what is repeated ----------------------------------------------------------------------------


def test_a_reading_is_tried_again_when_the_connection_breaks() -> None:
    waits: list[float] = []
    there, script = client(httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), ok(a_run()), waits=waits)  # fmt: skip
    assert there.run(RUN).state == "done"
    assert waits == [0.5, 1.0] and len(script.seen) == 3


def test_a_server_that_asks_for_time_gets_the_time_it_asks_for() -> None:
    waits: list[float] = []
    busy = problem(503, "busy", "too many requests", {"Retry-After": "7"})
    there, _ = client(busy, ok(a_run()), waits=waits)
    assert there.run(RUN).run_id == RUN
    assert waits == [7.0]


def test_a_time_beyond_all_patience_is_not_waited_for() -> None:
    waits: list[float] = []
    there, script = client(problem(503, "busy", "closed", {"Retry-After": "86400"}), waits=waits)
    with pytest.raises(ServerProblem, match=r"^closed$"):
        there.run(RUN)
    assert waits == [] and len(script.seen) == 1


def test_what_was_refused_is_not_asked_for_again() -> None:
    there, script = client(problem(404, "not-found", "there is no such run"))
    with pytest.raises(ServerProblem) as caught:
        there.run(RUN)
    assert (caught.value.status, caught.value.slug) == (404, "not-found")
    assert len(script.seen) == 1


def test_a_post_is_repeated_under_the_same_idempotency_key_and_with_the_same_body() -> None:
    there, script = client(
        httpx.ReadError("cut"),
        problem(409, "repeat-in-flight", "still at it", {"Retry-After": "1"}),
        ok(a_run("queued"), 202),
    )
    assert there.start_run(BATCH, preset="self-test").state == "queued"
    keys = {r.headers["Idempotency-Key"] for r, _ in script.seen}
    assert len(keys) == 1 and len({body for _, body in script.seen}) == 1


def test_two_requests_never_share_a_key() -> None:
    there, script = client(ok(a_run("queued"), 202), ok(a_run("queued"), 202))
    for _ in range(2):
        there.start_run(BATCH, preset="self-test")
    first, second = (r.headers["Idempotency-Key"] for r, _ in script.seen)
    assert first != second


def test_a_conflict_of_another_kind_is_an_answer() -> None:
    there, script = client(problem(409, "batch-not-ready", "it is receiving"))
    with pytest.raises(ServerProblem, match="it is receiving"):
        there.start_run(BATCH, preset="self-test")
    assert len(script.seen) == 1


def test_patience_ends_with_one_line_that_names_the_server() -> None:
    waits: list[float] = []
    there, _ = client(*[httpx.ConnectError("[Errno 111] Connection refused")] * 99, waits=waits)
    with pytest.raises(Unreachable, match=r"^http://127.0.0.1:1: the server cannot be reached: .*refused$"):  # fmt: skip
        there.run(RUN)
    assert 100 < sum(waits) <= 120


def test_a_body_that_is_sent_again_is_read_from_disk_again(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(name.encode() * 100_000)
    batch = {
        "batch_id": BATCH, "name": "", "state": "ready", "created": "now", "expires": None,
        "accepted": 2, "rejected": 0, "skipped": 0, "without_row": 0, "items": [],
    }  # fmt: skip
    there, script = client(httpx.WriteError("broken pipe"), ok(batch, 201))
    assert there.submit_batch(tmp_path).accepted == 2
    (_, first), (_, second) = script.seen
    assert first == second and len(first) == int(script.seen[0][0].headers["Content-Length"])


# -- what is said --------------------------------------------------------------------------------


def test_the_key_is_in_no_error_whoever_repeats_it() -> None:
    there, _ = client(
        problem(400, "rejected", f"what is\n{TOKEN}?"), httpx.Response(500, text=TOKEN)
    )
    for _ in range(2):
        with pytest.raises(LikenessError) as caught:
            there.run(RUN)
        assert TOKEN not in str(caught.value) and "\n" not in str(caught.value)
    assert TOKEN not in repr(there)


def test_the_mistakes_of_a_plan_are_told_with_their_lines() -> None:
    two = [{"pointer": "#/plan", "line": 3, "detail": "unknown tool 'x'"}, {"pointer": "#/plan", "detail": "no groups"}]  # fmt: skip
    said = line_of({"detail": "2 mistakes, the first: unknown tool 'x'", "errors": two})
    assert (
        said == "2 mistakes, the first: unknown tool 'x': plan.yaml:3: unknown tool 'x'; no groups"
    )
    assert (
        line_of({"detail": "unknown tool 'x'", "errors": two[:1]})
        == "plan.yaml:3: unknown tool 'x'"
    )


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>hello</html>"),
        httpx.Response(301, headers={"Location": "https://elsewhere.example"}),
        httpx.Response(404, text="nothing here"),
        httpx.Response(400, content=b'{"detail": "of a stranger"}', headers={"Content-Type": "application/json"}),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_of_this_service_is_called_so(answer: httpx.Response) -> None:
    there, script = client(answer)
    with pytest.raises(LikenessError, match="is this a Likeness server"):
        there.run(RUN)
    assert len(script.seen) == 1


def test_an_answer_with_a_member_missing_is_told_as_another_version() -> None:
    there, _ = client(ok({"run_id": RUN}))
    with pytest.raises(LikenessError, match="not a Run as this version knows it"):
        there.run(RUN)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://host", "https://likeness.example.com"),
        ("host:8600", "https://likeness.example.com"),
        ("https://me:secret@host.example", "LIKENESS_TOKEN"),
        ("http://likeness.example.com", "over https"),
        ("http://93.184.216.34", "over https"),
        ("https://host.example/?key=1", "https://likeness.example.com"),
    ],
)
def test_an_address_that_would_give_the_key_away_is_refused(url: str, why: str) -> None:
    with pytest.raises(LikenessError, match=why) as caught:
        LikenessClient(url, TOKEN)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:8600/", "http://10.0.0.7", "http://service:8600", "http://[::1]:1"]
)
def test_a_key_may_go_over_plain_http_within_the_network(url: str) -> None:
    with LikenessClient(url, TOKEN) as there:
        assert there.url == url.rstrip("/")


def test_the_key_comes_from_the_environment_or_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LIKENESS_TOKEN", "LIKENESS_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert settings.token() is None
    (tmp_path / "token").write_text(TOKEN + "\n")
    monkeypatch.setenv("LIKENESS_TOKEN_FILE", str(tmp_path / "token"))
    assert settings.token() == TOKEN
    monkeypatch.setenv("LIKENESS_TOKEN", "lk_other")
    assert settings.token() == "lk_other"
    monkeypatch.delenv("LIKENESS_TOKEN")
    monkeypatch.setenv("LIKENESS_TOKEN_FILE", str(tmp_path / "absent"))
    with pytest.raises(LikenessError, match="LIKENESS_TOKEN_FILE cannot be read: No such file"):
        settings.token()


# -- what is sent --------------------------------------------------------------------------------


def test_a_folder_with_a_manifest_sends_what_the_manifest_names_and_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "images").mkdir()
    for name in ("images/a.jpg", "images/private.jpg"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "manifest.csv").write_text("file,subject_id\nimages/a.jpg,s1\nimages/gone.jpg,s2\n")
    assert [u.name for u in files_of(tmp_path)] == ["images/a.jpg"]


def test_a_folder_without_a_manifest_sends_all_but_hidden_files(tmp_path: Path) -> None:
    for name in ("b.jpg", "a.png", ".secret", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert [u.name for u in files_of(tmp_path)] == ["a.png", "b.jpg"]


@pytest.mark.parametrize("name", ['q"uote.jpg', "back\\slash.jpg", "line\nend.jpg", "żółć.jpg"])
def test_a_name_arrives_as_it_is_and_never_ends_its_header(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(b"picture")
    form = Form({"name": "batch"}, [Upload("files", name, tmp_path / "x")])
    body = b"".join(form())
    line = next(row for row in body.split(b"\r\n") if b"filename" in row)
    _, options = parse_options_header(line.partition(b": ")[2])
    assert options[b"filename"].decode() == name.replace("\n", " ")
    assert len(body) == int(form.headers["Content-Length"])


def test_a_file_that_changes_while_it_is_sent_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"long enough")
    form = Form({}, [Upload("files", "x", path)])
    path.write_bytes(b"short")
    with pytest.raises(LikenessError, match="x: was changed while it was sent"):
        list(form())


def test_addresses_go_as_json_with_their_attributes() -> None:
    there, script = client(problem(422, "no-pictures", "none"))
    with pytest.raises(LikenessError):
        there.submit_batch([Picture("https://p.example/a.jpg", attributes={"gender": "x"})])
    assert json.loads(script.seen[0][1])["urls"] == [
        {"url": "https://p.example/a.jpg", "name": "", "attributes": {"gender": "x"}}
    ]


def test_a_pair_is_asked_about_again_without_harm(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x")
    there, script = client(httpx.ReadError("cut"), ok({"health": {"decision": "pass"}}))
    assert there.gate(tmp_path / "a", tmp_path / "b", PairOptions(min_score=70.5))["health"]
    assert b'name="min_score"\r\n\r\n70.5' in script.seen[1][1]


# -- what is read --------------------------------------------------------------------------------


def test_pages_are_read_to_the_last() -> None:
    there, script = client(
        ok({"items": [{"value": 1}, {"value": None}], "next": "c/1"}),
        ok({"items": [], "next": None}),
    )
    assert [row["value"] for row in there.measurements(RUN, metric="flrr")] == [1, None]
    assert script.asked[1].endswith("?metric=flrr&limit=500&cursor=c%2F1")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def cut() -> Iterator[bytes]:
        yield b"half of it"
        raise httpx.ReadError("cut")

    there, _ = client(*[httpx.Response(200, content=cut()) for _ in range(3)])
    with pytest.raises(LikenessError, match=r"the connection breaks while report\.html is fetched"):
        there.report(RUN, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_cut_off_is_fetched_again(tmp_path: Path) -> None:
    def cut() -> Iterator[bytes]:
        yield b"half"
        raise httpx.ReadError("cut")

    there, script = client(
        httpx.Response(200, content=cut()), httpx.Response(200, text="item_id\n")
    )
    assert there.save_measurements(RUN, tmp_path / "m.csv").read_text() == "item_id\n"
    assert [r.headers["Accept"] for r, _ in script.seen] == ["text/csv", "text/csv"]


@pytest.mark.parametrize("name", ["report.pdf", "report"])
def test_a_form_that_there_is_none_of_is_told_before_anything_is_asked(
    tmp_path: Path, name: str
) -> None:
    there, script = client()
    with pytest.raises(LikenessError, match=r"must end in \.html or \.json"):
        there.report(RUN, tmp_path / name)
    assert script.seen == []


# -- following a run -----------------------------------------------------------------------------


def test_a_watcher_gets_every_step_once_though_the_stream_breaks() -> None:
    first = stream(
        (1, "queued", {}),
        (2, "progress", {"measured": {"done": 2, "total": 4}, "at": "now"}),
        cut=True,
    )
    rest = stream(
        (3, "note", {"text": "slow tool"}),
        (4, "progress", {"measured": {"done": 4, "total": 4}}),
        (5, "done", {}),
    )
    there, script = client(first, ok(a_run("running")), rest, ok(a_run()))
    watch = Watch()
    assert there.wait(RUN, watch).over
    assert watch.told == ["measured of 4", *["measured"] * 2, "says slow tool", *["measured"] * 2]
    assert script.seen[2][0].headers["Last-Event-ID"] == "2"


def test_where_there_is_no_stream_the_run_is_asked_after() -> None:
    waits: list[float] = []
    no_stream = [problem(429, "too-many", "no room", {"Retry-After": "999"}) for _ in range(3)]
    half, whole = ({"measured": {"done": n, "total": 2}} for n in (1, 2))
    there, script = client(
        no_stream[0], ok(a_run("running", progress=half)),
        no_stream[1], ok(a_run("running", progress=half)),
        no_stream[2], ok(a_run("running", progress=half)),
        ok(a_run("running", progress=half)), ok(a_run("done", progress=whole)), waits=waits,
    )  # fmt: skip
    watch = Watch()
    assert there.wait(RUN, watch).state == "done"
    assert watch.told == ["measured of 2", "measured", "measured"]
    assert [a.endswith("/events") for a in script.asked].count(True) == 3
    assert set(waits) == {2.0}


def test_an_end_that_a_resumed_run_has_behind_it_is_not_taken_for_its_end() -> None:
    told = stream((1, "cancelled", {}))
    rest = stream((2, "running", {}), (3, "done", {}))
    there, _ = client(told, ok(a_run("running")), rest, ok(a_run("done")))
    assert there.wait(RUN).state == "done"


def test_a_run_that_is_not_there_is_told_at_once() -> None:
    there, _ = client(problem(404, "not-found", "there is no such run"))
    with pytest.raises(ServerProblem, match="there is no such run"):
        there.wait(RUN)


def test_a_worker_that_took_a_run_up_again_begins_its_stage_anew() -> None:
    from service.client_events import Told

    watch = Watch()
    told = Told(watch)
    for done, total in ((1, 3), (1, 3), (0, 2), (2, 2)):
        told.counts({"edited": {"done": done, "total": total}, "run_id": RUN})
    assert watch.told == ["edited of 3", "edited", "edited of 2", "edited", "edited"]


def test_a_stream_is_read_as_its_standard_says() -> None:
    lines = ["retry: 1", "", ": comment", "", "id: 7", "event: note", 'data: {"a":', "data: 1}", "",
             "id: x", "data: {}", "", "id: 9", "data: not json", "", "id: 8", "data: {}"]  # fmt: skip
    assert [(e.id, e.kind, e.data) for e in events_in(lines)] == [(7, "note", {"a": 1})]
