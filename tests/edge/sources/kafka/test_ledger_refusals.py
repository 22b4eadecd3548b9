"""A ledger that this version cannot read is refused with a message, whoever reads it."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.admin.config_resource import ConfigResource

from streamwatch.core.publishing.publications import PublicationError
from streamwatch.edge.sources.kafka import client, transactions
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
    writer = KafkaTransactions(TransactionsSpec(KafkaSpec(), None, "events", "ledger", "fraud"))
    reader = NewerLedger()
    cast("Any", writer)._tail = reader
    reading = writer.read() if call == "read" else writer.follow(0.01)
    with pytest.raises(PublishingRefused, match=r"ledger.topic 'ledger': version 9 is newer"):
        await reading
    assert reader.closed


class Admin:
    """A client that knows one topic's configuration."""

    def __init__(self, configuration: dict[str, str]) -> None:
        self._configuration = configuration

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def describe_configs(self, asked: list[ConfigResource]) -> list[SimpleNamespace]:
        named = [(name, self._configuration.get(name)) for each in asked for name in each.configs or ()]
        return [SimpleNamespace(resources=[(0, None, 2, "ledger", named)])]


@pytest.mark.parametrize(
    ("configuration", "refused"),
    [
        ({"cleanup.policy": "compact", "retention.ms": "604800000"}, False),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}, False),
        ({"cleanup.policy": "compact,delete", "retention.ms": "604800000"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "1"}, True),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, True),
        ({}, False),
    ],
)
async def test_a_ledger_whose_newest_record_would_be_lost_with_time_is_refused(
    configuration: dict[str, str], *, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "AIOKafkaAdminClient", lambda **_: Admin(configuration))
    spec = TransactionsSpec(KafkaSpec(), None, "events", "ledger", "fraud")
    with pytest.raises(PublishingRefused, match=r"cleanup\.policy compact") if refused else nullcontext():
        await transactions.require_ledger(spec, 1)
