"""Replicate: predictions created, followed, refused in free words, fetched and cleaned up."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from pydantic import SecretStr

from adapters.codec import write_png
from adapters.guard import read_settings
from adapters.hosted.replicate_outcome import Wording, addresses
from adapters.hosted.replicate_settings import ReplicateSettings
from adapters.replicate import EXAMPLE, Replicate, build
from domain.edits import Edited, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer, start
from service.fake_servers.replicate import VERSION

MASK = np.zeros((48, 32), np.uint8)
MASK[20:30, 5:15] = 255
MASK[19, 5:15] = 128


def noise(height: int = 48, width: int = 32) -> bytes:
    return write_png(np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8))


PICTURE = noise()


def ask(task: Task = Task.INPAINT_FACE, **changes: Any) -> EditRequest:
    base: dict[str, Any] = {"width": 32, "height": 48, "seed": 2**31 + 5, "prompt": "a plain wall"}
    mask = Mask(MASK, MaskKind.FACE)
    return EditRequest("one", task, **({"picture": PICTURE, "mask": mask} | base | changes))


class Bench:
    """The tool, its pretended server, and the waits it asked for."""

    def __init__(self, server: FakeServer) -> None:
        self.server, self.waits, self._open = server, [], []

    def tool(self, **changes: Any) -> Replicate:
        given = {**EXAMPLE, "base_url": self.server.url, "key": SecretStr(self.server.key)}
        settings = read_settings(ReplicateSettings, given | changes, "replicate")
        self._open.append(Replicate(settings, self.waits.append))
        return self._open[-1]

    def edit(self, behaviour: str, request: EditRequest | None = None, **changes: Any) -> Any:
        self.server.next(behaviour)
        return self.tool(**changes).edit(request or ask())

    def sent(self) -> dict[str, Any]:
        created = [s for s in self.server.seen if s.path.endswith("/predictions")][-1]
        body: dict[str, Any] = created.json()
        return body

    def paths(self) -> list[str]:
        return [f"{s.method} {s.path}" for s in self.server.seen]

    def close(self) -> None:
        for tool in self._open:
            tool.close()


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with start("replicate") as running:
        yield running


@pytest.fixture
def bench(server: FakeServer) -> Iterator[Bench]:
    server.seen.clear()
    made = Bench(server)
    yield made
    made.close()


def from_uri(text: str) -> bytes:
    return base64.b64decode(text.partition("base64,")[2])


# What is sent


def test_the_picture_goes_up_and_the_result_comes_down_byte_for_byte(bench: Bench) -> None:
    outcome = bench.edit("ok")
    assert isinstance(outcome, Edited)
    up = from_uri(bench.sent()["input"]["image"])
    assert hashlib.sha256(up).digest() == hashlib.sha256(PICTURE).digest()
    white = write_png(MASK)
    assert outcome.picture == bench.server.desk.edit(PICTURE, white)


def test_the_golden_mask_is_one_grey_channel_that_is_white_where_the_model_edits(
    bench: Bench,
) -> None:
    bench.edit("ok")
    sent = from_uri(bench.sent()["input"]["mask"])
    pixels = cv2.imdecode(np.frombuffer(sent, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, MASK)


@pytest.mark.parametrize(
    ("form", "expected"),
    [("black_is_edit", 255 - MASK), ("alpha_zero_is_edit", None)],
)
def test_a_model_that_reads_masks_otherwise_gets_them_otherwise(
    bench: Bench, form: str, expected: Any
) -> None:
    bench.tool(mask=form).edit(ask())
    sent = from_uri(bench.sent()["input"]["mask"])
    pixels = cv2.imdecode(np.frombuffer(sent, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    if expected is None:
        assert np.array_equal(pixels[..., 3], 255 - MASK)
    else:
        assert np.array_equal(pixels, expected)


def test_the_settings_say_which_input_takes_what(bench: Bench) -> None:
    tool = bench.tool(
        picture_field="image_input[]",
        mask_field="",
        width_field="width",
        height_field="height",
        inputs={"steps": 30, "guidance": 2.5},
    )
    outcome = tool.edit(ask(Task.RETOUCH, mask=None))
    assert isinstance(outcome, Edited)
    given = bench.sent()["input"]
    assert [from_uri(one) for one in given.pop("image_input")] == [PICTURE]
    assert given == {"prompt": "a plain wall", "seed": 5, "width": 32, "height": 48,
                     "steps": 30, "guidance": 2.5}  # fmt: skip
    assert outcome.meta["sent"] == {**given, "image_input": "in the request"}
    assert (tool.spec.mask_support, tool.spec.tasks[0]) == ("none", Task.RETOUCH)


def test_inputs_that_the_model_has_not_are_left_out(bench: Bench) -> None:
    tool = bench.tool(prompt_field="", seed_field="", inputs={})
    assert isinstance(tool.edit(ask()), Edited)
    assert set(bench.sent()["input"]) == {"image", "mask"}
    assert not tool.spec.takes_prompt
    assert not tool.spec.seedable


def test_without_a_prompt_the_tasks_own_words_are_sent_and_recorded(bench: Bench) -> None:
    outcome = bench.edit("ok", ask(Task.INPAINT_BACKGROUND, prompt=""))
    assert "grey studio wall" in outcome.meta["sent"]["prompt"]
    assert bench.sent()["input"]["prompt"] == outcome.meta["sent"]["prompt"]


def test_a_version_goes_to_predictions_and_a_name_to_its_model(bench: Bench) -> None:
    bench.edit("ok")
    bench.edit("ok", model=f"someone/inpainter:{VERSION}")
    bench.edit("ok", model="me/mine", deployment=True)
    posts = [p for p in bench.paths() if p.startswith("POST")]
    assert posts == [
        "POST /v1/models/example/inpainter/predictions",
        "POST /v1/predictions",
        "POST /v1/deployments/me/mine/predictions",
    ]
    versions = [s.json().get("version") for s in bench.server.seen if s.method == "POST"]
    assert versions == [None, VERSION, None]


def test_a_picture_over_256_kb_goes_up_as_a_file_which_is_deleted_again(bench: Bench) -> None:
    large = noise(400, 400)
    assert len(large) > 256 * 1024
    mask = Mask(np.full((400, 400), 255, np.uint8), MaskKind.FACE)
    outcome = bench.edit("ok", ask(picture=large, mask=mask, width=400, height=400))
    assert isinstance(outcome, Edited)
    assert outcome.meta["sent"]["image"] == "as a file"
    upload = bench.server.seen[0]
    assert (upload.path, upload.files["content"]) == ("/v1/files", large)
    assert upload.file_types["content"] == "image/png"
    assert bench.paths()[-1].startswith("DELETE /v1/files/")


@pytest.mark.parametrize("behaviour", ["flagged", "no_credit", "crash", "500"])
def test_an_uploaded_face_is_deleted_however_the_edit_ends(bench: Bench, behaviour: str) -> None:
    bench.edit(behaviour, inline_kb=0)
    deletions = [p for p in bench.paths() if p.startswith("DELETE")]
    assert len(deletions) == 2  # picture and mask


def test_the_deadline_is_told_beforehand_and_the_first_answer_held_open(bench: Bench) -> None:
    bench.edit("ok", total_s=90, wait_s=20)
    headers = bench.server.seen[0].headers
    assert (headers["cancel-after"], headers["prefer"]) == ("90s", "wait=20")
    bench.edit("ok", wait_s=0)
    assert "prefer" not in bench.server.seen[-1].headers


# Following


def test_a_prediction_is_polled_until_it_has_ended(bench: Bench) -> None:
    outcome = bench.edit("ok", wait_s=0)
    assert isinstance(outcome, Edited)
    assert [p for p in bench.paths() if "predictions/" in p and p.startswith("GET")]
    assert bench.waits[:1] == [0.05]


def test_result_urls_die_so_the_poll_that_sees_succeeded_is_followed_by_the_fetch(
    bench: Bench,
) -> None:
    bench.edit("ok", wait_s=0)
    last_two = bench.paths()[-2:]
    assert last_two[0].startswith("GET /v1/predictions/")
    assert last_two[1].startswith("GET /outputs/")


def test_an_expired_result_is_a_clear_failure_that_may_be_billed(bench: Bench) -> None:
    outcome = bench.edit("expired")
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the result's address has expired (HTTP 404)"
    assert not outcome.retryable
    assert outcome.meta["maybe_billed"] is True
    assert outcome.meta["request_id"]
    assert outcome.meta["sent"]["seed"] == 5


def test_polls_that_fail_in_passing_do_not_give_up_a_paid_job(bench: Bench) -> None:
    outcome = bench.edit("poll_trouble")
    assert isinstance(outcome, Edited)
    assert 2.0 in bench.waits  # the 429 of a poll named it
    posts = [p for p in bench.paths() if p.startswith("POST")]
    assert len(posts) == 1


def test_a_prediction_that_outlives_its_time_is_cancelled_so_that_it_costs_no_more(
    bench: Bench,
) -> None:
    outcome = bench.edit("stuck", total_s=30)
    assert isinstance(outcome, Failed)
    assert "not finished after 30 s and was cancelled" in outcome.reason
    assert outcome.meta["maybe_billed"] is True
    assert bench.paths()[-1].endswith("/cancel")
    assert sum(bench.waits) <= 30


def test_version_model_id_and_work_time_are_kept(bench: Bench) -> None:
    outcome = bench.edit("ok")
    assert outcome.meta["model"] == f"Replicate example/inpainter:{VERSION}"
    assert len(outcome.meta["request_id"]) == 26
    assert outcome.meta["returned"]["metrics"]["predict_time"] == 1.25
    assert outcome.meta["http_status"] == 201


# Outputs


@pytest.mark.parametrize("behaviour", ["ok", "list", "object", "data_uri"])
def test_an_output_may_be_a_string_a_list_an_object_or_a_data_uri(
    bench: Bench, behaviour: str
) -> None:
    outcome = bench.edit(behaviour)
    assert isinstance(outcome, Edited), outcome
    assert outcome.picture == bench.server.desk.edit(PICTURE, write_png(MASK))
    several = behaviour in ("list", "object")
    assert ("the first of 2 pictures" in outcome.meta.get("note", "")) is several


def test_a_key_picks_the_picture_of_an_object() -> None:
    output = {"seed": 1, "mask": "https://a/m.png", "image": ["https://a/x.png"], "text": "no"}
    assert addresses(output) == ["https://a/m.png", "https://a/x.png"]
    assert addresses(output, "image") == ["https://a/x.png"]
    assert addresses(output, "nothing") == []
    assert addresses(None) == addresses(7) == addresses("a sentence") == []


def test_a_result_on_the_tools_own_host_is_fetched_with_the_key_and_elsewhere_without(
    bench: Bench,
) -> None:
    bench.edit("ok")
    assert bench.server.seen[-1].headers["authorization"] == f"Bearer {bench.server.key}"
    tool, seen = bench.tool(), list[httpx.Request]()

    def delivery(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(PICTURE))

    tool._wire._others.close()
    tool._wire._others = httpx.Client(transport=httpx.MockTransport(delivery))
    tool._wire.fetch("https://replicate.delivery/pbxt/x/out-0.png", with_key=True)
    assert "authorization" not in seen[0].headers


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ("redirect", "redirects are not followed"),
        ("web_page", "text/html, no picture"),
        ("inside", "the tool named an address that is not fetched"),
        ("text", "the output holds no picture"),
        ("no_output", "the output holds no picture"),
        ("removed", "its data was removed"),
        ("strange_state", "unknown state of the prediction: paused"),
        ("canceled", "was cancelled at Replicate"),
    ],
)
def test_what_is_no_picture_fails_with_its_reason(bench: Bench, behaviour: str, told: str) -> None:
    outcome = bench.edit(behaviour)
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert not outcome.retryable
    assert outcome.meta["maybe_billed"] is True


# Refusals


@pytest.mark.parametrize(
    ("behaviour", "stage", "code"),
    [
        ("refuse", "output", "E005"),
        ("flagged", "output", "E005"),
        ("flagged_input", "input", "flagged by"),
        ("nsfw", "output", "nsfw"),
        ("empty_output", "output", "nsfw"),
    ],
)
def test_replicate_refuses_in_free_text_and_that_is_no_failure(
    bench: Bench, behaviour: str, stage: str, code: str
) -> None:
    outcome = bench.edit(behaviour)
    assert isinstance(outcome, Refused), outcome
    assert (outcome.stage, outcome.code) == (stage, code)
    assert outcome.text
    assert outcome.meta["request_id"]
    assert len([p for p in bench.paths() if p.startswith("POST")]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "NSFW content detected in all outputs, please try a different prompt",
        "The input or output was flagged as sensitive. Please try again with different inputs. (E005)",
        "Potential NSFW content was detected in one or more images. A black image will be returned",
        "Content was flagged by the safety system. Try different prompts or inputs.",
        "Your request was blocked by our moderation system",
        "Prompt violates the content policy",
        "All generated images contained sensitive content",
        "Content Moderated",
        "Request Moderated",
        "Error: safety checker triggered on the result",
    ],
)
def test_wordings_of_refusals_that_are_known(text: str) -> None:
    assert isinstance(Wording().of_failed(text, text, {}), Refused)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 20.00 MiB",
        "Could not load safety_checker weights from ./cache",
        "Expected an explicit height",
        "mask must have the same size as image",
        "The model timed out",
        "case-sensitive name not found",
        "",
    ],
)
def test_wordings_that_only_look_like_refusals(text: str) -> None:
    assert isinstance(Wording().of_failed(text, text, {}), Failed)


def test_a_models_own_wording_can_be_added(bench: Bench) -> None:
    assert isinstance(bench.edit("crash"), Failed)
    assert isinstance(bench.edit("crash", refusal_words=("out of memory",)), Refused)


@pytest.mark.parametrize(("behaviour", "again"), [("crash", False), ("not_started", True)])
def test_a_failed_model_is_tried_again_only_where_its_error_says_so(
    bench: Bench, behaviour: str, again: bool
) -> None:
    outcome = bench.edit(behaviour)
    assert isinstance(outcome, Failed)
    assert outcome.retryable is again
    assert outcome.reason.startswith("the model failed: ")


def test_aborted_never_began_so_it_is_retryable_and_not_billed(bench: Bench) -> None:
    outcome = bench.edit("aborted")
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert "maybe_billed" not in outcome.meta


# Turned down


def test_a_429_names_its_wait_in_a_sentence(bench: Bench) -> None:
    outcome = bench.edit("throttled")
    assert isinstance(outcome, Failed)
    assert (outcome.retryable, outcome.retry_after) == (True, 10.0)


@pytest.mark.parametrize(
    ("behaviour", "changes", "told"),
    [
        ("no_credit", {}, "Insufficient credit"),
        ("ok", {"model": "missing/model"}, "could not be found"),
        ("ok", {"key": SecretStr("wrong-key-abcdef")}, "authentication token"),
    ],
)
def test_what_would_strike_every_item_stops_the_run(
    bench: Bench, behaviour: str, changes: dict[str, Any], told: str
) -> None:
    outcome = bench.edit(behaviour, **changes)
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert outcome.meta["stop"] is True


def test_an_input_that_the_model_does_not_know_is_named(bench: Bench) -> None:
    outcome = bench.tool(inputs={"strengh": 0.5}).edit(ask())
    assert isinstance(outcome, Failed)
    assert "strengh" in outcome.reason
    assert not outcome.retryable


@pytest.mark.parametrize(
    ("request_changes", "told"),
    [
        ({"picture": None}, "no picture"),
        ({"mask": None}, "no mask"),
        ({"mask": Mask(np.zeros((48, 32), np.uint8), MaskKind.FACE)}, "the mask is empty"),
        ({"mask": Mask(np.ones((8, 8), np.uint8), MaskKind.FACE)}, "not of the picture's size"),
    ],
)
def test_what_cannot_be_asked_is_not_sent(
    bench: Bench, request_changes: dict[str, Any], told: str
) -> None:
    outcome = bench.tool().edit(ask(**request_changes))
    assert isinstance(outcome, Failed)
    assert told in outcome.reason
    assert bench.server.seen == []


def test_neither_key_nor_face_is_in_any_outcome(bench: Bench) -> None:
    face = base64.b64encode(PICTURE).decode()
    for behaviour in ("ok", "flagged", "crash", "expired", "500", "html", "redirect", "data_uri"):
        outcome = bench.edit(behaviour)
        told = repr((getattr(outcome, "reason", ""), getattr(outcome, "text", "")))
        told += json.dumps(outcome.meta)
        assert bench.server.key not in told
        assert face[:60] not in told


# Settings


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "just-a-name"}, "owner/name is needed"),
        ({"model": "a/b:123"}, "owner/name is needed"),
        ({"model": f"a/b:{VERSION}", "deployment": True}, "a deployment has no version"),
        ({"inputs": {"image": "x"}}, "input 'image' is filled twice"),
        ({"prompt_field": "seed"}, "input 'seed' is filled twice"),
        ({"mask_field": "", "tasks": ["inpaint_face"]}, "needs mask_field"),
        ({"refusal_words": ["("]}, "no regular expression"),
        ({"wait_s": 61}, "wait_s"),
        ({"modle": "a/b"}, "did you mean 'model'"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(LikenessError) as caught:
        build({**EXAMPLE, **changes})
    assert str(caught.value).startswith("tool 'replicate': ")
    assert told in str(caught.value)


def test_without_a_key_nothing_is_sent(bench: Bench) -> None:
    outcome = bench.tool(key=None).edit(ask())
    assert isinstance(outcome, Failed)
    assert "REPLICATE_API_TOKEN" in outcome.reason
    assert outcome.meta["stop"] is True
    assert bench.server.seen == []


def test_a_closed_tool_says_so(bench: Bench) -> None:
    tool = bench.tool()
    tool.close()
    assert tool.edit(ask()) == Failed("the tool was closed")
