"""What a transaction sends to brokers, and what is made of a producer that may no longer send."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest
from aiokafka.errors import IllegalOperation, ProducerFenced, RequestTimedOutError

from streamwatch.core.publishing.publications import Ledger
from streamwatch.edge.sources.kafka.record_batches import PreparedBatch
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.transactions import (
    KafkaTransactions,
    ProducerWasFenced,
    PublishingFailed,
    TransactionsSpec,
)
from tests.daemon.fake_transactions import publication


class Producer:
    """A client that takes so many batches, and is refused then: those that were sent have the reasons."""

    def __init__(self, most_batches: int, *reasons: Exception) -> None:
        self.most_batches = most_batches
        self.reasons = list(reasons)
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
        if self.reasons:
            sent.set_exception(self.reasons.pop(0))
        else:
            sent.set_result(batch)
        return sent


def opened(producer: Producer, partitions: int) -> KafkaTransactions:
    """A writer that has opened this producer."""
    made = KafkaTransactions(TransactionsSpec(KafkaSpec(), "outcomes", None, "ledger", "fraud"))

    async def close() -> None:
        """Nothing is connected."""

    inside = cast("Any", made)
    inside.close = close
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
    with pytest.raises(PublishingFailed, match="ended by brokers"):
        await opened(producer, partitions=1).write([publication(1, 1, 10)], Ledger.begun("state.0", "w"))
    assert not producer.is_committed


@pytest.mark.parametrize("most_batches", [2, 100])
async def test_of_the_reasons_of_its_batches_it_says_that_a_later_producer_was_opened(
    most_batches: int,
) -> None:
    """So that it waits until the other has written itself into the ledger, and does not fence it in turn."""
    producer = Producer(most_batches, RequestTimedOutError(), ProducerFenced())
    written = [publication(1, 1, 40, models=["a", "b", "c", "d"])]
    with pytest.raises(ProducerWasFenced):
        await opened(producer, partitions=3).write(written, Ledger.begun("state.0", "w"))
    assert not producer.is_committed
