"""One log, the same numbers bit for bit: read as it is written, as a backlog, through kills, replayed."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.integration.conftest import Broker
from tests.integration.one_log import (
    all_evaluated,
    assert_same_numbers,
    dumped,
    killed_again_and_again,
    replayed,
)
from tests.integration.running import child, value
from tests.integration.topics import create_topic, fresh

PARTITIONS = 4
MODELS = ("copycat", "good", "poor")
SECONDS = 20.0
PER_SECOND = 250
Due = tuple[float, str, dict[str, str]]
"""Seconds since the start, side and document of a record that is to be written."""


class Written:
    """Predictions of three models with sticky labels, written as they happen."""

    def __init__(self, broker: Broker, topics: Mapping[str, str], seed: int) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
        self._topics = topics
        self._chance = random.Random(seed)
        self.records = 0

    async def write(self) -> None:
        """Write for some seconds: a label comes 0.1 to 3 s after its predictions, some never.

        Some predictions are revised meanwhile, and of what is predicted later one model is worse.
        """
        truth, number, due = "a", 0, list[Due]()
        began = time.monotonic()
        while (now := time.monotonic() - began) < SECONDS or due:
            while number < min(now, SECONDS) * PER_SECOND:
                truth = truth if self._chance.random() < 0.8 else self._chance.choice("abc")
                due += self._predict(str(number), truth, now)
                if self._chance.random() < 0.97:
                    wait = self._chance.choice((0.1, 0.3, 1, 3))
                    due.append((now + wait, "labels", {"id": str(number), "label": truth}))
                number += 1
            for each in [each for each in due if each[0] <= now]:
                due.remove(each)
                self._send(*each[1:])
            self._producer.poll(0)
            await asyncio.sleep(0.005)
        assert await asyncio.to_thread(self._producer.flush, 60) == 0

    def _predict(self, number: str, truth: str, now: float) -> list[Due]:
        """Write what all models say of an id now, and give what some of them will."""
        guess = {
            "copycat": getattr(self, "_last", truth),
            "good": truth if self._chance.random() < (0.9 if now < SECONDS / 2 else 0.3) else "b",
            "poor": self._chance.choice("abc"),
        }
        self._last = truth
        revised: list[Due] = []
        for model in MODELS:
            document = {"id": number, "model": model, "prediction": guess[model]}
            self._send("predictions", document)
            if self._chance.random() < 0.1:
                again = document | {"prediction": self._chance.choice("abc")}
                revised.append((now + self._chance.choice((0.0, 0.2, 2)), "predictions", again))
        return revised

    def _send(self, side: str, document: Mapping[str, str]) -> None:
        partition = self._chance.randrange(PARTITIONS)
        self.records += 1
        self._producer.produce(self._topics[side], json.dumps(document), partition=partition)


def overrides(
    broker: Broker, topics: Mapping[str, str], conflicts: str, state: Path | None = None
) -> list[str]:
    return [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "state.kind=memory" if state is None else f"state.directory={state}",
        "join.on_expiry={assume: a}",
        f"join.conflicts={conflicts}",
        "join.horizon=2s",
        "join.early_horizon=1s",
        "time.settle=5s",  # on a busy machine a broker may take seconds from stamping a record to showing it
        # one more than by default, with a clock of its own: the others are compiled anyway
        "monitors.detectors=[page_hinkley, adwin, {adwin: {name: adwin_predicted}}]",
        "monitors.detector_clocks={adwin_predicted: prediction}",
        'monitors.comparisons=[{champion: good, challengers: ["*"]}, {pairs: [[copycat, poor]]}]',
    ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("times", "conflicts"), [("CreateTime", "first"), ("LogAppendTime", "both")])
async def test_live_backlog_and_killed_daemons_say_the_same_to_the_last_bit(
    kafka: Broker, tmp_path: Path, times: str, conflicts: str
) -> None:
    topics = {
        side: await create_topic(kafka, fresh(side), PARTITIONS, message_timestamp_type=times)
        for side in ("predictions", "labels")
    }
    chance = random.Random(1)
    for name in ("live", "killed", "backlog"):
        (tmp_path / name).mkdir()
    settings = overrides(kafka, topics, conflicts)
    durable = overrides(kafka, topics, conflicts, tmp_path / "state")
    with child(tmp_path / "live", *settings) as daemon:
        daemon.url()
        writer = Written(kafka, topics, seed=3)
        writing = asyncio.create_task(writer.write())
        await killed_again_and_again(tmp_path / "killed", durable, writing, chance)
        live = await all_evaluated(daemon, writer.records, MODELS)
    with child(tmp_path / "killed", *durable) as daemon:
        killed = await all_evaluated(daemon, writer.records, MODELS)
    with child(tmp_path / "backlog", *settings) as daemon:
        backlog = await all_evaluated(daemon, writer.records, MODELS)
    dumped(kafka, topics, PARTITIONS, tmp_path / "log.jsonl")
    replay = await asyncio.to_thread(replayed, tmp_path / "log.jsonl", settings)
    assert value(backlog["samples"], "outcomes_assumed_total") > 0
    assert value(backlog["samples"], "labels_late_total") > 0
    assert value(backlog["samples"], "predictions_conflict_total") > 100
    assert_same_numbers(backlog, (live, killed), replay)
    for model in MODELS:
        details = backlog["models"][model]["details"]
        assert details["prediction_clock"]["evaluated"] > 1_000
        assert ("revisions" in details) == (conflicts == "both")
    predicted = [
        each["predicted_timestamp_seconds"]
        for each in backlog["alarms"]
        if each["detector"] == "adwin_predicted"
    ]
    assert any(predicted)
    # who leads most is first, which the broker's time stamps decide where labels come too late
    assert sorted((c["champion"], c["challenger"]) for c in backlog["compared"]) == [
        ("copycat", "poor"),
        ("good", "copycat"),
        ("good", "poor"),
    ]
    assert all(c["pairs"] > 1_000 for c in backlog["compared"])
