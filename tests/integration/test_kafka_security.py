"""Being let in: SASL PLAIN and SCRAM, TLS, and what is said when it fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.edge.sources.kafka import KafkaSpec, KafkaUnreachable, list_topics
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import Reader
from tests.integration.topics import create_topic, fresh, reading, send


@pytest.fixture
async def topic(killable_kafka: KafkaBroker) -> str:
    name = await create_topic(killable_kafka, fresh("secured"))
    await send(killable_kafka.bootstrap_servers, name, [b"let in"])
    return name


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_user_with_a_password_is_let_in(killable_kafka: KafkaBroker, topic: str, mechanism: str):
    spec = KafkaSpec(
        bootstrap_servers=killable_kafka.sasl_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        username="reader",
        password="secret",  # noqa: S106
    )
    async with reading(spec, topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        assert reader.values == [b"let in"]
    with pytest.raises(KafkaUnreachable, match=r"(?i)authentication"):
        await list_topics(replace(spec, password="wrong"))  # noqa: S106


async def test_a_broker_is_trusted_by_its_certificate(killable_kafka: KafkaBroker, topic: str):
    spec = KafkaSpec(
        bootstrap_servers=killable_kafka.ssl_servers,
        security_protocol="SSL",
        cafile=str(killable_kafka.cafile),
    )
    async with reading(spec, topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        assert reader.values == [b"let in"]
    with pytest.raises(KafkaUnreachable, match=r"(?i)certificate"):
        await list_topics(replace(spec, cafile=None))
