"""The broker dies under load and comes back: not ready, then reading again, nothing counted twice."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.integration.kafka_broker import KafkaBroker
from tests.integration.running import DEADLINE_SECONDS, Running, Samples, daemon, value
from tests.integration.topics import create_topic, fresh

PARTITIONS = 2


class Load:
    """Predictions and labels, one after the other, from a thread; counts what the broker has acknowledged."""

    def __init__(self, servers: str, predictions: str, labels: str) -> None:
        options = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 900_000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": servers, **options})
        self._topics = predictions, labels
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def finish(self) -> None:
        """No more records; wait until every one sent is acknowledged."""
        self._over.set()
        self._thread.join()
        assert self._producer.flush(600) == 0

    def _run(self) -> None:
        start = 0
        while not self._over.wait(0.01):
            for number in range(start, start + 20):
                prediction = {"id": f"e{number}", "model": "m", "prediction": "a"}
                label = {"id": f"e{number}", "label": "a" if number % 4 else "b"}
                for topic, document in zip(self._topics, (prediction, label), strict=True):
                    self._producer.produce(topic, json.dumps(document), on_delivery=self._delivered)
            start += 20
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.acknowledged[str(message.topic())] += 1


async def scrape_all_the_time(running: Running, seen: list[Samples]) -> None:
    """Scrape every 50 ms; one that fails or is not 200 ends the test."""
    while True:
        seen.append(await running.metrics())
        await asyncio.sleep(0.05)


async def readiness(running: Running, status: int) -> str:
    """Wait for this status of /readyz; its body."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            found, body = await running.get("/readyz")
            if found == status:
                return body
            await asyncio.sleep(0.05)


@pytest.mark.timeout(1_800)
async def test_a_killed_broker_is_waited_for_and_nothing_is_counted_twice(
    killable_kafka: KafkaBroker,
) -> None:
    servers = killable_kafka.bootstrap_servers
    predictions = await create_topic(killable_kafka, fresh("predictions"), PARTITIONS)
    labels = await create_topic(killable_kafka, fresh("labels"), PARTITIONS)
    topics = {"predictions": [predictions], "labels": [labels]}
    seen: list[Samples] = []

    async with daemon({"kafka": {"bootstrap_servers": servers}, "topics": topics}) as running:
        with Load(servers, predictions, labels) as load:
            await readiness(running, 200)
            scraping = asyncio.create_task(scrape_all_the_time(running, seen))
            await running.until(lambda s: value(s, "outcomes_total", model="m") > 500)

            await asyncio.to_thread(killable_kafka.kill)
            try:
                body = await readiness(running, 503)
                assert json.loads(body) == {"ready": False, "reasons": ["Kafka cannot be reached"]}
                assert (await running.get("/healthz"))[0] == 200
                down = await running.metrics()
                assert value(down, "kafka_up") == value(down, "caught_up") == value(down, "ready") == 0
            finally:
                await asyncio.to_thread(killable_kafka.start)

            await readiness(running, 200)
            before = value(down, "outcomes_total", model="m")
            await running.until(lambda s: value(s, "outcomes_total", model="m") > before + 500)
            await asyncio.to_thread(load.finish)

        sent = load.acknowledged
        final = await running.until(
            lambda s: (
                value(s, "caught_up") == 1 and value(s, "outcomes_total", model="m") >= sent[predictions]
            )
        )
        scraping.cancel()
        consumed = running.order

    assert sent[predictions] == sent[labels] > 1_000
    assert len(consumed) == len(set(consumed)) == sent[predictions] + sent[labels]
    assert value(final, "predictions_accepted_total") == sent[predictions]
    assert value(final, "labels_accepted_total") == sent[labels]
    assert value(final, "outcomes_total", model="m") == sent[predictions]
    assert value(final, "predictions_duplicate_total") == value(final, "labels_duplicate_total") == 0
    assert value(final, "join_identities_violated") == 0
    outages = [value(final, "internal_events_total", event=f"kafka_{what}") for what in ("lost", "recovered")]
    assert outages[0] >= outages[1] >= 1

    lags = [n for samples in seen for (name, _), n in samples.items() if name == "consumer_lag_records"]
    assert min(lags) >= 0
    evaluated = [n for samples in seen for (name, _), n in samples.items() if name == "outcomes_total"]
    assert evaluated == sorted(evaluated), "a counter went back"
