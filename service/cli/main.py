"""The command line: one file a command in this package, found by discovery."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
import traceback
from typing import NoReturn

from service.guard import check_packages

check_packages()  # first: a stranger's package under one of our names would break the imports below

from service import settings  # noqa: E402

settings.pin_threads()

import typer  # noqa: E402 - thread counts must be set before anything loads numpy's libraries

from service import secrets  # noqa: E402
from service.gate import ExitCode  # noqa: E402
from service.native import keep_freed_memory, silence_native_chatter  # noqa: E402

app = typer.Typer(
    name="likeness",
    help="Audits AI image tools for uneven harm to faces, with evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def build_app() -> typer.Typer:
    """The application with every command of this package."""
    package = importlib.import_module("service.cli")
    if not app.registered_commands and not app.registered_groups:
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
            module = importlib.import_module(f"service.cli.{info.name}")
            if hasattr(module, "register"):
                module.register(app)
    return app


def run() -> NoReturn:
    """Entry point of ``likeness``: every expected failure is one line on stderr and exit code 2."""
    from domain.errors import LikenessError

    silence_native_chatter()
    keep_freed_memory()
    try:
        import cv2

        from preprocess import models

        cv2.setNumThreads(1)
        models.configure(settings.load().models)
        build_app()()
    except LikenessError as error:
        print(f"likeness: {secrets.hide_keys(str(error))}", file=sys.stderr)
        sys.exit(ExitCode.COULD_NOT_RUN)
    except BrokenPipeError:  # the reader of our output (head, less) has gone
        sys.stderr.close()
        sys.exit(ExitCode.COULD_NOT_RUN)
    except KeyboardInterrupt:
        print("likeness: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        print(f"likeness: {_fault(error)}", file=sys.stderr)
        sys.exit(ExitCode.COULD_NOT_RUN)
    sys.exit(ExitCode.PASS)


def _fault(error: Exception) -> str:
    """A fault of ours in one line; the traceback goes to a file that a report can attach."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="likeness-fault-", suffix=".txt", delete=False, encoding="utf-8"
    ) as note:
        # a stranger's exception may quote the key that it was given
        note.write(secrets.hide_keys("".join(traceback.format_exception(error))))
    cause = secrets.hide_keys(str(error).splitlines()[0] if str(error) else "no message")
    return f"a fault of the program ({type(error).__name__}: {cause}); details: {note.name}"


if __name__ == "__main__":
    run()
