"""Being let in: SASL PLAIN and SCRAM, TLS, rights, and what is said when it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streamwatch.assembly.build import REFUSALS
from streamwatch.edge.sources.kafka import KafkaSpec, KafkaUnreachable, ReadingEnded, list_topics
from streamwatch.edge.sources.kafka.batches import opened as codecs
from tests import real
from tests.edge.sources.kafka.batches.raw_batches import ZSTD, of
from tests.integration.conftest import Broker
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import Reader
from tests.integration.raw_produce import produce
from tests.integration.topic_changes import DESCRIBE, READ, allow
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


async def test_a_wrong_password_ends_the_start_with_what_to_look_at(killable_kafka: KafkaBroker, topic: str):
    spec = KafkaSpec(
        bootstrap_servers=killable_kafka.sasl_servers,
        security_protocol="SASL_PLAINTEXT",
        username="reader",
        password="wrong",  # noqa: S106
        denied_ms=300,
        backoff_initial_ms=50,
    )
    with pytest.raises(ReadingEnded, match=r"check kafka\.security\.username, its password") as raised:
        async with reading(spec, topic):
            pass
    assert "wrong" not in str(raised.value)


async def test_a_certificate_that_is_not_trusted_ends_the_start_with_what_to_look_at(
    killable_kafka: KafkaBroker, topic: str
):
    spec = KafkaSpec(
        bootstrap_servers=killable_kafka.ssl_servers,
        security_protocol="SSL",
        denied_ms=300,
        backoff_initial_ms=50,
    )
    with pytest.raises(ReadingEnded, match=r"check kafka\.security\.ca_file"):
        async with reading(spec, topic):
            pass


async def test_a_topic_that_may_be_seen_and_not_read_ends_reading_with_what_to_grant(
    request: pytest.FixtureRequest, tmp_path: Path
):
    real.need(request.node.nodeid, "a Kafka of its own")
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = KafkaBroker(tmp_path, rights)
    broker.start()
    try:
        topic = await create_topic(broker, fresh("private"))
        await send(broker.bootstrap_servers, topic, [b"secret"])
        await allow(broker, "reader", DESCRIBE, topic)
        spec = KafkaSpec(
            bootstrap_servers=broker.sasl_servers,
            security_protocol="SASL_PLAINTEXT",
            username="reader",
            password="secret",  # noqa: S106
            denied_ms=300,
        )
        async with reading(spec, topic) as source:
            with pytest.raises(
                ReadingEnded, match=rf"{topic}'.* may not be read by user 'reader': grant READ"
            ):
                await Reader(source).until_caught_up()
            await allow(broker, "reader", READ, topic)
        async with reading(spec, topic) as source:
            reader = Reader(source)
            await reader.until_caught_up()
            assert reader.values == [b"secret"]
    finally:
        broker.kill()


async def test_a_missing_codec_package_ends_reading_with_what_to_install(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
):
    topic = await create_topic(kafka, fresh("codec"))
    await produce(kafka.bootstrap_servers, topic, {0: [of([b"a"], codec=ZSTD).bytes()]})
    monkeypatch.setattr(codecs, "_installed", lambda: None)
    async with reading(KafkaSpec(bootstrap_servers=kafka.bootstrap_servers), topic) as source:
        with pytest.raises(ReadingEnded, match=r"zstd, .* pip install 'streamwatchd\[compression\]'"):
            await Reader(source).until_caught_up()


def test_whatever_ends_reading_is_a_refusal_that_supervisors_do_not_retry():
    assert issubclass(ReadingEnded, REFUSALS)
    unit = Path(__file__).parents[2] / "deploy/systemd/streamwatch.service"
    assert "\nRestartPreventExitStatus=2\n" in unit.read_text()


READER = {"username": "reader", "password": "secret"}


@pytest.mark.parametrize(
    ("port", "settings", "said"),
    [
        ("bootstrap_servers", {"security_protocol": "SSL"}, "speaks no TLS, .* is SSL: set PLAINTEXT"),
        ("ssl_servers", {}, "speaks TLS or asks for a user, .* is PLAINTEXT"),
        ("sasl_servers", {}, "speaks TLS or asks for a user, .* is PLAINTEXT"),
        (
            "bootstrap_servers",
            {"security_protocol": "SASL_PLAINTEXT", **READER},
            "asks for no user, .* is SASL_PLAINTEXT: set PLAINTEXT",
        ),
        ("ssl_servers", {"security_protocol": "SASL_PLAINTEXT", **READER}, "speaks TLS, .*: set SASL_SSL"),
        (
            "sasl_servers",
            {"security_protocol": "SASL_SSL", **READER},
            "speaks no TLS, .* is SASL_SSL: set SASL_PLAINTEXT",
        ),
        (
            "sasl_servers",
            {"security_protocol": "SASL_PLAINTEXT", **READER, "password": "wrong"},
            "user or password are wrong: check kafka.security.username and its password",
        ),
        (
            "sasl_servers",
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512", **READER},
            "do not offer SCRAM-SHA-512: check kafka.security.mechanism",
        ),
    ],
)
async def test_a_port_that_speaks_otherwise_is_told_in_words_with_the_setting(
    killable_kafka: KafkaBroker, port: str, settings: dict[str, str], said: str
):
    spec = replace(KafkaSpec(bootstrap_servers=getattr(killable_kafka, port)), **settings)
    with pytest.raises(KafkaUnreachable, match=said):
        await list_topics(spec)


async def test_a_port_at_which_nothing_listens_is_told_in_words():
    with pytest.raises(KafkaUnreachable, match=r"nothing listens there: check kafka\.bootstrap_servers"):
        await list_topics(KafkaSpec(bootstrap_servers="127.0.0.1:1"))
