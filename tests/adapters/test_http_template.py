"""An API described in the plan: what goes up, what comes down, and every mistake told beforehand."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
import pytest
from pydantic import SecretStr

from adapters.codec import write_png
from adapters.guard import read_settings
from adapters.http_template import EXAMPLE, HttpTemplate, build
from adapters.template.settings import TemplateSettings
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer, start

MASK = np.zeros((48, 32), np.uint8)
MASK[20:30, 5:15] = 255
MASK[19, 5:15] = 100
PICTURE = write_png(np.random.default_rng(9).integers(0, 256, (48, 32, 3), dtype=np.uint8))
EDITS = write_png(MASK)
JSON_API: dict[str, Any] = {
    "path": "/v1/edit.json",
    "headers": {"X-Api-Key": "{key}", "X-Trace": "seed-{seed}"},
    "json_body": {
        "text": "{prompt}",
        "input": {"image": "{picture_base64}", "mask": "{mask_data_uri}"},
        "options": {"seed": "{seed}", "size": ["{width}", "{height}"], "keep": True},
    },
    "mask": "black_is_edit",
    "result_base64": "$.output[0].image_b64",
    "refusals": [
        {"jsonpath": "$.verdict", "equals": "filtered", "stage": "output"},
        {"status": 422, "code": "$.error.code", "text": "$.error.message", "stage": "input"},
    ],
    "error_text": "$.error.message",
    "request_id": "$.id",
    "model_path": "$.engine",
}
JOBS_API: dict[str, Any] = {
    "path": "/v1/jobs",
    "headers": {"Authorization": "Bearer {key}"},
    "json_body": {
        "image": "{picture_data_uri}",
        "mask": "{mask_data_uri}",
        "prompt": "In English: {prompt}",
    },
    "mask": "alpha_zero_is_edit",
    "poll": {
        "url": "$.job.link",
        "id": "$.job.id",
        "state": "$.job.state",
        "running": ["waiting", "working"],
        "done": ["finished"],
        "failed": ["failed", "stopped"],
        "every_s": 0.5,
        "cancel": "/v1/jobs/{id}/stop",
    },
    "result_url": "$.files[0].href",
    "refusals": [
        {"jsonpath": "$.job.state", "equals": "refused", "text": "$.error.message",
         "code": "face", "stage": "policy"},
    ],
    "error_text": "$.error.message",
    "request_id": "$.job.id",
}  # fmt: skip


def ask(**changes: Any) -> EditRequest:
    base: dict[str, Any] = {
        "task": Task.INPAINT_FACE,
        "picture": PICTURE,
        "mask": Mask(MASK, MaskKind.FACE),
        "width": 32,
        "height": 48,
        "seed": 2**31 + 5,
        "prompt": "a plain wall",
    }
    return EditRequest(item_id="one", **(base | changes))


class Bench:
    """The tool, its pretended server, and the waits it asked for."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.waits: list[float] = []
        self._open: list[HttpTemplate] = []

    def tool(self, template: Any = EXAMPLE, **changes: Any) -> HttpTemplate:
        given = {**template, "base_url": self.server.url, "key": SecretStr(self.server.key)}
        settings = read_settings(TemplateSettings, given | changes, "http_template")
        self._open.append(HttpTemplate(settings, self.waits.append))
        return self._open[-1]

    def edit(self, behaviour: str, template: Any = EXAMPLE, **changes: Any) -> Any:
        self.server.next(behaviour)
        return self.tool(template, **changes).edit(ask())

    def paths(self) -> list[str]:
        return [f"{s.method} {s.path}" for s in self.server.seen]

    def close(self) -> None:
        for tool in self._open:
            tool.close()


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with start("template") as running:
        yield running


@pytest.fixture
def bench(server: FakeServer) -> Iterator[Bench]:
    server.seen.clear()
    made = Bench(server)
    yield made
    made.close()


def pixels(data: bytes) -> Any:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


# The three shapes of API


@pytest.mark.parametrize("template", [EXAMPLE, JSON_API, JOBS_API], ids=["form", "json", "jobs"])
def test_the_picture_goes_up_and_the_result_comes_down_byte_for_byte(
    bench: Bench, template: Any
) -> None:
    outcome = bench.edit("ok", template)
    assert isinstance(outcome, Edited), outcome
    assert outcome.picture == bench.server.desk.edit(PICTURE, EDITS)
    seen = bench.server.seen[0]
    body = seen.json()
    if template is EXAMPLE:
        up = seen.files["picture"]
    elif template is JSON_API:
        up = base64.b64decode(body["input"]["image"], validate=True)
    else:
        up = base64.b64decode(body["image"].removeprefix("data:image/png;base64,"), validate=True)
    assert hashlib.sha256(up).digest() == hashlib.sha256(PICTURE).digest()


def test_the_golden_mask_that_is_white_where_the_tool_edits(bench: Bench) -> None:
    bench.edit("ok")
    seen = bench.server.seen[0]
    assert np.array_equal(pixels(seen.files["mask"]), MASK)
    assert seen.file_types["mask"] == "image/png"


def test_the_golden_mask_that_is_black_where_the_tool_edits(bench: Bench) -> None:
    bench.edit("ok", JSON_API)
    uri = bench.server.seen[0].json()["input"]["mask"]
    assert np.array_equal(pixels(base64.b64decode(uri.partition(",")[2])), 255 - MASK)


def test_the_golden_mask_that_is_transparent_where_the_tool_edits(bench: Bench) -> None:
    bench.edit("ok", JOBS_API)
    sent = pixels(base64.b64decode(bench.server.seen[0].json()["mask"].partition(",")[2]))
    assert sent.shape == (48, 32, 4)
    assert np.array_equal(sent[..., 3], 255 - MASK)


def test_numbers_that_stand_alone_are_numbers_and_the_rest_stays(bench: Bench) -> None:
    bench.edit("ok", JSON_API)
    seen = bench.server.seen[0]
    assert seen.json()["options"] == {"seed": 5, "size": [32, 48], "keep": True}
    assert seen.headers["x-trace"] == "seed-5"
    assert seen.headers["x-api-key"] == bench.server.key


def test_text_parts_of_a_form_are_no_files(bench: Bench) -> None:
    bench.edit("ok")
    seen = bench.server.seen[0]
    assert seen.fields == {"prompt": "a plain wall", "seed": "5", "strength": "0.8"}
    assert set(seen.files) == {"picture", "mask"}


def test_placeholders_inside_a_prompt_stay_text(bench: Bench) -> None:
    sly = 'say {key} {seed} {picture_base64} {{prompt}} {unknown} " \\ \n ü'
    for template in (EXAMPLE, JSON_API):
        outcome = bench.tool(template).edit(ask(prompt=sly))
        assert isinstance(outcome, Edited)
        seen = bench.server.seen[-1]
        told = seen.fields.get("prompt") or seen.json()["text"]
        assert told.replace("\r\n", "\n") == sly
        assert bench.server.key not in told


def test_double_braces_write_a_placeholders_name_as_text(bench: Bench) -> None:
    template = copy.deepcopy(JSON_API)
    template["json_body"]["text"] = "{{prompt}} is: {prompt}"
    bench.edit("ok", template)
    assert bench.server.seen[0].json()["text"] == "{prompt} is: a plain wall"


def test_path_and_query_take_numbers(bench: Bench) -> None:
    outcome = bench.edit(
        "ok", EXAMPLE, path="/v1/edit", query={"seed": "{seed}", "size": "{width}x{height}"}
    )
    assert isinstance(outcome, Edited)
    assert bench.server.seen[0].query == {"seed": "5", "size": "32x48"}


def test_what_was_sent_is_recorded_without_pictures_and_key(bench: Bench) -> None:
    outcome = bench.edit("ok", JSON_API)
    assert outcome.meta["sent"] == {
        "text": "a plain wall",
        "input": {"image": "[picture_base64]", "mask": "[mask_data_uri]"},
        "options": {"seed": 5, "size": [32, 48], "keep": True},
    }
    assert outcome.meta["model"] == "mira-3.1"
    assert len(outcome.meta["request_id"]) == 16


def test_a_template_without_mask_does_the_tasks_that_need_none(bench: Bench) -> None:
    template = {**EXAMPLE, "multipart": {"picture": "{picture}"}}
    tool = bench.tool(template)
    assert tool.spec.tasks == (Task.RETOUCH, Task.RESTYLE, Task.ENHANCE)
    assert tool.spec.mask_support == "none"
    assert (tool.spec.takes_prompt, tool.spec.seedable) == (False, False)
    assert isinstance(tool.edit(ask(task=Task.RETOUCH, mask=None)), Edited)


def test_tasks_and_sizes_can_be_set(bench: Bench) -> None:
    spec = bench.tool(tasks=["inpaint_face"], multiple=8, min_side=64, max_side=1024).spec
    assert spec.tasks == (Task.INPAINT_FACE,)
    assert (spec.size.multiple, spec.size.min_side, spec.size.max_side) == (8, 64, 1024)
    assert bench.tool(sizes=[[512, 512]]).spec.size.sizes == ((512, 512),)


def test_a_body_without_picture_makes_a_tool_that_generates(bench: Bench) -> None:
    tool = bench.tool({**JSON_API, "json_body": {"text": "{prompt}"}})
    assert tool.spec.generates


def test_without_a_name_the_model_is_the_address(bench: Bench) -> None:
    assert bench.tool().model == "Mira 3"
    assert bench.tool(model="").model.startswith("HTTP API at 127.0.0.1:")


# Jobs


def test_a_job_is_followed_and_its_result_fetched_at_once_without_the_key(bench: Bench) -> None:
    outcome = bench.edit("ok", JOBS_API)
    assert isinstance(outcome, Edited)
    kinds = [path.split("/")[2] for path in bench.paths()]
    assert kinds == ["jobs", "jobs", "jobs", "files"]
    assert bench.waits == [0.5, 0.65]
    assert "authorization" in bench.server.seen[2].headers
    assert "authorization" not in bench.server.seen[3].headers


def test_a_result_can_be_fetched_with_the_key_where_the_api_wants_it(bench: Bench) -> None:
    bench.edit("ok", JOBS_API, result_with_key=True)
    assert "authorization" in bench.server.seen[3].headers


def test_a_job_can_be_asked_after_by_its_id(bench: Bench) -> None:
    poll = {**JOBS_API["poll"], "path": "/v1/jobs/{id}"}
    del poll["url"]
    assert isinstance(bench.edit("ok", JOBS_API, poll=poll), Edited)


def test_polls_that_fail_in_passing_do_not_give_up_a_paid_job(bench: Bench) -> None:
    assert isinstance(bench.edit("poll_trouble", JOBS_API), Edited)
    assert 2.0 in bench.waits
    assert bench.paths().count("POST /v1/jobs") == 1


def test_a_job_that_outlives_its_time_is_stopped(bench: Bench) -> None:
    outcome = bench.edit("stuck", JOBS_API, total_s=10)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the job was not done after 10 s"
    assert outcome.meta["maybe_billed"] is True
    assert bench.paths()[-1].endswith("/stop")
    assert sum(bench.waits) <= 10


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ("job_failed", "the job ended as failed: Worker lost"),
        ("expired", "the result's address has expired (HTTP 410)"),
        ("no_result", "names no address of a result"),
    ],
)
def test_a_job_that_ends_badly_says_how(bench: Bench, behaviour: str, told: str) -> None:
    outcome = bench.edit(behaviour, JOBS_API)
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert not outcome.retryable
    assert outcome.meta["maybe_billed"] is True


def test_a_state_that_the_template_does_not_know_is_named(bench: Bench) -> None:
    poll = {**JOBS_API["poll"], "running": ["waiting"]}
    outcome = bench.edit("ok", JOBS_API, poll=poll)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "unknown state of the job: working"


def test_without_a_list_of_running_states_every_other_word_means_running(bench: Bench) -> None:
    poll = {**JOBS_API["poll"], "running": []}
    assert isinstance(bench.edit("ok", JOBS_API, poll=poll), Edited)


def test_an_answer_that_names_no_job_is_a_failure(bench: Bench) -> None:
    poll = {**JOBS_API["poll"], "url": "$.nowhere"}
    outcome = bench.edit("ok", JOBS_API, poll=poll)
    assert isinstance(outcome, Failed)
    assert "names no job" in outcome.reason


# Refusals


@pytest.mark.parametrize(
    ("template", "behaviour", "expected"),
    [
        (EXAMPLE, "refuse", ("input", "blocked_face", "A face may not be edited")),
        (JSON_API, "refuse", ("input", "blocked_face", "A face may not be edited")),
        (JOBS_API, "refuse", ("policy", "face", "A face may not be edited")),
        (EXAMPLE, "filtered", ("output", "filtered", "")),
        (JSON_API, "filtered", ("output", "filtered", "")),
    ],
    ids=["status and code", "code by path", "state of a job", "header", "key of a 200"],
)
def test_every_form_of_refusal_is_a_refusal_also_behind_a_200_with_a_picture(
    bench: Bench, template: Any, behaviour: str, expected: tuple[str, str, str]
) -> None:
    outcome = bench.edit(behaviour, template)
    assert isinstance(outcome, Refused), outcome
    assert (outcome.stage, outcome.code, outcome.text) == expected
    assert outcome.meta["sent"]


@pytest.mark.parametrize(
    ("rule", "strikes"),
    [
        ({"status": 422}, True),
        ({"status": 400}, False),
        ({"jsonpath": "$.error.code"}, True),
        ({"jsonpath": "$.error.nothing"}, False),
        ({"jsonpath": "$.error.code", "equals": "blocked_face"}, True),
        ({"jsonpath": "$.error.code", "equals": "BLOCKED_FACE"}, False),
        ({"jsonpath": "$.error.code", "matches": "^BLOCKED"}, True),
        ({"jsonpath": "$.error.code", "matches": "^face"}, False),
        ({"status": 200, "jsonpath": "$.error.code"}, False),
        ({"header": "content-type", "matches": "json"}, True),
        ({"header": "x-nothing"}, False),
        ({"jsonpath": "$..code", "equals": 1}, False),
        ({"jsonpath": "$.error[?(@.x > 1)]"}, False),
    ],
    ids=str,
)
def test_a_rule_strikes_when_all_that_it_names_holds(
    bench: Bench, rule: dict[str, Any], strikes: bool
) -> None:
    outcome = bench.edit("blocked", JSON_API, refusals=[rule])
    assert isinstance(outcome, Refused if strikes else Failed)


def test_true_is_not_one_and_text_is_not_a_number() -> None:
    import httpx

    from adapters.over_http.wire import Reply
    from adapters.template.rules import RefusalRule

    body = {"blocked": True, "count": 1, "word": "1"}
    reply = Reply(200, httpx.Headers(), json.dumps(body).encode(), 0, None, "")
    struck = {
        (path, repr(value)): RefusalRule(jsonpath=path, equals=value).struck(reply, body)[0]
        for path in ("$.blocked", "$.count", "$.word")
        for value in (True, 1, 1.0, "1")
    }
    assert [key for key, hit in struck.items() if hit] == [
        ("$.blocked", "True"),
        ("$.count", "1"),
        ("$.count", "1.0"),
        ("$.word", "'1'"),
    ]


# Failures


def test_a_wait_named_in_the_body_is_kept(bench: Bench) -> None:
    outcome = bench.edit("busy")
    assert isinstance(outcome, Failed)
    assert (outcome.retryable, outcome.retry_after) == (True, 2.5)
    assert outcome.reason == "HTTP 429: Busy"


def test_no_credit_stops_the_run(bench: Bench) -> None:
    assert bench.edit("no_credit").meta["stop"] is True


@pytest.mark.parametrize("behaviour", ["html", "empty"])
@pytest.mark.parametrize("template", [EXAMPLE, JSON_API, JOBS_API], ids=["form", "json", "jobs"])
def test_an_answer_that_is_no_picture_fails_naming_what_it_is(
    bench: Bench, behaviour: str, template: Any
) -> None:
    outcome = bench.edit(behaviour, template)
    assert isinstance(outcome, Failed)
    assert ("text/html" if behaviour == "html" else "empty") in outcome.reason


def test_a_result_that_is_not_where_the_template_says_is_a_failure(bench: Bench) -> None:
    outcome = bench.edit("no_result", JSON_API)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the answer holds no picture"


def test_what_the_server_turns_away_is_told_in_its_own_words(bench: Bench) -> None:
    template = copy.deepcopy(JSON_API)
    template["json_body"]["options"]["seed"] = "number {seed}"
    outcome = bench.edit("ok", template)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "HTTP 400: text: a string; options.seed: a whole number"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"picture": None}, "no picture"),
        ({"mask": None}, "no mask"),
        ({"mask": Mask(np.zeros((48, 32), np.uint8), MaskKind.FACE)}, "the mask is empty"),
        ({"mask": Mask(np.ones((8, 8), np.uint8), MaskKind.FACE)}, "not of the picture's size"),
    ],
)
def test_what_cannot_be_asked_is_not_sent(bench: Bench, changes: dict[str, Any], told: str) -> None:
    outcome = bench.tool().edit(ask(**changes))
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert bench.server.seen == []


def test_neither_key_nor_face_is_in_any_outcome(bench: Bench) -> None:
    face = base64.b64encode(PICTURE).decode()
    for template in (EXAMPLE, JSON_API, JOBS_API):
        for behaviour in ("ok", "refuse", "500", "html", "expired", "job_failed"):
            outcome = bench.edit(behaviour, template)
            told = repr((getattr(outcome, "reason", ""), getattr(outcome, "text", "")))
            told += json.dumps(outcome.meta)
            assert bench.server.key not in told
            assert face[:60] not in told


# Mistakes in a template


def broken(**changes: Any) -> dict[str, Any]:
    given = {**EXAMPLE, "base_url": "https://api.example.com", "key": SecretStr("k" * 20)}
    return {name: value for name, value in (given | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"path": None}, "setting 'path' is missing"),
        ({"path": "https://api.example.com/x"}, "what follows base_url is needed"),
        ({"path": "//other.example.com/x"}, "what follows base_url is needed"),
        ({"path": "/v1/{prompt}"}, "path: no place for {prompt}"),
        ({"path": "/v1?key={key}"}, "{key} may stand in headers only"),
        ({"path": "/v1?x=1", "query": {"y": "2"}}, "path: its own ? and query"),
        ({"method": "GET"}, "setting 'method'"),
        ({"headers": {"bad name": "x"}}, "'bad name' is no name of a header"),
        ({"headers": {"X": "a\nb"}}, "'X' has a character that no header may have"),
        ({"headers": {"Content-Type": "x"}}, "'Content-Type' follows from the body"),
        ({"headers": {"X": "{prompt}"}}, "X: no place for {prompt}"),
        ({"headers": {}}, "a key is given, but {key} stands in none of them"),
        ({"key": None}, "{key} is used, but there is no key: name it with key_env"),
        ({"multipart": {}}, "give multipart or json_body, one of them"),
        ({"json_body": {"a": 1}}, "give multipart or json_body, one of them"),
        ({"multipart": {"p": "{pictre}"}}, "multipart: unknown placeholder {pictre}"),
        ({"multipart": {"p": "x{picture}"}}, "multipart: p: {picture} is a file and stands alone"),
        ({"multipart": {"p": "{key}"}}, "{key} may stand in headers only"),
        ({"multipart": None, "json_body": {"a": ["{picture}"]}}, "here it can be {picture_base64}"),
        ({"multipart": None, "json_body": {"a": "{mask}"}}, "here it can be {mask_base64}"),
        ({"multipart": None, "json_body": "{output}"}, "json_body: unknown placeholder {output}"),
        ({"query": {"q": "{prompt}"}}, "query: no place for {prompt}"),
        ({"result_base64": "data[0]"}, "one begins with $"),
        ({"result_base64": "$.data["}, "'$.data[' is no JSONPath"),
        ({"result_url": "$..["}, "is no JSONPath"),
        ({"result_url": "$.a", "result_base64": "$.b"}, "give result_base64 or result_url"),
        ({"request_id": "$ id"}, "is no JSONPath"),
        ({"refusals": [{}]}, "a rule needs a status, a jsonpath or a header"),
        ({"refusals": [{"status": 400, "equals": "x"}]}, "need a jsonpath or a header"),
        ({"refusals": [{"jsonpath": "$.a", "header": "b"}]}, "not at both"),
        ({"refusals": [{"jsonpath": "$.a", "equals": 1, "matches": "x"}]}, "not both"),
        ({"refusals": [{"jsonpath": "$.a", "matches": "("}]}, "no regular expression"),
        ({"refusals": [{"status": 99}]}, "refusals.0.status"),
        ({"refusals": [{"status": 400, "stage": "later"}]}, "refusals.0.stage"),
        ({"refusals": [{"status": 400, "code": "$.["}]}, "is no JSONPath"),
        ({"poll": {"state": "$.s", "done": ["x"]}}, "give url (a JSONPath) or path"),
        ({"poll": {"url": "$.u", "state": "", "done": ["x"]}}, "state: a JSONPath is needed"),
        ({"poll": {"url": "$.u", "state": "$.s", "done": []}}, "poll.done"),
        ({"poll": {"path": "/j/{id}", "state": "$.s", "done": ["x"]}}, "{id} is used, but id"),
        ({"poll": {"path": "/j/{job}", "state": "$.s", "done": ["x"]}}, "path: unknown placeholder {job}"),
        ({"poll": {"url": "$.u", "state": "$.s", "done": ["x"], "failed": ["x"]}}, "listed twice"),
        ({"multipart": {"p": "{picture}"}, "tasks": ["inpaint_face"]}, "needs {mask} somewhere"),
        ({"mask": "white"}, "setting 'mask'"),
        ({"tasks": ["repaint"]}, "setting 'tasks.0'"),
        ({"heders": {}}, "did you mean 'headers'"),
        ({"base_url": "api.example.com"}, "an http or https address is needed"),
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_in_a_template_is_one_clear_line_when_it_is_read(
    changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(LikenessError) as caught:
        build(broken(**changes))
    assert str(caught.value).startswith("tool 'http_template': ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "k" * 20 not in str(caught.value)


def test_a_template_without_a_key_is_fine_where_none_is_used() -> None:
    tool = build(broken(key=None, headers={"X-Plain": "yes"}))
    assert not tool.spec.key_needed
    tool.close()


def test_a_closed_tool_says_so(bench: Bench) -> None:
    tool = bench.tool()
    tool.close()
    assert tool.edit(ask()) == Failed("the tool was closed")
