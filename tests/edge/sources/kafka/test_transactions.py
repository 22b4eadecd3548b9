"""What a transaction sends to brokers, and what is made of a producer that may no longer send."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest
from aiokafka.errors import IllegalOperation

from streamwatch.core.publishing.publications import Ledger
from streamwatch.edge.sources.kafka.record_batches import PreparedBatch
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.transactions import (
    KafkaTransactions,
    PublishingFailed,
    TransactionsSpec,
)
from tests.daemon.fake_transactions import publication


class Producer:
    """A client that takes so many batches, and is fenced then."""

    def __init__(self, most_batches: int) -> None:
        self.most_batches = most_batches
        self.batches = Counter[tuple[str, int]]()
        self.is_committed = False

    async def begin_transaction(self) -> None: ...

    async def commit_transaction(self) -> None:
        self.is_committed = True

    async def send_batch(
        self, batch: PreparedBatch, topic: str, *, partition: int
    ) -> asyncio.Future[PreparedBatch]:
        if self.batches.total() == self.most_batches:
            raise IllegalOperation("Can't send messages while not in transaction")
        self.batches[topic, partition] += 1
        sent = asyncio.get_running_loop().create_future()
        sent.set_result(batch)
        return sent


def opened(producer: Producer, partitions: int) -> KafkaTransactions:
    """A writer that has opened this producer."""
    made = KafkaTransactions(TransactionsSpec(KafkaSpec(), "outcomes", None, "ledger", "fraud"))
    inside = cast("Any", made)
    inside._producer = producer
    inside._partitions = {"outcomes": list(range(partitions)), "ledger": [0]}
    return made


async def test_outcomes_of_many_turns_take_one_batch_for_each_partition() -> None:
    producer = Producer(most_batches=100)
    several = [publication(n, 10 * n - 9, 10, models=["a", "b", "c", "d"]) for n in range(1, 101)]
    await opened(producer, partitions=3).write(several, Ledger.begun("state.0", "w"))
    assert producer.is_committed
    assert producer.batches == {("outcomes", 1): 1, ("outcomes", 2): 1, ("ledger", 0): 1}


async def test_a_producer_that_is_fenced_while_it_sends_has_failed_to_publish() -> None:
    producer = Producer(most_batches=1)
    writer = opened(producer, partitions=1)

    async def close() -> None:
        """Nothing is connected."""

    cast("Any", writer).close = close
    with pytest.raises(PublishingFailed, match="ended by brokers"):
        await writer.write([publication(1, 1, 10)], Ledger.begun("state.0", "w"))
    assert not producer.is_committed
