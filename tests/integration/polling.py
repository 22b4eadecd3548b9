"""Polling a source until something is true, in bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamwatch.core.ports import Poll
from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka import KafkaSource

PATIENCE_SECONDS = 300


class Reader:
    """Keeps what a source delivered."""

    def __init__(self, source: KafkaSource) -> None:
        self.source = source
        self.seen: list[tuple[int, int, bytes | None]] = []
        """(partition, offset, value) in the order of delivery."""
        self.poll = Poll()

    @property
    def values(self) -> list[bytes | None]:
        return [value for _, _, value in self.seen]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        return [(partition, offset) for partition, offset, _ in self.seen]

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.poll = await self.source.poll()
            for records in self.poll.records.values():
                self.seen += [(r.partition, r.offset, r.value) for r in records]
            self.source.evaluated({p: records[-1] for p, records in self.poll.records.items() if records})
            self.source.release_findings()
            for partition, state in self.poll.partitions.items():
                # What is caught up has nothing left, and lag is never negative.
                assert state.high_watermark < 0 or state.high_watermark >= state.position, (partition, state)
                assert not state.caught_up or state.high_watermark == state.position, (partition, state)
                assert state.at_end_ms is None or state.high_watermark == state.position, (partition, state)
            if condition():
                return
            assert time.monotonic() < deadline, f"waited too long: {self.poll.partitions}"

    async def until_caught_up(self) -> None:
        await self.until(self.caught_up)

    def caught_up(self) -> bool:
        return bool(self.poll.partitions) and all(s.caught_up for s in self.poll.partitions.values())

    def lag(self, topic: str, partition: int = 0) -> int:
        state = self.poll.partitions[Partition(topic, partition)]
        return state.high_watermark - state.position
