"""Builds the image's root file system without Docker and tries it out. Started by clean_root.sh."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import building
import checking
import roots
import steps

REPO = Path(__file__).resolve().parents[1]


def main() -> int:
    """Exit code 0: built and every check passed; 1: something is wrong; it is said in lines of its own."""
    options = _options()
    started = time.monotonic()
    file = steps.read(REPO / "Dockerfile")
    try:
        root = _root(options, file)
    except roots.StepFailed as error:
        print(f"wrong: {error}\nthe logs lie in {options.work}", file=sys.stderr)
        return 1
    _sizes(root)
    runner = checking.Runner(root, file.settings(), file.last("USER").text)
    wrong = checking.everything(runner, file, REPO, _say)
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    _say(f"{len(wrong) or 'nothing'} wrong, {time.monotonic() - started:.0f} s in all")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder; about 6 GB")
    parser.add_argument("--bare", action="store_true", help="a bare folder in place of a Debian")
    parser.add_argument("--built", type=Path, help="try out a root that an earlier --keep left")
    parser.add_argument(
        "--wheels", type=Path, help="a folder of wheels, as --build-context wheels="
    )
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args()


def _root(options: argparse.Namespace, file: steps.Dockerfile) -> roots.Chroot | roots.Bare:
    if options.built:
        return roots.Chroot(options.built.absolute())
    started = time.monotonic()
    arguments = dict(row.split("=", 1) for row in options.build_arg)
    build = building.Build(file, REPO, options.work, arguments, options.wheels, _say)
    root = build.bare("build") if options.bare else build.whole()
    _say(f"built ({time.monotonic() - started:.0f} s)")
    return root


def _sizes(root: roots.Chroot | roots.Bare) -> None:
    for place in ("", "opt/likeness", "usr"):
        if (root.folder / place).exists():
            command = ["du", "-sxm", str(root.folder / place)]
            size = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
            _say(f"size of /{place}: {size.split()[0]} MB")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
