"""A bounded sample of topics, from a log in memory instead of brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.checking import _Sampler  # pyright: ignore[reportPrivateUsage]
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import Listed

IN_LOG = 1_000
SECOND_MS = 1_000


class Log:
    """The used part of a connection: a topic whose partitions have a record a second."""

    def __init__(self, partitions: int) -> None:
        self._leaders = dict.fromkeys(range(partitions), 0)
        self._positions: dict[Partition, int] = {}

    async def listing(self) -> Mapping[str, Listed]:
        return {"t": Listed(self._leaders)}

    async def ends(self, partition: Partition) -> tuple[int, int]:
        del partition
        return 0, IN_LOG

    async def resolve(
        self, partitions: Sequence[Partition], start: Any, _now_ms: int
    ) -> dict[Partition, int]:
        return dict.fromkeys(partitions, max(0, start.timestamp_ms // SECOND_MS))

    def assign(self, positions: Mapping[Partition, int]) -> None:
        self._positions = dict(positions)

    async def take(self, partitions: Collection[Partition], _milliseconds: int) -> SimpleNamespace:
        records = {
            p: [SimpleNamespace(offset=at, timestamp=SECOND_MS * at, partition=p.partition)]
            for p in partitions
            if (at := self._positions[p]) < IN_LOG
        }
        self._positions |= {p: self._positions[p] + 1 for p in records}
        return SimpleNamespace(records=records, denied=(), damages={}, out_of_range={})

    def position(self, partition: Partition) -> int:
        return self._positions[partition]


@pytest.mark.parametrize(("most", "partitions"), [(20, 1), (20, 10), (20, 11), (20, 30)])
def test_the_newest_record_of_each_partition_is_in_the_sample(most: int, partitions: int) -> None:
    log: Any = Log(partitions)
    sampler = _Sampler(log, KafkaSpec("kafka:9092"), most, lambda _count: None)
    found = asyncio.run(sampler.read(["t"]))["t"]
    newest = [record.partition for record in found.records if record.offset == IN_LOG - 1]
    assert sorted(newest) == list(range(partitions))
    assert found.in_log == IN_LOG * partitions
