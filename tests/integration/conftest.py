"""Brokers for the integration tests: one Apache Kafka for the whole run, or the embedded one in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from tests import real
from tests.integration.apicurio import Apicurio
from tests.integration.kafka_broker import KafkaBroker


class Broker(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


@dataclass(frozen=True)
class RunningBroker:
    """One that somebody else started."""

    bootstrap_servers: str


@pytest.fixture(scope="session")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Apache Kafka in a child process of this run; whoever kills it starts it again."""
    folder: Path = tmp_path_factory.mktemp("kafka")
    broker = KafkaBroker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def _embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Broker:
    """Apache Kafka, or the test is left out."""
    real.need(request.node.nodeid, "kafka")
    running = os.environ.get("STREAMWATCH_TEST_BOOTSTRAP")
    return RunningBroker(running) if running else request.getfixturevalue("own_kafka")


@pytest.fixture
def killable_kafka(request: pytest.FixtureRequest) -> KafkaBroker:
    """Apache Kafka that the test may kill and start again, or the test is left out."""
    real.need(request.node.nodeid, "a Kafka of its own")
    return request.getfixturevalue("own_kafka")


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Broker:
    """Apache Kafka, else the embedded broker (no transactions, no search by time)."""
    if real.need_or_embedded(request.node.nodeid, "kafka"):
        return request.getfixturevalue("kafka")
    return request.getfixturevalue("_embedded")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """Apicurio Registry, one for the tests of a file, which nobody kills."""
    running = Apicurio(tmp_path_factory.mktemp("registry"))
    try:
        running.start()
        yield running
    finally:
        running.kill()


@pytest.fixture
def schema_registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Apicurio]:
    """Apicurio Registry, empty, which the test may kill; or the test is left out."""
    real.need(request.node.nodeid, "schema registry")
    registry = Apicurio(tmp_path)
    try:
        registry.start()
        yield registry
    finally:
        registry.kill()
