"""What an operator reads of the command line, the environment, missing settings and secrets: exact texts."""

# ruff: noqa: E501  # exact texts are the interface

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamwatch.settings import SettingsError, load

OTHERS = {"STREAMWATCH_CONFIG": "a.yaml", "STREAMWATCH_JOIN": "3", "STREAMWATCH_ZOO__KEEPER": "3"}
"""Variables that are not about settings."""


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
            "topics.labels[0].name in --set: expected letters, digits, '.', '_' and '-' only, got 'what?'",
        ),
        (
            "topics.labels={name: labels, topic: labels}",
            (
                "topics.labels[0].topic in --set: unknown key; known: decode, envelope, format, key_format, mapping, "
                "mappings, name, namespace"
            ),
        ),
        (
            "kafka.username=me",
            "kafka.username in --set: unknown key; did you mean 'kafka.security.username'?",
        ),
        (
            "kafka.ca_file=ca.pem",
            "kafka.ca_file in --set: unknown key; did you mean 'kafka.security.ca_file' or 'kafka.security.oauth.ca_file'?",
        ),
        (
            "topics.labels[0].name=a",
            "topics.(not shown) in --set: unknown key; entries of a list are not set one by one: set the whole list, [{…}, …]",
        ),
        (
            "topics.labels={name: labels, mapping: {id: payload.id}}",
            (
                "topics.labels[0].mapping.id in --set: expected value.some.field, value, key, header:name, topic "
                "or a constant =text, got 'payload.id'"
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
def test_a_fault_on_the_command_line_is_reported_as_such(
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
    assert complaint("", environ={"STREAMWATCH__JOIN_HORIZON": "7d"}) == [
        (
            "join_horizon in environment variable STREAMWATCH__JOIN_HORIZON: unknown key; did you mean "
            "'join.horizon'?"
        )
    ]


def test_a_variable_that_lacks_an_underscore_is_refused_and_others_of_the_name_are_not(
    complaint: Callable[..., list[str]],
) -> None:
    assert complaint("", environ={"STREAMWATCH_JOIN__HORIZON": "7d"}) == [
        (
            "environment variable STREAMWATCH_JOIN__HORIZON: two underscores follow STREAMWATCH: expected "
            "STREAMWATCH__JOIN__HORIZON"
        )
    ]
    load(None, ["kafka.bootstrap_servers=b:1", "topics.predictions=p", "topics.labels=l"], OTHERS)


def test_every_fault_is_reported_at_once(complaint: Callable[..., list[str]]) -> None:
    assert len(complaint("join: {horizon: x, max_pending: 0}\nhttp: {listen: x}\nfoo: 1")) == 4


def test_what_is_missing_is_reported_with_where_it_was_looked_for() -> None:
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
