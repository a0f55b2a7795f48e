"""Where a diffusion model lies, and which one it is, before anything of it is loaded."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.diffusion.settings import DiffusionSettings
from adapters.guard import one_line
from domain.errors import LikenessError

INDEX = "model_index.json"
SINGLE = (".safetensors", ".ckpt")
_HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}$")
_BLOCK, _BLOCKS = 16_384, 64


@dataclass(frozen=True, slots=True)
class Source:
    """``folder`` is the pipeline folder (for a single ``file``, the one that describes it).
    ``name`` and ``version`` go into reports: no path of this machine is in them."""

    folder: Path
    file: Path | None
    name: str
    version: str
    index: Mapping[str, Any]
    loras: tuple[tuple[Path, str], ...]
    """Each LoRA's file and fingerprint."""
    vae: Path | None

    @property
    def kind(self) -> str:
        """The class of pipeline that the folder names."""
        return str(self.index.get("_class_name", ""))

    def config(self, part: str, name: str = "config.json") -> Mapping[str, Any]:
        """The settings of one of the pipeline's parts; {} when it has none."""
        path = self.folder / part / name
        return _read_json(path) if path.is_file() else {}

    def without_paths(self, text: str) -> str:
        """``text`` with the model's files named as a report may name them."""
        for path in (self.file, self.vae, self.folder, *(file for file, _ in self.loras)):
            if path is not None:
                text = text.replace(str(path), path.name)
        return text

    @property
    def multiple(self) -> int:
        """Pixels of a latent's side: sides of a picture are multiples of it."""
        return int(2 ** max(0, len(self.config("vae").get("block_out_channels", range(4))) - 1))

    @property
    def own_side(self) -> int:
        """The side in px that the model was trained at, by its own account; 512 without one."""
        side = self.config("unet").get("sample_size")
        return int(side) * self.multiple if isinstance(side, int) and side > 0 else 512


def find_source(settings: DiffusionSettings) -> Source:
    """The model of ``settings``. Raises LikenessError, in one line, for one that is not there."""
    here = Path(settings.cwd or ".")
    path = here / settings.model
    file: Path | None = None
    if path.is_dir():
        folder, name, version = path, path.resolve().name, ""
    elif path.is_file():
        folder, file, name, version = _described(settings, here), path, path.name, ""
    else:
        folder, version = _from_hub(settings)
        name = settings.model
    index = _index(folder)
    _check_parts(folder, index, settings)
    if settings.revision and not version:
        raise LikenessError("revision belongs to a hub id; what lies here is taken as it is")
    if not version:
        files = [file] if file else sorted(_weights(folder))
        version = f"sample sha256 {fingerprint(files)}"
    loras = tuple((p, fingerprint([p])) for p in (_lora(here, one.path) for one in settings.loras))
    vae = here / settings.vae if settings.vae else None
    if vae is not None and not (vae / "config.json").is_file():
        raise LikenessError(f"vae '{settings.vae}': no folder with a config.json is there")
    return Source(folder, file, name, version, index, loras, vae)


def fingerprint(files: Iterable[Path]) -> str:
    """16 hex digits of the SHA-256 over each file's size, its safetensors header and 64 samples of
    16 KiB spread over it. Reads 1 MB of a file of gigabytes; a fine-tuned model changes them all."""
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            if path.suffix == ".safetensors" and size > 8:
                length = struct.unpack("<Q", file.read(8))[0]
                digest.update(file.read(min(length, size)))
            for number in range(_BLOCKS):
                file.seek(max(0, size - _BLOCK) * number // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:16]


def _weights(folder: Path) -> Iterable[Path]:
    for pattern in ("*/*.safetensors", "*/*.bin", "scheduler/*.json"):
        yield from folder.glob(pattern)


def _described(settings: DiffusionSettings, here: Path) -> Path:
    if Path(settings.model).suffix not in SINGLE:
        raise LikenessError(
            f"model '{settings.model}': a single file ends in {' or '.join(SINGLE)}"
        )
    if not settings.config:
        raise LikenessError(
            "a single file needs 'config': the folder with the model_index.json, tokenizer and "
            "settings of its family (without it, diffusers would download them)"
        )
    folder = here / settings.config
    if not folder.is_dir():
        raise LikenessError(f"config '{settings.config}': no such folder")
    return folder


def _from_hub(settings: DiffusionSettings) -> tuple[Path, str]:
    """The cached snapshot of a hub id, and its commit."""
    if not _HUB_ID.match(settings.model) or settings.model.endswith(SINGLE):
        raise LikenessError(f"model '{settings.model}': no such folder or file")
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(settings.model, INDEX, revision=settings.revision or "main")
    folder = Path(found).parent if isinstance(found, str) else None
    if folder is None and settings.download:
        folder = _download(settings)
    if folder is None:
        raise LikenessError(
            f"model '{settings.model}' is neither a folder or file here nor in the Hugging Face "
            f"cache; fetch it with 'hf download {settings.model}', or set 'download: true' and start "
            "this program with HF_HUB_OFFLINE=0"
        )
    return folder, f"commit {folder.name[:12]}"


def _download(settings: DiffusionSettings) -> Path:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise LikenessError(
            f"model '{settings.model}': 'download: true', but this program works offline unless it "
            "is started with HF_HUB_OFFLINE=0"
        )
    from diffusers import DiffusionPipeline

    wanted = {"variant": settings.variant or None, "revision": settings.revision or None}
    try:
        return Path(DiffusionPipeline.download(settings.model, **wanted))
    except Exception as error:  # the hub's client raises many kinds
        raise LikenessError(
            f"model '{settings.model}' could not be fetched: {one_line(str(error))}"
        ) from None


def _index(folder: Path) -> Mapping[str, Any]:
    path = folder / INDEX
    if not path.is_file():
        raise LikenessError(f"'{folder.name}' is no pipeline folder: it has no {INDEX}")
    return _read_json(path)


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise LikenessError(f"{path.parent.name}/{path.name}: {one_line(str(error))}") from None
    if not isinstance(read, dict):
        raise LikenessError(f"{path.parent.name}/{path.name}: not a JSON object")
    return read


def _check_parts(folder: Path, index: Mapping[str, Any], settings: DiffusionSettings) -> None:
    """What would be missed only when the first picture is on its way is told now."""
    for part, value in index.items():
        made = isinstance(value, list) and bool(value) and value[0] is not None
        skipped = part == "safety_checker" and settings.safety_checker == "off"
        if made and not skipped and not (folder / part).is_dir():
            raise LikenessError(f"'{folder.name}' is not whole: the folder '{part}' is missing")
    checker = index.get("safety_checker")
    if settings.safety_checker == "on" and not (isinstance(checker, list) and checker[0]):
        raise LikenessError(f"safety_checker: '{folder.name}' has none, so it cannot be 'on'")


def _lora(here: Path, named: str) -> Path:
    path = here / named
    if path.is_dir():
        files = sorted(path.glob("*.safetensors"))
        if len(files) != 1:
            raise LikenessError(f"lora '{named}': the folder holds {len(files)} .safetensors files")
        return files[0]
    if not path.is_file():
        raise LikenessError(f"lora '{named}': no such file")
    return path
