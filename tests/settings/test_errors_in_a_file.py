"""What an operator reads when the settings' file is wrong: exact texts, for they are the interface."""

# ruff: noqa: E501  # exact texts are the interface

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from streamwatch.settings import SettingsError, load


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "monitors: {forgetting: [fading: {alpha: 1.2}]}",
            "monitors.forgetting[0].alpha in streamwatch.yaml: fading factor must be in [0.001, 1), got 1.2",
        ),
        (
            "monitors: {forgetting: [fading: {alpha: 1.0e-100}]}",
            "monitors.forgetting[0].alpha in streamwatch.yaml: fading factor must be in [0.001, 1), got 1e-100",
        ),
        (
            "monitors: {forgetting: [fading: {half_life: 1.0e+18}]}",
            "monitors.forgetting[0].half_life in streamwatch.yaml: half-life in outcomes must give a fading factor 2^(-1/half_life) in [0.001, 1), got 1e+18",
        ),
        (
            "monitors: {forgetting: [fading: {half_life: 0.001}]}",
            "monitors.forgetting[0].half_life in streamwatch.yaml: half-life in outcomes must give a fading factor 2^(-1/half_life) in [0.001, 1), got 0.001",
        ),
        (
            "monitors: {forgetting: [landmark, {sliding: {size: 0}}]}",
            "monitors.forgetting[1].size in streamwatch.yaml: window size must be a whole number in [1, 10000000], got 0",
        ),
        (
            "monitors: {forgetting: [slding: {size: 10}]}",
            (
                "monitors.forgetting[0] in streamwatch.yaml: expected one of landmark, fading, sliding, adwin, "
                "got {'slding': {'size': 10}}"
            ),
        ),
        (
            "monitors: {forgetting: [window]}",
            (
                "monitors.forgetting[0] in streamwatch.yaml: expected one of landmark, fading, sliding, adwin, "
                "got 'window'"
            ),
        ),
        (
            "monitors: {forgetting: [adwin: {detla: 0.1}]}",
            "monitors.forgetting[0].detla in streamwatch.yaml: unknown key; did you mean 'delta'?",
        ),
        (
            "monitors: {forgetting: [fading: {alpha: 0.9, half_life: 10}]}",
            "monitors.forgetting[0] in streamwatch.yaml: give alpha or half_life, not both",
        ),
        ("monitors: {forgetting: []}", "monitors.forgetting in streamwatch.yaml: must not be empty"),
        (
            "monitors: {detectors: [spectral]}",
            (
                "monitors.detectors[0] in streamwatch.yaml: expected one of page_hinkley, adwin, ddm, cusum, "
                "hddm_a, hddm_w, ewma, stepd, kswin, got 'spectral'"
            ),
        ),
        (
            "monitors: {detectors: [page_hinkley, page_hinkley]}",
            (
                "monitors.detectors in streamwatch.yaml: two detectors are named 'page_hinkley'; give one of them "
                "another name"
            ),
        ),
        (
            "monitors: {detectors: [page_hinkley: {direction: left}]}",
            "monitors.detectors[0].direction in streamwatch.yaml: expected 'up', 'down' or 'both', got 'left'",
        ),
        (
            "monitors: {detectors: [hddm_a: {warning_delta: 0.001}]}",
            (
                "monitors.detectors[0].warning_delta in streamwatch.yaml: confidence of a warning must be larger "
                "than delta (0.001), got 0.001"
            ),
        ),
        (
            "monitors: {detectors: [hddm_w: {delta: 0.01}]}",  # the other has its default, which is in no file
            (
                "monitors.detectors[0].warning_delta: confidence of a warning must be larger than delta (0.01), "
                "got 0.001"
            ),
        ),
        (
            "monitors: {detectors: [stepd: {significance: 0.01, warning_significance: 0.003}]}",
            (
                "monitors.detectors[0].warning_significance in streamwatch.yaml: significance of a warning must "
                "be larger than significance (0.01), got 0.003"
            ),
        ),
        (
            "monitors: {detectors: [ddm: {warning_level: 3}]}",
            "monitors.detectors[0].alarm_level: alarm level must be larger than warning_level (3.0), got 3.0",
        ),
        ("join: {horzon: 3d}", "join.horzon in streamwatch.yaml: unknown key; did you mean 'horizon'?"),
        (
            "join: {horizon: 30}",
            "join.horizon in streamwatch.yaml: expected a duration such as 30s, 14d or 1h30m, got 30",
        ),
        ("join: {max_pending: 0}", "join.max_pending in streamwatch.yaml: must be at least 1, got 0"),
        (
            "join: {on_expiry: ignore}",
            "join.on_expiry in streamwatch.yaml: expected discard or {assume: <class>}, got 'ignore'",
        ),
        (
            "join: {on_expiry: {assume: ''}}",
            "join.on_expiry in streamwatch.yaml: a class must be 1 to 128 bytes of visible text without control characters, and not __other__, got ''",
        ),
        (
            "monitors: {utility: costs}",
            "monitors.utility in streamwatch.yaml: expected 'accuracy' or 'balanced', got 'costs'",
        ),
        (
            "monitors: {utility: {costs: {a: {a: 1, b: 1}, b: {a: 1, b: 1}}}}",
            "monitors.utility in streamwatch.yaml: costs must differ, got 1.0 for every pair",
        ),
        (
            "monitors: {utility: {costs: {a: {b: many}}, other: 0}}",
            "monitors.utility.costs.a.b in streamwatch.yaml: input should be a valid number, unable to parse string as a number, got 'many'",
        ),
        (
            "monitors: {utility_by_model: {'fraud-*': {costs: {a: {b: 1}}}}}",
            "monitors.utility_by_model.fraud-* in streamwatch.yaml: costs must name every pair or have other, got none for a: a",
        ),
        (
            "join: {horizon: 1d}\njoin: {horizon: 2d}",
            "streamwatch.yaml: a key stands twice in one mapping (line 4, column 1)",
        ),
        (
            "join: {horizon: 1d, max_pending: 5, horizon: 2d}",
            "streamwatch.yaml: a key stands twice in one mapping (line 3, column 37)",
        ),
        (
            "http: {listen: 9877}",
            "http.listen in streamwatch.yaml: expected a text, got 9877; put it in quotes",
        ),
        (
            "state: {directory: 17}",
            "state.directory in streamwatch.yaml: expected a path, got 17; put it in quotes",
        ),
        (
            "http: {listen: localhost}",
            "http.listen in streamwatch.yaml: expected host:port such as 127.0.0.1:9877, got 'localhost'",
        ),
        (
            "state: {kind: redis}",
            "state.kind in streamwatch.yaml: expected 'rocksdb' or 'memory', got 'redis'",
        ),
        (
            "monitor: {}",
            "monitor in streamwatch.yaml: unknown key; did you mean 'monitors'?",
        ),
        (
            "zoo: {}",
            (
                "zoo in streamwatch.yaml: unknown key; known: alerts, events, folds, http, join, kafka, ledger, "
                "log, models, monitors, outcomes, schema_registry, "
                "source, spark, standby, state, time, topics"
            ),
        ),
        ("horizn: 3d", "horizn in streamwatch.yaml: unknown key; did you mean 'join.horizon'?"),
        (
            "max_pending: 5",
            "max_pending in streamwatch.yaml: unknown key; did you mean 'alerts.max_pending' or 'join.max_pending'?",
        ),
        (
            "standby: {topic: spare}",
            "standby.topic in streamwatch.yaml: unknown key; known: enabled, session_timeout",
        ),
        (
            "log: {size: 3}",
            "log.size in streamwatch.yaml: unknown key; known: format, level",
        ),
        (
            "monitors: {horizon: 3d}",
            "monitors.horizon in streamwatch.yaml: unknown key; did you mean 'join.horizon'?",
        ),
        (
            "join:\n\thorizon: 3d",
            "streamwatch.yaml: not valid YAML: a tab; lines are indented with spaces (line 4, column 1)",
        ),
        ("join: 3", "join in streamwatch.yaml: expected a mapping, got 3"),
    ],
)
def test_a_fault_in_the_file_is_reported_with_its_path_and_what_was_expected(
    complaint: Callable[..., list[str]], text: str, line: str
) -> None:
    assert complaint(text) == [line]


@pytest.mark.parametrize(
    ("kafka", "labels", "line"),
    [
        (
            "security: {password: 12345}",
            "l",
            "kafka.security.password in FILE: expected a text, got a value (not shown)",
        ),
        ("client_id: c", "17", "topics.labels[0] in FILE: expected a topic's name or a mapping, got 17"),
        (
            "client_id: c",
            "{name: l, mapping: {classes: {1.0: a}}}",
            "topics.labels[0].mapping.classes in FILE: expected a text, got 1.0",
        ),
    ],
)
def test_a_number_where_a_text_is_expected_belongs_in_quotes(
    tmp_path: Path, kafka: str, labels: str, line: str
) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(
        f"kafka: {{bootstrap_servers: k, {kafka}}}\ntopics: {{predictions: p, labels: [{labels}]}}\n"
    )
    with pytest.raises(SettingsError) as error:
        load(file, (), {})
    found = str(error.value).replace(str(file), "FILE").splitlines()
    assert [each for each in found if each.startswith(line) and each.endswith(" in quotes")] != []


@pytest.mark.parametrize("text", ['[kafka]\nclient_id = "x"\n', 'kafka.client_id = "x"\n'])
def test_a_file_in_another_format_is_reported_with_what_is_expected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "streamwatch.toml"
    file.write_text(text)
    with pytest.raises(
        SettingsError, match=r"streamwatch\.toml: expected YAML, got TOML; `streamwatch config "
    ):
        load(file, (), {})


def test_an_absent_file_is_reported_with_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.yaml: no such file; `streamwatch config example > "):
        load(tmp_path / "absent.yaml", (), {})


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text\n", "3\n"])
def test_a_file_that_is_no_mapping_is_reported_as_such(tmp_path: Path, text: str) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="expected a mapping of sections such as kafka and topics"):
        load(file, (), {})


@pytest.mark.parametrize(
    "text",
    [
        "hunter2: secret\n",
        "-----BEGIN PRIVATE KEY-----\nhunter2secret\n",
        "root:x:0:0:hunter2secret\n",
        "hunter2secret\n",
        "PASSWORD=hunter2: secret\n",
        '{"type": "service_account", "hunter2": "secret"}',
        "[default]\nkey = hunter2secret\n",
        "\x7fELF hunter2: secret\n",
        "'hunter2secret\n",
    ],
)
def test_no_word_of_a_file_that_is_no_configuration_is_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r"streamwatch\.yaml: ") as error:
        load(file, (), {})
    for word in ("hunter2", "secret", "BEGIN", "root", "PASSWORD", "ELF", "service"):
        assert word not in str(error.value).replace(str(tmp_path), "")


def test_broken_yaml_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text("kafka:\n  bootstrap_servers: [a\n")
    with pytest.raises(SettingsError, match=r"not valid YAML: .* \(line 3, column 1\)"):
        load(file, (), {})


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"expected a file, got a directory$"):
        load(tmp_path)


def test_settings_may_come_from_a_pipe() -> None:
    """As of `-c <(envsubst < template.yaml)`."""
    reading, writing = os.pipe()
    os.write(writing, b"kafka: {bootstrap_servers: a:1}\ntopics: {predictions: [p], labels: [l]}\n")
    os.close(writing)
    try:
        assert load(Path(f"/dev/fd/{reading}")).kafka.bootstrap_servers == ("a:1",)
    finally:
        os.close(reading)
