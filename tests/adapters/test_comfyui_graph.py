"""A graph for ComfyUI that cannot work is told before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.comfyui import build
from adapters.web_ui.comfyui_graph import load_graph
from domain.errors import LikenessError

VALUES = {
    "picture": "p.png", "mask": "m.png", "seed": 7, "prompt": "{mask} and {seed}", "negative": "",
    "width": 64, "height": 96,
}  # fmt: skip


@pytest.fixture
def graph(samples_dir: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((samples_dir / "comfyui_inpaint.json").read_text())
    return read


def test_filling_a_graph_leaves_the_graph_as_it_was(samples_dir: Path) -> None:
    made = load_graph(str(samples_dir / "comfyui_inpaint.json"), {})
    filled = made.fill(VALUES, "first")
    filled["7"]["inputs"]["model"][0] = "changed"
    again = made.fill(VALUES, "second")
    assert again["7"]["inputs"]["model"] == ["1", 0]
    assert (again["9"]["inputs"]["filename_prefix"], again["7"]["inputs"]["seed"]) == ("second", 7)
    assert again["4"]["inputs"]["text"] == "{mask} and {seed}"
    assert made.models == ("512-inpainting-ema.safetensors",)
    assert (made.output, made.mask_form) == ("9", "grey")


def test_a_placeholder_inside_a_sentence_is_filled_as_text(
    graph: dict[str, Any], tmp_path: Path
) -> None:
    graph["4"]["inputs"]["text"] = "film still, {prompt}, {width}x{height}, {a|b}"
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(graph))
    filled = load_graph(str(file), {}).fill({**VALUES, "prompt": "a wall"}, "x")
    assert filled["4"]["inputs"]["text"] == "film still, a wall, 64x96, {a|b}"


def editor_format(graph: dict[str, Any]) -> None:
    graph.clear()
    graph.update(nodes=[], links=[])


def no_picture(graph: dict[str, Any]) -> None:
    graph["2"]["inputs"]["image"] = "example.png"


def two_savers(graph: dict[str, Any]) -> None:
    graph["12"] = graph["9"]


def no_saver(graph: dict[str, Any]) -> None:
    del graph["9"]


def custom_loader(graph: dict[str, Any]) -> None:
    graph["3"]["class_type"] = "LoadMaskFromFolder"


def two_forms(graph: dict[str, Any]) -> None:
    graph["13"] = {"class_type": "LoadImage", "inputs": {"image": "{mask}"}}


def no_inputs(graph: dict[str, Any]) -> None:
    del graph["4"]["inputs"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (editor_format, "workflow of the editor"),
        (no_picture, "nowhere to put the picture"),
        (two_savers, "several SaveImage nodes (9, 12)"),
        (no_saver, "no SaveImage node"),
        (custom_loader, "node '3' (LoadMaskFromFolder) loads the mask"),
        (two_forms, "read the mask in two ways"),
        (no_inputs, "node '4' has no inputs"),
    ],
)
def test_a_graph_that_cannot_work_is_told_before_anything_is_sent(
    graph: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    change(graph)
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(graph))
    with pytest.raises(LikenessError) as raised:
        build({"graph": str(file)})
    assert words in str(raised.value)
    assert str(raised.value).startswith("tool 'comfyui': ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"pictur": "2.image"}, "unknown name 'pictur'; did you mean 'picture'?"),
        ({"seed": "77.seed"}, "has no node '77'"),
        ({"seed": "7.noise_seed"}, "node '7' has no 'noise_seed'"),
        ({"seed": "seed"}, "has no node 'seed'"),
    ],
)
def test_a_place_that_is_not_in_the_graph_is_told(
    samples_dir: Path, inputs: dict[str, str], words: str
) -> None:
    with pytest.raises(LikenessError) as raised:
        build({"graph": str(samples_dir / "comfyui_inpaint.json"), "inputs": inputs})
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"), [("{", "is not JSON"), ("[]", "is no graph"), ("{}", "is no graph")]
)
def test_a_file_that_is_no_graph_is_told(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "graph.json"
    file.write_text(text)
    with pytest.raises(LikenessError, match=words):
        build({"graph": str(file)})
    with pytest.raises(LikenessError, match="No such file"):
        build({"graph": str(tmp_path / "absent.json")})
