"""`simulate` on a real broker: topics are made once, and a backlog is there as written."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.demo.simulate import SimulationError, SimulationSpec, create_topics, run_simulation
from streamwatch.demo.simulated import DelaySpec, StreamSpec
from streamwatch.edge.sources.kafka import KafkaSpec, list_topics
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.topics import fresh


@pytest.mark.real("kafka")
async def test_topics_are_made_with_their_partitions_and_kept_when_they_are_there(kafka, caplog):
    servers, predictions, labels = kafka.bootstrap_servers, fresh("predictions"), fresh("labels")
    await create_topics(servers, [predictions], partitions=2)
    spec = SimulationSpec(
        servers,
        predictions,
        labels,
        stream=StreamSpec(delay=DelaySpec(median_s=5.0, never=0.1)),
        outcomes=300,
        flat_out=True,
        create_topics=True,
        partitions=3,
    )
    summary = await run_simulation(spec)
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        ends = {}
        for topic, partitions in ((predictions, 2), (labels, 3)):
            places = [TopicPartition(topic, p) for p in range(partitions)]
            ends[topic] = sum((await consumer.end_offsets(places)).values())
    assert ends == {predictions: summary.predictions, labels: summary.labels}
    assert summary.predictions == 900
    assert "Got error produce response" not in caplog.text


@pytest.mark.real("kafka")
async def test_an_absent_topic_is_an_error_and_is_not_created_by_asking(kafka):
    servers, predictions = kafka.bootstrap_servers, fresh("predictions")
    spec = SimulationSpec(servers, predictions, fresh("labels"), outcomes=1, flat_out=True)
    for _ in range(2):  # had the first created it, the second would not complain
        with pytest.raises(SimulationError, match=f"absent: {predictions}"):
            await run_simulation(spec)


async def test_settings_say_how_brokers_let_the_simulation_in(
    killable_kafka: KafkaBroker, tmp_path: Path
) -> None:
    topics = [fresh("predictions"), fresh("labels")]
    settings = tmp_path / "streamwatch.yaml"
    user = {"protocol": "SASL_PLAINTEXT", "username": "reader", "password": "secret"}
    kafka = {"bootstrap_servers": killable_kafka.sasl_servers, "security": user}
    settings.write_text(json.dumps({"kafka": kafka}))  # JSON is YAML
    command = [
        *(sys.executable, "-m", "streamwatch", "simulate", "-c", str(settings), "-n", "50", "--flat-out"),
        *("--create-topics", "--predictions", topics[0], "--labels", topics[1]),
    ]
    ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "sent 150 predictions of 3 models" in ran.stdout
    spec = KafkaSpec(bootstrap_servers=killable_kafka.bootstrap_servers)
    assert set(topics) <= set(await list_topics(spec))

    refused = await asyncio.to_thread(
        subprocess.run,
        [*command, "--set", "kafka.security.password=wrong"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "kafka.security.username" in refused.stderr
    assert "Traceback" not in refused.stderr
