"""Models that are right or wrong as a test wants, and a daemon in a child process that watches them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import yaml
from confluent_kafka import Producer

from tests.integration.conftest import Broker
from tests.integration.running import DEADLINE_SECONDS, Child, Samples, child, parsed
from tests.integration.topics import create_topic, fresh
from tests.integration.webhook_receiver import KEY, SECRET, TOKEN
from tests.ports import free_port

ESTIMATORS = {
    "forgetting": ["landmark", {"fading": {"alpha": 0.98}}, "sliding", "adwin"],
    "detectors": [{"page_hinkley": {"threshold": 5.0}}, "adwin"],
}
"""Of the kinds that are compiled anyway; quick to find a drift, and to see that it is over."""


LEARNED = 400
"""Outcomes after which a model is known to be right."""
RECOVERED = 600
"""Outcomes after which it is again."""


class Models:
    """Writes outcomes: a prediction and its label each."""

    def __init__(self, broker: Broker, predictions: str, labels: str) -> None:
        self.bootstrap_servers = broker.bootstrap_servers
        self.topics = {"predictions": predictions, "labels": labels}
        self.labelled_at: dict[str, list[float]] = defaultdict(list)
        """Of `time.monotonic`, by model and outcome."""
        options = {"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 2_000_000}
        self._producer = Producer(options | {"linger.ms": 1})
        self._chance = Random(1)
        self._ids = 0

    @classmethod
    async def on(cls, broker: Broker) -> Models:
        """With topics of their own."""
        return cls(broker, *[await create_topic(broker, fresh(side)) for side in ("predictions", "labels")])

    def answer(self, model: str, count: int, *, right: bool, record_ms: int = 0) -> None:
        """Write outcomes, all right or all wrong; dated now, or `record_ms`, which is in the past."""
        for _ in range(count):
            truth = self._chance.choice("ab")
            predicted = truth if right else "ba"["ab".index(truth)]
            name = f"{self._ids:08}"
            self._ids += 1
            self._write("predictions", {"id": name, "model": model, "prediction": predicted}, record_ms)
            self._write("labels", {"id": name, "label": truth}, record_ms)
            self.labelled_at[model].append(time.monotonic())

    def answer_together(self, answers: Mapping[str, float], count: int) -> None:
        """Write ids that several models predict, each right with its own probability, dated now."""
        for _ in range(count):
            truth = self._chance.choice("ab")
            name = f"{self._ids:08}"
            self._ids += 1
            for model, right in answers.items():
                predicted = truth if self._chance.random() < right else "ba"["ab".index(truth)]
                self._write("predictions", {"id": name, "model": model, "prediction": predicted}, 0)
                self.labelled_at[model].append(time.monotonic())
            self._write("labels", {"id": name, "label": truth}, 0)

    async def learn(self, *models: str) -> None:
        """They are right for long enough to be known as right."""
        for model in models:
            self.answer(model, LEARNED, right=True)
        await self.flush()

    async def flush(self) -> None:
        assert await asyncio.to_thread(self._producer.flush, 600) == 0

    async def reach(self, topic: str) -> None:
        """One record to a topic nobody watches: the way to the broker takes as long as it takes just now."""
        self._producer.produce(topic, b"")
        await self.flush()

    def total(self) -> int:
        """Outcomes of all models."""
        return sum(map(len, self.labelled_at.values()))

    def _write(self, side: str, value: Mapping[str, str], record_ms: int) -> None:
        self._producer.produce(self.topics[side], json.dumps(value), timestamp=record_ms)
        self._producer.poll(0)


class Watch:
    """A daemon that watches `models`, life after life, on one folder."""

    def __init__(self, folder: Path, models: Models, alerts: Mapping[str, Any], **monitors: Any) -> None:
        self.folder = folder
        self.logs: list[str] = []
        """Of the runs that are over."""
        folder.mkdir(exist_ok=True)
        self.document: dict[str, Any] = {
            "kafka": {"bootstrap_servers": models.bootstrap_servers, "start_from": "earliest"},
            "topics": models.topics,
            "monitors": ESTIMATORS | monitors,
            "state": {"directory": str(folder / "state"), "commit_interval": "200ms"},
            "http": {"listen": f"127.0.0.1:{free_port()}"},
            "alerts": {"group_wait": "0s", "max_per_minute": 1_000_000, **alerts},
        }
        (folder / "streamwatch.yaml").write_text(yaml.safe_dump(self.document))

    @contextmanager
    def life(self) -> Iterator[Child]:
        """From a start to its end, whatever that is."""
        with child(self.folder) as running:
            yield running
        self.logs.append(running.log)


async def page(url: str) -> str:
    """What /metrics says."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        return await answer.text()


async def until(url: str, condition: Callable[[Samples], bool]) -> Samples:
    """Scrape until something is true."""
    samples: Samples = {}
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition(samples):
        assert time.monotonic() < deadline, samples
        with suppress(aiohttp.ClientConnectionError):
            samples = parsed(await page(url))
        await asyncio.sleep(0.05)
    return samples


def summed(samples: Samples, name: str, **labels: str) -> float:
    """Over all samples of a name that have these labels."""
    wanted = set(labels.items())
    return sum(value for (found, has), value in samples.items() if found == name and wanted <= has)


def read(outcomes: int) -> Callable[[Samples], bool]:
    """So many outcomes are durable and shown."""
    return lambda samples: summed(samples, "outcomes_total") == outcomes


def all_told(samples: Samples) -> bool:
    """Nobody waits for a notification."""
    return bool(samples) and summed(samples, "notifications_pending") == 0


def nothing_secret_in(watch: Watch, *texts: str) -> None:
    """Neither the state nor a log nor these texts hold a key or the path of a URL."""
    hidden = [KEY, SECRET.encode(), SECRET.removeprefix("whsec_").rstrip("=").encode(), TOKEN.encode()]
    files = [file for file in (watch.folder / "state").rglob("*") if file.is_file()]
    assert files, "there is state to look at"
    named = {str(file): file.read_bytes() for file in files}
    named |= {f"text {number}": text.encode() for number, text in enumerate((*watch.logs, *texts))}
    assert [name for name, content in named.items() if any(one in content for one in hidden)] == []
