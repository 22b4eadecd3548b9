"""No configuration error repeats a secret, however the configuration is broken, and none takes long."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.settings import SettingsError, load
from tests.cpu_budget import OwnTime

SECRET = "hunter2Xy"  # noqa: S105 - opens nothing
URL = f"https://hooks.example.com/services/{SECRET}"
MINIMAL = "kafka: {bootstrap_servers: 'localhost:9092'}\ntopics: {predictions: predictions, labels: labels}\n"
SECONDS = 3.0


def complaint(folder: Path, text: str, *overrides: str, environ: dict[str, str] | None = None) -> str:
    file = folder / "streamwatch.yaml"
    file.write_text(text)
    own = OwnTime(os.getpid())
    with pytest.raises(SettingsError) as caught:
        load(file, overrides, environ or {})
    assert own.look().seconds < SECONDS
    return str(caught.value)


@pytest.mark.parametrize(
    "broken",
    [
        f"alerts:\n  receivers:\n    name: a\n    type: slack\n    url: {URL}\n",
        f"alerts:\n  receivers: {URL}\n",
        f"alerts:\n  receivers:\n    - {URL}\n",
        f"alerts:\n  receivers:\n    - [{URL}]\n",
        f"alerts: {URL}\n",
        f"alerts: [{{url: {URL}}}]\n",
        f"alerts:\n  receivers:\n    - {{name: a, type: slack, '{URL}': }}\n",
        f"alerts:\n  receivers:\n    - {{name: a, type: slack, {URL}}}\n",
        f"alerts:\n  receivers:\n    - {{name: a, type: slack, url: *{SECRET}}}\n",
        f"alerts:\n  external_url: me:{SECRET}@example.com\n",
        f"alerts:\n  severity: {URL}\n",
        f"http: {{token: !{SECRET} x}}\n",
        f"http: {{token: &{SECRET} }}\n",
        f"http: {{token: *{SECRET}}}\n",
        f"http: {{token: '{SECRET}\n",
        f'http: {{token: "\\{SECRET}"}}\n',
        f"http: {{token: [{SECRET}, {{a: {SECRET}}}]}}\n",
        f"http: {{token: {SECRET}}}\n",
        f"http: {{token_file: {SECRET}}}\n",
        f"http: {{token_file: {'/x' * 300}{SECRET}}}\n",
        f"http: {SECRET}\n",
        f"http: [{SECRET}]\n",
        f"{SECRET}\n",
        f"- {SECRET}\n",
        f"token: {SECRET}: {SECRET}\n",
        f"%{SECRET}\n---\na: b\n",
        f"log: {{level: !!python/object:{SECRET} x}}\n",
        f"log: {{level: !{SECRET}!x y}}\n",
        f"log: {{level: {{password: {SECRET}}}}}\n",
        f"monitors: {{forgetting: [{{url: {URL}}}]}}\n",
        f"monitors: {{forgetting: [{{landmark: {URL}}}]}}\n",
        f"join: {{on_expiry: {{password: {SECRET}}}}}\n",
        f"topics: {{labels: {URL}, predictions: {URL}}}\n",
    ],
)
def test_a_secret_in_a_broken_file_is_not_repeated(tmp_path: Path, broken: str) -> None:
    head = "" if broken.startswith(("topics", "%", "- ", SECRET)) else MINIMAL
    shown = complaint(tmp_path, head + broken)
    assert SECRET not in shown
    assert str(tmp_path) in shown


@pytest.mark.parametrize(
    "security",
    [
        f"{{password: *{SECRET}}}",
        f"{{password: !{SECRET}}}",
        f"{{password: [{SECRET}]}}",
        f"{{passwrod: {{password: {SECRET}}}}}",
        f"{{password_file: {SECRET}}}",
        f"{{protocol: {{password: {SECRET}}}}}",
        f"[password: {SECRET}]",
        SECRET,
    ],
)
def test_a_password_in_a_broken_section_is_not_repeated(tmp_path: Path, security: str) -> None:
    text = f"kafka: {{bootstrap_servers: 'localhost:9092', security: {security}}}\n"
    assert SECRET not in complaint(tmp_path, text + MINIMAL.splitlines()[1])


@pytest.mark.parametrize(
    "override",
    [
        f"alerts.receivers=[{{name: a, type: slack, url: {URL}",
        f"alerts.receivers={{name: a, type: slack, url: *{SECRET}}}",
        f"alerts.receivers={URL}",
        f"alerts.receivers=[2001-99-99, {SECRET}]",
        f"kafka.security.password:{SECRET}",
        f"kafka.security.password {SECRET}",
        f"kafka.security.password.{SECRET}",
        URL,
        f"kafka.security={SECRET}",
        f"kafka.security={{password: {SECRET}",
        f"http.token={SECRET}",
        f"{URL}=x",
    ],
)
def test_a_secret_on_the_command_line_is_not_repeated(tmp_path: Path, override: str) -> None:
    shown = complaint(tmp_path, MINIMAL, override)
    assert SECRET not in shown
    assert "--set" in shown


@pytest.mark.parametrize("variable", ["ALERTS__RECEIVERS", "HTTP__TOKEN__X", "KAFKA__SECURITY", "HTTP"])
@pytest.mark.parametrize("value", [URL, f"[{URL}", f"{{url: *{SECRET}}}", SECRET])
def test_a_secret_in_the_environment_is_not_repeated(tmp_path: Path, variable: str, value: str) -> None:
    name = f"STREAMWATCH__{variable}"
    shown = complaint(tmp_path, MINIMAL, environ={name: value})
    assert SECRET not in shown
    assert name in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &a [x]\nb: *a\n", "anchors are not read: put a value that begins with & in quotes (line 1,"),
        ("a: *b\n", "aliases are not read: put a value that begins with * in quotes (line 1, column 4)"),
        ("a: !b c\n", "tags are not read: put a value that begins with ! in quotes (line 1, column 4)"),
        ("a: &a [*a]\n", "anchors are not read"),
        ("a: " + "[" * 10_000 + "]" * 10_000 + "\n", "nested deeper than 24 (line 1, column 27)"),
        ("a: " + "{b: " * 10_000 + "}" * 10_000 + "\n", "nested deeper than 24"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(300)), "nested deeper than 24"),
        ("a: '" + "x" * 300_000 + "'\n", "longer than 131072 characters"),
        ("a: [" + ("b, " * 40_000) + "]\n", "more than 20000 values (line 1, column 60002)"),
        ("a: [" + ("b, " * 10_000) + "]\n", "expected sections of alerts, events, folds, http"),
        ("? " * 5_000, "nested deeper than 24"),
        ("- " * 5_000, "nested deeper than 24"),
        ("a: " + "9" * 5_000 + "\n", "not valid YAML: a number that is too long"),
        ("a: \x01\n", "not valid YAML: a character or a word that is not allowed there; quotes may help"),
        ("1: a\n", "expected sections of alerts, events, folds, http"),
    ],
)  # fmt: skip
def test_what_expands_refers_or_nests_is_refused_quickly(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in complaint(tmp_path, text)


def test_a_billion_laughs_are_refused_at_the_first(tmp_path: Path) -> None:
    text = "a0: &a0 [x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    assert "anchors are not read" in complaint(tmp_path, text)


def test_a_path_without_end_is_refused_quickly(tmp_path: Path) -> None:
    assert "nested deeper than 24" in complaint(tmp_path, MINIMAL, "a." * 20_000 + "b=1")
    assert "nested deeper than 24" in complaint(
        tmp_path, MINIMAL, environ={"STREAMWATCH__" + "A__" * 20_000 + "B": "1"}
    )


def test_a_file_that_is_no_text_is_reported_as_such(tmp_path: Path) -> None:
    file = tmp_path / "streamwatch.yaml"
    file.write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load(file, (), {})


scalars = st.none() | st.booleans() | st.integers() | st.just(SECRET) | st.just(URL) | st.floats()
keys = st.sampled_from(["url", "password", "token", "name", "type", "secrets", "receivers", "security", "x"])
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(section=st.sampled_from(["alerts", "http", "kafka"]), tree=trees)
def test_no_tree_in_a_section_with_secrets_is_ever_repeated(
    tmp_path_factory: pytest.TempPathFactory, section: str, tree: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    good = yaml.safe_load(MINIMAL)
    file.write_text(yaml.safe_dump({**good, section: tree}))
    try:
        load(file, (), {})
    except SettingsError as error:
        assert SECRET not in str(error)  # noqa: PT017 - a good tree raises nothing


@pytest.mark.parametrize(
    ("key", "override"),
    [
        ("http.token_file", "http.token_file={}"),
        (
            "kafka.security.password_file",
            "kafka.security={{protocol: SASL_SSL, username: u, password_file: {}}}",
        ),
        ("schema_registry.token_file", "schema_registry={{url: 'https://r', token_file: {}}}"),
        ("alerts.receivers", "alerts.receivers=[{{name: a, type: slack, url_file: {}}}]"),
        ("alerts.receivers", "alerts.receivers=[{{name: a, type: pagerduty, routing_key_file: {}}}]"),
    ],
)
def test_a_file_that_is_no_text_is_named_with_its_key(tmp_path: Path, key: str, override: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(SECRET.encode() + b"\xff")
    shown = complaint(tmp_path, MINIMAL, override.format(file))
    assert f"expected text in UTF-8 in {file}" in shown
    assert key in shown
    assert SECRET not in shown
