"""A Stable Diffusion web UI as a tool. The pretended server follows modules/api/api.py and
modules/processing.py of AUTOMATIC1111/stable-diffusion-webui; each test names what it holds to."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import SecretStr

from adapters.codec import read_rgb, write_png
from adapters.web_ui.webui_answers import _another_model, find_checkpoint
from adapters.webui import WebuiTool, build
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Task
from domain.masks import Mask, MaskKind
from service.fake_servers.contract import FakeServer
from service.fake_servers.webui import MODELS

Fake = Callable[..., FakeServer]
WIDTH, HEIGHT = 72, 96
PIXELS = np.random.default_rng(3).integers(20, 236, (HEIGHT, WIDTH, 3)).astype(np.uint8)
PICTURE = write_png(PIXELS)
MASK = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
MASK[24:72, 16:56] = 255
PASSWORD = "canary-password-7391"


def request(task: Task = Task.INPAINT_FACE, **changes: Any) -> EditRequest:
    made = EditRequest(
        "item-1", task, PICTURE, width=WIDTH, height=HEIGHT, seed=42, mask=Mask(MASK, MaskKind.FACE)
    )
    return replace(made, **changes)


@pytest.fixture
def server(fake: Fake) -> FakeServer:
    return fake("webui", key=PASSWORD, slow_s=3.0)


@pytest.fixture
def tool(server: FakeServer) -> Iterator[WebuiTool]:
    made = ask(server)
    yield made
    made.close()


def ask(server: FakeServer, **settings: Any) -> WebuiTool:
    given = {"base_url": server.url, "user": "anna", "key": SecretStr(PASSWORD)}
    made = build(given | settings)
    assert isinstance(made, WebuiTool)
    return made


def sent(server: FakeServer) -> dict[str, Any]:
    """The fields of the last img2img call."""
    calls = [s for s in server.seen if s.path == "/sdapi/v1/img2img"]
    return dict(calls[-1].json())


def failed(outcome: EditOutcome) -> Failed:
    assert isinstance(outcome, Failed), outcome
    return outcome


def edited(outcome: EditOutcome) -> Edited:
    assert isinstance(outcome, Edited), outcome
    return outcome


def change(outcome: EditOutcome) -> tuple[float, float]:
    """Mean absolute change inside and outside the mask."""
    moved = np.abs(read_rgb(edited(outcome).picture).astype(int) - PIXELS).mean(axis=2)
    return float(moved[MASK == 255].mean()), float(moved[MASK == 0].mean())


def test_a_white_mask_is_edited_and_inversion_is_said_outright(
    tool: WebuiTool, server: FakeServer
) -> None:
    # processing.py, StableDiffusionProcessingImg2Img.init: white is painted unless inverted
    inside, outside = change(tool.edit(request()))
    assert inside > 20 > 3 > outside > 0  # a mask is no promise: the drift outside is handed on
    body = sent(server)
    assert body["inpainting_mask_invert"] == 0
    golden = read_rgb(base64.b64decode(body["mask"]))
    assert np.array_equal(golden[..., 0], MASK)
    with Image.open(BytesIO(base64.b64decode(body["mask"]))) as opened:
        assert opened.mode == "L"  # create_binary_mask would read an RGBA's alpha instead


def test_the_pretended_server_inverts_and_reads_alpha_as_the_real_one(server: FakeServer) -> None:
    tool = ask(server)
    body = tool._body(request())
    assert tool._wire is not None
    for altered in ({"inpainting_mask_invert": 1}, {"mask": _alpha_mask()}):
        reply = tool._wire.send("POST", "/sdapi/v1/img2img", json=body | altered)
        picture = base64.b64decode(reply.json()["images"][0])
        inside, outside = change(Edited(picture))
        assert inside < 3 < 20 < outside
    tool.close()


def _alpha_mask() -> str:
    """Transparent where to edit, as OpenAI takes it: here the wrong way round."""
    out = BytesIO()
    Image.merge("RGBA", [Image.fromarray(c) for c in (MASK, MASK, MASK, 255 - MASK)]).save(
        out, "PNG"
    )
    return base64.b64encode(out.getvalue()).decode()


def test_every_setting_that_the_settings_page_could_change_is_said_outright(
    server: FakeServer,
) -> None:
    tool = ask(
        server, steps=12, cfg_scale=5.5, sampler="DPM++ 2M", scheduler="Karras",
        denoising_strength=0.4, negative_prompt="blurry", fill="latent noise", mask_blur=0,
        only_masked=True, only_masked_padding=16,
    )  # fmt: skip
    outcome = edited(tool.edit(request(prompt="a grey wall")))
    body = sent(server)
    expected = {
        "prompt": "a grey wall", "negative_prompt": "blurry", "seed": 42, "steps": 12,
        "cfg_scale": 5.5, "sampler_name": "DPM++ 2M", "scheduler": "Karras",
        "denoising_strength": 0.4, "inpainting_fill": 2, "mask_blur": 0, "inpaint_full_res": True,
        "inpaint_full_res_padding": 16, "batch_size": 1, "n_iter": 1, "restore_faces": False,
        "send_images": True, "save_images": False, "include_init_images": False, "resize_mode": 0,
    }  # fmt: skip
    assert {k: body[k] for k in expected} == expected
    assert base64.b64decode(body["init_images"][0]) == PICTURE
    assert {k: outcome.meta["sent"][k] for k in expected} == expected
    assert not {"init_images", "mask"} & set(outcome.meta["sent"])
    tool.close()


def test_the_size_sent_is_the_size_that_comes_back_not_512(
    tool: WebuiTool, server: FakeServer
) -> None:
    # models.py: width and height are 512 unless given
    outcome = edited(tool.edit(request()))
    assert (sent(server)["width"], sent(server)["height"]) == (WIDTH, HEIGHT)
    assert read_rgb(outcome.picture).shape == (HEIGHT, WIDTH, 3)
    assert "note" not in outcome.meta


@pytest.mark.parametrize(("width", "height"), [(70, 96), (72, 100), (0, 0), (32, 96), (72, 4096)])
def test_a_size_that_would_be_floored_to_a_multiple_of_8_is_turned_down(
    tool: WebuiTool, server: FakeServer, width: int, height: int
) -> None:
    assert "multiples of 8" in failed(tool.edit(request(width=width, height=height))).reason
    assert not server.seen


def test_a_size_that_was_ignored_is_noted(tool: WebuiTool, server: FakeServer) -> None:
    server.next("half_size")
    assert "asked for 72x96, got 36x48" in edited(tool.edit(request())).meta["note"]


@pytest.mark.parametrize("task", [Task.RETOUCH, Task.RESTYLE, Task.ENHANCE])
def test_work_on_the_whole_picture_goes_without_a_mask(
    tool: WebuiTool, server: FakeServer, task: Task
) -> None:
    outcome = edited(tool.edit(request(task)))
    assert "mask" not in sent(server)
    assert outcome.meta["sent"]["prompt"].strip()


@pytest.mark.parametrize(("mask", "word"), [(None, "no mask"), (np.zeros_like(MASK), "empty")])
def test_an_inpainting_without_anything_to_paint_is_not_sent(
    tool: WebuiTool, server: FakeServer, mask: Any, word: str
) -> None:
    given = None if mask is None else Mask(mask, MaskKind.FACE)
    assert word in failed(tool.edit(request(mask=given))).reason
    assert not server.seen


@pytest.mark.parametrize("seed", [-1, 2**63 + 11, 0])
def test_a_seed_is_never_left_to_chance(tool: WebuiTool, server: FakeServer, seed: int) -> None:
    # processing.py, get_fixed_seed: -1 means at random
    outcome = edited(tool.edit(request(seed=seed)))
    assert sent(server)["seed"] == seed % 2**32 == outcome.meta["returned"]["seed"]


def test_another_seed_than_the_one_asked_for_is_noted(tool: WebuiTool, server: FakeServer) -> None:
    server.next("other_seed")
    assert "asked for seed 42" in edited(tool.edit(request())).meta["note"]


@pytest.mark.parametrize("behaviour", ["ok", "grid", "extras", "data_prefix"])
def test_the_picture_is_handed_on_byte_for_byte_whatever_comes_with_it(
    tool: WebuiTool, server: FakeServer, behaviour: str
) -> None:
    # api.py, encode_pil_to_base64 writes the parameters into the PNG; processing.py puts a grid first
    # and says so in index_of_first_image; extensions add their maps after it
    plain = edited(tool.edit(request())).picture
    assert b"tEXtparameters" in plain
    server.next(behaviour)
    assert edited(tool.edit(request())).picture == plain


def test_the_answer_says_which_checkpoint_made_the_picture(tool: WebuiTool) -> None:
    assert "the checkpoint that is loaded" in tool.model
    meta = edited(tool.edit(request())).meta
    assert meta["model"] == "v1-5-pruned-emaonly [6ce0161689], web UI v1.10.1" == tool.model
    assert meta["returned"]["sd_model_hash"] == "6ce0161689"
    assert meta["http_status"] == 200


@pytest.mark.parametrize("field", ["title", "model_name", "hash", "sha256"])
def test_a_checkpoint_is_asked_for_by_any_of_its_names(server: FakeServer, field: str) -> None:
    # override_settings_restore_afterwards would load it anew for every picture
    tool = ask(server, checkpoint=MODELS[1][field])
    assert "sd_xl_base_1.0 [31e35c80fc]" in edited(tool.edit(request())).meta["model"]
    body = sent(server)
    assert body["override_settings"] == {"sd_model_checkpoint": MODELS[1]["title"]}
    assert body["override_settings_restore_afterwards"] is False
    tool.close()


def test_a_missing_checkpoint_stops_the_run_where_the_server_would_use_another(
    server: FakeServer,
) -> None:
    # processing.py, process_images: an unknown checkpoint is taken out of the settings in silence
    tool = ask(server, checkpoint="dreamshaper_8")
    outcome = failed(tool.edit(request()))
    assert "no checkpoint 'dreamshaper_8'; it has: v1-5-pruned-emaonly" in outcome.reason
    assert outcome.meta["stop"] is True
    assert not [s for s in server.seen if s.path.endswith("img2img")]
    tool.close()


def test_a_picture_of_another_checkpoint_than_the_one_asked_for_is_not_measured(
    server: FakeServer,
) -> None:
    # lllyasviel/stable-diffusion-webui-forge#1940: the override was not heeded
    tool = ask(server, checkpoint="sd_xl_base_1.0")
    server.next("other_model")
    outcome = failed(tool.edit(request()))
    assert "worked with 'v1-5-pruned-emaonly' and not with 'sd_xl_base_1.0" in outcome.reason
    assert outcome.meta["stop"] is True
    tool.close()


def test_a_checkpoint_in_a_folder_and_without_hashes_is_known_by_its_file() -> None:
    # sd_models.py: the list says "xl_base" for xl/base.safetensors, an answer says "base"
    line = {"title": "xl/b.ckpt", "model_name": "xl_b", "hash": None, "filename": "D:\\xl\\b.ckpt"}
    for wanted in ("xl/b.ckpt", "xl_b", "b.ckpt", "b"):
        found = find_checkpoint([line], wanted)
        assert found is not None
        assert (found.title, found.digest) == ("xl/b.ckpt", "")
        assert not _another_model({"sd_model_name": "b", "sd_model_hash": "6ce0161689"}, found)
        assert _another_model({"sd_model_name": "c"}, found)
    assert find_checkpoint([line], "") is None
