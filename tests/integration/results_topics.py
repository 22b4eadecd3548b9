"""Topics of results: what is in them, and what a replay of the same log says should be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import xxhash
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from streamwatch.assembly import specs
from streamwatch.assembly.topics import recorded_topics
from streamwatch.core.publishing.kept import KeptOutcomes
from streamwatch.core.publishing.outcome_lines import OutcomeLines, keys_of
from streamwatch.core.records.events import Outcome
from streamwatch.core.records.outcomes import OutcomeBatch
from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.settings import load
from tests.integration.conftest import Broker
from tests.integration.topics import create_topic, fresh

WITHOUT_PLACE = ("life", "number", "id", "namespace")
"""Fields of an outcome that a replay does not know."""


class Topics(NamedTuple):
    """Topics of results of one deployment."""

    outcomes: str
    events: str
    ledger: str

    @classmethod
    async def on(cls, broker: Broker, partitions: int = 1) -> Topics:
        names = [await create_topic(broker, fresh(name), partitions) for name in ("outcomes", "events")]
        return cls(*names, fresh("ledger"))

    def settings(self, transactional_id: str = "tested") -> list[str]:
        return [
            f"outcomes.topic={self.outcomes}",
            f"events.topic={self.events}",
            f"ledger.topic={self.ledger}",
            f"ledger.transactional_id={transactional_id}",
        ]


def committed(servers: str, topic: str) -> list[list[tuple[str, dict[str, Any]]]]:
    """Key and document of every committed record, by partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    partitions = sorted(consumer.list_topics(topic).topics[topic].partitions)
    found: list[list[tuple[str, dict[str, Any]]]] = [[] for _ in partitions]
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    ended: set[int] = set()
    while len(ended) < len(partitions):
        for record in consumer.consume(10_000, 1.0):
            if record.error():
                ended.add(record.partition())
            else:
                found[record.partition()].append((record.key().decode(), json.loads(record.value())))
    consumer.close()
    return found


def replayed_outcomes(log: Path, settings: Sequence[str]) -> list[dict[str, Any]]:
    """The outcomes of a log, in order, as `streamwatch replay` evaluates them."""
    read = load(None, list(settings), {})
    lines, seen = OutcomeLines("replayed"), list[dict[str, Any]]()

    def see(outcomes: Sequence[Outcome]) -> None:
        if isinstance(outcomes, OutcomeBatch):
            kept = KeptOutcomes.of(outcomes, keys_of(outcomes, None))
            seen.extend(map(json.loads, lines.of(kept, len(seen) + 1).text.tobytes().splitlines()))

    replay(
        ReplaySpec(
            [log],
            topics=recorded_topics(read),
            closed=True,
            join=specs.join_spec(read),
            merge=specs.merge_spec(read),
            monitors=specs.monitors_spec(read),
            seen=see,
        )
    )
    return seen


def without_place(document: Mapping[str, Any]) -> dict[str, Any]:
    """What an outcome says wherever it was evaluated."""
    return {name: value for name, value in document.items() if name not in WITHOUT_PLACE}


def assert_outcomes_once(
    records: Sequence[tuple[str, dict[str, Any]]], expected: Sequence[dict[str, Any]]
) -> None:
    """Each outcome is there once, in the order of evaluation, with its id and its model as key."""
    documents = [document for _, document in records]
    assert [document["number"] for document in documents] == list(range(1, len(expected) + 1))
    assert len({document["life"] for document in documents}) == 1
    assert [without_place(document) for document in documents] == [*map(without_place, expected)]
    for key, document in records:
        assert key == document["model"]
        assert (document["id"] is None) == document["assumed"]
        if document["id"] is not None:
            assert document["id_digest"] == xxhash.xxh3_128_hexdigest(document["id"].encode())


def assert_numbered_events_once(
    records: Sequence[tuple[str, dict[str, Any]]], alarms: Sequence[Mapping[str, Any]]
) -> None:
    """Each alarm and verdict that a daemon tells of is there once; nothing is there twice."""
    documents = [document for _, document in records]
    counts = Counter(document["id"] for document in documents)
    twice = [document for document in documents if counts[document["id"]] > 1]
    assert not twice, twice
    numbered = [document for document in documents if document["number"] is not None]
    assert [document["number"] for document in numbered] == list(range(1, len(numbered) + 1))
    named = {(d["model"], d["detector"], d["ordinal"], d["outcome"]) for d in numbered}
    assert len(named) == len(numbered)
    told = {(a["model"], a["detector"], a["ordinal"], a["outcome"]) for a in alarms}
    assert told <= named | {each for each in told if each[1] == "verdict"}
    assert {each for each in named if each[1] != "verdict"} == {each for each in told if each[1] != "verdict"}
