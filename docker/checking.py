"""What a built root must show: everything links, nothing is written outside two folders, the service answers."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import small_audit
from roots import SYSTEM_PATH, Bare, Chroot, mounted
from steps import Dockerfile

START_SECONDS = 120
PICTURES = ("samples/portraits/images", "*.jpg")
_UNLINKED = (
    "find /opt/likeness -name '*.so*' -type f -exec ldd {} + 2>/dev/null"
    " | awk '/:$/ {file = $1} /not found/ {print $1, file}' | sort | uniq"
)


class Runner:
    """Runs programs in the root as the image's user: no rights, root file system read-only, /data and /tmp writable."""

    def __init__(self, root: Chroot | Bare, env: Mapping[str, str], user: str) -> None:
        self.root, self.env, self.user = root, dict(env), user
        self.data = root.folder.parent / "data"

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """The mounts that a container with ``read_only: true`` would have."""
        # a new volume is filled with what the image has at its place
        (self.data / "tmp").mkdir(parents=True, exist_ok=True)
        if isinstance(self.root, Bare):
            self.root.at("/data/tmp").mkdir(parents=True, exist_ok=True)
            yield
            return
        uid, _, gid = self.user.partition(":")
        for folder in (self.data, self.data / "tmp"):
            folder.chmod(0o750)
            os.chown(folder, int(uid), int(gid))
        root = self.root
        for name, source in (("resolv.conf", "/etc/resolv.conf"), ("hosts", "/etc/hosts")):
            root.at(f"etc/{name}").write_bytes(Path(source).read_bytes())
        with contextlib.ExitStack() as stack:
            stack.enter_context(mounted(root.folder, "--bind", str(root.folder)))
            command = ["mount", "-o", "remount,ro,bind", str(root.folder)]
            subprocess.run(command, check=True)  # noqa: S603 - our own folder
            stack.enter_context(root.systems())
            stack.enter_context(mounted(root.at("tmp"), "-t", "tmpfs", "-o", "mode=1777", "tmpfs"))
            stack.enter_context(mounted(root.at("data"), "--bind", str(self.data)))
            yield

    def command(self, words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """The command line on this machine that runs ``words`` inside, and its environment."""
        if isinstance(self.root, Bare):
            env = {key: self.root.inside(value) for key, value in self.env.items()}
            env["PATH"] += f":{os.environ['PATH']}"
            return [
                "/usr/bin/env",
                "-C",
                str(self.root.at("/data")),
                *map(self.root.inside, words),
            ], env
        uid, _, gid = self.user.partition(":")
        rights = ["--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        within = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={gid}", *rights]
        inside = ["/usr/bin/env", "-C", self.env.get("WORKDIR", "/data"), *words]
        chroot = shutil.which("chroot", path=SYSTEM_PATH) or "chroot"
        return [chroot, str(self.root.folder), *within, *inside], dict(self.env)

    def run(self, *words: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        command, env = self.command(words)
        return subprocess.run(  # noqa: S603 - the image's own programs
            command, env=env, capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


def everything(
    runner: Runner, file: Dockerfile, context: Path, say: Callable[[str], None]
) -> list[str]:
    """Run every check; what is wrong, a line each."""
    wrong: list[str] = []
    with runner.ready():
        checks = (
            lambda: _links(runner, say),
            lambda: _drivers(runner, say),
            lambda: _sealed(runner, say),
            lambda: _doctor(runner, say),
            lambda: _measures(runner, context, say),
            lambda: _serves(runner, file, context, say),
        )
        for check in checks:
            wrong += check()
    return wrong


def _links(runner: Runner, say: Callable[[str], None]) -> list[str]:
    """Libraries that a compiled file asks for and neither Debian nor its wheel brings."""
    done = runner.run("sh", "-c", _UNLINKED)
    missing = [line for line in done.stdout.splitlines() if line]
    say(f"libraries not found by ldd: {len(missing) or 'none'}")
    for line in missing:
        say(f"  {line}")
    return []  # a library may be loaded by its package before it is asked for: measuring decides


def _drivers(runner: Runner, say: Callable[[str], None]) -> list[str]:
    """PostgreSQL and S3 can be spoken to: their packages load, with the libraries they bring."""
    done = runner.run("python", "-c", "import psycopg, s3fs; print(psycopg.pq.version())")
    say(f"drivers of PostgreSQL and S3: exit code {done.returncode}")
    return [] if done.returncode == 0 else [f"drivers: {done.stderr.strip()[-400:]}"]


def _sealed(runner: Runner, say: Callable[[str], None]) -> list[str]:
    """Nobody's rights, and no place to write but two."""
    if isinstance(runner.root, Bare):
        say("read-only root and user: not shown without root")
        return []
    tried = "for d in / /etc /opt/likeness /usr/bin /var/tmp /home; do touch $d/x 2>/dev/null && echo $d; done; true"
    writable = runner.run("sh", "-c", tried).stdout.split()
    rights = runner.run("sh", "-c", "id -u; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")
    setuid = runner.run("sh", "-c", "find / -xdev -type f -perm /6000 2>/dev/null").stdout.split()
    say(f"runs as: {' '.join(rights.stdout.split())}")
    wrong = [f"{folder} can be written to" for folder in writable]
    wrong += [f"{path} runs with more rights than its caller" for path in setuid]
    for folder in ("/data", "/tmp"):  # noqa: S108 - inside the root
        if runner.run("sh", "-c", f"touch {folder}/x && rm {folder}/x").returncode != 0:
            wrong.append(f"{folder} cannot be written to")
    return wrong


def _doctor(runner: Runner, say: Callable[[str], None]) -> list[str]:
    done = runner.run("likeness", "doctor", "--json")
    start = done.stdout.find("{")
    rows = json.loads(done.stdout[start:]).get("checks", []) if start >= 0 else []
    say(f"likeness doctor: exit code {done.returncode}, {len(rows)} checks")
    if not rows:
        return [f"likeness doctor said nothing of use: {done.stderr.strip()[-400:]}"]
    return [
        f"doctor: {row['name']}: {row['found']}" for row in rows if row.get("status") == "problem"
    ]


def _measures(runner: Runner, context: Path, say: Callable[[str], None]) -> list[str]:
    """A pair of sample portraits measured with both engines: every compiled library is really loaded."""
    picture = sorted((context / PICTURES[0]).glob(PICTURES[1]))[0]
    name = f"sample{picture.suffix}"
    (runner.data if runner.root.whole else runner.root.at("/data")).joinpath(name).write_bytes(
        picture.read_bytes()
    )
    wrong = []
    for engine in ("mediapipe", "dlib"):
        started = time.monotonic()
        done = runner.run(
            "likeness", "measure", f"/data/{name}", f"/data/{name}", "--engine", engine, "--json"
        )
        took = time.monotonic() - started
        say(f"likeness measure, engine {engine}: exit code {done.returncode} ({took:.1f} s)")
        if done.returncode != 0:
            wrong.append(f"measure with {engine}: {done.stderr.strip()[-400:]}")
    return wrong


def _serves(
    runner: Runner, file: Dockerfile, context: Path, say: Callable[[str], None]
) -> list[str]:
    """The image's own command answers the image's own health check, does an audit, and ends when told to."""
    made = runner.run("likeness", "keys", "add", "clean-root", "--scope", "admin")
    if made.returncode != 0:
        return [f"keys add: {made.stderr.strip()[-400:]}"]
    port = str(_free_port())
    words = [*file.last("ENTRYPOINT").words(), *file.last("CMD").words()]
    command, env = runner.command([port if word == "8600" else word for word in words])
    log = runner.data.parent / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - the image's own command
            command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        wrong = _healthy(runner, file, process, port, say)
        wrong = wrong or _audits(f"http://127.0.0.1:{port}", made.stdout.strip(), context, say)
    finally:
        code = _ended(process)
    say(f"told to end: exit code {code}")
    if code is None:
        wrong.append("serve did not end within 30 s of being told to")
    return [*wrong, *(log.read_text("utf-8", "replace").splitlines()[-8:] if wrong else [])]


def _healthy(
    runner: Runner, file: Dockerfile, process: subprocess.Popen[bytes], port: str,
    say: Callable[[str], None],
) -> list[str]:  # fmt: skip
    health = [word.replace(":8600", f":{port}") for word in _health(file)]
    started = time.monotonic()
    while runner.run(*health, seconds=30).returncode != 0:
        if process.poll() is not None or time.monotonic() - started > START_SECONDS:
            return ["serve did not come up; its last words:"]
        time.sleep(0.5)
    say(f"likeness serve: healthy after {time.monotonic() - started:.1f} s")
    return []


def _audits(url: str, key: str, context: Path, say: Callable[[str], None]) -> list[str]:
    started = time.monotonic()
    try:
        say(f"ready: {', '.join(small_audit.ready(url)['checks'])}")
        found = small_audit.run(url, key, context / "samples" / "portraits")
    except OSError as error:
        return [f"an audit over REST: {error}"]
    took = time.monotonic() - started
    say(
        f"an audit of {small_audit.PICTURES} pictures over REST: {found['state']}, {found['outcomes']}, "
        f"report of {found['report_bytes'] / 1e6:.1f} MB ({took:.0f} s)"
    )
    if found["state"] != "done" or not found["report_bytes"]:
        return [f"an audit over REST: {found['state']}: {found['error']}"]
    return []


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code after a SIGTERM; None where it had to be killed."""
    process.terminate()
    try:
        return process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _health(file: Dockerfile) -> list[str]:
    text = file.last("HEALTHCHECK").text.removeprefix("CMD").strip()
    return [str(word) for word in json.loads(text)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
