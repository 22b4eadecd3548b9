"""`papers testbed -b`: Kafka holds what the file would, with the times of the events."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.papers.commands import app
from streamwatch.papers.streams.testbed import named
from streamwatch.papers.streams.writing import STEP_MS, lines
from tests.commands import CliRunner

INSTANCES = 1_200


async def everything(broker: EmbeddedBroker, topic: str, count: int):
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        async with asyncio.timeout(120):
            return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()


@pytest.mark.slow
async def test_kafka_holds_what_the_file_would_dated_as_a_backlog_that_ends_now() -> None:
    with EmbeddedBroker() as broker:
        for topic in ("p", "l"):
            broker.create_topic(topic, 1)
        asked = ["testbed", "NSCX", "-n", str(INSTANCES), "-b", broker.bootstrap_servers]
        asked += ["--predictions", "p", "--labels", "l"]
        made = await asyncio.to_thread(CliRunner().invoke, app, asked)
        assert made.exit_code == 0, made.output
        now_ms = time.time() * 1_000
        found = {topic: await everything(broker, topic, INSTANCES) for topic in ("p", "l")}
    written = [json.loads(line) for line in lines(named("NSCX").mixture, "jsonl", INSTANCES, 1)]
    for topic, expected in (("p", written[::2]), ("l", written[1::2])):
        records = found[topic]
        events = [json.loads(record.value) for record in records]
        start_ms = events[0]["timestamp"]
        assert [{**event, "timestamp": event["timestamp"] - start_ms} for event in events] == expected
        assert [record.timestamp for record in records] == [event["timestamp"] for event in events]
        assert [record.key.decode() for record in records] == [event["id"] for event in events]
        assert 0 <= now_ms - events[-1]["timestamp"] < 600_000 + STEP_MS


def test_absent_topics_and_options_that_do_not_go_together_are_refused(tmp_path) -> None:
    both = ["testbed", "NSCX", "-b", "127.0.0.1:1"]
    for more in (["-o", str(tmp_path / "x.csv")], ["-n", "0"]):
        refused = CliRunner().invoke(app, [*both, *more])
        assert refused.exit_code == 2
        assert "expected no --output and at least 1" in refused.output
    with EmbeddedBroker() as broker:
        refused = CliRunner().invoke(app, ["testbed", "NSCX", "-b", broker.bootstrap_servers])
    assert refused.exit_code == 2
    assert "absent: predictions, labels (--create-topics makes them)" in refused.output
