"""The image's recipe, as far as can be known without building it."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatch

import pytest

from tests.deploy.repository import DEPLOY, ROOT, version

pytestmark = pytest.mark.slow

BUILD_TOOLS = ("apt-get", "gcc", "make", " uv ", "pip install", "uv sync")


@dataclass
class Stage:
    """One FROM and what follows it."""

    image: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def all(self, instruction: str) -> list[str]:
        return [rest for name, rest in self.steps if name == instruction]

    def last(self, instruction: str) -> str:
        return self.all(instruction)[-1]

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for rest in self.all("ENV") for pair in shlex.split(rest))


def stages() -> list[Stage]:
    text = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    found: list[Stage] = []
    for line in filter(None, map(str.strip, lines)):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            image, _, name = rest.partition(" AS ")
            found.append(Stage(image, name))
        else:
            found[-1].steps.append((instruction, " ".join(rest.split())))
    return found


DEPENDENCIES, BUILD, FINAL = stages()


def test_all_stages_stand_on_the_same_pinned_slim_python() -> None:
    assert BUILD.image == DEPENDENCIES.name
    assert DEPENDENCIES.image == FINAL.image  # the environment's python is a link to the image's
    assert re.fullmatch(r"python:3\.11\.\d+-slim-[a-z]+", FINAL.image)


def test_the_environment_is_the_lock_files_with_the_uv_of_the_makefile() -> None:
    pinned = re.search(r"^UV_VERSION := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert pinned
    uv, extras = DEPENDENCIES.all("ARG")
    assert BUILD.all("ARG") == [extras]
    assert uv == f"UV_VERSION={pinned[1]}"
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(shlex.split(extras.removeprefix("EXTRAS="))[0].split()) <= known.keys() - {"spark", "lab"}
    syncs = [step for stage in (DEPENDENCIES, BUILD) for step in stage.all("RUN") if "uv sync" in step]
    assert len(syncs) == 2
    for sync in syncs:
        assert "--frozen" in sync
        assert "--no-default-groups" in sync
        assert '$(printf " --extra %s" ${EXTRAS})' in sync
    assert "--no-install-project" in syncs[0]
    assert "--no-editable" in syncs[-1]
    assert DEPENDENCIES.environment["UV_COMPILE_BYTECODE"] == "1"  # a read-only root keeps none


def test_nothing_that_builds_is_in_the_image() -> None:
    shown = " ".join(FINAL.all("RUN"))
    assert not [tool for tool in BUILD_TOOLS if tool in f" {shown} "]
    assert "pip uninstall" in shown
    froms = {copy.split()[0] for copy in FINAL.all("COPY")}
    assert froms == {f"--from={DEPENDENCIES.name}", f"--from={BUILD.name}"}


def test_dependencies_are_a_layer_below_that_of_the_package_and_its_compiled_functions() -> None:
    folder = FINAL.environment["NUMBA_CACHE_DIR"].rpartition("/")[0]
    below, above = FINAL.all("COPY")[:2]
    assert below == f"--from={DEPENDENCIES.name} {folder} {folder}"
    assert above == f"--from={BUILD.name} /own {folder}"
    for stage in (DEPENDENCIES, FINAL):
        assert not [copy for copy in stage.all("COPY") if "streamwatch ./streamwatch" in copy]
    collected = next(step for step in BUILD.all("RUN") if "/own/venv/bin" in step)
    for part in ("/venv/bin/streamwatch ", "/site-packages/streamwatch* ", f"{folder}/kernel "):
        assert f"cp -a {folder}" in collected
        assert part in collected


def test_it_runs_as_a_user_without_rights_whose_number_is_fixed() -> None:
    assert FINAL.steps.index(("USER", "10001:10001")) < FINAL.steps.index(("CMD", '["run"]'))
    accounts = " ".join(FINAL.all("RUN"))
    assert "--uid 10001 --gid 10001" in accounts
    assert "--owner=10001 --group=10001" in accounts
    assert not [
        step for step in FINAL.steps[FINAL.steps.index(("USER", "10001:10001")) :] if step[0] == "RUN"
    ]


def test_the_kernel_is_compiled_for_any_processor_and_used_from_where_it_was_compiled() -> None:
    compiled = next(step for step in BUILD.all("RUN") if "streamwatch compile" in step)
    for name in ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME"):
        assert f"{name}={FINAL.environment[name]}" in compiled
    assert FINAL.environment["NUMBA_CPU_NAME"] == "generic"
    folder = FINAL.environment["NUMBA_CACHE_DIR"].rpartition("/")[0]
    assert FINAL.environment["NUMBA_CACHE_DIR"] == f"{folder}/kernel"
    for stage, made in ((DEPENDENCIES, folder), (BUILD, "/own")):
        assert any(f"chmod -R a-w,a+rX {made}" in step for step in stage.all("RUN"))
    assert f"{FINAL.environment['STREAMWATCH_CONFIG']}" in compiled


def test_commands_are_found_where_the_build_put_them() -> None:
    environment = DEPENDENCIES.environment["UV_PROJECT_ENVIRONMENT"]
    assert FINAL.environment["PATH"].startswith(f"{environment}/bin:")
    assert json.loads(FINAL.last("ENTRYPOINT")) == ["streamwatch"]
    assert json.loads(FINAL.last("CMD")) == ["run"]


def test_state_has_a_volume_and_the_process_starts_in_it() -> None:
    assert json.loads(FINAL.last("VOLUME")) == [FINAL.last("WORKDIR")] == ["/var/lib/streamwatch"]


def test_a_stop_is_the_signal_the_daemon_knows() -> None:
    assert FINAL.last("STOPSIGNAL") == "SIGTERM"


def test_health_is_asked_with_what_python_brings() -> None:
    options, _, command = FINAL.last("HEALTHCHECK").partition("CMD ")
    assert {"--interval", "--timeout", "--start-period", "--retries"} == set(
        re.findall(r"--[a-z-]+", options)
    )
    program, flag, script = json.loads(command)
    assert (program, flag) == ("python", "-c")
    ast.parse(script)
    assert f"http://127.0.0.1:{FINAL.last('EXPOSE')}/healthz" in script


def test_labels_say_what_it_is() -> None:
    shown = dict(pair.split("=", 1) for pair in shlex.split(FINAL.last("LABEL")))
    assert {
        f"org.opencontainers.image.{key}"
        for key in ("title", "description", "licenses", "version", "revision")
    } <= set(shown)
    assert f"VERSION={version()}" in FINAL.all("ARG")
    assert shown["org.opencontainers.image.base.name"].endswith(FINAL.image)


@pytest.mark.parametrize(
    "copied", [s for stage in (DEPENDENCIES, BUILD) for c in stage.all("COPY") for s in c.split()[:-1]]
)
def test_what_is_copied_exists_and_reaches_the_build(copied: str) -> None:
    assert (ROOT / copied).exists()
    ignored = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.removeprefix("!")
        if (
            line
            and not line.startswith("#")
            and (fnmatch(copied, pattern) or copied.startswith(f"{pattern}/"))
        ):
            ignored = not line.startswith("!")
    assert not ignored
