"""A user who may see a topic and not read it is told so before the daemon starts, with what to grant."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from streamwatch.admin.kafka_check import check_kafka
from streamwatch.assembly.checks import check_all
from streamwatch.edge.sources.kafka import KafkaSpec, Probed, ReadDenied, probe
from streamwatch.settings import load
from tests import real
from tests.integration.kafka_broker import START_SECONDS, KafkaBroker
from tests.integration.running import DEADLINE_SECONDS, child
from tests.integration.topics import create_topic, fresh, send

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

EVENT = b'{"id":"1","model":"m","prediction":"a","label":"a"}'
"""A prediction, or a label: a sample of either decodes."""


@pytest.fixture(scope="module")
def _guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(tmp_path_factory.mktemp("guarded"), AUTHORIZED)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def guarded(request: pytest.FixtureRequest) -> KafkaBroker:
    """Apache Kafka that lets only the anonymous do everything."""
    real.need(request.node.nodeid, "a Kafka of its own")
    return request.getfixturevalue("_guarded")


def allow(broker: KafkaBroker, operation: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:reader",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )
    for made in client.create_acls([binding]).values():
        made.result(START_SECONDS)


def reader(broker: KafkaBroker) -> KafkaSpec:
    return KafkaSpec(
        bootstrap_servers=broker.sasl_servers,
        security_protocol="SASL_PLAINTEXT",
        username="reader",
        password="secret",  # noqa: S106
    )


async def test_who_may_see_and_not_read_is_told_what_to_grant_by_check_and_by_run(
    guarded: KafkaBroker, tmp_path: Path
) -> None:
    open_one, closed = [await create_topic(guarded, fresh(name)) for name in ("open", "closed")]
    for topic in (open_one, closed):
        await send(guarded.bootstrap_servers, topic, [EVENT])
    allow(guarded, "READ", open_one)
    allow(guarded, "DESCRIBE", closed)
    assert await probe(reader(guarded), [open_one]) == {open_one: Probed(1, has_records=True)}
    with pytest.raises(ReadDenied) as denied:
        await probe(reader(guarded), [open_one, closed])
    assert denied.value.topics == (closed,)
    assert "may not be read by user 'reader'" in str(denied.value)
    assert f"--allow-principal User:reader --operation Read --topic {closed}" in str(denied.value)
    password = tmp_path / "password"
    password.write_text("secret\n")
    given = [
        f"kafka.bootstrap_servers={guarded.sasl_servers}",
        f"kafka.security={{protocol: SASL_PLAINTEXT, username: reader, password_file: {password}}}",
        f"topics.predictions={open_one}",
        f"topics.labels={closed}",
        f"state.directory={tmp_path / 'state'}",
    ]
    settings = load(None, given, {})
    results = await check_all(settings)
    assert [result.what for result in results if not result.good] == [str(denied.value)]
    with child(tmp_path, *given) as running:
        assert await asyncio.to_thread(running.process.wait, DEADLINE_SECONDS) == 2
    assert str(denied.value) in running.log.splitlines()
    assert "Traceback" not in running.log
    allow(guarded, "READ", closed)
    results = await check_all(settings)
    assert all(result.good for result in results)
    assert any("a record was read" in result.what for result in results)


async def test_check_says_who_may_not_write_dead_letters_and_what_to_grant(guarded: KafkaBroker) -> None:
    read, dead = [await create_topic(guarded, fresh(name)) for name in ("read", "dead")]
    allow(guarded, "READ", read)
    allow(guarded, "DESCRIBE", dead)
    *_, denied = await check_kafka(reader(guarded), {read: "prediction"}, {"kafka.dead_letter_topic": dead})
    assert not denied.good
    assert f"--allow-principal User:reader --operation Write --topic {dead}" in str(denied)
    allow(guarded, "WRITE", dead)
    *_, granted = await check_kafka(reader(guarded), {read: "prediction"}, {"kafka.dead_letter_topic": dead})
    assert granted.good
