"""Brokers that demand OAUTHBEARER: tokens that an endpoint grants, validated by Kafka's own code (RS256, a
set of keys), through every client that opens a connection; refusals in words; sessions that end with a token.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamwatch.edge.sources.kafka import (
    KafkaSpec,
    KafkaUnreachable,
    ReadingEnded,
    list_topics,
    probe,
    probe_writing,
    tokens,
)
from streamwatch.edge.sources.kafka.dead_letters import KafkaProducer, batch_of
from streamwatch.edge.sources.kafka.spec import OAuthSpec
from tests import real
from tests.edge.sources.kafka.token_endpoint import AUDIENCE, CLIENT, SECRET, Endpoint, Signer, endpoint
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import Reader
from tests.integration.running import daemon, value
from tests.integration.test_credentials_change import OUTCOMES, outcomes
from tests.integration.topics import create_topic, fresh, reading, send

LISTENER = "listener.name.sasl_plaintext.oauthbearer"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SESSION_MS = 3_000


def broker_in(folder: Path, signer: Signer, more: dict[str, str] | None = None) -> KafkaBroker:
    keys = folder / "keys.json"
    signer.write_keys(keys)
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{LISTENER}.sasl.jaas.config": f"{MODULE} required;",
        f"{LISTENER}.sasl.server.callback.handler.class": HANDLER,
        f"{LISTENER}.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{LISTENER}.sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    return KafkaBroker(folder / "kafka", settings | (more or {}), options=[allowed])


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer()


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, signer: Signer
) -> Iterator[KafkaBroker]:
    real.need(request.node.nodeid, "a Kafka of its own")
    broker = broker_in(tmp_path_factory.mktemp("oauth"), signer)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@pytest.fixture
async def granting(signer: Signer) -> AsyncIterator[Endpoint]:
    tokens._kept.clear()
    async with endpoint(signer) as here:
        yield here
    tokens._kept.clear()


def spec_of(broker: KafkaBroker, here: Endpoint) -> KafkaSpec:
    return KafkaSpec(
        bootstrap_servers=broker.sasl_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        oauth=OAuthSpec(here.url, CLIENT, SECRET, scope="kafka"),
        denied_ms=300,
        backoff_initial_ms=50,
    )


async def test_every_client_is_let_in_by_one_token(broker: KafkaBroker, granting: Endpoint):
    spec = spec_of(broker, granting)
    topic = await create_topic(broker, fresh("granted"))
    await send(broker.bootstrap_servers, topic, [b"let in"])
    assert topic in await list_topics(spec)
    assert (await probe(spec, [topic]))[topic].has_records
    await probe_writing(spec, "kafka.dead_letter_topic", topic)
    producer = KafkaProducer(spec)
    try:
        [leader] = (await producer.leaders(topic)).values()
        assert await producer.send(leader, topic, 0, batch_of([(None, b"written", [])])) == 0
    finally:
        await producer.close()
    async with reading(spec, topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        assert reader.values == [b"let in", b"written"]
    assert granting.asked == [{"grant_type": "client_credentials", "scope": "kafka"}]


REFUSED = r"refuse the token: check kafka\.security\.oauth\.scope"
NOT_LET_IN = r"does not let this client in: check kafka\.security\.oauth\.scope"


@pytest.mark.parametrize(
    ("claims", "expected"), [({"aud": "somebody else"}, "audience"), ({"exp": 1}, "audience")]
)
async def test_a_token_that_brokers_refuse_is_told_in_words(
    broker: KafkaBroker, granting: Endpoint, claims: dict[str, Any], expected: str
):
    granting.claims = claims
    spec = spec_of(broker, granting)
    with pytest.raises(KafkaUnreachable, match=REFUSED) as told:
        await list_topics(spec)
    assert expected in str(told.value)
    with pytest.raises(ReadingEnded, match=NOT_LET_IN):
        async with reading(spec, "any"):
            pass
    asked, granting.claims = len(granting.asked), {}
    await list_topics(spec)  # raises if the token that was refused is used again
    assert len(granting.asked) == asked + 1


async def test_an_endpoint_that_refuses_the_client_ends_a_start_with_the_setting(
    broker: KafkaBroker, granting: Endpoint
):
    spec = spec_of(broker, granting)
    assert spec.oauth is not None
    wrong = replace(spec, oauth=replace(spec.oauth, client_secret="wrong"))  # noqa: S106
    said = r"does not accept this client: check kafka\.security\.oauth\.client_id and its secret"
    with pytest.raises(KafkaUnreachable, match=said):
        await list_topics(wrong)
    with pytest.raises(ReadingEnded, match=said):
        async with reading(wrong, "any"):
            pass


async def test_a_token_of_msk_is_no_jwt_and_is_refused_in_words(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of a test")
    spec = KafkaSpec(
        bootstrap_servers=broker.sasl_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="AWS_MSK_IAM",
        aws_region="eu-central-1",
    )
    with pytest.raises(KafkaUnreachable, match=r"refuse the token: check kafka\.security\.aws_region"):
        await list_topics(spec)


@pytest.mark.timeout(900)
async def test_a_daemon_counts_each_record_once_while_brokers_end_each_session_with_its_token(
    request: pytest.FixtureRequest, tmp_path: Path, signer: Signer, granting: Endpoint
):
    real.need(request.node.nodeid, "a Kafka of its own")
    broker = broker_in(tmp_path, signer, {f"{LISTENER}.connections.max.reauth.ms": str(SESSION_MS)})
    broker.start()
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    granting.lasts = SESSION_MS / 1_000
    security = {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "OAUTHBEARER",
        "oauth": {"token_url": granting.url, "client_id": CLIENT, "client_secret_file": str(secret)},
    }
    try:
        topics = {side: await create_topic(broker, fresh(side)) for side in ("predictions", "labels")}
        document = {
            "kafka": {
                "bootstrap_servers": broker.sasl_servers,
                "start_from": "earliest",
                "security": security,
            },
            "topics": topics,
        }
        async with daemon(document) as running:
            for turn in range(4):
                await outcomes(broker, topics, turn * OUTCOMES)
                done = (turn + 1) * OUTCOMES
                samples = await running.until(lambda s: value(s, "predictions_resolved_total") == done)  # noqa: B023
                asked = len(granting.asked)
                await running.until(lambda _: len(granting.asked) > asked)  # noqa: B023  # a session has ended
            assert (
                value(samples, "predictions_duplicate_total") == value(samples, "labels_duplicate_total") == 0
            )
    finally:
        broker.kill()
