"""What is found of the logs is counted on from what a commit holds, over the Kafka protocol."""

from __future__ import annotations

import pytest

from streamwatch.core.records.events import Partition
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.sources.kafka import KafkaSource
from tests.edge.sources.kafka.test_source import all_caught_up, polls, send, spec


@pytest.mark.slow
async def test_a_loss_is_counted_on_from_what_is_durable_and_once_when_it_is_found_again() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("events", 3)
        await send(broker, 30)
        beyond = {Partition("events", 0): 50, Partition("events", 1): 10, Partition("events", 2): 10}
        source = KafkaSource(spec(broker), ["events"], lambda _: None)
        source.count_from({"truncation": 2}, {}, 0)
        await source.start(beyond)
        assert source.losses == {"truncation": 2}
        await polls(source, all_caught_up)
        assert source.losses == {"truncation": 3}
        source.count_from({"truncation": 2}, {}, 0)
        await source.rewind(beyond)
        assert source.losses == {"truncation": 2}
        await polls(source, lambda poll: poll.partitions[Partition("events", 0)].position == 10)
        assert source.losses == {"truncation": 3}
        await source.stop()
