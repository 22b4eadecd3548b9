"""What an operator reads when the configuration is wrong: exact texts, for they are the interface."""

# ruff: noqa: E501  # exact texts are the interface

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamwatch.settings import SettingsError, load

MINIMAL = "kafka: {bootstrap_servers: 'localhost:9092'}\ntopics: {predictions: predictions, labels: labels}\n"


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Lines of the error that a file (after the three minimal lines), overrides and environment lead to."""
    monkeypatch.chdir(tmp_path)
    file = Path("streamwatch.yaml")

    def read(text: str = "", *overrides: str, environ: dict[str, str] | None = None) -> list[str]:
        file.write_text(MINIMAL + text)
        with pytest.raises(SettingsError) as caught:
            load(file, overrides, environ or {})
        return str(caught.value).splitlines()

    return read


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
            "join.on_expiry in streamwatch.yaml: a class must be 1 to 128 bytes without control characters, got ''",
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
            "http.listen in streamwatch.yaml: input should be a valid string, got 9877",
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
                "zoo in streamwatch.yaml: unknown key; known: alerts, folds, http, join, kafka, log, monitors, "
                "schema_registry, "
                "source, spark, state, time, topics"
            ),
        ),
        ("join: 3", "join in streamwatch.yaml: expected a mapping, got 3"),
    ],
)
def test_a_fault_in_the_file_is_told_with_its_path_and_what_was_expected(
    complaint: Callable[..., list[str]], text: str, line: str
) -> None:
    assert complaint(text) == [line]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        (
            "kafka.bootstrap_server=b:1",
            "kafka.bootstrap_server in --set: unknown key; did you mean 'bootstrap_servers'?",
        ),
        (
            "join.horizon=soon",
            "join.horizon in --set: expected a duration such as 30s, 14d or 1h30m, got 'soon'",
        ),
        (
            "join.horizon",
            "--set join.horizon: expected section.key=value, such as kafka.bootstrap_servers=localhost:9092",
        ),
        (
            "topics.labels=[a",
            (
                "topics.labels in --set: not valid YAML: expected ',' or ']', but got "
                "'<stream end>' (line 1, column 3)"
            ),
        ),
        (
            "topics.labels={name: 'what?'}",
            "topics.labels[0].name in --set: string should match pattern '^[A-Za-z0-9._-]+$', got 'what?'",
        ),
        (
            "topics.labels={name: labels, mapping: {id: payload.id}}",
            (
                "topics.labels[0].mapping.id in --set: expected value.some.field, key, header:name, topic or a "
                "constant =text, got 'payload.id'"
            ),
        ),
        (
            "kafka.start_from=yesterday",
            (
                "kafka.start_from in --set: expected earliest, latest, ago such as -2h, a point in time such as "
                "2025-01-31T00:00:00Z or milliseconds since 1970, got 'yesterday'"
            ),
        ),
    ],
)
def test_a_fault_on_the_command_line_is_told_as_such(
    complaint: Callable[..., list[str]], override: str, line: str
) -> None:
    assert complaint("", override) == [line]


def test_a_fault_in_the_environment_names_the_variable(complaint: Callable[..., list[str]]) -> None:
    assert complaint(
        "", environ={"STREAMWATCH__JOIN__MAX_PENDING": "many", "STREAMWATCH__KAFAK__X": "1"}
    ) == [
        (
            "join.max_pending in environment variable STREAMWATCH__JOIN__MAX_PENDING: input should be a valid "
            "integer, unable to parse string as an integer, got 'many'"
        ),
        "kafak in environment variable STREAMWATCH__KAFAK__X: unknown key; did you mean 'kafka'?",
    ]


def test_every_fault_is_told_at_once(complaint: Callable[..., list[str]]) -> None:
    assert len(complaint("join: {horizon: x, max_pending: 0}\nhttp: {listen: x}\nfoo: 1")) == 4


def test_what_is_missing_is_told_with_where_it_was_looked_for() -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, ["topics.labels=labels"], {})
    assert str(caught.value).splitlines() == [
        "kafka: required, but set nowhere (--set)",
        "topics.predictions: required, but set nowhere (--set)",
    ]
    with pytest.raises(SettingsError) as caught:
        load(None, [], {})
    assert str(caught.value).splitlines() == [
        "kafka: required, but set nowhere (no settings were given)",
        "topics: required, but set nowhere (no settings were given)",
    ]


def test_an_absent_file_is_told_with_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.yaml: no such file; `streamwatch config example > "):
        load(tmp_path / "absent.yaml", (), {})


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text\n", "3\n"])
def test_a_file_that_is_no_mapping_is_told_as_such(tmp_path: Path, text: str) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="expected a mapping of sections such as kafka and topics"):
        load(file, (), {})


def test_broken_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text("kafka:\n  bootstrap_servers: [a\n")
    with pytest.raises(SettingsError, match=r"not valid YAML: .* \(line 3, column 1\)"):
        load(file, (), {})


def test_a_password_is_never_shown(complaint: Callable[..., list[str]]) -> None:
    lines = complaint(
        "", environ={"STREAMWATCH__KAFKA__SECURITY__PASSWORD": "hunter2", "STREAMWATCH__FOO": "1"}
    )
    assert len(lines) == 1
    assert not complaint_contains(complaint("kafka: {security: {password: [hunter2]}}"), "hunter2")


@pytest.mark.parametrize(
    "text",
    [
        "http: {token: [hunter2]}",
        "alerts: {receivers: [{name: a, type: slack, url: [hunter2]}]}",
        "alerts: {receivers: [{name: a, type: pagerduty, routing_key: [hunter2]}]}",
        "alerts: {receivers: [{name: a, type: webhook, url: 'http://b', secrets: {hunter2: 1}}]}",
    ],
)
def test_no_secret_is_repeated_in_a_complaint(complaint: Callable[..., list[str]], text: str) -> None:
    lines = complaint(text)
    assert lines
    assert not complaint_contains(lines, "hunter2")


def complaint_contains(lines: list[str], word: str) -> bool:
    return any(word in line for line in lines)


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (
            "{predictions: [a, a], labels: b}",
            (
                "topics in --set: topic 'a' is listed twice under predictions: list it once, with `mappings` for "
                "several events of one record"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {}, mappings: [{}]}, labels: b}",
            "topics.predictions[0] in --set: topic 'a' has both mapping and mappings: expected one of them",
        ),
        (
            "{predictions: {name: a, envelope: soap}, labels: b}",
            (
                "topics.predictions[0].envelope in --set: expected one of cloudevents, debezium, kserve_v1, "
                "kserve_v2, seldon, got 'soap'"
            ),
        ),
        (
            "{predictions: {name: a, envelope: debezium}, labels: {name: a, mapping: {label: value.y}}}",
            "topics in --set: topic 'a' carries predictions and labels: give both one envelope",
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {score: value.p, threshold: high}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction.threshold in --set: input should be a valid number, "
                "unable to parse string as a number, got 'high'\n"
                "topics.predictions[0].mapping.prediction.above: required, but set nowhere (--set, --set)\n"
                "topics.predictions[0].mapping.prediction.below: required, but set nowhere (--set, --set)"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {most: value.p}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction in --set: expected a place, {score, threshold, above, "
                "below} or {largest: place of the scores}, got {'most': 'value.p'}"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {prediction: 'value.p[-1]'}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction in --set: expected an index that counts from the front, "
                "from 0, got 'value.p[-1]'"
            ),
        ),
        (
            "{predictions: a, labels: a}",
            (
                "topics in --set: topic 'a' carries predictions and labels: give it the same mapping under both, "
                "with `kind` to tell them apart; or, if every record holds both, under each side a mapping of its own"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {kind: {field: value.type}}}, labels: b}",
            "topics in --set: the mapping of topic 'a' has `kind`: list it under predictions and labels",
        ),
        (
            "{predictions: {name: a, namespace: x}, labels: [{name: b, namespace: x}, c]}",
            "topics in --set: namespace '' has no prediction topic, so nothing in it can ever match",
        ),
        (
            "{predictions: [a, {name: b, namespace: x}], labels: c}",
            "topics in --set: namespace 'x' has no label topic, so nothing in it can ever match",
        ),
        (
            "{predictions: {name: a, namespace: x, mapping: {kind: {}}}, labels: {name: a, mapping: {kind: {}}}}",
            "topics in --set: topic 'a' carries predictions and labels: give both one namespace",
        ),
    ],
)
def test_topics_that_contradict_each_other_are_told(topics: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, ["kafka.bootstrap_servers=x:1", f"topics={topics}"], {})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (
            "{scheme: jackknife}",
            (
                "folds.scheme in --set: expected 'cross-validation', 'split-validation' or 'bootstrap', "
                "got 'jackknife'"
            ),
        ),
        (
            "{scheme: cross-validation, k: 1}",
            "folds in --set: k must be at least 2 under cross-validation, got 1",
        ),
        ("{scheme: bootstrap, k: 0}", "folds.k in --set: must be in [1, 1000], got 0"),
    ],
)
def test_folds_that_cannot_be_are_told(folds: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(
            None, ["kafka.bootstrap_servers=x:1", "topics={predictions: a, labels: b}", f"folds={folds}"], {}
        )
    assert str(caught.value) == message
