"""Where a model may come from, offline, and what is said when it cannot be had."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import adapters.stable_diffusion
from adapters.stable_diffusion import build
from domain.edits import Edited, Failed
from domain.errors import LikenessError
from tests.adapters.tiny_diffusion import (
    edited,
    request_for,
    tiny_models,
    tiny_pipeline,
    tool,
)

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models(tmp_path_factory.mktemp("diffusion"))


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def hub(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hugging Face cache that holds someone/tiny."""
    import huggingface_hub.constants

    repo = tmp_path / "hub" / "models--someone--tiny"
    shutil.copytree(models / "tiny", repo / "snapshots" / COMMIT)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def refused(**settings: Any) -> str:
    with pytest.raises(LikenessError) as caught:
        build({"device": "cpu"} | settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("no_network")
def test_a_single_file_paints_the_same_bits_as_the_folder_without_the_network(models: Path) -> None:
    whole = edited(tool(models / "tiny").edit(request_for()))
    single = tool(models / "single" / "tiny.safetensors", config=str(models / "single" / "config"))
    assert single.model.startswith("tiny.safetensors (sample sha256 ")
    assert np.array_equal(edited(single.edit(request_for())), whole)


def test_a_single_file_needs_a_local_config_or_diffusers_would_download_one(models: Path) -> None:
    file = str(models / "single" / "tiny.safetensors")
    assert "a single file needs 'config'" in refused(model=file)
    assert "config 'owner/name': no such folder" in refused(model=file, config="owner/name")


@pytest.mark.usefixtures("no_network")
def test_a_hub_id_is_found_in_the_cache_with_its_commit(hub: Path) -> None:
    made = build({"model": "someone/tiny", "steps": 2, "device": "cpu", "cwd": str(hub)})
    assert made.model.startswith("someone/tiny (commit 0123456789ab), ")
    assert isinstance(made.edit(request_for()), Edited)
    for revision in ("main", COMMIT):
        build({"model": "someone/tiny", "revision": revision, "device": "cpu", "cwd": str(hub)})


@pytest.mark.usefixtures("no_network")
def test_a_hub_id_that_is_not_cached_is_never_fetched_unasked(
    hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    said = refused(model="someone/else", cwd=str(hub))
    assert "neither a folder or file here nor in the Hugging Face cache" in said
    assert "hf download someone/else" in said
    assert "nor in the Hugging Face cache" in refused(
        model="someone/tiny", revision="v2", cwd=str(hub)
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    said = refused(model="someone/else", download=True, cwd=str(hub))
    assert "offline unless it is started with HF_HUB_OFFLINE=0" in said


def test_a_folder_beside_the_plan_comes_before_a_hub_id(hub: Path, models: Path) -> None:
    shutil.copytree(models / "tiny", hub / "someone" / "tiny")
    made = build({"model": "someone/tiny", "device": "cpu", "cwd": str(hub)})
    assert made.model.startswith("tiny (sample sha256 ")


def test_paths_are_relative_to_the_plan_those_of_loras_too(models: Path) -> None:
    made = build(
        {
            "model": "tiny",
            "loras": [{"path": "lora"}],
            "device": "cpu",
            "steps": 2,
            "cwd": str(models),
        }
    )
    assert isinstance(made.edit(request_for()), Edited)
    assert str(models) not in made.model


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "nowhere"}, "model 'nowhere': no such folder or file"),
        ({"model": "lora"}, "is no pipeline folder: it has no model_index.json"),
        ({"model": "lora/notes.txt"}, "a single file ends in .safetensors or .ckpt"),
        ({"model": "tiny", "loras": [{"path": "gone"}]}, "lora 'gone': no such file"),
        ({"model": "tiny", "loras": [{"path": "tiny"}]}, "holds 0 .safetensors files"),
        ({"model": "tiny", "loras": [{"path": "lora", "weight": 1}]}, "loras.0.weight"),
        (
            {"model": "tiny", "loras": [{"path": "lora", "name": "a"}] * 2},
            "two have the same name",
        ),
        ({"model": "tiny", "vae": "lora"}, "vae 'lora': no folder with a config.json"),
        ({"model": "tiny", "safety_checker": "on"}, "has none, so it cannot be 'on'"),
        ({"model": "tiny", "revision": "v2"}, "revision belongs to a hub id"),
        ({"model": "tiny", "steps": 10, "strength": 0.05}, "leaves none to be done"),
        ({"model": "tiny", "device": "cuda"}, "device 'cuda' is not there"),
        ({"model": "tiny", "torch_dtype": "fp16"}, "unknown setting 'torch_dtype'"),
        ({}, "setting 'model' is missing"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_told_before_anything_is_loaded(
    models: Path, settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (models / "lora" / "notes.txt").write_text("no model")
    assert said in refused(**{"cwd": str(models)} | settings)


def test_a_folder_that_is_not_whole_is_told_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = tiny_pipeline(tmp_path / "tiny")
    shutil.rmtree(folder / "unet")
    assert "'tiny' is not whole: the folder 'unet' is missing" in refused(model=str(folder))
    (folder / "model_index.json").write_text("{")
    assert "tiny/model_index.json: " in refused(model=str(folder))


def test_damaged_weights_stop_the_tool_with_one_clear_line(tmp_path: Path) -> None:
    folder = tiny_pipeline(tmp_path / "tiny")
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    outcome = tool(folder).edit(request_for())
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("the model could not be loaded: ")
    assert "\n" not in outcome.reason
    assert str(tmp_path) not in outcome.reason
    assert outcome.meta["stop"] is True


class Burglar:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("part", ["single file", "unet", "text_encoder"])
def test_a_pickle_with_code_in_it_is_read_as_weights_alone(
    models: Path, tmp_path: Path, part: str, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch
    from safetensors.torch import load_file

    single = part == "single file"
    folder = tiny_pipeline(tmp_path / "tiny")
    name = "pytorch_model" if part == "text_encoder" else "diffusion_pytorch_model"
    target = tmp_path / "tiny.ckpt" if single else folder / part / f"{name}.bin"
    old = models / "single" / "tiny.safetensors"
    if not single:
        old = next((folder / part).glob("*.safetensors"))
    weights = load_file(old)
    if not single:
        old.unlink()
    where = {"model": str(target if single else folder), "config": str(folder) if single else ""}
    for extra in ({}, {"more": Burglar(tmp_path / "was here")}):
        torch.save(weights | extra, target)
        outcome = build(where | {"steps": 2, "device": "cpu"}).edit(request_for())
        assert isinstance(outcome, Failed if extra else Edited), outcome
        assert not (tmp_path / "was here").exists()
        assert "weights_only" not in str(outcome)
    assert capfd.readouterr() == ("", "")


def test_loading_and_painting_are_silent_and_leave_the_loggers_as_they_were(
    models: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import diffusers.utils.logging as bars

    logger = logging.getLogger("diffusers")
    before = (logger.level, logging.getLogger().level, logging.root.manager.disable)
    enabled = bars.is_progress_bar_enabled()
    tool(models / "xl").edit(request_for())
    assert capfd.readouterr() == ("", "")
    assert (logger.level, logging.getLogger().level, logging.root.manager.disable) == before
    assert bars.is_progress_bar_enabled() is enabled


def test_neither_finding_nor_making_the_tool_loads_diffusers(models: Path) -> None:
    code = (
        "import sys, adapters.stable_diffusion as sd; "
        "early = {'torch', 'diffusers', 'transformers', 'huggingface_hub'} & set(sys.modules); "
        f"sd.build({{'model': {str(models / 'tiny')!r}, 'device': 'cpu'}}); "
        "print(early, 'diffusers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "set() False"
    assert done.stderr == ""


def test_a_missing_package_is_an_import_error_that_names_it(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        adapters.stable_diffusion, "find_spec", lambda name: None if name == "peft" else object()
    )
    with pytest.raises(ImportError, match="No module named 'peft'"):
        tool(models / "tiny")
