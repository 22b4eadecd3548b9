"""Checks of Kafka for `streamwatch check`: brokers, topics, schemas, mappings and ids."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final, Literal, TypeAlias

from streamwatch.core.join.caveats import CAUSE, CHANGE, SHOWN, Repeats, are_scores
from streamwatch.core.ports import Decoder, Explains, Record, Schemas, Source
from streamwatch.core.records.events import (
    Event,
    Invalid,
    Label,
    Partition,
    Prediction,
    Side,
)
from streamwatch.edge.decoders.mapping import REASONS
from streamwatch.edge.sources.kafka import (
    KafkaUnreachable,
    ReadDenied,
    TopicsMissing,
    WriteDenied,
    probe,
    probe_group,
    probe_writing,
)
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.history.samples import counted
from streamwatch.inspection.columns import Column
from streamwatch.inspection.ids import affix_of
from streamwatch.inspection.joined import each_of
from streamwatch.inspection.streams import are_misread


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check."""

    what: str
    """Line that is shown."""
    good: bool
    details: tuple[str, ...] = ()
    """Lines shown below it."""
    folded: bool = False
    """Whether the details are shown with `--verbose` only."""


Content: TypeAlias = Side | Literal["results"]
"""Content of a topic that is read: a side, or results of Spark."""


async def check_kafka(
    spec: KafkaSpec, sides: Mapping[str, Content], written: Mapping[str, str]
) -> Sequence[CheckResult]:
    """Check that brokers answer and have the topics; writes nothing, reads one batch of each topic.

    Parameters
    ----------
    spec
        Connection to the brokers.
    sides
        Content of each topic that is read.
    written
        Name of each topic that is written, by the setting that names it.
    """
    found = await _check_topics(spec, sides)
    return [*found, *[await _check_written(spec, *each) for each in written.items() if found[0].good]]


_WRITTEN: Final = {
    "kafka.dead_letter_topic": "dead letters",
    "outcomes.topic": "outcomes",
    "events.topic": "events",
}


async def _check_written(spec: KafkaSpec, setting: str, topic: str) -> CheckResult:
    what = _WRITTEN[setting]
    try:
        await probe_writing(spec, setting, topic)
    except (KafkaUnreachable, TopicsMissing, WriteDenied) as error:
        return CheckResult(f"{what}: {error}", good=False)
    return CheckResult(f"topic {topic}: {what}, may be written", good=True)


async def check_ledger(spec: KafkaSpec, topic: str) -> CheckResult:
    """Check that the ledger can be read and written, or is still to be created; writes nothing."""
    try:
        partitions = (await probe(spec, [topic]))[topic].partitions
        if partitions != 1:
            problem = f"ledger.topic: expected a topic with one partition, {topic} has {partitions}"
            return CheckResult(problem, good=False)
        await probe_writing(spec, "ledger.topic", topic)
    except TopicsMissing:
        return CheckResult(f"topic {topic}: ledger, created at the first start", good=True)
    except (KafkaUnreachable, ReadDenied, WriteDenied) as error:
        return CheckResult(f"ledger.topic: {error}", good=False)
    return CheckResult(f"topic {topic}: ledger, may be read and written", good=True)


async def check_group(
    spec: KafkaSpec, topics: Sequence[str], mark: Callable[[], tuple[str, bool]]
) -> Sequence[CheckResult]:
    """Check that the consumer group is used only by the existing state.

    Parameters
    ----------
    spec
        Connection to the brokers, with the group if one is set.
    topics
        Names of the topics that are read.
    mark
        Returns the offset metadata of the existing state, and whether it has commits.
    """
    if spec.group_id is None:
        return []
    try:
        found = await probe_group(spec, topics, mark)
    except KafkaUnreachable as error:
        return [CheckResult(f"kafka.group_id: {error}", good=False)]
    if found is None:
        return [CheckResult(f"consumer group {spec.group_id}: no sign of another user", good=True)]
    good = found.cause != "group_shared" and spec.on_data_loss != "fail"
    return [CheckResult(f"kafka.group_id: {found.what}", good=good, details=(found.remedy,))]


async def _check_topics(spec: KafkaSpec, sides: Mapping[str, Content]) -> Sequence[CheckResult]:
    try:
        found = await probe(spec, list(sides))
    except KafkaUnreachable as error:
        return [CheckResult(str(error), good=False)]
    except (OSError, ValueError) as error:  # faulty certificates and keys
        return [CheckResult(f"kafka.security: {error}", good=False)]
    except (ReadDenied, TopicsMissing) as error:
        return [
            CheckResult(f"Kafka at {spec.bootstrap_servers}", good=True),
            CheckResult(str(error), good=False),
        ]
    carries: Mapping[Content, str] = {
        "prediction": "predictions",
        "label": "labels",
        "both": "predictions and labels",
        "results": "results of Spark",
    }
    return [
        CheckResult(f"Kafka at {spec.bootstrap_servers}", good=True),
        *(
            CheckResult(
                f"topic {topic}: {carries[side]}, {counted(found[topic].partitions, 'partition')}, "
                + ("a record was read" if found[topic].has_records else "empty, may be read"),
                good=True,
            )
            for topic, side in sides.items()
        ),
    ]


SAMPLE_RECORDS: Final = 100
"""Records sampled of each topic."""
SAMPLE_SECONDS: Final = 20.0
"""Longest time of sampling."""
FEWEST_SCORES: Final = 10
"""Least number of different decimal fractions, as predicted classes, that are taken for scores."""


async def first_records(
    source: Source, topics: Sequence[str], monotonic: Callable[[], float] = time.monotonic
) -> Mapping[str, Sequence[Record]]:
    """Read the first `SAMPLE_RECORDS` records of each topic, or fewer at its end or after `SAMPLE_SECONDS`.

    Raises the refusals of the source.
    """
    found: dict[str, list[Record]] = {topic: [] for topic in topics}
    deadline = monotonic() + SAMPLE_SECONDS
    await source.start({}, {})
    try:
        while monotonic() < deadline:
            poll = await source.poll()
            for partition, records in poll.records.items():
                here = found[partition.topic]
                here += [records[i] for i in range(min(len(records), SAMPLE_RECORDS - len(here)))]
            full = {topic for topic, records in found.items() if len(records) >= SAMPLE_RECORDS}
            source.pause(frozenset(partition for partition in poll.partitions if partition.topic in full))
            left = [state for partition, state in poll.partitions.items() if partition.topic not in full]
            if poll.partitions and all(state.caught_up for state in left):
                break
    finally:
        await source.stop()
    return found


def check_payload(
    topic: str,
    path: str | None,
    records: Sequence[Record],
    decoder: Decoder,
    *,
    revised: bool = False,
) -> CheckResult:
    """Decode the first records of a topic, and report events, invalid records and what is doubtful.

    Parameters
    ----------
    topic
        Name of the topic.
    path
        Path of predicted classes, in the notation of the settings; None for a topic of labels.
    records
        Records to decode.
    decoder
        Decoder of the topic.
    revised
        Whether models may predict an id again with another class (`join.conflicts` is not `first`).
    """
    if not records:
        return CheckResult(f"topic {topic}: empty, nothing to decode", good=True)
    by_record, reasons, details = _decoded(records, decoder)
    events = list(chain.from_iterable(by_record))
    classes = dict.fromkeys(event.predicted_class for event in events if isinstance(event, Prediction))
    counts = {
        "predictions": sum(isinstance(event, Prediction) for event in events),
        "predictions with a label probability": sum(
            isinstance(event, Prediction) and event.label_probability is not None for event in events
        ),
        "labels": sum(isinstance(event, Label) for event in events),
        "invalid": reasons.total(),
        "records skipped": sum(not each for each in by_record),
    }
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "only null records"
    scores = are_scores(list(classes), FEWEST_SCORES)
    if scores:
        shown = ", ".join(list(classes)[:SHOWN])
        details.append(
            f"predicted classes are scores ({shown}, …): write prediction: {{score: {path}, threshold: 0.5, "
            "above: fraud, below: legit} with the classes of your labels"
        )
    doubtful = [*_misread(events), *_misdated(records), *repeated_of(events, revised=revised)]
    details += doubtful
    good = not scores and not doubtful and (not events or reasons.total() < len(events))
    what = f"topic {topic}: {listed} in the first {len(records)} records"
    return CheckResult(what, good=good, details=tuple(details))


def _decoded(
    records: Sequence[Record], decoder: Decoder
) -> tuple[list[Sequence[Event]], Counter[str], list[str]]:
    """Decode a sample: return the events of each record, and the number and description of each reason.

    Descriptions have details of the first invalid record of the reason.
    """
    by_record = list(map(each_of, decoder.decode_all(records, [record.timestamp for record in records])))
    reasons, first = Counter[str](), dict[str, Record]()
    for record, events in zip(records, by_record, strict=True):
        for event in events:
            if isinstance(event, Invalid):
                reasons[event.reason] += 1
                first.setdefault(event.reason, record)
    details: list[str] = []
    for reason, count in reasons.most_common():
        why = decoder.explain(first[reason], reason) if isinstance(decoder, Explains) else ""
        details.append(f"{count} × {reason}: {REASONS[reason]}" + (f" ({why})" if why else ""))
    return by_record, reasons, details


def _misread(events: Iterable[Event]) -> Sequence[str]:
    """Describe that times in a sample are probably seconds that are read as milliseconds, if they are."""
    times = [event.timestamp_ms for event in events if isinstance(event, Prediction | Label)]
    found = [time_ms for time_ms in times if time_ms is not None]
    if not are_misread(found):
        return []
    day = datetime.fromtimestamp(found[0] / 1_000, UTC).date()
    return [
        f"its times are read as of {day}: probably they are seconds: change timestamp_unit in its mapping"
    ]


def _misdated(records: Sequence[Record]) -> Sequence[str]:
    """Describe that Kafka's timestamps of a sample are probably seconds, if some are."""
    found = [record.timestamp for record in records if are_misread([record.timestamp])]
    if not found:
        return []
    day = datetime.fromtimestamp(found[0] / 1_000, UTC).date()
    text = (
        f"Kafka's timestamps of {len(found)} of its records are of {day}: probably what writes them sets "
        "seconds, and predictions would expire at once: set milliseconds, or "
        "message.timestamp.type=LogAppendTime"
    )
    return [text]


def repeated_of(events: Iterable[Event], *, revised: bool) -> Sequence[str]:
    """Describe which models repeat ids in a sample, and what to change; `revised` as of `check_payload`."""
    repeats = Repeats()
    for event in events:
        if isinstance(event, Prediction):
            repeats.add(event)
    found = repeats.many(revised=revised)
    return [f"model {each.model} {each.summary}; {CAUSE}. Change {CHANGE}" for each in found]


FEWEST_IDS: Final = 10
"""Least number of ids of each side in a sample with which they are compared."""


def check_ids(events: Iterable[Event]) -> CheckResult | None:
    """Check that ids of predictions and labels match in samples; None if a side has few ids.

    As samples are the first records of each topic, ids may differ because they are of different times. No
    match is a failure only if ids would match but for the way in which one side writes them (`affix_of`).
    """
    ids: dict[type[Event], dict[str, None]] = {Prediction: {}, Label: {}}
    for event in events:
        if isinstance(event, Prediction | Label):
            ids[type(event)][event.id] = None
    predicted, labelled = ids[Prediction], ids[Label]
    if min(len(predicted), len(labelled)) < FEWEST_IDS:
        return None
    if met := len(predicted.keys() & labelled.keys()):
        text = f"ids: {met} of {len(labelled)} labels in the samples meet a prediction"
        return CheckResult(text, good=True)
    what = f"ids: none of {len(labelled)} labels in the samples meets one of {len(predicted)} predictions"
    affix = affix_of(Column("predictions", list(predicted)), Column("labels", list(labelled)))
    shown = f"a prediction's id is {next(iter(predicted))!r}, a label's {next(iter(labelled))!r}"
    if affix is None:
        advice = "they may be of another time; streamwatch inspect compares more of them"
        return CheckResult(what, good=True, details=(f"{shown}: {advice}",))
    details = (affix.note, shown, "streamwatch inspect proposes a mapping")
    return CheckResult(what, good=False, details=details)


REGISTRY_SECONDS: Final = 20.0
"""Longest wait for schemas."""
_HINT: Final = "where records name no schema, settings do: format: {type: avro, schema_file: event.avsc}"


async def check_schemas(
    formats: Mapping[str, str],
    samples: Mapping[str, Sequence[Record]],
    decoders: Mapping[str, Decoder],
    schemas: Schemas | None,
    *,
    revised: bool = False,
) -> Sequence[CheckResult]:
    """Fetch the schemas of samples and decode them.

    Parameters
    ----------
    formats
        Names of formats by topic.
    samples
        Records by topic.
    decoders
        Decoders by topic.
    schemas
        Fetches schemas; None without a registry.
    revised
        As of `check_payload`.
    """
    if schemas is not None:
        delivered = {Partition(topic, 0): records for topic, records in samples.items()}
        deadline = time.monotonic() + REGISTRY_SECONDS
        needed = await schemas.needed(delivered)
        while await schemas.missing(needed):
            if schemas.problem is not None or time.monotonic() >= deadline:
                return [CheckResult(schemas.waiting or "schema registry: no answer in time", good=False)]
    return [
        _check_schema(topic, name, samples[topic], decoders[topic], revised=revised)
        for topic, name in formats.items()
    ]


def _check_schema(
    topic: str, name: str, records: Sequence[Record], decoder: Decoder, *, revised: bool
) -> CheckResult:
    if not records:
        return CheckResult(f"topic {topic}: {name}, empty: nothing to decode", good=True)
    by_record, reasons, details = _decoded(records, decoder)
    good = sum(not any(isinstance(event, Invalid) for event in events) for events in by_record)
    if "schema_missing" in reasons:
        details.append(_HINT)
    what = f"topic {topic}: {name}, {good} of {len(records)} records of a sample were decoded"
    events = list(chain.from_iterable(by_record))
    doubtful = [*_misread(events), *_misdated(records), *repeated_of(events, revised=revised)]
    return CheckResult(what, good=good > 0 and not doubtful, details=(*details, *doubtful))
