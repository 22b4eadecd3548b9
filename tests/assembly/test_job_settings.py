"""Settings that the Spark job does not have are refused by name, without Spark."""

from __future__ import annotations

import pytest

from streamwatch.assembly.checks import check_all
from streamwatch.assembly.job_settings import checkpoint_of
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.settings import SettingsError, load

MINIMAL = (
    "kafka.bootstrap_servers=127.0.0.1:1",
    "topics.predictions=predictions",
    "topics.labels=labels",
    "spark.checkpoint=/somewhere",
)


def test_settings_that_the_job_has_give_its_checkpoint():
    assert checkpoint_of(load(None, MINIMAL, environ={})) == "/somewhere"


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("kafka.dead_letter_topic=dead", "kafka.dead_letter_topic: expected none with Spark"),
        ("schema_registry.url=http://127.0.0.1:1", "schema_registry.url: expected none with Spark"),
        ("join.conflicts=last", "join.conflicts: expected first or both with Spark"),
        ("monitors.early_hints={}", "monitors.early_hints: expected none with Spark"),
        ("monitors.label_delays=true", "monitors.label_delays: expected false with Spark"),
        (
            "spark.results_topic=labels",
            "spark.results_topic: expected a topic that is not read, got 'labels'",
        ),
    ],
)
def test_a_setting_that_the_job_does_not_have_is_refused_by_its_key(given, reported):
    with pytest.raises(SettingsError, match=f"^{reported}"):
        checkpoint_of(load(None, [*MINIMAL, given], environ={}))


def test_a_job_without_a_checkpoint_is_refused():
    with pytest.raises(SettingsError, match=r"^spark.checkpoint: expected a path or URL .*, got none"):
        checkpoint_of(load(None, MINIMAL[:-1], environ={}))


def test_labels_that_are_sampled_are_refused():
    mapping = "{label_probability: value.pi, min_label_probability: 0.1}"
    reported = r"^topics\.predictions\.mapping\.label_probability: expected none"
    with pytest.raises(SettingsError, match=reported):
        checkpoint_of(
            load(None, [*MINIMAL, f"topics.predictions=[{{name: p, mapping: {mapping}}}]"], environ={})
        )


@pytest.mark.parametrize(("topic", "good"), [("streamwatch-results", True), ("predictions", False)])
async def test_check_of_a_daemon_of_results_asks_for_their_topic_and_no_other(topic, good, tmp_path):
    with EmbeddedBroker() as broker:
        broker.create_topic(topic)
        servers = f"kafka.bootstrap_servers={broker.bootstrap_servers}"
        given = (*MINIMAL, servers, f"state.directory={tmp_path}/s", "source=results")
        found = await check_all(load(None, given, environ={}))
    shown = [result.what for result in found]
    assert all(result.good for result in found) is good, shown
    read = "topic streamwatch-results: results of Spark, 1 partition, empty, may be read"
    assert (read in shown) is good
    assert any(each.startswith("topic 'streamwatch-results' does not exist") for each in shown) is not good
    assert f"state in {tmp_path}/s: begins anew" in shown
    assert not [each for each in shown if each.startswith("worst-case")]
