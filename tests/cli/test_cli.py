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
from typer.testing import CliRunner

from streamwatch import __version__
from streamwatch.assembly import specs
from streamwatch.assembly.mappings import mappings_of
from streamwatch.cli import app
from streamwatch.cli.build import build
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.merge import MergeSpec
from streamwatch.core.specs import FadingSpec, JoinSpec, LandmarkSpec, MonitorsSpec, SlidingSpec
from streamwatch.edge.decoders.mapping import TopicMapping, parse_field_location
from streamwatch.edge.sources.kafka import parse_start
from streamwatch.settings import Settings, SettingsError, load

COMMANDS = ("run", "demo", "simulate", "replay", "inspect", "check", "doctor", "catalogue", "state", "config")
NOWHERE = ["-s", "kafka.bootstrap_servers=127.0.0.1:1", "-s", "topics.predictions=p", "-s", "topics.labels=l"]
MINIMAL = {"kafka": {"bootstrap_servers": "a:1"}, "topics": {"predictions": "p", "labels": "l"}}


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
@pytest.mark.parametrize("command", [*COMMANDS[:-2], "config example", "config schema"])
def test_the_help_of_each_command_teaches_by_an_example(streamwatch: CliRunner, command: str) -> None:
    result = streamwatch.invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    before_options = plain(result.output).split("╭")[0]
    assert f"streamwatch {command}" in before_options


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


def test_check_tells_what_is_good_and_what_is_not_and_fails(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["check", *NOWHERE])
    assert result.exit_code == 2
    lines = result.output.splitlines()
    assert lines[0] == "✓ settings"
    assert any(line.startswith("✗ Kafka at 127.0.0.1:1: ") for line in lines)
    assert any(line.startswith("✓ worst-case memory: ") for line in lines)


@pytest.mark.parametrize("command", [["run"], ["check"], ["replay", "-"]])
def test_wrong_settings_end_a_command_with_exit_code_2_and_their_fault(
    streamwatch: CliRunner, command: list[str]
) -> None:
    result = streamwatch.invoke(app, [*command, *NOWHERE, "-s", "join.horizn=3d"])
    assert result.exit_code == 2
    assert result.output == "join.horizn in --set: unknown key; did you mean 'horizon'?\n"


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
    assert "✗ kafka.security: " in result.output


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
    said = result.stderr.splitlines()
    place = "not used here, and faulty: kafka.security.password_file in streamwatch.yaml: cannot read /gone"
    assert any(line.startswith(place) for line in said)
    assert any(
        line.startswith("not used here, and faulty: alerts.cooldown in streamwatch.yaml") for line in said
    )
    assert json.loads(result.stdout)["pending"] == 2  # the mapping was used: a prediction for each line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("join: {horizon: soon}", "join.horizon in streamwatch.yaml: "),
        ("monitor: {max_models: 3}", "monitor in streamwatch.yaml: unknown key; did you mean 'monitors'?"),
    ],
)
def test_a_fault_that_may_concern_a_replay_ends_it_and_others_are_not_told_with_it(
    streamwatch: CliRunner, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "streamwatch.yaml").write_text(f"{text}\nhttp: {{port: -1}}\n")
    result = streamwatch.invoke(app, ["replay", "rows.csv"])
    assert result.exit_code == 2
    assert result.output.startswith(said)
    assert "http" not in result.output


def test_replay_of_an_absent_file_is_told(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["replay", "absent.jsonl"])
    assert result.exit_code == 2
    assert "absent.jsonl" in result.output
    assert "Traceback" not in result.output


def test_simulate_without_a_broker_is_told(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["simulate", "-b", "127.0.0.1:1", "-n", "10", "--flat-out"])
    assert result.exit_code == 2
    assert "127.0.0.1:1" in result.output
    assert "Traceback" not in result.output


def test_simulate_refuses_what_makes_no_sense(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["simulate", "--rate", "0"])
    assert result.exit_code == 2
    assert "rate must be above 0" in result.output


def test_the_package_can_be_run_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "streamwatch", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith(f"streamwatch {__version__} (build ")


# What settings become.


def settings(**sections: object) -> Settings:
    return Settings(**{**MINIMAL, **sections})  # type: ignore[arg-type]


def test_default_settings_become_default_specs() -> None:
    assert specs.join_spec(settings()) == JoinSpec()
    registers = (LateLabelsSpec(), ProbabilitiesSpec())
    assert specs.monitors_spec(settings()) == MonitorsSpec(registers=registers)
    found = {name: [each.mapping for each in of] for name, of in mappings_of(settings().topics).items()}
    assert found == {"p": [TopicMapping()], "l": [TopicMapping()]}
    assert specs.sides(settings().topics) == {"p": "prediction", "l": "label"}


def test_how_long_records_wait_for_others_is_what_the_settings_say() -> None:
    assert specs.merge_spec(settings()) == MergeSpec(max_held_bytes=64_000_000)
    time = {"settle": "4s", "max_hold_back": "1h", "max_future": "9s", "max_held_megabytes": 7}
    expected = MergeSpec(4_000, 9_000, 3_600_000, 7_000_000)
    assert specs.merge_spec(settings(time=time)) == expected


def test_dedup_entries_live_as_long_as_the_horizon_unless_given() -> None:
    assert specs.join_spec(settings(join={"horizon": "3h"})).dedup_horizon_ms == 10_800_000
    assert specs.join_spec(settings(join={"dedup_horizon": "9s"})).dedup_horizon_ms == 9_000


def test_a_half_life_becomes_the_fading_factor_that_halves_after_it() -> None:
    spec = specs.monitors_spec(
        settings(monitors={"forgetting": ["landmark", {"fading": {"half_life": 100}}]})
    )
    assert isinstance(spec.forgetting[1], FadingSpec)
    assert spec.forgetting[1].alpha ** 100 == pytest.approx(0.5)
    assert spec.per_class == spec.forgetting[1].name


def test_per_class_series_are_under_the_first_fading_or_else_the_first_forgetting() -> None:
    spec = specs.monitors_spec(settings(monitors={"forgetting": ["landmark", "sliding"]}))
    assert spec.forgetting == (LandmarkSpec(), SlidingSpec())
    assert spec.per_class == "landmark"
    assert specs.monitors_spec(settings(monitors={"per_class": ""})).per_class == ""
    with pytest.raises(SettingsError, match=r"monitors\.per_class: expected one of landmark"):
        specs.monitors_spec(settings(monitors={"per_class": "window"}))


def test_reading_from_later_than_the_beginning_is_known_by_its_record_time() -> None:
    def start(text: str) -> int | None:
        return specs.start_ms(
            settings(kafka={"bootstrap_servers": "a:1", "start_from": text}).kafka, 1_000_000
        )

    assert start("earliest") is None
    assert start("latest") == 1_000_000
    assert start("-10s") == 990_000
    assert start("1970-01-01T00:00:07Z") == 7_000


def test_one_topic_may_carry_both_kinds() -> None:
    topic = {"name": "events", "mapping": {"kind": {"field": "value.type", "prediction": "p", "label": "l"}}}
    both = settings(topics={"predictions": [topic, "more"], "labels": [topic]})
    assert specs.sides(both.topics) == {"events": "both", "more": "prediction"}
    rule = mappings_of(both.topics)["events"][0].mapping.kind
    assert rule is not None
    assert (rule.field, rule.prediction, rule.label) == ("value.type", "p", "l")


def test_security_settings_reach_the_client(tmp_path: Path) -> None:
    for name in ("password", "ca", "cert", "key", "keypass"):
        (tmp_path / name).write_text(f"{name}-content\n")
    security = {
        "protocol": "SASL_SSL",
        "mechanism": "SCRAM-SHA-512",
        "username": "me",
        "password_file": tmp_path / "password",
        "ca_file": tmp_path / "ca",
        "certificate_file": tmp_path / "cert",
        "key_file": tmp_path / "key",
        "key_password_file": tmp_path / "keypass",
    }
    spec = specs.kafka_spec(settings(kafka={"bootstrap_servers": ["a:1", "b:2"], "security": security}).kafka)
    assert spec.bootstrap_servers == "a:1,b:2"
    assert (spec.security_protocol, spec.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (spec.username, spec.password, spec.keyfile_password) == (
        "me",
        "password-content",
        "keypass-content",
    )
    assert (spec.cafile, spec.certfile) == (str(tmp_path / "ca"), str(tmp_path / "cert"))


@pytest.mark.parametrize(
    "place",
    ["key", "topic", "header:x", "=fraud-v3", "value.a", "value.a.b", "value", "value.", "a.b", "=", ""],
)
def test_settings_and_decoders_agree_on_what_a_place_is(place: str) -> None:
    def accepted(read: object) -> bool:
        try:
            read()  # type: ignore[operator]
        except ValueError:
            return False
        return True

    mapping = {"name": "p", "mapping": {"id": place}}
    by_settings = accepted(lambda: settings(topics={"predictions": [mapping], "labels": "l"}))
    assert by_settings == accepted(lambda: parse_field_location(place))


@pytest.mark.parametrize(
    "start",
    [
        "earliest",
        "latest",
        "-2h",
        "-1.5d",
        "2025-01-31T00:00:00Z",
        "2025-01-31",
        "1735689600000",
        "soon",
        "2h",
        "-2",
        "",
    ],
)
def test_settings_and_source_agree_on_what_a_starting_point_is(start: str) -> None:
    def accepted(read: object) -> bool:
        try:
            read()  # type: ignore[operator]
        except (ValueError, SettingsError):
            return False
        return True

    environ = {"STREAMWATCH__KAFKA__START_FROM": start}
    by_settings = accepted(lambda: load(None, NOWHERE[1::2], environ))
    assert by_settings == accepted(lambda: parse_start(start))


def test_the_kernel_takes_whatever_settings_allow_at_most_and_at_least() -> None:
    extremes = {
        "forgetting": [
            {"fading": {"alpha": 1e-12}},
            {"sliding": {"size": 10_000_000}},
            {"adwin": {"delta": 1e-12, "min_subwindow": 5, "clock": 65_536}},
        ],
        "detectors": [{"adwin": {"clock": 1, "delta": 0.999999}}],
        "drift_weighted": {"w_avg": 1_000},
        "max_models": 1,
        "max_classes": 65_000,
    }
    layout_of(specs.monitors_spec(settings(monitors=extremes)))


def test_a_yaml_anchor_is_refused_and_says_where(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: 'a:1'}\n"
        "topics:\n"
        "  predictions: [{name: p, mapping: &m {id: key}}]\n"
        "  labels: [{name: l, mapping: *m}]\n"
    )
    with pytest.raises(SettingsError, match=r"anchors are not read.*line 3"):
        load(file, environ={})
