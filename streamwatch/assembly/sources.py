"""Sources of records, built from the settings; the only module that chooses the kind of source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from streamwatch.admin.kafka_check import CheckResult, check_group, check_kafka
from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.core.ports import Source
from streamwatch.edge.sources import KINDS
from streamwatch.settings import Settings
from streamwatch.telemetry import InternalEvent

REFUSALS = tuple(error for kind in KINDS.values() for error in kind.refusals)
"""Errors of sources that a restart cannot solve."""


def build_source(
    settings: Settings,
    topics: Sequence[str],
    emit: Callable[[InternalEvent], None],
    offset_metadata: Callable[[], str],
    topics_since_ms: Callable[[], Mapping[str, int]] = dict,
) -> Source:
    """Build the source of the topics, which can continue from positions."""
    spec, dead_letters = specs.kafka_spec(settings.kafka), settings.kafka.dead_letter_topic
    if dead_letters is not None:
        spec = replace(spec, required_topics=((dead_letters, "kafka.dead_letter_topic"),))
    return KINDS["kafka"].build(spec, topics, emit, offset_metadata, topics_since_ms)


def build_results_source(
    settings: Settings,
    topics: Sequence[str],
    emit: Callable[[InternalEvent], None],
    offset_metadata: Callable[[], str],
    max_bytes: int,
) -> Source:
    """Build a source that reads compacted topics from their beginning, with records of up to `max_bytes`."""
    spec = replace(
        specs.kafka_spec(settings.kafka),
        start_from="earliest",
        max_record_bytes=max_bytes,
        max_batch_bytes=2 * max_bytes,
    )
    return KINDS["kafka"].build(spec, topics, emit, offset_metadata)


def build_sampling_source(settings: Settings, topics: Sequence[str]) -> Source:
    """Build a source that reads the first records of topics and commits nothing."""
    spec = replace(specs.kafka_spec(settings.kafka), group_id=None, start_from="earliest")
    return KINDS["kafka"].build(spec, topics, lambda _: None, lambda: "")


async def check_source(settings: Settings, mark: Callable[[], tuple[str, bool]]) -> Sequence[CheckResult]:
    """Check access to the topics to be read and written, their partitions, and use of the consumer group.

    Parameters
    ----------
    settings
        Settings with the topics.
    mark
        Returns the offset metadata of the existing state, and whether it has commits (`changes.read_mark`).
    """
    spec, sides = specs.kafka_spec(settings.kafka), topic_properties.sides(settings.topics)
    named = {
        "kafka.dead_letter_topic": settings.kafka.dead_letter_topic,
        "outcomes.topic": settings.outcomes.topic,
        "events.topic": settings.events.topic,
    }
    written = {setting: topic for setting, topic in named.items() if topic is not None}
    found = await check_kafka(spec, sides, written)
    if not all(result.good for result in found):
        return found
    return [*found, *(await check_group(spec, list(sides), mark))]
