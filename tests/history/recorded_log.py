"""A log of the README's fraud example, as kcat writes it, as a daemon reads it, and what comes of it."""

from __future__ import annotations

import asyncio
import io
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Partition
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.json_api import JsonExporter
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry

START_MS = 1_700_000_000_000
DAY = 86_400_000
FRAUD: dict[str, Any] = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {
        "predictions": [
            {
                "name": "scoring-events",
                "mapping": {
                    "id": "value.transaction.uuid",
                    "model": "header:model-version",
                    "prediction": "value.decision",
                    "timestamp": "value.scored_at",
                    "timestamp_unit": "iso8601",
                    "classes": {"true": "fraud", "false": "legit"},
                },
            }
        ],
        "labels": [{"name": "chargebacks", "mapping": {"id": "key", "label": "=fraud"}}],
    },
    "join": {"horizon": "30d", "on_expiry": {"assume": "legit"}},
    "state": {"kind": "memory"},
}


@dataclass(frozen=True)
class Logged:
    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp_type: int = 0
    fault: str | None = None

    def of_kcat(self) -> str:
        text = {True: lambda raw: raw.decode(), False: lambda _: None}
        headers = [part for name, content in self.headers for part in (name, content.decode())]
        return json.dumps(
            {
                "topic": self.topic,
                "partition": self.partition,
                "offset": self.offset,
                "tstype": "logappend" if self.timestamp_type else "create",
                "ts": self.timestamp,
                "broker": 0,
                "headers": headers,
                "key": text[self.key is not None](self.key),
                "payload": text[self.value is not None](self.value),
            }
        )


@dataclass
class Log:
    partitions: dict[Partition, list[Logged]] = field(default_factory=dict)

    def add(self, topic: str, partition: int, record_ms: int, value: Any, **rest: Any) -> None:
        records = self.partitions.setdefault(Partition(topic, partition), [])
        content = None if value is None else json.dumps(value).encode()
        records.append(Logged(topic, partition, len(records), record_ms, content, **rest))


def fraud_log(seed: int, scored: int = 1_500) -> tuple[Log, int, int]:
    """Transactions of 90 days; how many are evaluated by the time of the last record, and wrongly."""
    chance = random.Random(seed)
    events: list[tuple[int, int, str, bool]] = []
    for number in range(scored):
        record_ms = START_MS + number * 90 * DAY // scored
        events.append((record_ms, 0, str(number), chance.random() < 0.2))
    predicted = {key: flagged for _, _, key, flagged in events}
    charged: dict[str, int] = {}
    for record_ms, _, key, flagged in list(events):
        if chance.random() < (0.7 if flagged else 0.05):
            charged[key] = record_ms + chance.randrange(1_000, 40 * DAY)
            events.append((charged[key], 1, key, flagged))
    end_ms = START_MS + 90 * DAY
    events = sorted(event for event in events if event[0] <= end_ms)
    log = Log()
    for record_ms, kind, key, flagged in events:
        if kind == 0:
            scored_at = (
                time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record_ms // 1000))
                + f".{record_ms % 1000:03d}"
            )
            value = {"transaction": {"uuid": key}, "decision": flagged, "scored_at": scored_at}
            headers = (("model-version", b"v3"),)
            log.add("scoring-events", chance.randrange(4), record_ms, value, headers=headers)
        else:
            log.add("chargebacks", chance.randrange(4), record_ms, {"amount": 1}, key=key.encode())
    last_ms = events[-1][0]
    evaluated = wrong = 0
    for record_ms, kind, key, _ in events:
        if kind == 0:
            due_ms = -(-(record_ms + 30 * DAY) // 1000) * 1000
            label_ms = charged.get(key)
            if label_ms is not None and label_ms < due_ms and label_ms <= last_ms:
                evaluated, wrong = evaluated + 1, wrong + (not predicted[key])
            elif due_ms <= last_ms:
                evaluated, wrong = evaluated + 1, wrong + predicted[key]
    return log, evaluated, wrong


def daemons_document(document: dict[str, Any], log: Log, seed: int) -> dict[str, Any]:
    """`/api/v1/models` of a daemon that read a log in polls that interleave at random."""
    chance = random.Random(seed)
    return asyncio.run(_daemons_document(Settings(**document), log, chance))


async def _daemons_document(settings: Settings, log: Log, chance: random.Random) -> dict[str, Any]:
    processor = state_opening(settings, build_topics(settings), Telemetry(stream=io.StringIO()))().processor
    read = dict.fromkeys(log.partitions, 0)
    while True:
        records: dict[Partition, Sequence[Any]] = {}
        for partition, entries in log.partitions.items():
            start = read[partition]
            read[partition] = min(len(entries), start + chance.choice((0, 1, 7, 60)))
            if read[partition] > start:
                records[partition] = entries[start : read[partition]]
        ended = all(read[partition] == len(entries) for partition, entries in log.partitions.items())
        found_ms = int(time.monotonic() * 1_000) + 100_000 if ended else None
        stands = {p: PartitionState(read[p], len(log.partitions[p]), ended, found_ms) for p in read}
        await processor.receive(Poll(records, stands))
        while processor.has_ready:
            processor.evaluate()
        if ended:
            break
    slices = processor.report_in_slices()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return json.loads(JsonExporter().render(Asked(end.value)) or b"")
