"""Check of formats with schemas for `streamwatch check`: the registry answers, and a sample decodes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from streamwatch.admin.check_result import CheckResult
from streamwatch.core.events import Event, Invalid, Partition
from streamwatch.core.ports import Record, Schemas, Source
from streamwatch.edge.decoders.reasons import REASONS

SAMPLE_RECORDS: Final = 100
SAMPLE_SECONDS: Final = 20.0
REGISTRY_SECONDS: Final = 20.0
_HINT: Final = "where records name no schema, settings do: format: {type: avro, schema_file: event.avsc}"


class Decoding(Protocol):
    """A decoder, as far as a sample needs it."""

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Event]:
        """Decode each record with its stamp."""
        ...


async def sample(
    source: Source, topics: Sequence[str], monotonic: Callable[[], float] = time.monotonic
) -> Mapping[str, Sequence[Record]]:
    """Read the first records of topics; fewer, or none, where there are no more or time is up."""
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
            left = [state for partition, state in poll.partitions.items() if partition.topic not in full]
            source.pause(frozenset(partition for partition in poll.partitions if partition.topic in full))
            if poll.partitions and all(state.caught_up for state in left):
                break
    finally:
        await source.stop()
    return found


async def check_schemas(
    formats: Mapping[str, str],
    samples: Mapping[str, Sequence[Record]],
    decoders: Mapping[str, Decoding],
    schemas: Schemas | None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Sequence[CheckResult]:
    """Fetch the schemas of samples and decode them.

    Parameters
    ----------
    formats
        Names of formats, by topic.
    samples
        Records, by topic.
    decoders
        Decoders, by topic.
    schemas
        Fetches schemas; None where none has to be fetched.
    monotonic
        Seconds that never go back.
    """
    if schemas is not None:
        delivered = {Partition(topic, 0): records for topic, records in samples.items()}
        deadline = monotonic() + REGISTRY_SECONDS
        while not await schemas.ready(delivered):
            if schemas.problem is not None or monotonic() >= deadline:
                return [CheckResult(schemas.problem or "schema registry: no answer in time", good=False)]
    return [_decoded(topic, formats[topic], samples[topic], decoders[topic]) for topic in formats]


def _decoded(topic: str, name: str, records: Sequence[Record], decoder: Decoding) -> CheckResult:
    if not records:
        return CheckResult(f"topic {topic}: {name}, empty: nothing to decode", good=True)
    events = decoder.decode_all(records, [record.timestamp for record in records])
    reasons = Counter(event.reason for event in events if isinstance(event, Invalid))
    good = len(records) - reasons.total()
    details = [f"{count} × {reason}: {REASONS[reason]}" for reason, count in reasons.most_common()]
    if "schema_missing" in reasons:
        details.append(_HINT)
    what = f"topic {topic}: {name}, {good} of {len(records)} records of a sample were decoded"
    return CheckResult(what, good=good > 0, details=tuple(details))
