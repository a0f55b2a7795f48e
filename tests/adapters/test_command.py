"""Any program can be a tool, and however it ends, the audit learns why."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from adapters.codec import read_rgb, write_png
from adapters.command import COPY
from adapters.contract import build
from adapters.local.command_process import last_line
from domain.edits import Edited, EditOutcome, EditRequest, Failed, Refused, Task
from domain.errors import LikenessError
from domain.masks import Mask, MaskKind

PICTURE = write_png(np.arange(48 * 32 * 3, dtype=np.uint16).astype(np.uint8).reshape(32, 48, 3))


def run(
    code: str, *arguments: str, prompt: str = "", mask: bool = True, **settings: object
) -> EditOutcome:
    """Edit with a little Python program; {output} is always its last argument."""
    argv = [
        sys.executable,
        "-c",
        "import sys, os; out = sys.argv[-1]; " + code,
        *arguments,
        "{output}",
    ]
    values = np.zeros((32, 48), dtype=np.uint8)
    values[:, 24:] = 255
    request = EditRequest(
        "a", Task.RETOUCH, PICTURE, width=48, height=32, seed=42, prompt=prompt,
        mask=Mask(values, MaskKind.FACE) if mask else None,
    )  # fmt: skip
    return build("command", {"argv": argv, **settings}).edit(request)


def written(outcome: EditOutcome) -> str:
    assert isinstance(outcome, Edited), outcome
    return outcome.picture.decode()


WRITE = "open(out, 'w').write(repr(sys.argv[1:-1]))"


def test_what_the_program_writes_comes_back_byte_for_byte() -> None:
    argv = [sys.executable, "-c", COPY, "{input}", "{output}"]
    outcome = build("command", {"argv": argv}).edit(
        EditRequest("a", Task.RETOUCH, PICTURE, width=48, height=32)
    )
    assert outcome == Edited(PICTURE)


def test_placeholders_are_filled_in_wherever_they_stand() -> None:
    text = written(run(WRITE, "--size={width}x{height}", "{seed}", "{prompt}", prompt="a hat"))
    assert text == "['--size=48x32', '42', 'a hat']"


def test_no_shell_ever_sees_a_prompt() -> None:
    hostile = "$(touch /tmp/owned) `id`; exit 1 | '\" && {input} {seed}"
    assert written(run(WRITE, "{prompt}", prompt=hostile)) == repr([hostile])


def test_the_mask_arrives_as_a_grey_png_with_white_to_edit() -> None:
    data = run("import shutil; shutil.copy(sys.argv[1], out)", "{mask}")
    assert isinstance(data, Edited)
    values = read_rgb(data.picture)[..., 0]
    assert (values[:, 24:] == 255).all()
    assert not values[:, :24].any()


def test_a_missing_mask_is_said() -> None:
    outcome = run("pass", "{mask}", mask=False)
    assert outcome == Failed("the request has no mask, and the program wants {mask}")


def test_a_program_sees_no_secrets_but_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_TOKEN", "open-sesame")
    monkeypatch.setenv("OTHER_TOKEN", "not for you")
    code = "open(out, 'w').write(repr(sorted(k for k in os.environ if 'TOKEN' in k)))"
    assert written(run(code)) == "[]"
    assert written(run(code, pass_env=["VENDOR_TOKEN"])) == "['VENDOR_TOKEN']"


def test_a_named_secret_is_cut_out_of_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_TOKEN", "open-sesame")
    code = "sys.exit('cannot log in with ' + os.environ['VENDOR_TOKEN'])"
    outcome = run(code, pass_env=["VENDOR_TOKEN"])
    assert isinstance(outcome, Failed)
    assert outcome.reason == "the program ended with exit status 1: cannot log in with [removed]"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("401: api_key=abcd1234efgh is wrong", "401: api_key=[removed] is wrong"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: [removed]"),
        ("invalid token ab12cd34", "invalid token [removed]"),
        ("token limit exceeded",) * 2,
        ("KeyError: 'width'",) * 2,
        ("bad key sk-abcdefghijklmnop1234", "[removed]"),
        ("https://me:pass@host/x failed", "https://[removed]@host/x failed"),
        ("id 0123456789abcdef0123456789abcdef", "id [removed]"),
        ("\x1b[31mred\x1b[0m alert\x07", "red alert"),
        ("first\nsecond\n\n", "second"),
        ("10%\r50%\r100%\n", "100%"),
        ("", ""),
        ("cannot read /data/portraits/face_0001.png: no such file",) * 2,
    ],
)
def test_the_last_line_is_cleaned(line: str, kept: str) -> None:
    cleaned = last_line(line.encode())
    assert kept in cleaned
    assert "sk-abc" not in cleaned


def test_a_long_complaint_is_shortened() -> None:
    assert len(last_line(b"word " * 500)) == 200


def test_the_exit_status_and_the_last_words_are_the_reason() -> None:
    outcome = run("print('loading', file=sys.stderr); sys.exit('no GPU here')")
    assert outcome == Failed("the program ended with exit status 1: no GPU here")


def test_an_agreed_exit_status_is_a_refusal() -> None:
    code = "print('content policy: faces', file=sys.stderr); sys.exit(3)"
    expected = Refused("policy", "exit 3", "content policy: faces")
    assert run(code, refused_exit=3) == expected
    assert run(code, refused_exit=[2, 3]) == expected
    assert isinstance(run(code), Failed)


def test_missing_and_empty_output_fail_with_a_reason() -> None:
    assert run("pass") == Failed("the program ended well but wrote no {output}")
    assert run("open(out, 'w')") == Failed("the program's {output} is empty")
    assert run("os.symlink('/etc/passwd', out)") == Failed(
        "the program's {output} is not a plain file"
    )


def test_a_result_over_the_size_limit_is_not_taken() -> None:
    outcome = run("open(out, 'wb').write(bytes(300_000))", max_output_mb=0.1)
    assert isinstance(outcome, Failed)
    assert "0.1 MB" in outcome.reason


def test_a_program_that_never_stops_writing_is_stopped() -> None:
    code = "f = open(out, 'wb', 0); [f.write(bytes(100_000)) for _ in iter(int, 1)]"
    outcome = run(code, max_output_mb=1, timeout_s=60)
    assert outcome == Failed("the program was stopped: its {output} grew over 1 MB")


def test_the_time_limit_ends_the_program_and_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); "
        f"open({str(note)!r}, 'w').write(str(child.pid)); time.sleep(300)"
    )
    outcome = run(code, timeout_s=2)
    assert outcome == Failed("the program was stopped after its time limit of 2 s")
    assert is_gone(int(note.read_text()))


def test_background_children_do_not_outlive_the_program(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); "
        f"open({str(note)!r}, 'w').write(str(child.pid)); open(out, 'w').write('x')"
    )
    assert written(run(code)) == "x"
    assert is_gone(int(note.read_text()))


def is_gone(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_a_flood_on_stderr_does_not_stop_the_program() -> None:
    code = "sys.stderr.write('x' * 3_000_000 + '\\nlast'); open(out, 'w').write('done')"
    assert written(run(code)) == "done"


def test_the_temporary_folder_is_removed() -> None:
    where = Path(written(run("open(out, 'w').write(os.path.dirname(out))")))
    assert where.name.startswith("likeness-command-")
    assert not where.exists()


def test_a_result_of_another_size_is_noted() -> None:
    code = f"open(out, 'wb').write({write_png(np.zeros((8, 8, 3), dtype=np.uint8))!r})"
    outcome = run(code)
    assert isinstance(outcome, Edited)
    assert outcome.meta == {"note": "asked for 48x32, got 8x8"}


def test_the_plan_says_what_the_program_can_do() -> None:
    tool = build("command", {
        "argv": [sys.executable, "{output}", "{mask}"], "tasks": ["enhance"], "multiple": 8,
        "sizes": [[512, 512]], "mask_support": "enforced",
    })  # fmt: skip
    assert tool.spec.tasks == (Task.ENHANCE,)
    assert tool.spec.size.sizes == ((512, 512),)
    assert (tool.spec.mask_support, tool.spec.takes_prompt) == ("enforced", False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "setting 'argv' is missing"),
        (
            {"argv": ["no-such-program-xyz", "{output}"]},
            "program 'no-such-program-xyz' was not found",
        ),
        ({"argv": [sys.executable, "{input}"]}, "{output} is missing"),
        ({"argv": [sys.executable, "{ouput}"]}, "unknown placeholder {ouput}"),
        ({"argv": "python {output}"}, "setting 'argv'"),
        ({"argv": [sys.executable, "{output}"], "timeout": 3}, "did you mean 'timeout_s'?"),
        ({"argv": [sys.executable, "{output}"], "cwd": "/no/such"}, "folder '/no/such' (cwd)"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], words: str) -> None:
    with pytest.raises(LikenessError) as caught:
        build("command", settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_program_that_cannot_start_is_a_failure(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    outcome = build("command", {"argv": [os.fspath(broken), "{output}"]}).edit(
        EditRequest("a", Task.RETOUCH, PICTURE)
    )
    assert isinstance(outcome, Failed)
    assert "Exec format error" in outcome.reason


def test_a_program_in_the_folder_named_is_found_there(tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    script.write_text('#!/bin/sh\ncp "$1" "$2"\n')
    script.chmod(0o755)
    settings = {"argv": ["tool.sh", "{input}", "{output}"], "cwd": os.fspath(tmp_path)}
    outcome = build("command", settings).edit(EditRequest("a", Task.RETOUCH, PICTURE))
    assert outcome == Edited(PICTURE)
