"""A plan from elsewhere uses only what is offered, and brings no path, address, key or program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import LikenessError, PlanError
from service.offers import MANIFEST, Offers, load_offers, plan_text

LOCAL = load_offers(None)
READY_MADE = """\
tools:
  - name: image model
    id: openai_images
    about: The house's own account.
    settings: {key_file: keys/image.txt, base_url: "http://127.0.0.1:9/v1", quality: low}
    may_change: [quality]
    rate_limit: 30/min
    price: {per_call: 0.04}
  - name: our program
    id: command
    settings: {argv: [edit, "{input}", "{output}"]}
"""


def plan(tools: str, more: str = "") -> str:
    return f"name: a plan\ntools: {tools}\n{more}"


def ready_made(folder: Path, text: str = READY_MADE) -> Offers:
    file = folder / "tools.yaml"
    file.write_text(text)
    return load_offers(file)


def refusal(offers: Offers, text: str) -> str:
    with pytest.raises(PlanError) as caught:
        offers.read(text)
    return str(caught.value)


def test_tools_that_work_here_are_offered_without_being_asked_for() -> None:
    names = [offer.name for offer in LOCAL.all()]
    assert {"identity", "reencode", "uniform_harm", "style_transfer", "inr"} <= set(names)
    for offer in LOCAL.all():
        assert not offer.spec.remote and offer.spec.key_env is None and not offer.spec.path_settings


@pytest.mark.parametrize(
    "tool",
    [
        "openai_images", "stability", "gemini", "replicate", "bfl", "comfyui", "webui", "mobile",
        "http_template", "command", "precomputed", "stable_diffusion",
    ],
)  # fmt: skip
def test_a_tool_that_is_not_offered_is_refused_in_one_line_that_says_what_is(tool: str) -> None:
    said = refusal(LOCAL, plan(f"[{{id: {tool}}}]"))
    assert said.startswith(f"plan.yaml: tools.0.id: this service does not offer '{tool}'")
    assert "it offers: " in said and "style_transfer" in said and "\n" not in said


def test_a_misspelt_tool_gets_its_near_miss() -> None:
    assert "did you mean 'style_transfer'?" in refusal(LOCAL, plan("[{id: style_transfr}]"))


@pytest.mark.parametrize(
    "setting",
    [
        "key: sk-1", "key_env: PATH", "key_file: ../../etc/passwd", "base_url: 'http://10.0.0.1'",
        "cwd: /", "argv: [sh]", "command: sh", "url: 'file:///etc/passwd'", "threads: 64",
        "proxy: 'http://10.0.0.1:8080'", "pass_env: [HOME]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["style_transfer", "identity"])
def test_no_setting_beyond_the_list_is_taken(tool: str, setting: str) -> None:
    name = setting.partition(":")[0]
    said = refusal(LOCAL, plan(f"[{{id: {tool}, settings: {{{setting}}}}}]"))
    assert said.startswith(f"plan.yaml: tools.0.settings.{name}: not for a plan to set")


def test_settings_of_the_list_are_taken() -> None:
    loaded = LOCAL.read(plan("[{id: style_transfer, settings: {style: 3, strength: 0.4}}]"))
    tool = LOCAL.resolve(loaded.plan.tools[0])
    assert tool.id == "style_transfer" and tool.settings == {"style": 3, "strength": 0.4}


@pytest.mark.parametrize(
    "source",
    [
        "", "portraits: {manifest: /etc/passwd}\n", "portraits: {manifest: ../../manifest.csv}\n",
        "portraits: {manifest: 'http://10.0.0.1/m.csv'}\n",
    ],
)  # fmt: skip
def test_the_batch_takes_the_place_of_any_manifest(source: str, tmp_path: Path) -> None:
    loaded = LOCAL.read(plan("[{id: identity}]", source), tmp_path)
    assert loaded.manifest == tmp_path / MANIFEST
    assert loaded.plan.portraits.manifest == MANIFEST
    assert loaded.path.parent == tmp_path


def test_a_selection_of_portraits_is_taken() -> None:
    chosen = "portraits: {where: {gender: [female]}, limit: 5}\n"
    source = LOCAL.read(plan("[{id: identity}]", chosen)).plan.portraits
    assert source.where == {"gender": ["female"]} and source.limit == 5


def test_how_many_processes_measure_is_not_for_a_plan_to_say() -> None:
    assert LOCAL.read(plan("[{id: identity}]", "workers: 64\n")).plan.workers is None


def test_the_text_goes_on_record_as_it_was_sent() -> None:
    text = plan("[{id: identity}]  # a remark", "workers: 2\n")
    assert LOCAL.read(text).text == text


def test_a_ready_made_tool_is_known_by_its_name_alone(tmp_path: Path) -> None:
    offers = ready_made(tmp_path)
    loaded = offers.read(plan("[{id: image model, settings: {quality: high}}]"))
    asked = loaded.plan.tools[0]
    assert asked.settings == {"quality": "high"}, "nothing of the operator's goes on record"
    assert asked.price is not None and asked.price.per_call == 0.04
    tool = offers.resolve(asked)
    assert (tool.id, tool.label, tool.rate_limit) == ("openai_images", "image model", "30/min")
    assert tool.settings == {
        "key_file": str(tmp_path / "keys" / "image.txt"),
        "base_url": "http://127.0.0.1:9/v1",
        "quality": "high",
    }


def test_a_program_runs_in_the_operators_folder(tmp_path: Path) -> None:
    offers = ready_made(tmp_path)
    tool = offers.resolve(offers.read(plan("[{id: our program}]")).plan.tools[0])
    assert tool.settings["cwd"] == str(tmp_path)


@pytest.mark.parametrize("setting", ["base_url: 'http://10.0.0.1'", "key_env: HOME", "model: x"])
def test_what_an_entry_fixes_stays_fixed(tmp_path: Path, setting: str) -> None:
    said = refusal(ready_made(tmp_path), plan(f"[{{id: image model, settings: {{{setting}}}}}]"))
    assert "not for a plan to set with 'image model' here (it may set: quality)" in said


@pytest.mark.parametrize(
    "running", ["rate_limit: 900/s", "concurrency: 64", "max_attempts: 20", "price: {per_call: 0}"]
)
def test_how_a_ready_made_tool_is_reached_is_the_operators(tmp_path: Path, running: str) -> None:
    said = refusal(ready_made(tmp_path), plan(f"[{{id: image model, {running}}}]"))
    assert said.endswith("set by whoever runs this service, not by a plan")


def test_the_adapter_behind_a_ready_made_tool_is_not_reached_by_its_own_id(tmp_path: Path) -> None:
    assert "does not offer 'openai_images'" in refusal(
        ready_made(tmp_path), plan("[{id: openai_images}]")
    )


def test_a_tool_that_was_taken_off_the_list_ends_a_run_with_one_line(tmp_path: Path) -> None:
    asked = ready_made(tmp_path).read(plan("[{id: image model}]")).plan.tools[0]
    with pytest.raises(PlanError, match="'image model' is no longer offered"):
        LOCAL.resolve(asked)


def test_an_operator_may_offer_nothing_but_his_own(tmp_path: Path) -> None:
    offers = ready_made(tmp_path, f"local: false\n{READY_MADE}")
    assert [offer.name for offer in offers.all()] == ["image model", "our program"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{name: x, id: openai_imags}", "unknown tool 'openai_imags'; did you mean"),
        ("{name: x, id: openai_images, may_change: [key_env]}", "names a file, an address or"),
        ("{name: x, id: openai_images, may_change: [base_url]}", "names a file, an address or"),
        ("{name: x, id: precomputed, may_change: [folder]}", "names a file, an address or"),
        ("{name: x, id: openai_images, settings: {key: sk-1}}", "holds the key itself"),
        ("{name: x, id: openai_images, rate_limit: often}", "is not a rate limit"),
        ("{name: '../x', id: identity}", "name"),
        ("{name: x, id: identity, colour: red}", "colour"),
    ],
)
def test_a_mistake_in_the_operators_file_is_told(tmp_path: Path, entry: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        ready_made(tmp_path, f"tools: [{entry}]\n")
    assert said in str(caught.value) and "sk-1" not in str(caught.value)


def test_two_entries_of_one_name_are_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="two tools are called 'x'"):
        ready_made(tmp_path, "tools: [{name: x, id: identity}, {name: x, id: inr}]\n")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"tools\.yaml: cannot be read"):
        load_offers(tmp_path / "tools.yaml")


def _bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for n in range(1, levels):
        names = ", ".join([f"*a{n - 1}"] * 9)
        lines.append(f"a{n}: &a{n} [{names}]")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_bomb(9), "references"),
        ("name: " + "[" * 100_000, "deeper than 16"),
        ("name: {a: *b}\n", "references"),
        ("name: [\n", "not valid YAML"),
        ("name: \x00\n", "not valid YAML"),
        ("name: !!python/object/apply:os.system [ls]\n", "not valid YAML"),
        ("name: !!int x\ntools: []\n", "not valid YAML"),
        ("name: 2026-13-45\ntools: []\n", "not valid YAML"),
        ("{[1]: 2}\n", "not valid YAML"),
        ("- a\n- b\n", "a plan is a mapping"),
        ("", "a plan is a mapping"),
        ("tools: {id: identity}\nname: x\n", "tools"),
        ("name: a\nname: b\n", "stands twice"),
        (plan("[" + "{id: identity}, " * 33 + "]"), "two tools are called"),
        (plan("[]"), "tools"),
    ],
)  # fmt: skip
def test_hostile_and_broken_plans_get_a_line_and_nothing_worse(text: str, said: str) -> None:
    assert said in refusal(LOCAL, text)


def test_more_tools_than_a_plan_needs_are_refused() -> None:
    many = ", ".join(f"{{id: identity, name: t{n}}}" for n in range(33))
    assert "33 of them, limit 32" in refusal(LOCAL, plan(f"[{many}]"))


def test_a_plan_sent_as_an_object_becomes_the_text_that_goes_on_record() -> None:
    asked: dict[str, Any] = {
        "name": "Größe: 1", "tools": [{"id": "identity", "name": "copy"}], "alpha": 0.01,
        "controls": False,
    }  # fmt: skip
    loaded = LOCAL.read(plan_text(asked))
    assert loaded.plan.name == "Größe: 1" and loaded.plan.alpha == 0.01
    assert plan_text(asked) == plan_text(asked)
    assert plan_text("name: x\n") == "name: x\n"


def test_an_object_that_is_no_plain_data_is_refused() -> None:
    with pytest.raises(LikenessError, match="not bytes"):
        plan_text({"name": b"x"})


def test_the_sample_of_an_operators_file_is_one(samples_dir: Path) -> None:
    offers = load_offers(samples_dir / "tools.yaml")
    names = [offer.name for offer in offers.all() if offer.ready_made]
    assert names == ["image model low quality", "house retoucher"]
    for name in names:
        assert offers.read(plan(f"[{{id: '{name}'}}]")).plan.tools[0].id == name
