"""``likeness tools`` and ``likeness tools check`` as a user sees them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

import adapters.contract
from adapters.codec import read_rgb, write_png
from adapters.contract import ToolSpec
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.sizing import SizeRule
from domain.tools import Price, RateLimit
from service.cli import audit as audit_command
from service.cli import tools as tools_command
from service.cli.tool_answers import clock_words, size_words
from service.fake_servers.contract import start

REPO = Path(__file__).resolve().parents[3]
SPEC = ToolSpec(
    id="hosted", name="hosted", tasks=(Task.RETOUCH, Task.INPAINT_FACE), remote=True,
    mask_support="advisory", takes_prompt=True, rate=RateLimit(150, 10.0), concurrency=4,
    price=Price(0.04, source="price list of May"), refuses=("Pictures of known people: refused.",),
)  # fmt: skip
Script = Callable[[EditRequest], EditOutcome]


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    tools_command.register(made)
    audit_command.register(made)
    return made


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Offers the tool "hosted" that answers by a script; returns the settings it was built with."""
    real = adapters.contract.discover()

    def offer(script: Script, spec: ToolSpec = SPEC) -> dict[str, Any]:
        got: dict[str, Any] = {}

        def build(settings: Mapping[str, Any]) -> Any:
            got.update(settings)
            return SimpleNamespace(spec=spec, model="m-1", edit=script, close=lambda: None)

        module = cast(Any, SimpleNamespace(SPEC=spec, build=build))
        found = real | {spec.id: (spec, module)}
        monkeypatch.setattr(adapters.contract, "discover", lambda: found)
        return got

    return offer


def run(app: typer.Typer, *arguments: str, **more: Any) -> Result:
    return CliRunner().invoke(app, ["tools", *arguments], **more)


def darkened(request: EditRequest) -> EditOutcome:
    meta = {"request_id": "req_7", "http_status": 200, "clock_skew_s": 0.4, "note": "done quickly",
            "cost": {"amount": 0.042, "currency": "USD"}, "sent": {"prompt": request.prompt}}  # fmt: skip
    pixels = read_rgb(request.picture)
    return Edited(write_png((pixels // 2).astype(np.uint8)), meta)


def test_the_bare_command_still_lists_every_tool(app: typer.Typer) -> None:
    done = run(app)
    assert done.exit_code == 0
    assert "identity" in done.stdout and "openai_images" in done.stdout
    rows = {r["id"]: r for r in map(json.loads, run(app, "--json").stdout.splitlines())}
    assert set(rows) == set(adapters.contract.discover())
    assert rows["openai_images"]["key_env"] == "OPENAI_API_KEY"
    assert rows["openai_images"]["refuses"]


def test_everything_about_an_answer_is_told(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]]
) -> None:
    settings = hosted(darkened)
    done = run(
        app, "check", "hosted", "--set", "steps=[1, 2]", "--set", "a=b", "--prompt", "soften"
    )
    assert done.exit_code == 0, done.output
    assert settings == {"steps": [1, 2], "a": "b"}
    for said in (
        "a picture came back", "720x960", "image/png", "m-1", "req_7", "200",
        "agrees with the server's", "0.042 USD, as the tool says", "prompt soften", "done quickly",
        "of the picture's pixels", "found in the answer",
    ):  # fmt: skip
        assert said in done.stdout, said


def test_what_would_be_refused_or_not_fit_is_told_too(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]]
) -> None:
    hosted(darkened)
    said = run(app, "check", "hosted").stdout.partition("What would be refused or not fit")[2]
    for part in (
        "Pictures of known people: refused.", "Size: sides of 1 to 8192 px", "retouch, inpaint face",
        "may change pixels outside it", "at most 150 calls in 10 s; 4 at a time",
        "0.04 USD a call (price list of May)",
    ):  # fmt: skip
        assert part in said, part


def test_the_mask_is_told_inside_and_outside(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]]
) -> None:
    hosted(darkened)
    done = run(app, "check", "hosted", "--task", "inpaint_face")
    assert "a mask of the face" in done.stdout
    assert "of the mask's pixels" in done.stdout
    assert "of the protected pixels moved by more than 4 levels" in done.stdout


def test_json_says_the_same_and_holds_no_picture(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]]
) -> None:
    hosted(darkened)
    done = run(app, "check", "hosted", "--task", "inpaint_face", "--json")
    (line,) = done.stdout.splitlines()
    told = json.loads(line)
    assert told["answer"]["outcome"] == "edited" and told["answer"]["bytes"] > 1000
    assert "picture" not in told["answer"]
    assert told["sent"]["mask"] == "face" and told["sent"]["task"] == "inpaint_face"
    assert 0 < told["answer"]["outside_changed"] <= 1
    assert told["price"]["per_call"] == 0.04 and told["spec"]["rate_limit"] == "150/10s"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Refused("output", "content_filtered", "blurred by \x1b[31mpolicy"),
            "refused (stage output, code content_filtered): blurred by",
        ),
        (Failed("busy", True, 2.0), "failed: busy (an audit would try again after 2 s)"),
        (Failed("no credit", meta={"maybe_billed": True}), "may be billed"),
        (Edited(b"<html>"), "no usable picture"),
    ],
)
def test_no_picture_ends_with_1_and_its_reason_whatever_the_format(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]], answer: EditOutcome, said: str
) -> None:
    hosted(lambda r: answer)
    plain = run(app, "check", "hosted")
    assert plain.exit_code == 1 and said in plain.stdout
    assert "\x1b" not in plain.stdout
    assert run(app, "check", "hosted", "--json").exit_code == 1


def test_the_answer_is_saved_as_it_came(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    sent: list[bytes] = []

    def echo(request: EditRequest) -> EditOutcome:
        sent.append((request.picture or b"") + b"trailer")
        return Edited(sent[0])

    hosted(echo)
    path = tmp_path / "answer.png"
    run(app, "check", "hosted", "--save", str(path))
    assert path.read_bytes() == sent[0]
    done = run(app, "check", "hosted", "--save", str(tmp_path / "no" / "where.png"))
    assert isinstance(done.exception, LikenessError) and "cannot be written" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch"], "unknown tool 'nosuch'"),
        (["hosted", "--set", "steps"], "--set: write KEY=VALUE"),
        (["hosted", "--set", "steps=[1"], "not valid YAML"),
        (["hosted", "--plan", "no.yaml"], "no such plan"),
        (["hosted", "--picture", "gone.png"], "gone.png"),
        (["hosted", "--task", "restyle"], "does not do 'restyle'"),
    ],
)
def test_what_cannot_be_tried_is_one_line(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]], arguments: list[str], said: str
) -> None:
    hosted(darkened)
    done = run(app, "check", *arguments)
    assert isinstance(done.exception, LikenessError)  # which the entry point ends with 2
    assert said in str(done.exception) and "\n" not in str(done.exception)


def test_a_label_of_a_plan_brings_its_settings(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    settings = hosted(darkened)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"name: p\nportraits: {{manifest: {REPO}/samples/portraits/manifest.csv}}\n"
        "tools: [{id: hosted, name: mine, tasks: [inpaint_face], settings: {a: 1, b: 2}}]\n"
    )
    done = run(app, "check", "mine", "--plan", str(plan), "--set", "b=3")
    assert done.exit_code == 0, done.output
    assert settings == {"a": 1, "b": 3} and "a mask of the face" in done.stdout


class Terminal:
    """A stand-in for stdin that is a terminal."""

    @staticmethod
    def isatty() -> bool:
        return True


def test_a_known_price_is_told_and_nobody_is_asked(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted(darkened)
    asked: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text))
    monkeypatch.setattr(tools_command.sys, "stdin", Terminal())
    done = CliRunner().invoke(app, ["tools", "check", "hosted"])
    assert asked == []
    assert "price: 0.04 USD a call (price list of May)" in done.stderr
    assert "to another machine" in done.stderr


@pytest.mark.parametrize(
    ("flags", "terminal", "agrees", "questions", "sent"),
    [
        ([], True, True, 1, True),
        ([], True, False, 1, False),
        (["--yes"], True, False, 0, True),
        ([], False, False, 0, True),
    ],
)
def test_an_unknown_price_is_asked_about_at_a_terminal_only(
    app: typer.Typer, hosted: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch,
    flags: list[str], terminal: bool, agrees: bool, questions: int, sent: bool,
) -> None:  # fmt: skip
    calls: list[EditRequest] = []

    def keep(request: EditRequest) -> EditOutcome:
        calls.append(request)
        return darkened(request)

    spec = ToolSpec(
        id="hosted", name="h", tasks=(Task.RETOUCH,), remote=True, price_note="by tokens"
    )
    hosted(keep, spec)
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return agrees

    monkeypatch.setattr(tools_command.typer, "confirm", confirm)
    stand_in = SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(tools_command, "sys", SimpleNamespace(stdin=stand_in, stderr=None))
    done = run(app, "check", "hosted", *flags)
    assert len(asked) == questions and bool(calls) is sent
    if not sent:
        assert isinstance(done.exception, LikenessError) and str(done.exception) == "not sent"


def test_a_hosted_tools_key_is_on_no_screen(
    app: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start("openai") as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        done = run(app, "check", "openai_images", "--set", f"base_url={server.url}", "--json")
        key = server.key
    assert done.exit_code == 0, done.output
    assert key not in done.output
    assert "this machine (127.0.0.1:" in done.stderr and "price:" not in done.stderr


def test_a_key_given_as_a_setting_is_refused_without_being_quoted(app: typer.Typer) -> None:
    done = run(app, "check", "openai_images", "--set", "key=sk-canary-123456")
    assert isinstance(done.exception, LikenessError)
    assert "sk-canary" not in str(done.exception) and "key_env" in str(done.exception)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (SizeRule(), "sides of 1 to 8192 px"),
        (
            SizeRule(multiple=8, min_side=64, max_side=2048),
            "sides of 64 to 2048 px in multiples of 8",
        ),
        (SizeRule(sizes=((1024, 1024), (1024, 1536))), "only 1024x1024, 1024x1536"),
        (SizeRule(aspect=0.75), "sides of 1 to 8192 px, 0.75 times as wide as high"),
    ],
)
def test_a_size_rule_is_told_in_words(rule: SizeRule, said: str) -> None:
    assert size_words(rule) == said


@pytest.mark.parametrize(
    ("skew", "said"),
    [
        (-1.0, "agrees with the server's"),
        (10.0, "this machine's is 10.0 s behind the server's"),
        (
            -600.0,
            "this machine's is 10 min 0 s ahead of the server's: signed requests may be refused",
        ),
    ],
)
def test_the_clock_is_told_in_words(skew: float, said: str) -> None:
    assert clock_words(skew) == said
