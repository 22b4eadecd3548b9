"""Invalid records in the dead-letter topic, on Apache Kafka: as they were, at least once, whoever refuses."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from streamwatch.admin.kafka_check import check_kafka
from streamwatch.edge.sources.kafka import KafkaSpec
from tests import real
from tests.integration.conftest import Broker
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.running import child, daemon, value
from tests.integration.topic_changes import change_topic
from tests.integration.topics import create_topic, every_record, fresh
from tests.integration.watched import summed, until

LARGE = 200_000


def write(broker: Broker, topics: Mapping[str, str], good: int, bad: int, large: int = 0) -> None:
    """Write valid predictions and invalid ones, some of the latter large, mixed."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    values = [json.dumps({"id": str(i), "model": "m", "prediction": "a"}).encode() for i in range(good)]
    values += [b"{broken %d" % i for i in range(bad)] + [b"{" + b"x" * LARGE] * large
    random.Random(1).shuffle(values)
    for i, content in enumerate(values):
        producer.produce(topics["predictions"], content, key=b"k%d" % i, headers=[("trace", b"t%d" % i)])
    assert producer.flush(60) == 0


async def made(broker: Broker, **configs: str) -> tuple[dict[str, str], str]:
    topics = {side: await create_topic(broker, fresh(side)) for side in ("predictions", "labels")}
    return topics, await create_topic(broker, fresh("dead"), **configs)


@pytest.mark.timeout(600)
async def test_invalid_records_arrive_as_they_were_with_their_place_and_reason(kafka: Broker) -> None:
    topics, dead = await made(kafka)
    write(kafka, topics, good=200, bad=50)
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "dead_letter_topic": dead},
        "topics": topics,
    }
    async with daemon(document) as running:
        await running.until(lambda s: value(s, "dead_letters_written_total") == 50)
    originals = {
        record.offset(): record for record in every_record(kafka.bootstrap_servers, topics["predictions"])
    }
    letters = every_record(kafka.bootstrap_servers, dead)
    assert len(letters) == 50
    for letter in letters:
        headers = dict(letter.headers())
        original = originals[int(headers["streamwatch.offset"])]
        assert (letter.key(), letter.value()) == (original.key(), original.value())
        assert letter.value().startswith(b"{broken")
        assert letter.headers()[0] == original.headers()[0]
        assert headers["streamwatch.topic"].decode() == topics["predictions"]
        assert headers["streamwatch.partition"] == b"0"
        assert headers["streamwatch.reason"] == b"invalid_json"


@pytest.mark.timeout(600)
async def test_what_the_broker_refuses_arrives_as_a_stub_and_the_rest_as_it_was(kafka: Broker) -> None:
    topics, dead = await made(kafka, max_message_bytes="100000")
    write(kafka, topics, good=200, bad=50, large=3)
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "dead_letter_topic": dead},
        "topics": topics,
    }
    async with daemon(document) as running:
        samples = await running.until(
            lambda s: value(s, "predictions_accepted_total") == 200 and value(s, "caught_up") == 1
        )
    assert value(samples, "dead_letter_stubs_total", reason="too_large") == 3
    assert value(samples, "dead_letters_written_total") == 53
    found = every_record(kafka.bootstrap_servers, dead)
    stubs = [each for each in found if dict(each.headers()).get("streamwatch.stub") == b"too_large"]
    assert (len(found), len(stubs)) == (53, 3)
    originals = {
        record.offset(): record for record in every_record(kafka.bootstrap_servers, topics["predictions"])
    }
    for stub in stubs:
        assert stub.value() == b""
        assert len(originals[int(dict(stub.headers())["streamwatch.offset"])].value()) > LARGE


@pytest.mark.timeout(600)
async def test_a_record_that_was_read_without_its_content_is_a_stub_and_delays_nothing(kafka: Broker) -> None:
    topics, dead = await made(kafka)
    write(kafka, topics, good=20, bad=5)
    options = {"compression.type": "gzip", "message.max.bytes": 2_000_000}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **options})
    producer.produce(topics["predictions"], b"x" * 900_000, key=b"k", headers=[("padding", b"y" * 200_000)])
    assert producer.flush(60) == 0
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "dead_letter_topic": dead},
        "topics": topics,
    }
    async with daemon(document) as running:
        await running.until(  # letters are counted as they are written, predictions once they are committed
            lambda s: (
                value(s, "dead_letters_written_total") == 6 and value(s, "predictions_accepted_total") == 20
            ),
            seconds=20.0,
        )
    [stub] = [each for each in every_record(kafka.bootstrap_servers, dead) if not each.value()]
    headers = dict(stub.headers())
    assert headers["streamwatch.reason"] == b"record_too_large"
    assert headers["streamwatch.stub"] == b"no_content"


class BelowReplicas(NamedTuple):
    kafka: KafkaBroker
    topics: Mapping[str, str]
    dead: str
    document: Mapping[str, Any]


@pytest.fixture
async def below_its_replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BelowReplicas]:
    """A cluster of two brokers of which one is gone, and a topic that needs both to be written."""
    real.need(request.node.nodeid, "a Kafka of its own")
    first = KafkaBroker(tmp_path / "first")
    second = KafkaBroker(tmp_path / "second", beside=first)
    try:
        first.start()
        topics, _ = await made(first)
        second.start()
        dead = await create_topic(first, fresh("dead"), replicas=2, min_insync_replicas="2")
        second.kill()
        write(first, topics, good=20, bad=5)
        settings = {"bootstrap_servers": first.bootstrap_servers, "dead_letter_topic": dead}
        yield BelowReplicas(first, topics, dead, {"kafka": settings, "topics": topics})
    finally:
        second.kill()
        first.kill()


@pytest.mark.timeout(600)
async def test_a_topic_below_its_replicas_makes_the_daemon_unready_and_loses_nothing_once_it_has_them(
    below_its_replicas: BelowReplicas,
) -> None:
    kafka, _, dead, document = below_its_replicas
    async with daemon(document) as running:
        async with asyncio.timeout(25.0):
            while "NotEnoughReplicas" not in (answer := await running.get("/readyz"))[1]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert answer[0] == 503
        assert "dead letters wait for topic" in answer[1]
        assert (await running.get("/healthz"))[0] == 200
        await change_topic(kafka, dead, {"min.insync.replicas": "1"})
        samples = await running.until(lambda s: value(s, "ready") == 1, seconds=30.0)
        assert value(samples, "dead_letters_written_total") == 5
        assert value(samples, "predictions_accepted_total") == 20
    assert len({each.value() for each in every_record(kafka.bootstrap_servers, dead)}) == 5


@pytest.mark.timeout(600)
async def test_a_topic_that_stays_below_its_replicas_freezes_nothing_once_it_was_given_up(
    below_its_replicas: BelowReplicas,
) -> None:
    kafka, topics, _, document = below_its_replicas
    async with daemon(document) as running:
        await running.until(lambda s: summed(s, "records_evaluated_total") == 25, seconds=60.0)
        for rounds in range(2, 5):
            write(kafka, topics, good=20, bad=5)
            samples = await running.until(
                lambda s, n=25 * rounds: summed(s, "records_evaluated_total") == n, seconds=10.0
            )
            assert value(samples, "ready") == 1
    assert value(samples, "dead_letters_dropped_total", reason="too_few_replicas") == 20


@pytest.mark.timeout(600)
async def test_a_topic_that_is_not_there_refuses_the_start_in_words(kafka: Broker, tmp_path: Path) -> None:
    topics, _ = await made(kafka)
    absent = fresh("absent")
    with child(
        tmp_path,
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"kafka.dead_letter_topic={absent}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        f"state.directory={tmp_path / 'state'}",
    ) as refused:
        assert await asyncio.to_thread(refused.process.wait, 300) == 2
        assert f"topic '{absent}' (kafka.dead_letter_topic) does not exist" in refused.log
    spec = KafkaSpec(bootstrap_servers=kafka.bootstrap_servers)
    *_, last = await check_kafka(
        spec, {topics["predictions"]: "prediction"}, {"kafka.dead_letter_topic": absent}
    )
    assert not last.good
    assert absent in str(last)


@pytest.mark.timeout(600)
async def test_a_topic_that_goes_missing_is_told_never_created_and_stops_nothing(kafka: Broker) -> None:
    topics, dead = await made(kafka)
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "dead_letter_topic": dead},
        "topics": topics,
    }
    async with daemon(document) as running:
        await running.until(lambda s: value(s, "dead_letter_topic_missing") == 0)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        await asyncio.to_thread(admin.delete_topics([dead])[dead].result, 60)
        write(kafka, topics, good=200, bad=5)
        await running.until(lambda s: value(s, "predictions_accepted_total") == 200)
        samples = await running.until(lambda s: summed(s, "dead_letters_dropped_total") == 5)
        assert value(samples, "dead_letters_dropped_total", reason="no_topic") == 5
        assert value(samples, "ready") == 1
        await running.until(lambda s: value(s, "dead_letter_topic_missing") == 1)


@pytest.mark.timeout(600)
async def test_letters_arrive_at_least_once_however_often_the_daemon_is_killed(
    kafka: Broker, tmp_path: Path
) -> None:
    topics, dead = await made(kafka)
    write(kafka, topics, good=2_000, bad=500)
    options = [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"kafka.dead_letter_topic={dead}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        f"state.directory={tmp_path / 'state'}",
        "state.commit_events=50",
    ]
    chance = random.Random(4)
    for _ in range(4):
        with child(tmp_path, *options) as killed:
            killed.url()
            await asyncio.sleep(chance.uniform(0.5, 3))
            killed.process.send_signal(signal.SIGKILL)
            killed.process.wait()
    with child(tmp_path, *options) as running:
        samples = await until(running.url(), lambda s: summed(s, "records_evaluated_total") == 2_500)
    assert summed(samples, "records_invalid_total") == 500
    values = [record.value() for record in every_record(kafka.bootstrap_servers, dead)]
    assert set(values) == {b"{broken %d" % i for i in range(500)}


async def test_check_says_that_the_topic_may_be_written_and_writes_nothing(kafka: Broker) -> None:
    topics, dead = await made(kafka)
    spec = KafkaSpec(bootstrap_servers=kafka.bootstrap_servers)
    *_, last = await check_kafka(
        spec, {topics["predictions"]: "prediction"}, {"kafka.dead_letter_topic": dead}
    )
    assert last.good
    assert dead in str(last)
    assert every_record(kafka.bootstrap_servers, dead) == []
