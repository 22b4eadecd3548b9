"""What `streamwatch check` looks at: contradictions in the settings, Kafka, topics, worst-case memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamwatch.assembly import specs
from streamwatch.assembly.build import build_topics
from streamwatch.assembly.footprint import worst_case
from streamwatch.edge.sources.kafka import KafkaUnreachable, TopicsMissing, probe
from streamwatch.settings import Settings, SettingsError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    good: bool
    details: tuple[str, ...] = ()


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


def worst_case_finding(settings: Settings) -> Finding:
    """The most memory the limits allow; told, not judged, unless this machine has less."""
    parts = worst_case(specs.join_spec(settings), specs.monitors_spec(settings))
    total = sum(part.bytes for part in parts)
    return Finding(
        f"worst-case memory: {_size(total)}, if every limit is reached at once",
        good=True,
        details=tuple(f"{_size(part.bytes):>8}  {part.what}" for part in parts),
    )


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"
