"""The broker of a run: Apache Kafka, or librdkafka's mock cluster, in a child process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.demo.simulate import create_topics
from tests.integration import kafka_broker

EMBEDDED = "librdkafka's mock cluster"
ENTRY = "tests.bench.end_to_end"


@contextmanager
def broker(*, embedded: bool, topics: list[str], partitions: int) -> Iterator[tuple[str, str]]:
    """Its address and what it is; with the topics made."""
    running = os.environ.get("STREAMWATCH_TEST_BOOTSTRAP")
    if running and not embedded:
        asyncio.run(create_topics(running, topics, partitions=partitions))
        yield running, "STREAMWATCH_TEST_BOOTSTRAP"
    elif embedded or kafka_broker.unavailable_jars():
        command = [sys.executable, "-m", ENTRY, "--task", "broker", "--topics", ",".join(topics)]
        command += ["--partitions", str(partitions)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            yield child.stdout.readline().strip(), EMBEDDED
            child.communicate("")
    else:
        with tempfile.TemporaryDirectory() as folder:
            kafka = kafka_broker.KafkaBroker(Path(folder))
            kafka.start()
            try:
                asyncio.run(create_topics(kafka.bootstrap_servers, topics, partitions=partitions))
                yield kafka.bootstrap_servers, "Apache Kafka"
            finally:
                kafka.kill()


def serve(topics: list[str], partitions: int) -> None:
    """An embedded broker until standard input ends."""
    with EmbeddedBroker() as embedded:
        for topic in topics:
            embedded.create_topic(topic, partitions)
        print(embedded.bootstrap_servers, flush=True)
        sys.stdin.read()
