"""Replicas of one deployment as processes of their own, a stream that goes on, and who is the holder."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
from confluent_kafka import Producer

from tests.integration.conftest import Broker
from tests.integration.jumping_clock import OFFSET
from tests.integration.results_topics import Topics, committed
from tests.integration.running import DEADLINE_SECONDS, Child, Samples, child, parsed, value
from tests.integration.topics import create_topic, fresh
from tests.integration.watched import ESTIMATORS
from tests.integration.webhook_receiver import Receiver, webhook

PARTITIONS = 2
MODELS = ("good", "poor")
DRIFT_SECONDS = 6.0
"""One model is right, and then wrong, for so long each."""
PER_SECOND = 80


class Stream:
    """Predictions of two models and their labels, written until it is stopped."""

    def __init__(
        self, servers: str, topics: Mapping[str, str], seed: int, invalid_every: int | None = None
    ) -> None:
        self._producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True}  # each record once
        )
        self._topics = topics
        self._chance = random.Random(seed)
        self._stop = asyncio.Event()
        self.records = 0
        self.invalid: list[bytes] = []
        """Invalid records, one after so many predictions of each model."""
        self._invalid_every = invalid_every

    async def write(self) -> None:
        began, number = time.monotonic(), 0
        waiting: list[tuple[float, str, str]] = []
        while not self._stop.is_set() or waiting:
            now = time.monotonic() - began
            while not self._stop.is_set() and number < now * PER_SECOND:
                truth, name = self._chance.choice("abc"), str(number)
                is_good = now % (2 * DRIFT_SECONDS) < DRIFT_SECONDS
                guesses = {"good": truth if is_good else "b", "poor": self._chance.choice("abc")}
                for model, guess in guesses.items():
                    self._send("predictions", {"id": name, "model": model, "prediction": guess})
                if self._invalid_every is not None and number % self._invalid_every == 0:
                    self.invalid.append(b"{broken %d" % number)
                    self._produce(self._chance.choice(("predictions", "labels")), self.invalid[-1])
                waiting.append((now + self._chance.choice((0.05, 0.2, 0.6)), name, truth))
                number += 1
            for each in [each for each in waiting if each[0] <= now]:
                waiting.remove(each)
                self._send("labels", {"id": each[1], "label": each[2]})
            self._producer.poll(0)
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(self._producer.flush, 60) == 0

    def stop(self) -> None:
        self._stop.set()

    def _send(self, side: str, document: Mapping[str, str]) -> None:
        self._produce(side, json.dumps(document).encode())

    def _produce(self, side: str, value: bytes) -> None:
        self.records += 1
        partition = self._chance.randrange(PARTITIONS)
        self._producer.produce(self._topics[side], value, partition=partition)


class Replica:
    """One of them, life after life."""

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        self.folder = folder
        self.settings = [*settings, f"state.directory={folder / 'state'}"]
        self.logs: list[str] = []
        self._stack = ExitStack()
        self._child: Child | None = None
        self.stopped = self.ending = False
        """Whether it was stopped by SIGSTOP, or was told to end and may be gone at any moment."""
        folder.mkdir()

    @property
    def process(self) -> Child:
        assert self._child is not None
        return self._child

    @property
    def runs(self) -> bool:
        return self._child is not None and not self.stopped and not self.ending

    def start(self) -> None:
        self._stack = ExitStack()
        clocked = ("tests.integration.jumping_clock",)
        self._child = self._stack.enter_context(child(self.folder, *self.settings, module=clocked))

    def set_clock(self, seconds_ahead: float) -> None:
        """Set its host's clock."""
        whole = self.folder / "clock-offset-written"
        whole.write_text(str(seconds_ahead))
        whole.rename(self.folder / OFFSET)

    def end(self, number: signal.Signals) -> int:
        """Send it a signal, and wait until it is gone."""
        running, self.ending = self.process, True
        running.process.send_signal(number)
        if self.stopped:
            running.process.send_signal(signal.SIGCONT)
        code = running.process.wait(DEADLINE_SECONDS)
        self.logs.append(running.log)
        self._stack.close()
        self._child, self.stopped, self.ending = None, False, False
        return code

    def freeze(self) -> None:
        self.process.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def thaw(self) -> None:
        self.process.process.send_signal(signal.SIGCONT)
        self.stopped = False

    async def url(self) -> str:
        return await asyncio.to_thread(self.process.url)

    async def samples(self) -> Samples | None:
        """What it says of itself; None while it says nothing."""
        if not self.runs:
            return None
        code = self.process.process.poll()
        assert code is None, f"{code}: {self.process.log}"
        with suppress(aiohttp.ClientError, TimeoutError):
            timeout = aiohttp.ClientTimeout(total=2.0)
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"{await self.url()}/metrics") as answer,
            ):
                return parsed(await answer.text())
        return None

    async def role(self) -> str | None:
        samples = await self.samples()
        if samples is None:
            return None
        found = [
            dict(labels)["role"] for (name, labels), n in samples.items() if name == "standby_role" and n
        ]
        return found[0] if found else None


class Replicas:
    """All of them, with receivers and topics of results."""

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        topics: Mapping[str, str],
        results: Topics,
        people: Receiver,
        servers: Sequence[str],
        *,
        session: str = "6s",
        more: Sequence[str] = (),
    ) -> None:
        self._broker = broker
        self.topics = topics
        self.results = results
        settings = [
            f"kafka.bootstrap_servers={broker.bootstrap_servers}",
            f"topics.predictions={topics['predictions']}",
            f"topics.labels={topics['labels']}",
            "join.horizon=10m",  # a model that is idle for twice as long retires, and its alarms count anew
            "join.early_horizon=1m",
            "time.settle=3s",
            f"monitors={json.dumps(ESTIMATORS)}",
            f"alerts.receivers={json.dumps([webhook(people, timeout='5s')])}",
            "alerts.group_wait=0s",
            "alerts.max_per_minute=1000000",
            "alerts.cooldown=0s",
            "alerts.stale_after=48h",
            "standby.enabled=true",
            f"standby.session_timeout={session}",
            "log.format=json",
        ]
        self.settings = settings
        shared = [*settings, *results.settings(), *more]
        self.all = [
            Replica(folder / f"replica-{number}", [*shared, f"kafka.bootstrap_servers={each}"])
            for number, each in enumerate(servers)
        ]

    @classmethod
    async def on(
        cls,
        broker: Broker,
        folder: Path,
        people: Receiver,
        servers: Sequence[str],
        session: str = "6s",
        more: Sequence[str] = (),
    ) -> Replicas:
        topics = {
            side: await create_topic(broker, fresh(side), PARTITIONS, message_timestamp_type="LogAppendTime")
            for side in ("predictions", "labels")
        }
        return cls(
            broker, folder, topics, await Topics.on(broker), people, servers, session=session, more=more
        )

    async def holder(self, other_than: Replica | None = None, seconds: float = 120.0) -> Replica:
        """Wait until one of them is the holder."""
        roles: list[str | None] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            roles = []
            for each in self.all:
                roles.append(role := await each.role())
                if role == "holder" and each is not other_than:
                    return each
            await asyncio.sleep(0.02)
        raise AssertionError(f"no holder within {seconds:g} s: {roles}\n{self.told()}")

    async def standby(self) -> Replica:
        """Wait until one of them could take over."""
        async with asyncio.timeout(120):
            while True:
                for each in self.all:
                    if await each.role() == "standby":
                        return each
                await asyncio.sleep(0.05)

    def told(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"--- {each.folder.name}\n{each.process.log[-3_000:]}" for each in self.all if each.runs
        )

    async def at_rest(self, records: int, seconds: float = 600.0) -> list[Samples]:
        """What those that run say once all have evaluated everything, and all of it is written."""
        found: list[Samples] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [s for each in self.all if (s := await each.samples()) is not None]
            if found and all(_open(samples) == (records, 0, 0, 0) for samples in found):
                return found
            await asyncio.sleep(0.2)
        left = [_open(samples) for samples in found]
        raise AssertionError(
            f"not at rest within {seconds:g} s: expected {records} evaluated and nothing held, to publish or "
            f"to notify, got {left}\n{self.told()}"
        )

    def close(self) -> None:
        for each in self.all:
            if each.runs or each.stopped:
                each.end(signal.SIGKILL)


def _open(samples: Samples) -> tuple[float, float, float, float]:
    """Records evaluated; those held back, those to publish, and notifications that nobody took yet."""
    return (
        sum(n for (name, _), n in samples.items() if name == "records_evaluated_total"),
        value(samples, "merge_held_records"),
        value(samples, "publishing_waiting_records"),
        sum(n for (name, _), n in samples.items() if name == "notifications_pending"),
    )


def notifications(broker: Broker, results: Topics) -> list[str]:
    """Ids of notifications in the events topic."""
    [events] = committed(broker.bootstrap_servers, results.events)
    return [document["id"] for _, document in events if document["type"] == "notification"]


def repeated(people: Receiver) -> Counter[str]:
    """Ids that people were told more than once, and how often more."""
    return Counter({name: n - 1 for name, n in Counter(each.id for each in people.told).items() if n > 1})


async def models_told(replica: Replica) -> dict[str, Any]:
    """What a replica says of its models that comes from the log: of alarms those raised."""
    found: dict[str, Any] = {}
    async with aiohttp.ClientSession() as session:
        for model in MODELS:
            async with session.get(f"{await replica.url()}/api/v1/models/{model}") as answer:
                found[model] = await answer.json()
            found[model].pop("published_timestamp_seconds", None)
            found[model].get("details", {}).pop("open_incidents", None)
            for beside in ("alarms_open", "alarms_unconfirmed", "model_info"):
                found[model].get("metrics", {}).pop(beside, None)
        async with session.get(f"{await replica.url()}/api/v1/alarms?limit=9999") as answer:
            found["alarms"] = (await answer.json())["alarms"]
    return found
