"""For every setting: begin with defaults, run, change it, start again: it works, or is refused as reported.

The list is that of the model of the settings, and values are derived from it: a setting that is new is
covered, or the test of values says that it needs one.
"""

from __future__ import annotations

import json
import re
import shutil
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from streamwatch.assembly import specs
from streamwatch.assembly.changes import check_changes
from streamwatch.assembly.reset import Reset, lost, perform
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.differences import Held, Unreadable, changes, document_of, settings_of
from streamwatch.settings.settings import Settings as Model
from streamwatch.settings.table_of_changes import (
    RULES,
    SIDES,
    Change,
    is_remembered,
    keys,
    rule_key,
    values_of,
)
from streamwatch.settings.topics import TopicSection
from streamwatch.settings.values import PATTERN
from tests.assembly.lives import DOCUMENT, Life, stream, with_value

GIVEN: dict[str, Any] = {
    "time.settle": "2s",
    "kafka.start_from": "2023-01-01T00:00:00Z",
    "topics.predictions": ["predictions", "more"],
    "topics.labels": ["labels", "more-labels"],
    "topics.predictions.format": "json_schema",
    "topics.labels.format": "json_schema",
    "topics.predictions.key_format": "json_schema",
    "topics.labels.key_format": "json_schema",
    "topics.predictions.mapping.prediction": "value.other",
    "topics.labels.mapping.label": "value.other",
    "topics.predictions.mappings": [{"model": "=m"}, {"model": "=n", "optional": True}],
    "topics.labels.mappings": [{}, {"label": "value.other", "optional": True}],
    "monitors.forgetting": ["landmark", {"fading": {"alpha": 0.99}}, "sliding", "adwin"],
    "monitors.detectors": [{"page_hinkley": {"threshold": 77.0}}, "adwin"],
    "monitors.detectors_by_model": {"m*": {"page_hinkley": {"threshold": 77.0}}},
    "monitors.detector_clocks": {"adwin": "prediction"},
    "monitors.drift_weighted": {"w_avg": 2.0},
    "monitors.opponents": ["persistent"],
    "monitors.utility": "balanced",
    "folds.scheme": "bootstrap",
    "topics.predictions.envelope": "cloudevents",
    "topics.predictions.decode": {"value.body": "json"},
    "topics.labels.envelope": "cloudevents",
    "topics.labels.decode": {"value.body": "json"},
    "topics.predictions.mapping.segments": ["country"],
    "topics.labels.mapping.segments": ["country"],
    "topics.predictions.mapping.kind": {"field": "value.type"},
    "topics.labels.mapping.kind": {"field": "value.type"},
    "monitors.utility_by_model": {"m*": "balanced"},
    "monitors.comparisons": [{"champion": "m", "challengers": ["n*"]}],
    "monitors.segments.measures": ["accuracy_ratio"],
    "monitors.probabilities": None,
    "monitors.max_classes": 2_000,
    "monitors.shadow_max_classes": 8,
    "monitors.per_class": "landmark",
    "join.conflicts": "both",
    "join.on_expiry": {"assume": "a"},
}
"""Values where none can be derived, or others would need kernels of their own or contradict defaults."""

SAMPLING = (".label_probability", ".label_requested", ".min_label_probability")
"""Settings that need each other."""

CHOSEN = [key for key in keys() if is_remembered(key)]
"""Settings that a state remembers: of the others, nothing that is kept depends."""


def derived(key: str) -> Iterator[Any]:
    """Values that a key may have, beside its default."""
    if key in GIVEN:
        yield GIVEN[key]
        return
    default = values_of(Settings(**base_of(key))).get(_instance(key))
    yield from _choices(key)
    match default:
        case bool():
            yield not default
        case int() | float():
            yield from (2 * default, default + 1, default // 2, default / 2)
        case str() if re.fullmatch(PATTERN, default):
            yield from ("7d", "2h", "30s", "2s")
        case str() if default.startswith("value."):
            yield f"{default}x"
        case str():
            yield "other"
        case dict():
            yield {"value.kind": ["x"]}
            yield {"x": "y"}
        case list():
            yield ["other:9092"]
        case _:
            yield from ("other", {}, 7, "value.other", "7d")


def _instance(key: str) -> str:
    """The key of the only topic, with its only mapping."""
    for side in SIDES:
        key = key.replace(f"{side}.", f"{side}[{side.removeprefix('topics.')}].")
    return key


def _choices(key: str) -> Iterator[Any]:
    """Other members of a literal type."""
    model: type[BaseModel] = Model
    for step in key.split("."):
        annotation = model.model_fields[step].annotation
        inner = [each for each in (annotation, *typing.get_args(annotation)) if isinstance(each, type)]
        sections = [each for each in inner if issubclass(each, BaseModel)]
        if step in ("predictions", "labels") and model.__name__ == "TopicsSection":
            sections = [TopicSection]
        if sections:
            model = sections[0]
            continue
        if typing.get_origin(annotation) is typing.Literal:
            default = model.model_fields[step].default
            yield from (each for each in typing.get_args(annotation) if each != default)


def other(key: str) -> dict[str, Any]:
    """A document that differs from the default in one key, and is valid."""
    before = Settings(**base_of(key))
    for value in derived(key):
        document = with_value(_needed(key), key, value)
        if key.endswith(".kind"):  # one rule for both sides
            for side in SIDES:
                document = with_value(document, f"{side}.mapping.kind", value)
        try:
            settings = Settings(**document)
            specs.monitors_spec(settings)
            specs.join_spec(settings)
        except (ValidationError, SettingsError):
            continue
        if key in {rule_key(change.key) for change in changes(before, settings, Held())}:
            return document
    raise AssertionError(f"no value is known for {key}: add one to GIVEN")


def _needed(key: str) -> dict[str, Any]:
    """What else has to be set for a key to be allowed another value."""
    document: dict[str, Any] = DOCUMENT
    if key.endswith(".namespace"):
        for side in SIDES:
            document = with_value(document, f"{side}.namespace", "other")
    if key.startswith("monitors.early_hints."):
        document = with_value(document, "monitors.early_hints", {})
    if key.endswith(SAMPLING):
        section = key.rsplit(".", maxsplit=1)[0]
        document = with_value(document, f"{section}.label_probability", "value.pi")
        document = with_value(document, f"{section}.min_label_probability", 0.1)
    if key.endswith(".mapping.kind"):
        one = {"name": "both", "mapping": {"kind": {}}}
        document = {**document, "topics": {"predictions": [one], "labels": [one]}}
    return document


def base_of(key: str) -> Mapping[str, Any]:
    """Settings at the first start: defaults, with what has to be there for a key to be."""
    reported = key.startswith("monitors.early_hints.") or key.endswith((".mapping.kind", *SAMPLING))
    return _needed(key) if reported else DOCUMENT


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state that ran with defaults."""
    directory = tmp_path_factory.mktemp("begun") / "state"
    life = Life(DOCUMENT, directory)
    life.feed(stream(0, 40))
    life.commit()
    life.close()
    return directory


def test_every_setting_has_a_rule_whose_last_case_always_applies() -> None:
    assert set(keys()) == set(RULES)
    for key, cases in RULES.items():
        assert cases, key
        *earlier, last = cases
        assert all(case.when for case in earlier), key
        assert last.needs is None, key
        for case in cases:
            assert bool(case.command) == (case.change is Change.REFUSED), key
            assert case.scope is None or case.change is Change.BEGINS_ANEW, key


def test_what_a_state_forgets_goes_on_whatever_it_is_but_for_state_in_memory() -> None:
    for key in keys():
        if not is_remembered(key):
            assert RULES[key][-1].change is Change.GOES_ON, key
            assert len(RULES[key]) == 1 or key == "state.kind", key


def test_a_state_holds_nothing_of_what_it_forgets_secrets_among_them() -> None:
    marked = "hunter2-Xy"
    document = {
        **DOCUMENT,
        "kafka": {
            "bootstrap_servers": ["none:0"],
            "security": {"protocol": "SASL_SSL", "username": marked, "password": marked},
        },
        "schema_registry": {"url": f"https://{marked}:1", "username": marked, "password": marked},
        "alerts": {"receivers": [{"name": "a", "type": "slack", "url": f"https://example.com/{marked}"}]},
        "models": {"rules": [{"labels": {"team": marked}, "runbook_url": f"https://{marked}/"}]},
        "http": {"token": f"{marked}{marked}{marked}{marked}"},
        "state": {"directory": f"/{marked}"},
        "spark": {"checkpoint": marked, "configuration": {"spark.ssl.keyPassword": marked}},
    }
    written = document_of(Settings(**document))
    assert marked.encode() not in written
    assert written == document_of(Settings(**DOCUMENT))


def test_a_state_holds_no_section_without_a_setting_that_it_remembers() -> None:
    remembered = {key.split(".")[0] for key in CHOSEN}
    assert json.loads(document_of(Settings(**DOCUMENT))).keys() == remembered


def test_settings_that_a_state_remembers_are_read_back_as_they_were() -> None:
    for key in CHOSEN:
        settings = Settings(**other(key)) if key != "source" else Settings(**DOCUMENT)
        assert document_of(settings_of(document_of(settings))) == document_of(settings), key
        assert changes(settings_of(document_of(settings)), settings, Held()) == [], key
    with pytest.raises(Unreadable):
        settings_of(b'{"kafka": "\xff"}')


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in CHOSEN if key != "source"])
def test_a_state_begun_with_defaults_does_as_reported_when_a_setting_changes_and_changes_back(
    key: str, begun: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "state"
    alone = key.endswith(".mapping.kind")  # its topic is not one of those that `begun` was made of
    if not alone:
        shutil.copytree(begun, directory)
    base, document = base_of(key), other(key)
    if base is not DOCUMENT:
        life = Life(base, directory)
        life.feed(stream(0 if alone else 40, 41))
        life.commit()
        life.close()
    for start, settings in ((41, document), (60, base)):
        life = _started(settings, directory, key)
        life.feed(stream(start, start + 19))
        life.commit()
        counted = life.value("outcomes_total", "m")
        life.close()
        again = Life(settings, directory)
        assert again.events("setting_changed") == []
        assert again.value("outcomes_total", "m") == counted
        again.close()


def _started(document: Mapping[str, Any], directory: Path, key: str) -> Life:
    """Start under other settings, after a reset if they are refused; hold it against what `check` says."""
    (result,) = check_changes(Settings(**{**document, "state": {"directory": directory}}))
    lines = [line for line in result.details if rule_key(line.split(": ", maxsplit=1)[0]) == key]
    assert lines, (key, result.details)
    if result.good:
        life = Life(document, directory)
        _matches_what_was_reported(life, key, result.details)
        return life
    assert "refused" in lines[0]
    command = next(case.command for case in RULES[key] if case.command)
    with pytest.raises(StateRefused, match=re.escape(command)):
        Life(document, directory)
    reset = Reset(everything=True) if "--all" in command else Reset(section="join")
    assert lost(directory, reset)
    perform(directory, reset)
    return Life(document, directory)


def _matches_what_was_reported(life: Life, key: str, reported: Sequence[str]) -> None:
    """Compare what a daemon logged at its start with what `check` printed before."""
    events = life.events("setting_changed")
    assert {rule_key(event["setting"]) for event in events} >= {key}
    shown = [f"{event['setting']}: {event['effect']}" for event in events]
    assert [line for line in reported if line in shown] == shown
    anew = [line for line in reported if line.startswith("begin anew, with no outcomes")]
    restarted = life.state.resumed.restarted
    assert anew == ([f"begin anew, with no outcomes: {', '.join(restarted)}"] if restarted else [])


def test_a_state_whose_topics_are_all_replaced_is_that_of_another_deployment() -> None:
    before = Settings(**{**DOCUMENT, "topics": {"predictions": ["p"], "labels": ["l"]}})
    other = Settings(**{**DOCUMENT, "topics": {"predictions": ["q"], "labels": ["m"]}})
    [first, *_] = changes(before, other, Held(0, 0))
    assert (first.key, first.change) == ("topics", Change.REFUSED)
    assert "name another state.directory" in first.text()
    moving = Settings(**{**DOCUMENT, "topics": {"predictions": ["p", "q"], "labels": ["l", "m"]}})
    for then, now in ((before, moving), (moving, other)):
        assert not [each for each in changes(then, now, Held(0, 0)) if each.change is Change.REFUSED]
