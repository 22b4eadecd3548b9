"""What `streamwatch check` looks at: contradictions in the settings, Kafka, topics, state, the worst case."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.assembly import specs
from streamwatch.assembly.build import build_topics
from streamwatch.assembly.finding import Finding
from streamwatch.assembly.room import state_findings, worst_case_finding
from streamwatch.edge.sources.kafka import KafkaUnreachable, TopicsMissing, probe
from streamwatch.settings import Settings, SettingsError


async def check_all(settings: Settings) -> Sequence[Finding]:
    """Everything that can be known before starting; creates nothing, reads no record."""
    try:
        monitors = specs.monitors_spec(settings)
        build_topics(settings)
    except SettingsError as error:
        return [Finding(str(error), good=False)]
    forgetting = ", ".join(spec.name for spec in monitors.forgetting)
    detectors = ", ".join(spec.name for spec in monitors.detectors) or "none"
    return [
        Finding("settings", good=True, details=(f"forgetting: {forgetting}", f"detectors: {detectors}")),
        *await _kafka(settings),
        *state_findings(settings),
        worst_case_finding(settings),
    ]


async def _kafka(settings: Settings) -> Sequence[Finding]:
    sides = specs.sides(settings.topics)
    spec = specs.kafka_spec(settings.kafka)
    try:
        partitions = await probe(spec, list(sides))
    except KafkaUnreachable as error:
        return [Finding(str(error), good=False)]
    except OSError as error:  # certificates and keys are read before anybody is asked
        return [Finding(f"kafka.security: {error}", good=False)]
    except TopicsMissing as error:
        return [Finding(f"Kafka at {spec.bootstrap_servers}", good=True), Finding(str(error), good=False)]
    carries = {"prediction": "predictions", "label": "labels", "both": "predictions and labels"}
    return [
        Finding(f"Kafka at {spec.bootstrap_servers}", good=True),
        *(
            Finding(f"topic {topic}: {carries[side]}, {partitions[topic]} partitions", good=True)
            for topic, side in sides.items()
        ),
    ]
