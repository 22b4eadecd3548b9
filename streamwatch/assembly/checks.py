"""What `streamwatch check` looks at: contradictions in the settings, Kafka, topics, state, the worst case."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.admin.capacity import DiskSpec
from streamwatch.admin.capacity_check import Limits, check_state, check_worst_case
from streamwatch.admin.check_result import CheckResult
from streamwatch.admin.kafka_check import check_kafka
from streamwatch.assembly import specs
from streamwatch.assembly.topics import build_topics
from streamwatch.settings import Settings, SettingsError


async def check_all(settings: Settings) -> Sequence[CheckResult]:
    """Everything that can be known before starting; creates nothing, reads one batch of each topic."""
    try:
        monitors = specs.monitors_spec(settings)
        build_topics(settings)
    except SettingsError as error:
        return [CheckResult(str(error), good=False)]
    limits = capacity_limits(settings)
    forgetting = ", ".join(spec.name for spec in monitors.forgetting)
    detectors = ", ".join(spec.name for spec in monitors.detectors) or "none"
    return [
        CheckResult("settings", good=True, details=(f"forgetting: {forgetting}", f"detectors: {detectors}")),
        *_namespace_findings(settings),
        *await check_kafka(
            specs.kafka_spec(settings.kafka),
            specs.sides(settings.topics),
            settings.kafka.dead_letter_topic,
        ),
        *check_state(limits),
        check_worst_case(limits),
    ]


def _namespace_findings(settings: Settings) -> Sequence[CheckResult]:
    """What the namespaces of ids are, and which models are evaluated as one across several of them."""
    spaces = sorted(set(specs.namespaces(settings.topics).values()))
    if len(spaces) == 1:
        return []
    told = ["models are named across namespaces: records of one name are evaluated as one model"]
    for model, found in specs.shared_models(settings.topics).items():
        told.append(f"{model} is one model in {', '.join(map(repr, found))}")
    return [CheckResult(f"namespaces: {', '.join(map(repr, spaces))}", good=True, details=tuple(told))]


def capacity_limits(settings: Settings) -> Limits:
    """Every limit that bounds memory and disk."""
    return Limits(
        join=specs.join_spec(settings),
        monitors=specs.monitors_spec(settings),
        disk=disk_spec(settings),
        directory=settings.state.directory,
        min_free_bytes=settings.state.min_free_megabytes * 1_000_000,
    )


def disk_spec(settings: Settings) -> DiskSpec | None:
    """State on disk; None where it is in memory."""
    state = settings.state
    if not specs.store_kind(settings).durable:
        return None
    return DiskSpec(
        specs.rocks_spec(settings),
        state.commit_events,
        state.journal_outcomes,
        specs.joins_in_columns(settings),
    )
