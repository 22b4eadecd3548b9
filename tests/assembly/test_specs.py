"""What settings become: the specs of parts, and paths and times that settings and parts read alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trustme

from streamwatch.admin.series_count import check_series
from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.topics import mappings_of
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.merge import MergeSpec
from streamwatch.core.specs import FadingSpec, JoinSpec, LandmarkSpec, MonitorsSpec, SlidingSpec
from streamwatch.edge.decoders.mapping import TopicMapping, parse_field_location
from streamwatch.edge.sources.kafka import parse_start
from streamwatch.settings import Settings, SettingsError, load

NOWHERE = ["kafka.bootstrap_servers=127.0.0.1:1", "topics.predictions=p", "topics.labels=l"]
MINIMAL = {"kafka": {"bootstrap_servers": "a:1"}, "topics": {"predictions": "p", "labels": "l"}}


def settings(**sections: object) -> Settings:
    return Settings(**{**MINIMAL, **sections})  # type: ignore[arg-type]


def test_default_settings_become_default_specs() -> None:
    assert specs.join_spec(settings()) == JoinSpec()
    registers = (LateLabelsSpec(), ProbabilitiesSpec(), CohortsSpec())
    assert specs.monitors_spec(settings()) == MonitorsSpec(registers=registers)
    found = {name: [each.mapping for each in of] for name, of in mappings_of(settings().topics).items()}
    assert found == {"p": [TopicMapping()], "l": [TopicMapping()]}
    assert topic_properties.sides(settings().topics) == {"p": "prediction", "l": "label"}


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
    assert topic_properties.sides(both.topics) == {"events": "both", "more": "prediction"}
    rule = mappings_of(both.topics)["events"][0].mapping.kind
    assert rule is not None
    assert (rule.field, rule.prediction, rule.label) == ("value.type", "p", "l")


def test_security_settings_reach_the_client(tmp_path: Path) -> None:
    for name in ("password", "keypass"):
        (tmp_path / name).write_text(f"{name}-content\n")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    issued.private_key_pem.write_to_path(tmp_path / "key")
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
    ("wrong", "line"),
    [
        ("ca_file", "kafka.security.ca_file: expected PEM certificates in "),
        ("certificate_file", "kafka.security.certificate_file: expected a PEM certificate in "),
        ("key_file", "kafka.security.certificate_file: expected a PEM certificate in "),
    ],
)
def test_files_that_are_no_certificates_end_the_start_instead_of_being_tried_for_ever(
    tmp_path: Path, wrong: str, line: str
) -> None:
    issued = trustme.CA().issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate_file")
    issued.private_key_pem.write_to_path(tmp_path / "key_file")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "ca_file")
    (tmp_path / wrong).write_text("not PEM\n")
    files = {name: tmp_path / name for name in ("ca_file", "certificate_file", "key_file")}
    for protocol in ("SSL", "PLAINTEXT"):
        security = {"protocol": protocol, **files}
        section = settings(kafka={"bootstrap_servers": ["a:1"], "security": security}).kafka
        if protocol == "PLAINTEXT":
            assert specs.kafka_spec(section).security_protocol == protocol  # the files are not used
        else:
            with pytest.raises(SettingsError, match=re.escape(line)):
                specs.kafka_spec(section)


@pytest.mark.parametrize(
    "path",
    ["key", "topic", "header:x", "=fraud-v3", "value.a", "value.a.b", "value", "value.", "a.b", "=", ""],
)
def test_settings_and_decoders_agree_on_what_a_path_is(path: str) -> None:
    def accepted(read: object) -> bool:
        try:
            read()  # type: ignore[operator]
        except ValueError:
            return False
        return True

    mapping = {"name": "p", "mapping": {"id": path}}
    by_settings = accepted(lambda: settings(topics={"predictions": [mapping], "labels": "l"}))
    assert by_settings == accepted(lambda: parse_field_location(path))


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
    by_settings = accepted(lambda: load(None, NOWHERE, environ))
    assert by_settings == accepted(lambda: parse_start(start))


def test_the_kernel_takes_whatever_settings_allow_at_most_and_at_least() -> None:
    extremes = {
        "forgetting": [
            {"fading": {"alpha": 1e-3}},
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


def test_a_limit_of_series_too_small_for_rules_and_dashboards_refuses_a_start() -> None:
    small = settings(monitors={"max_series": 5_000})
    with pytest.raises(SettingsError, match=r"max_series: expected at least .* got 5,000"):
        specs.shown_monitors(small)
    assert specs.shown_monitors(settings(monitors={"max_series": 5_000, "max_models": 10})).max_models == 10


def test_the_default_limit_of_series_has_room_for_five_hundred_models_of_twenty_classes() -> None:
    spec = specs.shown_monitors(settings(monitors={"max_models": 500, "max_classes": 20}))
    assert check_series(spec).what.startswith("series: at most ")  # beyond the limit, it names no "at most"
