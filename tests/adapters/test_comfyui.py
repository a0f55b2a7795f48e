"""ComfyUI as a tool. The pretended server follows server.py, execution.py and nodes.py of
Comfy-Org/ComfyUI; each test names what it holds to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import SecretStr

from adapters.codec import read_rgb, write_png
from adapters.comfyui import SPEC, ComfySettings, ComfyTool
from adapters.web_ui.comfyui_graph import load_graph
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer

Fake = Callable[..., FakeServer]
Change = Callable[[dict[str, Any]], object]
WIDTH, HEIGHT = 72, 96
PIXELS = np.random.default_rng(3).integers(20, 236, (HEIGHT, WIDTH, 3)).astype(np.uint8)
PICTURE = write_png(PIXELS)
MASK = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
MASK[24:72, 16:56] = 255
KEY = "canary-token-7391"
SAMPLE = "comfyui_inpaint.json"


def request(task: Task = Task.INPAINT_FACE, **changes: Any) -> EditRequest:
    made = EditRequest(
        "item/1", task, PICTURE, width=WIDTH, height=HEIGHT, seed=42, mask=Mask(MASK, MaskKind.FACE)
    )
    return replace(made, **changes)


class Bench:
    """The sample graph, altered at will, against a pretended ComfyUI; nobody really waits."""

    def __init__(self, server: FakeServer, folder: Path, sample: Path) -> None:
        self.server, self.folder, self.waits = server, folder, list[float]()
        self.sample: dict[str, Any] = json.loads(sample.read_text())
        self.made: list[ComfyTool] = []

    def tool(self, change: Change | None = None, **settings: Any) -> ComfyTool:
        graph = json.loads(json.dumps(self.sample))
        if change:
            change(graph)
        file = self.folder / "graph.json"
        file.write_text(json.dumps(graph))
        given = {"base_url": self.server.url, "key": SecretStr(KEY), "graph": str(file)} | settings
        checked = ComfySettings.model_validate(given)
        checked_graph = load_graph(checked.graph, checked.inputs, checked.output, checked.mask_form)
        self.made.append(ComfyTool(checked, checked_graph, self.waits.append))
        return self.made[-1]

    def calls(self, path: str) -> list[Any]:
        return [s for s in self.server.seen if s.path.startswith(path)]

    def graph_sent(self) -> dict[str, Any]:
        return dict(self.calls("/prompt")[-1].json()["prompt"])


@pytest.fixture
def bench(fake: Fake, tmp_path: Path, samples_dir: Path) -> Iterator[Bench]:
    made = Bench(fake("comfyui", key=KEY), tmp_path, samples_dir / SAMPLE)
    yield made
    for tool in made.made:
        tool.close()


def failed(outcome: EditOutcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def edited(outcome: EditOutcome) -> Edited:
    assert isinstance(outcome, Edited), outcome
    return outcome


def change_of(outcome: EditOutcome) -> tuple[float, float]:
    """Mean absolute change inside and outside the mask."""
    moved = np.abs(read_rgb(edited(outcome).picture).astype(int) - PIXELS).mean(axis=2)
    return float(moved[MASK == 255].mean()), float(moved[MASK == 0].mean())


def through_alpha(graph: dict[str, Any]) -> None:
    """LoadImage in place of LoadImageMask; its mask is its second output."""
    graph["3"] = {"class_type": "LoadImage", "inputs": {"image": "{mask}"}}
    graph["6"]["inputs"]["mask"] = ["3", 1]


def test_a_mask_for_LoadImageMask_is_grey_and_white_is_edited(bench: Bench) -> None:
    # nodes.py, LoadImageMask.load_image: the red channel as it is
    inside, outside = change_of(bench.tool().edit(request()))
    assert inside > 20 > 3 > outside > 0  # a mask is no promise: the drift outside is handed on
    golden = bench.calls("/upload/image")[1].files["image"]
    with Image.open(BytesIO(golden)) as opened:
        assert opened.mode == "L"
        assert np.array_equal(np.asarray(opened), MASK)


@pytest.mark.parametrize("channel", ["LoadImage", "LoadImageMask"])
def test_a_mask_that_is_read_from_alpha_is_transparent_where_it_is_edited(
    bench: Bench, channel: str
) -> None:
    # nodes.py: 1 - alpha, by LoadImage and by LoadImageMask's channel "alpha"
    def change(graph: dict[str, Any]) -> None:
        if channel == "LoadImage":
            through_alpha(graph)
        graph["3"]["inputs"]["channel"] = "alpha"

    inside, outside = change_of(bench.tool(change).edit(request()))
    assert inside > 20 > 3 > outside
    golden = bench.calls("/upload/image")[1].files["image"]
    with Image.open(BytesIO(golden)) as opened:
        assert opened.mode == "RGBA"
        assert np.array_equal(np.asarray(opened)[..., 3], 255 - MASK)


@pytest.mark.parametrize("change", [through_alpha, None])
def test_a_mask_in_the_other_form_edits_nothing_or_the_wrong_part(
    bench: Bench, change: Change | None
) -> None:
    # why the form follows from the node: a grey mask has no alpha, so LoadImage gives an empty one
    form = "grey" if change else "alpha"
    inside, _ = change_of(bench.tool(change, mask_form=form).edit(request()))
    assert inside < 3


def test_the_graph_is_filled_in_and_the_picture_goes_up_untouched(bench: Bench) -> None:
    outcome = edited(bench.tool(negative_prompt="blurry").edit(request(prompt="a {seed} wall")))
    graph, (picture, mask) = bench.graph_sent(), bench.calls("/upload/image")
    assert picture.files["image"] == PICTURE
    assert picture.file_types["image"] == "image/png"
    assert picture.fields == {"type": "input", "subfolder": "likeness", "overwrite": "true"}
    assert graph["7"]["inputs"]["seed"] == 42  # a number, not a text
    assert graph["4"]["inputs"]["text"] == "a {seed} wall"  # a prompt's own braces stay
    assert graph["5"]["inputs"]["text"] == "blurry"
    assert graph["2"]["inputs"]["image"].startswith("likeness/item_1-")
    assert graph["2"]["inputs"]["image"] != graph["3"]["inputs"]["image"]
    assert mask.files["image"] != PICTURE
    sent = outcome.meta["sent"]
    assert (sent["seed"], sent["prompt"], sent["graph"]) == (42, "a {seed} wall", "graph.json")
    assert len(sent["graph_sha256"]) == 64
    assert bench.calls("/prompt")[0].json()["client_id"]


def test_places_can_be_named_instead_of_written_into_the_graph(bench: Bench) -> None:
    def plain(graph: dict[str, Any]) -> None:
        graph["2"]["inputs"]["image"] = graph["3"]["inputs"]["image"] = "example.png"
        graph["7"]["inputs"]["seed"], graph["4"]["inputs"]["text"] = 1, "words of the editor"

    inputs = {"picture": "2.image", "mask": ["3.image"], "seed": "7.seed", "prompt": "4.text"}
    tool = bench.tool(plain, inputs=inputs)
    inside, outside = change_of(tool.edit(request(prompt="a wall", seed=-1)))
    assert inside > 20 > 3 > outside
    graph = bench.graph_sent()
    assert graph["7"]["inputs"]["seed"] == 2**32 - 1
    assert graph["4"]["inputs"]["text"] == "a wall"


def test_what_a_graph_has_no_place_for_the_tool_does_not_claim(bench: Bench) -> None:
    def unmasked(graph: dict[str, Any]) -> None:
        del graph["3"]
        graph["6"] = {"class_type": "VAEEncode", "inputs": {"pixels": ["2", 0], "vae": ["1", 2]}}
        graph["7"]["inputs"]["seed"], graph["4"]["inputs"]["text"] = 1, "sharper"

    tool = bench.tool(unmasked)
    assert (tool.spec.mask_support, tool.spec.seedable, tool.spec.takes_prompt) == (
        "none",
        False,
        False,
    )
    assert not [t for t in tool.spec.tasks if t.value.startswith("inpaint")]
    outcome = edited(tool.edit(request(Task.ENHANCE, mask=None)))
    assert not {"seed", "prompt"} & set(outcome.meta["sent"])
    assert "no place for a mask" in failed(tool.edit(request())).reason
    masked = bench.tool().spec
    assert set(tool.spec.tasks) | set(masked.tasks) == set(SPEC.tasks)
    assert not set(tool.spec.tasks) & set(masked.tasks)


@pytest.mark.parametrize(("mask", "word"), [(None, "no mask"), (np.zeros_like(MASK), "empty")])
@pytest.mark.parametrize("change", [through_alpha, None])
def test_a_mask_that_would_edit_nothing_is_not_sent(
    bench: Bench, change: Change | None, mask: Any, word: str
) -> None:
    given = None if mask is None else Mask(mask, MaskKind.FACE)
    assert word in failed(bench.tool(change).edit(request(mask=given))).reason
    assert not bench.server.seen


def test_the_graph_lies_beside_the_plan() -> None:
    assert SPEC.path_settings == ("graph",)


def test_the_size_rule_can_be_the_graphs_own(bench: Bench) -> None:
    tool = bench.tool(multiple=64, max_side=1024)
    assert (tool.spec.size.multiple, tool.spec.size.max_side) == (64, 1024)
    assert "multiples of 64" in failed(tool.edit(request())).reason
    assert not bench.server.seen


def test_the_result_is_handed_on_byte_for_byte_with_the_graph_in_it(bench: Bench) -> None:
    # nodes.py, SaveImage writes the graph into the PNG; that stays
    outcome = edited(bench.tool().edit(request()))
    view = bench.calls("/view")[0]
    stored = bench.server.desk  # the server keeps the file: fetched again, it is the same
    assert stored.seen[-1] is view
    tool = bench.made[-1]
    assert tool._wire is not None
    again = tool._wire.send("GET", "/view", params=view.query).body
    assert sha256(outcome.picture).hexdigest() == sha256(again).hexdigest()
    assert b"tEXtprompt" in outcome.picture


def test_the_model_string_names_server_graph_and_checkpoint(bench: Bench) -> None:
    tool = bench.tool()
    assert "512-inpainting-ema.safetensors" in tool.model
    meta = edited(tool.edit(request())).meta
    assert meta["model"] == tool.model
    assert tool.model.startswith("ComfyUI 0.3.75, graph graph.json ")
    edited(tool.edit(request()))
    assert len(bench.calls("/system_stats")) == 1


def test_a_job_is_over_when_the_history_says_so_and_no_sooner(bench: Bench) -> None:
    # server.py: the history of a job at work is {}
    edited(bench.tool(poll_s=0.5).edit(request()))
    assert len(bench.calls("/history/")) == 2
    assert bench.waits == [0.5]


def test_the_same_item_twice_is_worked_on_twice_and_not_taken_from_the_cache(bench: Bench) -> None:
    # execution.py: an output node whose inputs are those of an earlier job does not run again
    tool = bench.tool()
    outcomes = [edited(tool.edit(request())) for _ in range(2)]
    prefixes = [
        c.json()["prompt"]["9"]["inputs"]["filename_prefix"] for c in bench.calls("/prompt")
    ]
    assert len(set(prefixes)) == 2
    assert all(p.startswith("likeness/item_1-") for p in prefixes)
    assert not any("note" in o.meta for o in outcomes)
    assert np.array_equal(read_rgb(outcomes[0].picture), read_rgb(outcomes[1].picture))


def test_a_cached_result_is_found_and_said_to_be_one(bench: Bench) -> None:
    # PreviewImage has no file name to vary; with a client_id the history names the cached file
    def preview(graph: dict[str, Any]) -> None:
        graph["9"] = {"class_type": "PreviewImage", "inputs": {"images": ["8", 0]}}

    tool = bench.tool(preview)
    first, second = edited(tool.edit(request())), edited(tool.edit(request()))
    assert first.picture == second.picture
    assert "note" not in first.meta
    assert "cache" in second.meta["note"]
    assert bench.calls("/view")[0].query["type"] == "temp"


def test_each_item_and_each_content_has_an_upload_of_its_own(bench: Bench) -> None:
    tool = bench.tool()
    other = write_png(PIXELS[::-1].copy())
    for one in (request(), request(item_id="item/2"), request(picture=other)):
        edited(tool.edit(one))
    names = [c.json()["prompt"]["2"]["inputs"]["image"] for c in bench.calls("/prompt")]
    assert len(set(names)) == 3


def test_several_pictures_are_told_of_and_the_first_is_taken(bench: Bench) -> None:
    bench.server.next("two")
    assert "2 pictures came back" in edited(bench.tool().edit(request())).meta["note"]
