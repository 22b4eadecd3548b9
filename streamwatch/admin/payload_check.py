"""Check of payloads for `streamwatch check`: what the mappings make of the first records of each topic."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from streamwatch.admin.check_result import CheckResult
from streamwatch.core.events import Decoded, Event, EventGroup, Invalid, Label, Prediction
from streamwatch.core.join.mismatch import SHOWN, are_scores
from streamwatch.core.join.repeats import CAUSE, CHANGE, Repeats
from streamwatch.core.ports import Record, Source
from streamwatch.edge.decoders.reasons import REASONS

SAMPLE_RECORDS: Final = 100
"""Records of a topic that are looked at."""
SAMPLE_SECONDS: Final = 20.0
"""How long records are waited for."""
FEWEST_SCORES: Final = 10
"""Different decimal fractions in a sample that are taken for scores."""


class Decoding(Protocol):
    """A decoder, as far as a sample needs it."""

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its stamp."""
        ...


async def first_records(
    source: Source, topics: Sequence[str], monotonic: Callable[[], float] = time.monotonic
) -> Mapping[str, Sequence[Record]]:
    """Read the first records of topics; fewer, or none, where there are no more or time is up.

    Raises
    ------
    Whatever ends the source's reading for good.
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
    place: str | None,
    records: Sequence[Record],
    decoder: Decoding,
    *,
    revised: bool = False,
) -> CheckResult:
    """Say what the mapping of a topic makes of its first records.

    Parameters
    ----------
    topic
        The topic's name.
    place
        Where predicted classes are looked for; None on a topic of labels.
    records
        The sample.
    decoder
        Decodes it.
    revised
        Whether predictions of an id with another class are meant to be there, as `join.conflicts` says.
    """
    if not records:
        return CheckResult(f"topic {topic}: empty, nothing to decode", good=True)
    decoded = decoder.decode_all(records, [record.timestamp for record in records])
    events = [
        event for each in decoded for event in (each.events if isinstance(each, EventGroup) else (each,))
    ]
    reasons = Counter(event.reason for event in events if isinstance(event, Invalid))
    classes = dict.fromkeys(event.predicted_class for event in events if isinstance(event, Prediction))
    details = [f"{count} × {reason}: {REASONS[reason]}" for reason, count in reasons.most_common()]
    counts = {
        "predictions": sum(isinstance(event, Prediction) for event in events),
        "labels": sum(isinstance(event, Label) for event in events),
        "invalid": reasons.total(),
        "records skipped": sum(isinstance(each, EventGroup) and not each.events for each in decoded),
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "only null records"
    scores = are_scores(list(classes), FEWEST_SCORES)
    if scores:
        shown = ", ".join(list(classes)[:SHOWN])
        details.append(
            f"predicted classes are scores ({shown}, …): write prediction: {{score: {place}, threshold: 0.5, "
            "above: fraud, below: legit} with the classes of your labels"
        )
    repeated = repeated_of(events, revised=revised)
    details += repeated
    good = not scores and not repeated and (not events or reasons.total() < len(events))
    what = f"topic {topic}: {told} in the first {len(records)} records"
    return CheckResult(what, good=good, details=tuple(details))


def repeated_of(events: Iterable[Event], *, revised: bool) -> Sequence[str]:
    """Say which models repeat ids in the events of a sample, and what to change."""
    repeats = Repeats()
    for event in events:
        if isinstance(event, Prediction):
            repeats.add(event)
    found = repeats.many(revised=revised)
    return [f"model {each.model} {each.said}; {CAUSE}. Change {CHANGE}" for each in found]
