"""Two replicas on Apache Kafka and a dead-letter topic: each invalid record once, and none lost by kills."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.kafka_broker import KafkaBroker
from tests.integration.replicas import Replica, Replicas, Stream
from tests.integration.running import value
from tests.integration.topics import create_topic, every_record, fresh
from tests.integration.webhook_receiver import receiving

EVERY = 8
"""An invalid record after so many predictions of each model: ten a second."""
STEADY_SECONDS = 6.0
SEVERAL = 60
MOST_AGAIN = 1 / 4
"""Share of letters that next holders may write again: those since the last transaction of the ledger, which
lies longer ago on a busy machine."""
log = logging.getLogger(__name__)


async def several(letters: Callable[[], Counter[bytes]]) -> None:
    """Wait until there are `SEVERAL` letters, which takes longer on a busy machine."""
    for _ in range(120):
        if len(await asyncio.to_thread(letters)) >= SEVERAL:
            return
        await asyncio.sleep(1)
    raise AssertionError(f"no {SEVERAL} dead letters within two minutes")


async def written_by(replicas: Replicas) -> list[tuple[float, float]]:
    """How often each replica which runs took over since its start, and dead letters that it has written."""
    found = [await each.samples() for each in replicas.all]
    names = ("standby_takeovers_total", "dead_letters_written_total")
    return [(value(samples, names[0]), value(samples, names[1])) for samples in found if samples is not None]


async def at_work(replicas: Replicas, letters: Callable[[], Counter[bytes]]) -> tuple[Replica, Replica]:
    """Return holder and standby after seconds of letters, each written once and none by the standby.

    The session of a holder that a busy machine does not run for long enough ends: if another takes over
    meanwhile, those seconds begin anew.
    """
    for _ in range(5):
        standby, holder = await replicas.standby(), await replicas.holder()
        (earlier, before), seen = (
            zip(*await written_by(replicas), strict=True),
            await asyncio.to_thread(letters),
        )
        await asyncio.sleep(STEADY_SECONDS)
        (takeovers, written), found = (
            zip(*await written_by(replicas), strict=True),
            await asyncio.to_thread(letters),
        )
        if takeovers != earlier or holder is standby:
            continue
        number = replicas.all.index(standby)
        assert written[number] == before[number]
        assert written[1 - number] > before[1 - number]
        assert set((found - seen).values()) == {1}
        return holder, standby
    raise AssertionError(f"another replica took over in each of five times: {await written_by(replicas)}")


@pytest.mark.timeout(900)
async def test_the_holder_alone_writes_dead_letters_and_the_next_one_what_is_missing(
    killable_kafka: KafkaBroker, tmp_path: Path
) -> None:
    servers = killable_kafka.bootstrap_servers
    dead = await create_topic(killable_kafka, fresh("dead"))

    def letters() -> Counter[bytes]:
        return Counter(record.value() for record in every_record(servers, dead))

    async with receiving() as people:
        more = [f"kafka.dead_letter_topic={dead}"]
        replicas = await Replicas.on(killable_kafka, tmp_path, people, [servers] * 2, more=more)
        stream = Stream(servers, replicas.topics, seed=11, invalid_every=EVERY)
        writing = asyncio.create_task(stream.write())
        try:
            for each in replicas.all:
                each.start()
            await replicas.standby()
            await several(letters)
            first, second = await at_work(replicas, letters)

            first.end(signal.SIGKILL)
            assert await replicas.holder() is second
            await asyncio.sleep(STEADY_SECONDS)
            first.start()
            await replicas.standby()
            await asyncio.to_thread(second.end, signal.SIGTERM)
            await replicas.holder(other_than=second)
            second.start()
            await replicas.standby()
            stream.stop()
            await writing
            await replicas.at_rest(stream.records)
            found = await asyncio.to_thread(letters)
            again = sum(found.values()) - len(found)
            log.warning(
                "%d dead letters, of which %d were written again by the next holder", len(found), again
            )
            assert set(found) == set(stream.invalid)
            assert again <= MOST_AGAIN * len(found)
            assert all(written == 0 for takeovers, written in await written_by(replicas) if takeovers == 0)

            for each in replicas.all:
                each.end(signal.SIGKILL)
            for each in replicas.all:
                each.start()
            await replicas.holder()
            await replicas.standby()
            assert [written for _, written in await written_by(replicas)] == [0, 0]
            assert await asyncio.to_thread(letters) == found
        finally:
            writing.cancel()
            replicas.close()
