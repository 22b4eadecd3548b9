"""`streamwatch doctor`: collects a daemon's metrics, its settings and samples of its topics for the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamwatch.admin.doctor.facts import Configured, Facts, Finding, MetricSamples, SampledTopic, read
from streamwatch.admin.doctor.rules import examine
from streamwatch.assembly import specs
from streamwatch.assembly.topics import recorded_topics
from streamwatch.core.join.caveats import Repeats
from streamwatch.core.ports import Record
from streamwatch.core.records.events import Invalid, Label, NullRecord, Prediction, Skipped, WrongFold
from streamwatch.edge.daemon_api import Address, DaemonUnreachable, NotThere, answer, model_path, understood
from streamwatch.edge.sources.kafka.checking import sample
from streamwatch.history.recordings.lines import RecordedTopic
from streamwatch.inspection.joined import events_of
from streamwatch.settings import Settings

SAMPLED = 1_000
"""Records sampled of each topic."""
_MOST_MODELS: Final = 100
"""Most models whose details are requested one by one."""


async def consult(address: Address, seconds: float, settings: Settings | None = None) -> Sequence[Finding]:
    """Read a daemon's metrics twice and return what is wrong, the most important first.

    Parameters
    ----------
    address
        Address of the daemon.
    seconds
        Time between both readings, to see whether lag grows.
    settings
        Settings of the daemon, with which its topics are sampled; None: no sampling.

    Raises
    ------
    DaemonUnreachable
        If no daemon answered.
    KafkaUnreachable, TopicsMissing, ReadDenied
        If the topics cannot be sampled.
    """
    before = await asyncio.to_thread(_reading, address)
    topics = {} if settings is None else await _sampled(settings)
    await asyncio.sleep(seconds)
    now = await asyncio.to_thread(_reading, address)
    health = await asyncio.to_thread(answer, address, "/api/v1/health")
    with understood(address):
        found = await asyncio.to_thread(answer, address, "/api/v1/models")
        models: Mapping[str, Any] = found.get("models", {})
        details = {name: model.get("details", {}) for name, model in models.items()}
        for name in suspects(now):  # the answer on all models lacks these details
            try:
                model = await asyncio.to_thread(answer, address, model_path(name))
            except NotThere:  # it has retired meanwhile
                continue
            details[name] = model.get("details", {})
        reasons = [str(reason) for reason in health.get("reasons", [])]
    return examine(Facts(now, before, seconds, reasons, details, settings and configured(settings), topics))


def suspects(now: MetricSamples) -> Sequence[str]:
    """Choose at most 100 models to request one by one: those with an early hint, then with label delays."""
    hinted = (model for model, hint in now.by("early_hint", "model").items() if hint)
    return list(dict.fromkeys((*hinted, *now.by("predictions_labelled_ratio", "model"))))[:_MOST_MODELS]


def _reading(address: Address) -> MetricSamples:
    try:
        return read(address.get("/metrics").decode())
    except ValueError as error:
        raise DaemonUnreachable(f"{address.url}/metrics: not an answer of streamwatch: {error}") from None


def configured(settings: Settings) -> Configured:
    """Extract the settings that rules read."""
    monitors = settings.monitors
    utilities = {**monitors.utility_by_model, "*": monitors.utility}
    return Configured(
        horizon_ms=settings.join.horizon,
        min_outcomes=settings.alerts.min_outcomes,
        utilities={
            models: utility if isinstance(utility, str) else "costs" for models, utility in utilities.items()
        },
        order=settings.join.order,
        conflicts=settings.join.conflicts,
        has_receivers=bool(settings.alerts.receivers),
    )


async def _sampled(settings: Settings) -> dict[str, SampledTopic]:
    topics = recorded_topics(settings)
    found = await sample(specs.kafka_spec(settings.kafka), list(topics), SAMPLED)
    return {name: sampled(topic, found[name].records) for name, topic in topics.items()}


def sampled(topic: RecordedTopic, records: Sequence[Record]) -> SampledTopic:
    """Decode a sample as the daemon would: ids by model ("" for labels), and a location by reject reason."""
    ids: dict[str, list[str]] = {}
    invalid: dict[str, str] = {}
    repeats = Repeats()
    found = topic.decoder.decode_all(records, [record.timestamp for record in records])
    for event in events_of(found):
        match event:
            case Prediction():
                ids.setdefault(event.model, []).append(event.id)
                repeats.add(event)
            case Label():
                ids.setdefault("", []).append(event.id)
            case Invalid():
                invalid[event.reason] = f"partition {event.partition} offset {event.offset}"
            case NullRecord() | WrongFold() | Skipped():
                pass  # they have no id to be matched
    return SampledTopic(ids, invalid, repeats)
