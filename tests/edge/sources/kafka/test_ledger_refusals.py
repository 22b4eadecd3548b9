"""A ledger that this version cannot read is refused with a message, whoever reads it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from streamwatch.core.publishing.publications import PublicationError
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.transactions import (
    KafkaTransactions,
    PublishingRefused,
    TransactionsSpec,
)


class NewerLedger:
    """A reader whose topic has a record of a newer version."""

    closed = False

    async def read(self) -> None:
        raise PublicationError("version 9 is newer than this program's")

    async def follow(self, _seconds: float) -> None:
        raise PublicationError("version 9 is newer than this program's")

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("call", ["read", "follow"])
async def test_a_record_of_another_version_is_refused_with_the_topic_named(call: str) -> None:
    transactions = KafkaTransactions(TransactionsSpec(KafkaSpec(), None, "events", "ledger", "fraud"))
    reader = NewerLedger()
    cast("Any", transactions)._tail = reader
    reading = transactions.read() if call == "read" else transactions.follow(0.01)
    with pytest.raises(PublishingRefused, match=r"ledger.topic 'ledger': version 9 is newer"):
        await reading
    assert reader.closed
