"""Settings as the Spark job takes them, without Spark: what it refuses, and how it divides the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.daemon.status import host_ms
from streamwatch.settings import Settings, SettingsError


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that the job does not support."""

    key: str
    given: Callable[[Settings], bool]
    """Returns whether the setting has an unsupported value."""
    why: str
    """Expected value and reason, for the error."""


REFUSALS: Sequence[Refusal] = (
    Refusal(
        "kafka.dead_letter_topic",
        lambda settings: settings.kafka.dead_letter_topic is not None,
        "expected none with Spark: a task that is repeated would write its invalid records again",
    ),
    Refusal(
        "outcomes.topic",
        lambda settings: settings.outcomes.topic is not None,
        "expected none with Spark: outcomes are written by the daemon that evaluates them only",
    ),
    Refusal(
        "events.topic",
        lambda settings: settings.events.topic is not None,
        "expected none with Spark: events are written by the daemon that evaluates outcomes only",
    ),
    Refusal(
        "standby.enabled",
        lambda settings: settings.standby.enabled,
        "expected false with Spark: replicas are daemons that evaluate by themselves",
    ),
    Refusal(
        "schema_registry.url",
        lambda settings: settings.schema_registry.url is not None,
        "expected none with Spark: formats whose schemas are in a registry are read by the daemon only",
    ),
    Refusal(
        "join.conflicts",
        lambda settings: settings.join.conflicts == "last",
        "expected first or both with Spark: predictions are revised by the daemon only",
    ),
    Refusal(
        "monitors.early_hints",
        lambda settings: settings.monitors.early_hints is not None,
        "expected none with Spark: only the daemon gives predictions to estimates as they arrive",
    ),
    Refusal(
        "monitors.label_delays",
        lambda settings: settings.monitors.label_delays,
        "expected false with Spark: only the daemon gives predictions to estimates as they arrive",
    ),
    Refusal(
        "topics.predictions.mapping.label_probability",
        specs.labels_sampled,
        "expected none with Spark: only the daemon gives predictions to estimates as they arrive",
    ),
)


def checkpoint_of(settings: Settings) -> str:
    """Return the location of the job's state; raise for settings that the job does not support.

    Raises
    ------
    SettingsError
        If no checkpoint is set, a setting is not supported, or the job would read its own output.
    """
    section = settings.spark
    if section.checkpoint is None:
        raise SettingsError(
            "spark.checkpoint: expected a path or URL that driver and executors reach, got none"
        )
    for refusal in REFUSALS:
        if refusal.given(settings):
            raise SettingsError(f"{refusal.key}: {refusal.why}")
    if section.results_topic in topic_properties.sides(settings.topics):
        raise SettingsError(
            f"spark.results_topic: expected a topic that is not read, got {section.results_topic!r}"
        )
    return section.checkpoint


def buckets_spec(settings: Settings) -> BucketsSpec:
    """Build the spec by which the job divides the stream into buckets.

    Raises
    ------
    SettingsError
        If `join.conflicts` is `last`, which buckets do not support.
    """
    if settings.join.conflicts == "last":
        raise SettingsError("join.conflicts: expected first or both where Spark evaluates, got last")
    return BucketsSpec(
        sides=topic_properties.sides(settings.topics),
        join=specs.join_spec(settings),
        monitors=specs.monitors_spec(settings),
        id_buckets=settings.spark.id_buckets,
        model_buckets=settings.spark.model_buckets,
        max_future_ms=settings.time.max_future,
        start_ms=specs.start_ms(settings.kafka, host_ms()),
    )
