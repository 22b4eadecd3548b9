"""One log, read by a daemon that is killed on the way, by another one and by a replay: they must agree."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from confluent_kafka import Producer

from tests.integration.conftest import Broker
from tests.integration.one_log import dumped, replayed
from tests.integration.running import DEADLINE_SECONDS, Child, Samples, child, parsed, value
from tests.integration.test_one_order import PARTITIONS
from tests.integration.topics import create_topic, fresh

Said = Callable[[Child], Awaitable[Any]]
"""What to ask a daemon that has evaluated everything, beside metrics and models."""


class Found(NamedTuple):
    """What a daemon said once it had evaluated everything."""

    samples: Samples
    models: dict[str, Any]
    said: Any


class Lives(NamedTuple):
    """Daemons and a replay of the same records."""

    topics: Mapping[str, str]
    whole: Found
    """Of the daemon that was not killed, with its state in memory; the other said the same."""
    replay: dict[str, Any]
    """Models of the replay."""

    def check_replay(self, models: Iterable[str]) -> None:
        """Fail unless the replay found what the daemons found of these models."""
        for model in models:
            live, again = self.whole.models[model], self.replay[model]
            assert {n: v for n, v in again["metrics"].items() if live["metrics"].get(n) != v} == {}
            assert again["details"] == live["details"]


async def answered(daemon: Child, path: str) -> Any:
    """What a daemon answers: samples of `metrics`, else a document."""
    async with aiohttp.ClientSession() as session, session.get(f"{daemon.url()}/{path}") as answer:
        return parsed(await answer.text()) if path == "metrics" else await answer.json()


def write_records(
    broker: Broker, topics: Mapping[str, str], records: Iterable[tuple[int, str, Any]], hours: int
) -> None:
    """Write (milliseconds since so many hours ago, side, document) to partitions drawn for them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20})
    chance = random.Random(7)
    began_ms = time.time_ns() // 1_000_000 - hours * 3_600_000
    for at, side, document in records:
        place = chance.randrange(PARTITIONS)
        producer.produce(topics[side], json.dumps(document), partition=place, timestamp=began_ms + at)
    assert producer.flush(60) == 0


async def _everything(daemon: Child, outcomes: int, say: Said) -> Found:
    """Ask a daemon once it has evaluated so many outcomes, and read everything that was written."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            samples = await answered(daemon, "metrics")
            found = sum(n for (name, _), n in samples.items() if name == "outcomes_total")
            held, caught_up = (value(samples, name) for name in ("merge_held_records", "caught_up"))
            if (found, held, caught_up) == (outcomes, 0, 1):
                break
            assert found <= outcomes
            await asyncio.sleep(0.1)
    models = (await answered(daemon, "api/v1/models"))["models"]
    return Found(samples, models, await say(daemon))


async def _killed_early(daemon: Child) -> None:
    """End a life by SIGKILL once it has evaluated something."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            if any(name == "outcomes_total" for name, _ in await answered(daemon, "metrics")):
                break
            await asyncio.sleep(0.02)
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()


async def lived(
    broker: Broker,
    folder: Path,
    records: Iterable[tuple[int, str, Any]],
    settings: Iterable[str],
    *,
    outcomes: int,
    commit_events: int,
    hours: int,
    say: Said,
) -> Lives:
    """Write records, let daemons and a replay evaluate them, and fail unless both daemons say the same.

    Parameters
    ----------
    folder
        Where they live; the state of the one that was killed is in `state`.
    records, hours
        As `write_records` takes them.
    settings
        Overrides beside the broker's, the topics' and the state's.
    outcomes
        How many there must be in the end.
    commit_events
        Events of a commit of the life that is killed.
    say
        What to ask a daemon in the end.
    """
    topics = {side: await create_topic(broker, fresh(side), PARTITIONS) for side in ("predictions", "labels")}
    write_records(broker, topics, records, hours)
    common = [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        *(f"topics.{side}={topic}" for side, topic in topics.items()),
        *settings,
    ]
    durable, memory = [*common, f"state.directory={folder / 'state'}"], [*common, "state.kind=memory"]
    for name in ("killed", "memory"):
        (folder / name).mkdir()
    with child(folder / "killed", *durable, f"state.commit_events={commit_events}") as daemon:
        await _killed_early(daemon)
    with child(folder / "killed", *durable) as daemon:
        killed = await _everything(daemon, outcomes, say)
    with child(folder / "memory", *memory) as daemon:
        whole = await _everything(daemon, outcomes, say)
    assert (killed.models, killed.said) == (whole.models, whole.said)
    dumped(broker, topics, PARTITIONS, folder / "log.jsonl")
    replay = await asyncio.to_thread(replayed, folder / "log.jsonl", memory)
    return Lives(topics, whole, replay["models"])
