"""Check of Kafka for `streamwatch check`: whether it answers, and what each topic carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch.admin.check_result import CheckResult
from streamwatch.core.events import Side
from streamwatch.edge.sources.kafka import (
    KafkaUnreachable,
    ReadDenied,
    TopicsMissing,
    WriteDenied,
    probe,
    probe_writing,
)
from streamwatch.edge.sources.kafka.spec import KafkaSpec


async def check_kafka(
    spec: KafkaSpec, sides: Mapping[str, Side], dead_letter_topic: str | None = None
) -> Sequence[CheckResult]:
    """Check that brokers answer and have the topics; creates and writes nothing, reads one batch of each."""
    found = await _check_topics(spec, sides)
    if dead_letter_topic is None or not found[0].good:
        return found
    try:
        await probe_writing(spec, dead_letter_topic)
    except (KafkaUnreachable, TopicsMissing, WriteDenied) as error:
        return [*found, CheckResult(f"dead letters: {error}", good=False)]
    return [*found, CheckResult(f"topic {dead_letter_topic}: dead letters, may be written", good=True)]


async def _check_topics(spec: KafkaSpec, sides: Mapping[str, Side]) -> Sequence[CheckResult]:
    try:
        found = await probe(spec, list(sides))
    except KafkaUnreachable as error:
        return [CheckResult(str(error), good=False)]
    except (OSError, ValueError) as error:  # certificates and keys are read before anybody is asked
        return [CheckResult(f"kafka.security: {error}", good=False)]
    except (ReadDenied, TopicsMissing) as error:
        return [
            CheckResult(f"Kafka at {spec.bootstrap_servers}", good=True),
            CheckResult(str(error), good=False),
        ]
    carries = {"prediction": "predictions", "label": "labels", "both": "predictions and labels"}
    return [
        CheckResult(f"Kafka at {spec.bootstrap_servers}", good=True),
        *(
            CheckResult(
                f"topic {topic}: {carries[side]}, {found[topic].partitions} partitions, "
                + ("a record was read" if found[topic].has_records else "empty, may be read"),
                good=True,
            )
            for topic, side in sides.items()
        ),
    ]
