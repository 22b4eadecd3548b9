"""Brokers that take batches of dead letters as a whole or not at all, and remember what they took."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.errors import KafkaConnectionError
from aiokafka.record.default_records import DefaultRecordBatch

from streamwatch.edge.sources.kafka.spec import KafkaSpec


@dataclass(frozen=True)
class Written:
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def position(self) -> tuple[str, int, int]:
        headers = dict(self.headers)
        topic, number, offset = (headers[f"streamwatch.{name}"] for name in ("topic", "partition", "offset"))
        assert topic is not None
        assert number is not None
        assert offset is not None
        return topic.decode(), int(number), int(offset)


Refusal = Callable[[Written], int]


@dataclass
class FakeBrokers:
    """Takes batches as a whole or not at all, as brokers do; `code` judges each record."""

    code: Refusal = lambda _: 0
    partitions: Mapping[int, int] = field(default_factory=lambda: {0: 1})
    away: bool = False
    silent_after: int = 1 << 60
    """Requests after which none is answered."""
    breaks_beyond: int = 1 << 60
    log: list[Written] = field(default_factory=list)
    requests: int = 0
    connections: int = 0
    open: int = 0

    def __call__(self, _: KafkaSpec) -> FakeBrokers:
        self.connections += 1
        self.open += 1
        return self

    async def leaders(self, topic: str) -> Mapping[int, int]:
        assert topic == "dead"
        if self.away:
            raise KafkaConnectionError("nobody listens")
        return self.partitions

    async def send(self, leader: int, topic: str, partition: int, batch: bytes) -> int:
        assert (topic, self.partitions[partition]) == ("dead", leader)
        self.requests += 1
        if self.requests > self.silent_after:
            await asyncio.Event().wait()
        if len(batch) > self.breaks_beyond:
            raise KafkaConnectionError("Connection closed")
        found = [
            Written(partition, record.key, record.value, record.headers)
            for record in DefaultRecordBatch(bytearray(batch))
        ]
        codes = [code for written in found if (code := self.code(written))]
        if not codes:
            self.log += found
        return codes[0] if codes else 0

    async def close(self) -> None:
        self.open -= 1
