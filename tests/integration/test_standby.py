"""Two replicas, one voice: whoever is killed, stopped or cut off, outcomes are in their topic once."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests import tiers
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.one_log import differences, dumped
from tests.integration.replicas import (
    PARTITIONS,
    Replica,
    Replicas,
    Stream,
    models_told,
    notifications,
    repeated,
)
from tests.integration.results_topics import (
    assert_numbered_events_once,
    assert_outcomes_once,
    committed,
    replayed_outcomes,
)
from tests.integration.running import value
from tests.integration.toxiproxy import Toxiproxy, toxiproxy
from tests.integration.webhook_receiver import Receiver, receiving

SESSION_SECONDS = 6.0
PATIENCE = 3.0
"""Others use the machine, too: what is promised is measured where nobody does."""
FAULTS = tiers.number("STREAMWATCH_STANDBY_FAULTS", default=3, everything=100)
log = logging.getLogger(__name__)


@pytest.fixture
async def network(
    killable_kafka: KafkaBroker, real_component: Callable[[str], str]
) -> AsyncIterator[Toxiproxy]:
    ports = killable_kafka.ports
    async with toxiproxy(real_component("toxiproxy-server"), ports["proxy"], ports["behind"]) as between:
        yield between


async def assert_one_voice(
    kafka: KafkaBroker, replicas: Replicas, people: Receiver, records: int, folder: Path
) -> None:
    """Compare what is in the topics, at receivers and in both states with a replay of the log."""
    samples = await replicas.at_rest(records)
    for found in samples:
        assert not [key for key in found if key[0] == "records_out_of_order_total"]
        assert value(found, "standby_diverged") == 0
    dumped(kafka, replicas.topics, PARTITIONS, folder / "log.jsonl")
    expected = await asyncio.to_thread(replayed_outcomes, folder / "log.jsonl", replicas.settings)
    [outcomes] = committed(kafka.bootstrap_servers, replicas.results.outcomes)
    [events] = committed(kafka.bootstrap_servers, replicas.results.events)
    assert_outcomes_once(outcomes, expected)
    running = [each for each in replicas.all if each.runs]
    told = [await models_told(each) for each in running]
    for other in told[1:]:
        differ = differences(other, told[0])
        assert not differ, differ[:20]
    assert_numbered_events_once(events, told[0]["alarms"])
    decided = notifications(kafka, replicas.results)
    assert len(decided) == len(set(decided))
    assert {each.id for each in people.told} == set(decided)


@pytest.mark.timeout(900)
async def test_a_standby_takes_over_from_a_holder_that_leaves_and_from_one_that_is_killed(
    killable_kafka: KafkaBroker, tmp_path: Path
) -> None:
    servers = [killable_kafka.bootstrap_servers] * 2
    async with receiving() as people:
        replicas = await Replicas.on(killable_kafka, tmp_path, people, servers)
        stream = Stream(killable_kafka.bootstrap_servers, replicas.topics, seed=5)
        writing = asyncio.create_task(stream.write())
        try:
            for each in replicas.all:
                each.start()
            first = await replicas.holder()
            await replicas.standby()
            began = time.monotonic()
            leaving = asyncio.create_task(asyncio.to_thread(first.end, signal.SIGTERM))
            second = await replicas.holder(other_than=first)
            graceful = time.monotonic() - began
            assert await leaving == 0
            first.start()
            await replicas.standby()
            began = time.monotonic()
            second.end(signal.SIGKILL)
            assert await replicas.holder() is first
            killed = time.monotonic() - began
            log.warning("taken over after %.2f s (left) and %.2f s (killed)", graceful, killed)
            second.start()
            stream.stop()
            await writing
            await assert_one_voice(killable_kafka, replicas, people, stream.records, tmp_path)
            assert graceful <= 2.0 * PATIENCE
            assert killed <= (SESSION_SECONDS + 3.0) * PATIENCE
        finally:
            writing.cancel()
            replicas.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_rolling_update_loses_nothing_and_repeats_no_outcome(
    killable_kafka: KafkaBroker, tmp_path: Path
) -> None:
    """As a StatefulSet does it: the last pod first, each other one once the one before could take over."""
    servers = [killable_kafka.bootstrap_servers] * 2
    async with receiving() as people:
        replicas = await Replicas.on(killable_kafka, tmp_path, people, servers)
        stream = Stream(killable_kafka.bootstrap_servers, replicas.topics, seed=7)
        writing = asyncio.create_task(stream.write())
        try:
            for each in replicas.all:
                each.start()
            await replicas.holder()
            await replicas.standby()
            for each in reversed(replicas.all):
                each.ending = True
                assert await asyncio.to_thread(each.end, signal.SIGTERM) == 0
                each.start()
                await replicas.holder()
                await replicas.standby()
            stream.stop()
            await writing
            await assert_one_voice(killable_kafka, replicas, people, stream.records, tmp_path)
        finally:
            writing.cancel()
            replicas.close()


class Chaos:
    """Faults of all kinds, one after the other, and how long the deployment was without a holder.

    Parameters
    ----------
    replicas
        Three, of which two run between faults; the first is behind `network`.
    kafka
        Killed now and then.
    network
        Cut now and then.
    people
        Told of alarms.
    """

    def __init__(self, replicas: Replicas, kafka: KafkaBroker, network: Toxiproxy, people: Receiver) -> None:
        self._replicas = replicas
        self._kafka = kafka
        self._network = network
        self._people = people
        self._chance = random.Random(9)
        self.faults: dict[str, list[float]] = defaultdict(list)
        """Seconds until there was a holder (again), by kind."""
        self.times: list[float] = []
        """When each began and ended, of `time.monotonic`."""

    @property
    def kinds(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self.kill_the_holder,
            self.freeze_the_holder_while_it_tells,
            self.cut_the_network,
            self.kill_the_standby,
            self.leave,
            self.kill_both,
            self.kill_the_broker,
            self.let_the_network_hang,
            self.let_a_third_join,
            self.set_a_clock,
        ]

    async def make(self, number: int) -> None:
        """Make a fault, and wait until all is well again."""
        kind = self.kinds[number % len(self.kinds)]
        self.times.append(time.monotonic())
        await kind()
        self.times.append(time.monotonic())
        lasted = self.times[-1] - self.times[-2]
        log.warning("fault %d, %s: over after %.1f s", number, kind.__name__, lasted)
        for each in self._replicas.all[:2]:
            if not each.runs:
                each.start()
        await self._replicas.holder()
        await self._replicas.standby()
        await asyncio.sleep(self._chance.uniform(0.2, 3.0))

    async def _held_again(self, kind: str, began: float, other_than: Replica | None = None) -> None:
        await self._replicas.holder(other_than)
        self.faults[kind].append(time.monotonic() - began)

    async def kill_the_holder(self) -> None:
        holder, began = await self._replicas.holder(), time.monotonic()
        holder.end(signal.SIGKILL)
        await self._held_again("holder killed", began)

    async def leave(self) -> None:
        holder, began = await self._replicas.holder(), time.monotonic()
        holder.ending = True
        leaving = asyncio.create_task(asyncio.to_thread(holder.end, signal.SIGTERM))
        await self._held_again("holder left", began, holder)
        assert await leaving == 0

    async def kill_the_standby(self) -> None:
        standby = await self._replicas.standby()
        standby.end(signal.SIGKILL)
        self.faults["standby killed"].append(0.0)

    async def kill_both(self) -> None:
        began = time.monotonic()
        for each in self._replicas.all[:2]:
            each.end(signal.SIGKILL)
        for each in self._replicas.all[:2]:
            each.start()
        await self._held_again("both killed", began)

    async def freeze_the_holder_while_it_tells(self) -> None:
        """Stop it for longer than the session while people have not answered."""
        told, self._people.answer = len(self._people.told), lambda _: None
        with suppress(TimeoutError):
            async with asyncio.timeout(15):
                await self._people.until(lambda: len(self._people.told) > told)
        holder, began = await self._replicas.holder(), time.monotonic()
        holder.freeze()
        self._people.answer = lambda _: 200
        await self._held_again("holder stopped", began, holder)
        await asyncio.sleep(self._chance.uniform(0.0, 4.0))
        holder.thaw()
        self._people.released.set()
        self._people.released = asyncio.Event()

    async def kill_the_broker(self) -> None:
        began = time.monotonic()
        await asyncio.to_thread(self._kafka.kill)
        await asyncio.to_thread(self._kafka.start)
        await self._held_again("broker killed", began)

    async def cut_the_network(self) -> None:
        began = time.monotonic()
        await self._network.enable(enabled=False)
        await asyncio.sleep(self._chance.uniform(1.0, 9.0))
        await self._held_again("network cut", began)
        await self._network.enable(enabled=True)

    async def let_the_network_hang(self) -> None:
        began = time.monotonic()
        await self._network.poison("timeout", timeout=0)
        await asyncio.sleep(self._chance.uniform(1.0, 9.0))
        await self._held_again("network hung", began)
        await self._network.cure("timeout")

    async def let_a_third_join(self) -> None:
        third, began = self._replicas.all[2], time.monotonic()
        third.start()
        async with asyncio.timeout(120):
            while await third.role() not in ("standby", "holder"):  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.1)
        await self._held_again("third joined", began)
        third.end(signal.SIGKILL)

    async def set_a_clock(self) -> None:
        holder, began = await self._replicas.holder(), time.monotonic()
        holder.set_clock(self._chance.choice((-240.0, 240.0)))
        await asyncio.sleep(2.0)
        await self._held_again("clock set", began)
        holder.set_clock(0.0)


@pytest.mark.long
@pytest.mark.timeout(7_200)
async def test_whatever_happens_to_replicas_brokers_and_networks_they_speak_with_one_voice(
    killable_kafka: KafkaBroker, network: Toxiproxy, tmp_path: Path
) -> None:
    direct = killable_kafka.bootstrap_servers
    async with receiving() as people:
        replicas = await Replicas.on(killable_kafka, tmp_path, people, [network.servers, direct, direct])
        stream = Stream(direct, replicas.topics, seed=5)
        writing = asyncio.create_task(stream.write())
        chaos = Chaos(replicas, killable_kafka, network, people)
        try:
            for each in replicas.all[:2]:
                each.start()
            await replicas.holder()
            await replicas.standby()
            for number in range(tiers.turn(10), tiers.turn(10) + FAULTS):
                await chaos.make(number)
            stream.stop()
            await writing
            await assert_one_voice(killable_kafka, replicas, people, stream.records, tmp_path)
        finally:
            writing.cancel()
            replicas.close()
            for kind, seconds in chaos.faults.items():
                log.warning("%s: %d times, a holder after %.1f s at most", kind, len(seconds), max(seconds))
            again = repeated(people)
            log.warning("%d notifications, %d told again", len({t.id for t in people.told}), again.total())
    for name in again:
        times = [each.at for each in people.told if each.id == name]
        assert any(times[0] - 30 <= at <= times[-1] + 1 for at in chaos.times), name
