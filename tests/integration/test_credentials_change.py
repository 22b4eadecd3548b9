"""What lets a running daemon in ends: a certificate expires, a password is taken away; then it is renewed.

A start that is not let in ends with what to look at (`test_kafka_security.py`). A daemon that was let in
before waits for whoever renews what has ended, and says meanwhile why it cannot read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import real
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.running import Running, daemon, value
from tests.integration.topics import create_topic, fresh, send

OUTCOMES = 200


@pytest.fixture
def broker_of_its_own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaBroker]:
    real.need(request.node.nodeid, "a Kafka of its own")
    broker = KafkaBroker(tmp_path / "kafka")
    try:
        yield broker
    finally:
        broker.kill()


async def outcomes(broker: KafkaBroker, topics: dict[str, str], first: int) -> None:
    """Write predictions, and a label for each."""
    ids = [str(number) for number in range(first, first + OUTCOMES)]
    predictions = [json.dumps({"id": id_, "model": "m", "prediction": "a"}).encode() for id_ in ids]
    labels = [json.dumps({"id": id_, "label": "a"}).encode() for id_ in ids]
    await send(broker.bootstrap_servers, topics["predictions"], predictions)
    await send(broker.bootstrap_servers, topics["labels"], labels)


@asynccontextmanager
async def watching(broker: KafkaBroker, **kafka: Any) -> AsyncIterator[tuple[Running, dict[str, str]]]:
    """A daemon that was let in and has evaluated what there was."""
    topics = {side: await create_topic(broker, fresh(side)) for side in ("predictions", "labels")}
    document = {"kafka": {"start_from": "earliest", **kafka}, "topics": topics}
    await outcomes(broker, topics, 0)
    async with daemon(document) as running:
        await running.until(lambda s: value(s, "predictions_resolved_total") == OUTCOMES)
        yield running, topics


async def is_away(running: Running, because: str, lines: pytest.CaptureFixture[str]) -> None:
    """It serves, tells that Kafka does not, and says why."""
    await running.until(lambda s: value(s, "kafka_up") == 0)
    status, _ = await running.get("/healthz")
    assert status == 200
    said = ""
    async with asyncio.timeout(120):
        while because not in said:
            out, err = lines.readouterr()
            said += out + err
            await asyncio.sleep(0.1)


async def goes_on(running: Running, broker: KafkaBroker, topics: dict[str, str]) -> None:
    """What was written meanwhile counts, once."""
    await outcomes(broker, topics, OUTCOMES)
    samples = await running.until(lambda s: value(s, "predictions_resolved_total") == 2 * OUTCOMES)
    assert value(samples, "kafka_up") == 1
    assert value(samples, "predictions_duplicate_total") == value(samples, "labels_duplicate_total") == 0


@pytest.mark.timeout(900)
async def test_a_certificate_that_expires_under_a_daemon_is_named_and_a_new_one_is_taken_without_a_restart(
    broker_of_its_own: KafkaBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    broker = broker_of_its_own
    broker.make_certificate()
    broker.start()
    security = {"protocol": "SSL", "ca_file": str(broker.cafile)}
    async with watching(broker, bootstrap_servers=broker.ssl_servers, security=security) as (running, topics):
        broker.kill()  # as long as a connection lives, nobody looks at its certificate again
        broker.make_certificate(datetime.now(UTC) - timedelta(seconds=1))
        broker.start()
        await is_away(running, "certificate has expired", capfd)
        broker.kill()
        broker.make_certificate()
        broker.start()
        await goes_on(running, broker, topics)


@pytest.mark.timeout(900)
async def test_a_password_that_is_taken_away_under_a_daemon_is_named_and_works_again_when_given_back(
    broker_of_its_own: KafkaBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    broker = broker_of_its_own
    broker.start()
    security = {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "SCRAM-SHA-256",
        "username": "reader",
        "password": "secret",
    }
    async with watching(broker, bootstrap_servers=broker.sasl_servers, security=security) as (
        running,
        topics,
    ):
        broker.alter_user("--delete-config", "SCRAM-SHA-256")
        broker.kill()
        broker.start()
        await is_away(running, "uthentication", capfd)
        broker.alter_user("--add-config", "SCRAM-SHA-256=[password=secret]")
        await goes_on(running, broker, topics)
