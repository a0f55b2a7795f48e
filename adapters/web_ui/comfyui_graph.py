"""A ComfyUI graph in API format, with places for the picture, the mask, the seed and the words.

Places are placeholders in the file ("{picture}", "{seed}") or a map of node inputs ("10.image"). How
a mask is written follows from the node that loads it: nodes.py of ComfyUI gives 1 - alpha from LoadImage
and from LoadImageMask's channel "alpha", and the bare channel otherwise.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from domain.errors import LikenessError, did_you_mean

NAMES = ("picture", "mask", "seed", "prompt", "negative", "width", "height")
MaskForm = Literal["", "alpha", "grey"]
SAVERS = ("SaveImage", "PreviewImage")
LARGEST = 5_000_000
_HOLE = re.compile(r"\{(" + "|".join(NAMES) + r")\}")
_MODEL_FILE = re.compile(r"\.(safetensors|sft|ckpt|pt|pth|bin|gguf)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Graph:
    """A checked graph. ``places`` are (node, input) pairs by name, of the map and of placeholders;
    ``output`` the node whose picture is the result; ``mask_form`` how the mask is written."""

    name: str
    sha256: str
    nodes: Mapping[str, Mapping[str, Any]]
    places: Mapping[str, tuple[tuple[str, str], ...]]
    mapped: frozenset[tuple[str, str]]
    output: str
    mask_form: MaskForm
    models: tuple[str, ...]

    def fill(self, values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """The graph to send. ``values`` by place name; ``prefix`` names the result's file, a new one
        each time: an output node whose inputs are those of the last run would not run again."""
        filled = {node: copy.deepcopy(dict(parts)) for node, parts in self.nodes.items()}
        for name, places in self.places.items():
            for node, key in places:
                if (node, key) in self.mapped:
                    filled[node]["inputs"][key] = values[name]
        for node, key, text in _strings(self.nodes):
            if (node, key) not in self.mapped and _HOLE.search(text):
                filled[node]["inputs"][key] = _filled(text, values)
        saver = filled[self.output]["inputs"]
        if isinstance(saver.get("filename_prefix"), str):
            saver["filename_prefix"] = prefix
        return filled

    def class_of(self, node: str) -> str:
        """The node's class, "" for a node that is not in the graph."""
        return str(self.nodes.get(node, {}).get("class_type", ""))


def load_graph(
    file: str,
    inputs: Mapping[str, str | Sequence[str]],
    output: str = "",
    mask_form: MaskForm = "",
) -> Graph:
    """Read and check ``file``. ``inputs`` maps names to "node.input" addresses. Raises LikenessError
    in one line naming the file and what is wrong with it."""
    path = Path(file)
    try:
        if path.stat().st_size > LARGEST:
            raise LikenessError(f"{path.name}: over 5 MB is no graph")
        data = path.read_bytes()
        nodes = json.loads(data)
    except OSError as error:
        raise LikenessError(f"setting 'graph': {file}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise LikenessError(f"{path.name}: is not JSON") from None
    _check_nodes(nodes, path.name)
    places = {name: list(_places(nodes, name)) for name in NAMES}
    mapped = set()
    for name, addresses in inputs.items():
        for address in [addresses] if isinstance(addresses, str) else addresses:
            place = _address(nodes, name, address, path.name)
            mapped.add(place)
            places[name].append(place)
    if not places["picture"]:
        raise LikenessError(
            f"{path.name}: nowhere to put the picture: write {{picture}} into a LoadImage node, or name "
            "it in the setting 'inputs'"
        )
    return Graph(
        path.name,
        hashlib.sha256(data).hexdigest(),
        nodes,
        {name: tuple(dict.fromkeys(where)) for name, where in places.items() if where},
        frozenset(mapped),
        _output(nodes, output, path.name),
        _mask_form(nodes, places["mask"], mask_form, path.name),
        tuple(sorted({text for _, _, text in _strings(nodes) if _MODEL_FILE.search(text)})),
    )


def _check_nodes(nodes: Any, file: str) -> None:
    if isinstance(nodes, dict) and "nodes" in nodes and "links" in nodes:
        raise LikenessError(
            f"{file}: is a workflow of the editor; export it in API format (Workflow, Export (API))"
        )
    if not isinstance(nodes, dict) or not nodes:
        raise LikenessError(f"{file}: is no graph in API format: an object of nodes is needed")
    for name, node in nodes.items():
        if not isinstance(node, dict) or not isinstance(node.get("inputs"), dict):
            raise LikenessError(f"{file}: node '{name}' has no inputs; is this the API format?")
        if not isinstance(node.get("class_type"), str):
            raise LikenessError(f"{file}: node '{name}' has no class_type")


def _strings(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for node, parts in nodes.items():
        for key, value in parts["inputs"].items():
            if isinstance(value, str):
                yield node, key, value


def _places(nodes: Mapping[str, Mapping[str, Any]], name: str) -> Iterator[tuple[str, str]]:
    for node, key, text in _strings(nodes):
        if f"{{{name}}}" in text:
            yield node, key


def _address(
    nodes: Mapping[str, Mapping[str, Any]], name: str, address: str, file: str
) -> tuple[str, str]:
    if name not in NAMES:
        raise LikenessError(
            f"setting 'inputs': unknown name '{name}'{did_you_mean(name, NAMES)} "
            f"(known: {', '.join(NAMES)})"
        )
    node, _, key = address.rpartition(".")
    if node not in nodes:
        raise LikenessError(f"setting 'inputs': {name}: {file} has no node '{node or address}'")
    if key not in nodes[node]["inputs"]:
        known = ", ".join(nodes[node]["inputs"])
        raise LikenessError(f"setting 'inputs': {name}: node '{node}' has no '{key}' ({known})")
    return node, key


def _output(nodes: Mapping[str, Mapping[str, Any]], wanted: str, file: str) -> str:
    if wanted:
        if wanted not in nodes:
            raise LikenessError(f"setting 'output': {file} has no node '{wanted}'")
        return wanted
    for kind in SAVERS:
        found = [node for node, parts in nodes.items() if parts["class_type"] == kind]
        if len(found) == 1:
            return found[0]
        if found:
            raise LikenessError(
                f"{file}: several {kind} nodes ({', '.join(found)}); name one in 'output'"
            )
    raise LikenessError(f"{file}: no SaveImage node; name the one with the result in 'output'")


def _mask_form(
    nodes: Mapping[str, Mapping[str, Any]],
    places: Sequence[tuple[str, str]],
    wanted: MaskForm,
    file: str,
) -> MaskForm:
    if not places or wanted:
        return wanted if places else ""
    forms: set[MaskForm] = set()
    for node, _ in places:
        kind, channel = nodes[node]["class_type"], nodes[node]["inputs"].get("channel")
        if kind == "LoadImage" or (kind == "LoadImageMask" and channel == "alpha"):
            forms.add("alpha")
        elif kind == "LoadImageMask":
            forms.add("grey")
        else:
            raise LikenessError(
                f"{file}: node '{node}' ({kind}) loads the mask: say in 'mask_form' whether it reads "
                "alpha (transparent = edit) or grey (white = edit)"
            )
    if len(forms) > 1:
        raise LikenessError(
            f"{file}: its nodes read the mask in two ways; one picture cannot be both"
        )
    return forms.pop()


def _filled(text: str, values: Mapping[str, Any]) -> Any:
    """``text`` with its placeholders filled in one pass, so that a prompt may hold braces. One that
    is a placeholder and nothing else takes the value as it is: a seed stays a number."""
    whole = _HOLE.fullmatch(text)
    if whole:
        return values[whole[1]]
    return _HOLE.sub(lambda hole: str(values[hole[1]]), text)
