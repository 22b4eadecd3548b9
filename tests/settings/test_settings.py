"""Where settings come from, which origin wins, and what the generated example and schema promise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from streamwatch.settings import Settings, example, json_schema, load
from streamwatch.settings.values import format_duration, parse_duration

MINIMAL = """\
kafka: {bootstrap_servers: 'localhost:9092'}
topics: {predictions: predictions, labels: labels}
"""
DAY_MS = 86_400_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "streamwatch.yaml"
    path.write_text(MINIMAL)
    return path


def test_two_lines_are_enough_for_topics_with_default_field_names(file: Path) -> None:
    settings = load(file, environ={})
    assert settings.kafka.bootstrap_servers == ("localhost:9092",)
    assert [topic.name for topic in settings.topics.predictions] == ["predictions"]
    assert [topic.name for topic in settings.topics.labels] == ["labels"]
    assert settings.join.horizon == 14 * DAY_MS
    assert settings.http.listen == "127.0.0.1:9877"


def test_the_shape_of_the_documentation_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(
        """
kafka: {bootstrap_servers: "a:9092, b:9092", start_from: -2h}
topics:
  predictions: [{name: scores, mapping: {id: key, model: =fraud-v3, classes: {true: fraud, 0: legit}}}, more]
  labels: [{name: chargebacks, mapping: {label: value.outcome.kind}}]
join: {horizon: 14d, early_horizon: 1h30m, max_pending: 1000, on_expiry: {assume: 0}}
monitors:
  forgetting:
    [landmark, fading: {alpha: 0.99}, sliding: {size: 500}, adwin: {delta: 0.05}, {fading: {half_life: 9}}]
  detectors: [page_hinkley: {name: slow, threshold: 100}, adwin]
http: {listen: "0.0.0.0:80"}
state: {kind: memory}
"""
    )
    settings = load(file, environ={})
    assert settings.kafka.bootstrap_servers == ("a:9092", "b:9092")
    assert [topic.name for topic in settings.topics.predictions] == ["scores", "more"]
    assert settings.topics.predictions[0].mapping.classes == {"true": "fraud", "0": "legit"}
    assert settings.join.early_horizon == 5_400_000
    assert settings.join.on_expiry != "discard"
    assert settings.join.on_expiry.assume == "0"
    assert len(settings.monitors.forgetting) == 5


def test_the_command_line_wins_over_the_environment_over_the_file_over_the_defaults(file: Path) -> None:
    file.write_text(MINIMAL + "join: {horizon: 1d, early_horizon: 1m, reorder_window: 5s}\n")
    environ = {"STREAMWATCH__JOIN__HORIZON": "2d", "STREAMWATCH__JOIN__EARLY_HORIZON": "2m"}
    settings = load(file, ["join.horizon=3d", "join.horizon=4d"], environ)
    assert settings.join.horizon == 4 * DAY_MS, "the later of two overrides holds"
    assert settings.join.early_horizon == 120_000
    assert settings.join.reorder_window == 5_000
    assert settings.join.order == "resolution"


def test_values_without_quotes_are_texts_unless_written_as_in_json(tmp_path: Path) -> None:
    """YAML 1.1 reads the classes `no` and `010` as false and 8, which never meet those of records."""
    text = """
kafka:
  bootstrap_servers: k
  start_from: 2026-01-31
  security: {protocol: SASL_SSL, mechanism: PLAIN, username: on, password: no}
topics:
  predictions: [yes]
  labels: [{name: l, mapping: {classes: {010: no, yes: 0x1F, true: 1_0, 1: True, 2026-01-31: 1:30}}}]
join: {on_expiry: {assume: no}, max_pending: 1_000_000}
monitors: {label_delays: on}
"""
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    settings = load(file, environ={})
    assert settings.topics.labels[0].mapping.classes == {
        "010": "no",
        "yes": "0x1F",
        "true": "1_0",
        "1": "True",
        "2026-01-31": "1:30",
    }
    assert settings.model_dump()["join"]["on_expiry"] == {"assume": "no"}
    assert settings.topics.predictions[0].name == "yes"
    assert settings.kafka.security.username == "on"
    assert settings.kafka.security.read_password() == "no"
    assert (settings.kafka.start_from, settings.join.max_pending) == ("2026-01-31", 1_000_000)
    assert settings.monitors.label_delays is True


def test_everything_can_come_from_the_environment() -> None:
    environ = {
        "STREAMWATCH__KAFKA__BOOTSTRAP_SERVERS": "a:1,b:2",
        "STREAMWATCH__TOPICS__PREDICTIONS": "scores",
        "STREAMWATCH__TOPICS__LABELS": "[{name: truth, mapping: {id: key}}, late-truth]",
        "STREAMWATCH__KAFKA__SECURITY__CHECK_HOSTNAME": "false",
        "STREAMWATCH__MONITORS__FORGETTING": "[landmark, fading: {alpha: 0.9}]",
        "STREAMWATCH__MONITORS__MAX_MODELS": "7",
        "PATH": "/bin",
        "STREAMWATCH_TEST_BOOTSTRAP": "one underscore: not a setting",
    }
    settings = load(None, environ=environ)
    assert settings.kafka.bootstrap_servers == ("a:1", "b:2")
    assert [topic.name for topic in settings.topics.labels] == ["truth", "late-truth"]
    assert settings.topics.labels[0].mapping.id == "key"
    assert settings.kafka.security.check_hostname is False
    assert settings.monitors.max_models == 7
    assert len(settings.monitors.forgetting) == 2


def test_the_process_environment_is_read_where_none_is_given(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMWATCH__LOG__LEVEL", "debug")
    assert load(file).log.level == "debug"


def test_settings_are_frozen(file: Path) -> None:
    settings = load(file, environ={})
    with pytest.raises(ValidationError, match="frozen"):
        settings.kafka = settings.kafka  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        settings.join.horizon = 0  # type: ignore[misc]


def test_a_secret_is_read_from_its_file_without_the_newline(tmp_path: Path, file: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("correct horse\n")
    security = {"protocol": "SASL_SSL", "username": "reader", "password_file": str(secret)}
    settings = load(file, [f"kafka.security.{key}={value}" for key, value in security.items()], {})
    assert settings.kafka.security.read_password() == "correct horse"


def test_a_secret_never_appears_in_what_is_printed_of_the_settings(file: Path) -> None:
    settings = load(file, environ={"STREAMWATCH__KAFKA__SECURITY__PASSWORD": "[hunter2"})
    assert settings.kafka.security.read_password() == "[hunter2"
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30s", 30_000),
        ("14d", 14 * DAY_MS),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("2w", 14 * DAY_MS),
        ("1.5h", 5_400_000),
        ("0s", 0),
        ("0", 0),
        (0, 0),
    ],
)
def test_durations_are_read_as_people_write_them(text: object, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "30", 30, 1.5, "1 h", "-1h", "1h-", "h", "1y", "s30", None, True, ["1h"]]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 30s, 14d or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    "milliseconds", [0, 1, 999, 1_000, 61_001, 5_400_000, DAY_MS, 70 * DAY_MS, 71 * DAY_MS]
)
def test_a_duration_reads_back_as_it_was_written(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


def test_the_example_holds_exactly_the_defaults(tmp_path: Path, file: Path) -> None:
    written = tmp_path / "example.yaml"
    written.write_text(example())
    assert load(written, environ={}) == load(file, environ={})


def test_the_example_explains_every_key() -> None:
    lines = example().splitlines()
    keys = [i for i, line in enumerate(lines) if re.match(r" *(# )?[a-z_]+:( |$)", line)]
    assert len(keys) > 50
    for i in keys:
        assert lines[i - 1].lstrip().startswith("#"), f"nothing above {lines[i]!r}"


def test_the_commented_mapping_of_the_example_is_a_mapping(tmp_path: Path) -> None:
    text = example()
    start = text.index("  #   predictions:")
    block = text[start : text.index("\n\n", start)]
    uncommented = "\n".join(line.replace("  # ", "", 1) for line in block.splitlines())
    document = yaml.safe_load(MINIMAL) | {"topics": {"labels": "labels", **yaml.safe_load(uncommented)}}
    file = tmp_path / "mapping.yaml"
    file.write_text(yaml.safe_dump(document))
    settings = load(file, environ={})
    assert settings.topics.predictions[0].mapping == settings.topics.labels[0].mapping


SHORT_FORMS = """
kafka: {bootstrap_servers: [a:1, b:2], security: {protocol: SASL_SSL, username: me, password: secret}}
topics: {predictions: scores, labels: [{name: truth, mapping: {model: null, kind: null}}, other]}
join: {horizon: 1h30m, on_expiry: {assume: legit}}
monitors:
  forgetting: [fading, {fading: {half_life: 3}}, sliding: {size: 3}]
  detectors: [adwin]
  drift_weighted:
"""


@pytest.mark.parametrize("text", [MINIMAL, SHORT_FORMS, example()])
def test_the_schema_accepts_what_the_settings_accept(tmp_path: Path, text: str) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    load(file, environ={})
    assert list(violations(yaml.safe_load(text), json_schema())) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "kafka: {bootstrap_servers: 'a:1'}",
        MINIMAL + "join: {horzon: 3d}",
        MINIMAL + "join: {horizon: 30}",
        MINIMAL + "join: {max_pending: 0}",
        MINIMAL + "monitors: {forgetting: [fading: {alpha: 1.2}]}",
        MINIMAL + "monitors: {forgetting: [window]}",
        MINIMAL + "monitors: {detectors: [spectral: {}]}",
        MINIMAL + "log: {level: loud}",
    ],
)
def test_the_schema_refuses_what_the_settings_refuse(tmp_path: Path, text: str) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_text(text)
    with pytest.raises(Exception, match=r"streamwatch\.yaml|set nowhere"):
        load(file, environ={})
    assert list(violations(yaml.safe_load(text), json_schema())) != []


def test_the_defaults_in_the_schema_are_those_of_the_settings() -> None:
    definitions = json_schema()["$defs"]
    assert definitions["JoinSection"]["properties"]["horizon"]["default"] == "14d"
    assert definitions["MonitorsSection"]["properties"]["max_models"]["default"] == 1_000


def violations(  # noqa: C901, PLR0912  # one branch per keyword
    value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None
) -> list[str]:
    """JSON Schema, as far as this schema uses it, written out of the specification (2020-12)."""
    root = root or schema
    if "$ref" in schema:
        return violations(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    unknown = set(schema) - KEYWORDS
    assert not unknown, f"this test does not know {unknown}"
    found: list[str] = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{value!r} is none of {schema['enum']}")
    if "anyOf" in schema and all(violations(value, choice, root) for choice in schema["anyOf"]):
        found.append(f"{value!r} fits no choice")
    if "oneOf" in schema and sum(not violations(value, choice, root) for choice in schema["oneOf"]) != 1:
        found.append(f"{value!r} does not fit exactly one choice")
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        found.append(f"{value!r} is no {schema['type']}")
        return found
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{value!r} does not match {schema['pattern']}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        for keyword, broken in BOUNDS.items():
            if keyword in schema and broken(value, schema[keyword]):
                found.append(f"{value!r} breaks {keyword}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append("too few items")
        for item in value:
            found += violations(item, schema.get("items", {}), root)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{key} is missing" for key in schema.get("required", []) if key not in value]
        for key, inner in value.items():
            if key in known:
                found += violations(inner, known[key], root)
            elif schema.get("additionalProperties") is False:
                found.append(f"{key} is unknown")
    return found


TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
BOUNDS: dict[str, Any] = {
    "minimum": lambda value, bound: value < bound,
    "maximum": lambda value, bound: value > bound,
    "exclusiveMinimum": lambda value, bound: value <= bound,
    "exclusiveMaximum": lambda value, bound: value >= bound,
}
KEYWORDS = {
    *(
        "$defs",
        "$schema",
        "title",
        "description",
        "default",
        "examples",
        "format",
        "writeOnly",
        "propertyNames",
    ),
    *("const", "enum", "anyOf", "oneOf", "type", "pattern", "items", "minItems", "minLength", "maxLength"),
    *("properties", "required", "additionalProperties", *BOUNDS),
}


def test_settings_from_a_document_read_neither_file_nor_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMWATCH__LOG__LEVEL", "debug")
    monkeypatch.setenv("KAFKA", '{"bootstrap_servers": "evil:1"}')
    settings = Settings(**yaml.safe_load(MINIMAL))
    assert settings.log.level == "info"
    assert settings.kafka.bootstrap_servers == ("localhost:9092",)
