"""Check of formats with schemas for `streamwatch check`: the registry answers, and a sample decodes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from streamwatch.admin.check_result import CheckResult
from streamwatch.admin.payload_check import repeated_of
from streamwatch.core.events import Decoded, EventGroup, Invalid, Partition
from streamwatch.core.ports import Record, Schemas
from streamwatch.edge.decoders.reasons import REASONS

REGISTRY_SECONDS: Final = 20.0
_HINT: Final = "where records name no schema, settings do: format: {type: avro, schema_file: event.avsc}"


class Decoding(Protocol):
    """A decoder, as far as a sample needs it."""

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its stamp."""
        ...


async def check_schemas(
    formats: Mapping[str, str],
    samples: Mapping[str, Sequence[Record]],
    decoders: Mapping[str, Decoding],
    schemas: Schemas | None,
    monotonic: Callable[[], float] = time.monotonic,
    *,
    revised: bool = False,
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
    revised
        As of `check_payload`.
    """
    if schemas is not None:
        delivered = {Partition(topic, 0): records for topic, records in samples.items()}
        deadline = monotonic() + REGISTRY_SECONDS
        needed = await schemas.needed(delivered)
        while await schemas.missing(needed):
            if schemas.problem is not None or monotonic() >= deadline:
                return [CheckResult(schemas.waiting or "schema registry: no answer in time", good=False)]
    return [
        _decoded(topic, formats[topic], samples[topic], decoders[topic], revised=revised) for topic in formats
    ]


def _decoded(
    topic: str, name: str, records: Sequence[Record], decoder: Decoding, *, revised: bool
) -> CheckResult:
    if not records:
        return CheckResult(f"topic {topic}: {name}, empty: nothing to decode", good=True)
    decoded = decoder.decode_all(records, [record.timestamp for record in records])
    by_record = [each.events if isinstance(each, EventGroup) else (each,) for each in decoded]
    reasons = Counter(event.reason for events in by_record for event in events if isinstance(event, Invalid))
    good = sum(not any(isinstance(event, Invalid) for event in events) for events in by_record)
    details = [f"{count} × {reason}: {REASONS[reason]}" for reason, count in reasons.most_common()]
    if "schema_missing" in reasons:
        details.append(_HINT)
    what = f"topic {topic}: {name}, {good} of {len(records)} records of a sample were decoded"
    repeated = repeated_of((event for events in by_record for event in events), revised=revised)
    return CheckResult(what, good=good > 0 and not repeated, details=(*details, *repeated))
