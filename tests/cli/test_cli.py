"""Commands as a person meets them: help, versions, examples, exit codes."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from streamwatch import __version__
from streamwatch.cli import app
from streamwatch.cli.build import build
from tests.commands import CliRunner

COMMANDS = ("run", "demo", "simulate", "replay", "inspect", "check", "doctor", "catalogue", "state", "config")
NOWHERE = ["-s", "kafka.bootstrap_servers=127.0.0.1:1", "-s", "topics.predictions=p", "-s", "topics.labels=l"]


@pytest.fixture
def streamwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


def plain(text: str) -> str:
    """Without colours and frames."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_help_names_every_command_and_how_to_begin(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in COMMANDS:
        assert re.search(rf"│ {command}\b", plain(result.output)), command
    assert "streamwatch demo" in plain(result.output)


@pytest.mark.slow
@pytest.mark.parametrize("command", [*COMMANDS[:-2], "config example", "config schema", "config scrape"])
def test_the_help_of_each_command_teaches_by_an_example(streamwatch: CliRunner, command: str) -> None:
    result = streamwatch.invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    before_options = plain(result.output).split("╭")[0]
    assert f"streamwatch {command}" in before_options


@pytest.mark.parametrize(
    "line",
    [
        "demo --seconds nan",
        "simulate --rate inf",
        "simulate --time-scale inf",
        "simulate --delay inf",
        "state backup --timeout nan",
        "tune --traffic inf",
    ],
)
def test_a_number_that_is_not_finite_is_refused(streamwatch: CliRunner, line: str) -> None:
    result = streamwatch.invoke(app, line.split())
    assert result.exit_code == 2
    assert f"expected a finite number, got {line.rsplit(maxsplit=1)[-1]}" in plain(result.output)


def test_version_and_build_are_shown(streamwatch: CliRunner) -> None:
    first, second = streamwatch.invoke(app, ["--version"]).output.splitlines()
    assert re.fullmatch(rf"streamwatch {re.escape(__version__)} \(build [0-9a-f]{{12}}\)", first)
    assert f"Python {platform.python_version()}, numba {numba.__version__}" in second


def test_a_build_named_by_the_environment_is_shown(
    streamwatch: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMWATCH_BUILD", "9f3c2e1")
    assert "(build 9f3c2e1)" in streamwatch.invoke(app, ["--version"]).output


def test_builds_of_the_same_code_are_the_same_and_of_other_code_are_not(tmp_path: Path) -> None:
    for name, content in (("here", "1\n"), ("there", "1\n"), ("elsewhere", "2\n")):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "part" / "module.py").write_text(content)
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "module.py").write_text("1\n")
    assert build(tmp_path / "here") == build(tmp_path / "there")
    assert len({build(tmp_path / name) for name in ("here", "elsewhere", "moved")}) == 3


@pytest.mark.slow
def test_a_shell_completes_commands() -> None:
    asked = {"_STREAMWATCH_COMPLETE": "complete_bash", "COMP_WORDS": "streamwatch st", "COMP_CWORD": "1"}
    command = Path(sys.executable).with_name("streamwatch")
    result = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["state"]


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    heavy = ("numpy", "numba", "scipy", "aiokafka", "aiohttp", "pydantic", "structlog")
    script = f"import sys, streamwatch.cli; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_settings_are_read_without_a_compiler_and_without_what_only_a_daemon_needs() -> None:
    heavy = ("numba", "scipy", "aiokafka", "aiohttp", "structlog")
    script = f"import sys, streamwatch.settings; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


RUN = """
import gc
import streamwatch.assembly.build as build
from streamwatch.cli.run import run
class Daemon:
    async def run(self):
        print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))
build.build_daemon = lambda *_, **__: Daemon()
run(None, ["kafka.bootstrap_servers=127.0.0.1:1", "topics.predictions=p", "topics.labels=l"])
"""


@pytest.mark.slow
def test_a_daemon_collects_its_garbage_without_looking_at_modules() -> None:
    result = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["True", "True"]


def test_the_example_is_printed_without_importing_what_it_is_about() -> None:
    script = (
        "import sys; from streamwatch.cli.config import example; example();"
        " print([m for m in ('numpy', 'pydantic', 'streamwatch.settings') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_the_example_can_be_written_to_a_file_and_is_then_found_there(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    written = streamwatch.invoke(app, ["config", "example"])
    assert written.exit_code == 0
    (tmp_path / "streamwatch.yaml").write_text(written.output)
    result = streamwatch.invoke(app, ["check", "-s", "kafka.bootstrap_servers=127.0.0.1:1"])
    assert "✓ settings" in result.output


def test_the_schema_is_json(streamwatch: CliRunner) -> None:
    schema = json.loads(streamwatch.invoke(app, ["config", "schema"]).output)
    assert set(schema["required"]) == {"kafka", "topics"}


def test_check_shows_what_is_good_and_what_is_not_and_fails(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["check", *NOWHERE])
    assert result.exit_code == 2
    lines = result.output.splitlines()
    assert lines[0] == "✓ settings"
    assert any(re.fullmatch(r"✓ worst-case memory: .*\(--verbose says of what\)", line) for line in lines)
    assert lines[-2].startswith("✗ Kafka at 127.0.0.1:1: "), "what must be changed comes last"
    assert lines[-1] == "a problem found: correct what is marked ✗, then run streamwatch check again"


def test_check_says_what_memory_consists_of_where_it_is_asked_to(streamwatch: CliRunner) -> None:
    brief, verbose = (
        streamwatch.invoke(app, ["check", *NOWHERE, *more]).output for more in ([], ["--verbose"])
    )
    assert "(join.max_pending)" in verbose
    assert "(join.max_pending)" not in brief


@pytest.mark.parametrize("command", [["run"], ["check"], ["replay", "-"]])
def test_wrong_settings_end_a_command_with_exit_code_2_and_their_fault(
    streamwatch: CliRunner, command: list[str]
) -> None:
    result = streamwatch.invoke(app, [*command, *NOWHERE, "-s", "join.horizn=3d"])
    assert result.exit_code == 2
    assert result.output == "join.horizn in --set: unknown key; did you mean 'horizon'?\n"


def test_where_nothing_names_a_file_the_fault_says_how_to_get_one(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    """Of a first `streamwatch check` in an empty folder; with a file, the fault names it."""
    shown = streamwatch.invoke(app, ["check"]).output
    assert "kafka: required, but set nowhere (no settings were given)\n" in shown
    assert "there is no streamwatch.yaml here, and -c names no file: `streamwatch inspect` proposes" in shown
    (tmp_path / "streamwatch.yaml").write_text("join: {horizon: 3d}\n")
    assert "there is no" not in streamwatch.invoke(app, ["check"]).output


def test_check_finds_settings_that_contradict_each_other(streamwatch: CliRunner) -> None:
    twice = ["-s", "monitors.forgetting=[sliding, sliding: {size: 1000}]"]
    result = streamwatch.invoke(app, ["check", *NOWHERE, *twice])
    assert result.exit_code == 2
    assert "✗ monitors.forgetting: sliding:1000 is listed twice" in result.output


def test_check_finds_a_mapping_that_cannot_work(streamwatch: CliRunner) -> None:
    mapping = "topics.labels={name: l, mapping: {classes: {a: ''}}}"
    result = streamwatch.invoke(app, ["check", *NOWHERE, "-s", mapping])
    assert result.exit_code == 2
    assert result.output.startswith("✗ topics: mapping of l: a class must be 1 to 128 bytes")


def test_check_finds_a_certificate_that_is_none(streamwatch: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    security = ["-s", "kafka.security.protocol=SSL", "-s", "kafka.security.ca_file=ca.pem"]
    result = streamwatch.invoke(app, ["check", *NOWHERE, *security])
    assert result.exit_code == 2
    assert result.output.startswith("✗ kafka.security.ca_file: expected PEM certificates in ca.pem")


@pytest.mark.slow
def test_replay_needs_no_kafka_in_its_settings_and_uses_the_rest(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id,model,prediction,label\n1,m,a,a\n2,m,a,b\n3,m,b,b\n")
    result = streamwatch.invoke(app, ["replay", "rows.csv", "--json", "-s", "monitors.max_models=1"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["outcomes"] == 3
    assert document["models"]["m"]["metrics"]["accuracy_ratio"]["landmark"] == pytest.approx(2 / 3)


@pytest.mark.slow
def test_a_fault_of_the_folder_s_settings_that_does_not_concern_a_replay_is_a_warning(
    streamwatch: CliRunner, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id,model,y_hat,label\n1,m,a,a\n2,m,a,b\n")
    (tmp_path / "streamwatch.yaml").write_text(
        "kafka: {bootstrap_servers: b, security: {password_file: /gone}}\n"
        "topics: {predictions: [{name: p, mapping: {prediction: value.y_hat}}], labels: l}\n"
        "alerts: {cooldown: -1d}\n"
    )
    result = streamwatch.invoke(app, ["replay", "rows.csv", "--topic", "p", "--json"])
    assert result.exit_code == 0, result.output
    shown = result.stderr.splitlines()
    ignored = "kafka.security.password_file in streamwatch.yaml: cannot read /gone"
    assert any(line.startswith(f"ignored, as this command does not use it: {ignored}") for line in shown)
    assert any(
        line.startswith("ignored, as this command does not use it: alerts.cooldown in streamwatch.yaml")
        for line in shown
    )
    assert json.loads(result.stdout)["pending"] == 2  # the mapping was used: a prediction for each line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("join: {horizon: soon}", "join.horizon in streamwatch.yaml: "),
        ("monitor: {max_models: 3}", "monitor in streamwatch.yaml: unknown key; did you mean 'monitors'?"),
    ],
)
def test_a_fault_that_may_concern_a_replay_ends_it_and_others_are_not_reported_with_it(
    streamwatch: CliRunner, tmp_path: Path, text: str, shown: str
) -> None:
    (tmp_path / "streamwatch.yaml").write_text(f"{text}\nhttp: {{port: -1}}\n")
    result = streamwatch.invoke(app, ["replay", "rows.csv"])
    assert result.exit_code == 2
    assert result.output.startswith(shown)
    assert "http" not in result.output


def test_replay_of_an_absent_file_is_reported(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["replay", "absent.jsonl"])
    assert result.exit_code == 2
    assert "absent.jsonl" in result.output
    assert "Traceback" not in result.output


def test_simulate_without_a_broker_is_reported(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["simulate", "-b", "127.0.0.1:1", "-n", "10", "--flat-out"])
    assert result.exit_code == 2
    assert "127.0.0.1:1" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("servers", ["localhost:abc", "localhost:99999", "a..b:1", "a:1,"])
def test_simulate_refuses_addresses_that_no_client_can_use(streamwatch: CliRunner, servers: str) -> None:
    result = streamwatch.invoke(app, ["simulate", "-b", servers, "-n", "10", "--flat-out"])
    assert result.exit_code == 2
    assert result.output.startswith("--bootstrap-servers: expected brokers as host:port")


def test_simulate_refuses_what_makes_no_sense(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["simulate", "--rate", "0"])
    assert result.exit_code == 2
    assert "rate must be above 0" in result.output


def test_the_package_can_be_run_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "streamwatch", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith(f"streamwatch {__version__} (build ")
