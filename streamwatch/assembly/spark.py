"""From settings to the Spark job: specifications, and what tasks make of them in their own processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamwatch.assembly import specs
from streamwatch.core.buckets.contract import Keeper
from streamwatch.settings import Settings, SettingsError
from streamwatch.spark.cuts import CutSpec
from streamwatch.spark.job import JobSpec
from streamwatch.spark.placement import dealt_keys
from streamwatch.spark.processors import StageSpec
from streamwatch.spark.sink import SinkSpec
from streamwatch.spark.source import SourceSpec, Split


class Buckets(Protocol):
    """How buckets and what feeds them are made, in tasks: it is sent to them."""

    def split(self) -> Split:
        """Make what divides records among the buckets of ids."""
        ...

    def ids(self, number: int) -> Keeper:
        """Make a bucket of ids without state."""
        ...

    def models(self, number: int) -> Keeper:
        """Make a bucket of models without state."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that the job does not have."""

    key: str
    given: Callable[[Settings], bool]
    why: str


REFUSALS: Sequence[Refusal] = (
    Refusal(
        "kafka.dead_letter_topic",
        lambda settings: settings.kafka.dead_letter_topic is not None,
        "expected none with Spark: a task that is repeated would write its invalid records again",
    ),
    Refusal(
        "schema_registry.url",
        lambda settings: settings.schema_registry.url is not None,
        "expected none with Spark: formats whose schemas are in a registry are read by the daemon only",
    ),
)


def job_spec(settings: Settings, buckets: Buckets) -> JobSpec:
    """The job that the settings ask for.

    Raises
    ------
    SettingsError
        No checkpoint is set, or something that the job does not have is.
    """
    section = settings.spark
    if section.checkpoint is None:
        raise SettingsError(
            "spark.checkpoint: expected a path or URL that driver and executors reach, got none"
        )
    for refusal in REFUSALS:
        if refusal.given(settings):
            raise SettingsError(f"{refusal.key}: {refusal.why}")
    topics = list(specs.sides(settings.topics))
    if section.results_topic in topics:
        raise SettingsError(
            f"spark.results_topic: expected a topic that is not read, got {section.results_topic!r}"
        )
    kafka = specs.kafka_spec(settings.kafka)
    id_keys = dealt_keys(section.id_buckets, section.id_buckets)
    model_keys = dealt_keys(section.model_buckets, section.id_buckets)
    return JobSpec(
        source=SourceSpec(
            kafka=kafka,
            topics=topics,
            split=buckets.split,
            keys=id_keys,
            model_buckets=section.model_buckets,
            most_records=section.batch_records,
            cuts=CutSpec(settings.time.settle, settings.time.max_future),
        ),
        ids=StageSpec("ids", id_keys, buckets.ids, model_keys),
        models=StageSpec("models", model_keys, buckets.models),
        sink=SinkSpec(kafka, section.results_topic),
        checkpoint=section.checkpoint,
        partitions=section.id_buckets,
        interval_seconds=section.interval / 1_000,
        configuration=section.configuration,
    )
