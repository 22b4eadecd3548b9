"""Five million predictions whose labels do not come: memory, health, restart, and totals to the last one.

python -m tests.attack.pending --predictions 5000000            state in RocksDB
python -m tests.attack.pending --predictions 5000000 --memory   state in memory

The daemon reads them from Apache Kafka as a backlog, is given labels of some, is killed and started again.
Ends with exit code 1 where a number is not what was written.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiokafka.record.util import calc_crc32c

from tests.attack.reading import told, total
from tests.attack.siege import Siege, around, rounds
from tests.edge.sources.kafka.batches.raw_batches import ZSTD, RawBatch, record
from tests.integration.kafka_broker import KafkaBroker, unavailable_jars
from tests.integration.raw_produce import produce
from tests.integration.running import parsed
from tests.integration.topics import create_topic, fresh

BATCH = 5_000
AT_ONCE = 100
"""Batches that are made before they are sent."""
PER_MILLISECOND = 5
"""Predictions of one millisecond of record time."""
DEADLINE_SECONDS = 3_600.0


def batches(count: int, first_ms: int, value: str) -> Iterator[list[bytes]]:
    """So many records in batches, as Kafka takes them; `value` with the record's number in place of #."""
    made: list[bytes] = []
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        records = [
            record(i, value.replace("#", str(number)).encode(), ms=i // PER_MILLISECOND)
            for i, number in enumerate(numbers)
        ]
        begin = first_ms + start // PER_MILLISECOND
        last = begin + (len(records) - 1) // PER_MILLISECOND
        batch = bytearray(RawBatch(records, codec=ZSTD, first_ms=begin, max_ms=last, crc=0).bytes())
        batch[17:21] = calc_crc32c(bytes(batch[21:])).to_bytes(4, "big")
        made.append(bytes(batch))
        if len(made) == AT_ONCE:
            yield made
            made = []
    yield made


@asynccontextmanager
async def daemon(
    kafka: KafkaBroker, log: Path, predictions: str, labels: str, *settings: str
) -> AsyncIterator[Siege]:
    """`streamwatch run`, asked for its health all the time."""
    command = [sys.executable, "-m", "streamwatch", "run"]
    for setting in (
        "http.listen=127.0.0.1:0",
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={predictions}",
        f"topics.labels={labels}",
        *settings,
    ):
        command += ["--set", setting]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not (found := re.search(r"http://[\d.]+:\d+", told(log))):
                assert process.returncode is None, told(log)
                await asyncio.sleep(0.01)
            await _ready(found[0])
        async with around(process, found[0], log) as besieged:
            yield besieged
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _ready(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{url}/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.01)


async def counted(besieged: Siege, wanted: Mapping[str, int]) -> dict[str, int]:
    """These metrics once none of them is less than wanted."""
    async with asyncio.timeout(DEADLINE_SECONDS), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{besieged.url}/metrics") as answer:
                samples = parsed(await answer.text())
            found = {name: int(total(samples, name)) for name in wanted}
            if all(found[name] >= number for name, number in wanted.items()):
                return found
            await asyncio.sleep(0.5)


def cpu_seconds(process: int) -> float:
    """Processor time of a process until now."""
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


async def tried(count: int, labelled: int, *, memory: bool) -> bool:
    """Whether every number was what was written."""
    with tempfile.TemporaryDirectory() as folder:
        kafka = KafkaBroker(Path(folder) / "kafka")
        try:
            kafka.start()
            return await _tried(kafka, Path(folder), count, labelled, memory=memory)
        finally:
            kafka.kill()


async def _tried(kafka: KafkaBroker, folder: Path, count: int, labelled: int, *, memory: bool) -> bool:
    predictions = await create_topic(kafka, fresh("predictions"), max_message_bytes="20000000")
    labels = await create_topic(kafka, fresh("labels"), max_message_bytes="20000000")
    servers, log = kafka.bootstrap_servers, folder / "daemon.log"
    first_ms = int(time.time() * 1_000) - 3_600_000
    for made in batches(count, first_ms, '{"id":"p#","model":"m","prediction":"a"}'):
        await produce(servers, predictions, {0: made})
    settings = ["state.kind=memory" if memory else f"state.directory={folder / 'state'}"]
    accepted = {"predictions_accepted_total": count, "predictions_evicted_total": 0, "outcomes_total": 0}
    resolved = accepted | {"outcomes_total": labelled, "pending_predictions": count - labelled}
    right = True
    for life in ("first", "second"):
        began = time.monotonic()
        async with daemon(kafka, log, predictions, labels, *settings) as besieged:
            _tell(life, "ready", began, besieged)
            if life == "first":
                right &= await counted(besieged, accepted) == accepted
                _tell(life, f"{count:,} waiting", began, besieged)
                label_ms = first_ms + count // PER_MILLISECOND
                for made in batches(labelled, label_ms, '{"id":"p#","label":"a"}'):
                    await produce(servers, labels, {0: made})
            found = await counted(besieged, resolved)
            right &= found == resolved
            _tell(life, f"{labelled:,} labelled: {found}", began, besieged)
            await rounds(besieged, 20)
            health = besieged.health()
            print(  # noqa: T201
                f"{life} life: health asked {health.asked} times, beyond a bare server's: median "
                f"{1_000 * health.median:.1f}, p99 {1_000 * health.p99:.1f}, at most "
                f"{1_000 * health.largest:.1f} ms, {health.unanswered} unanswered"
            )
            right &= health.unanswered == 0
    return right


def _tell(life: str, what: str, began: float, besieged: Siege) -> None:
    seconds, used = time.monotonic() - began, cpu_seconds(besieged.process)
    memory = f"{besieged.resident_bytes / 1e6:.0f} MB, at most {besieged.peak_bytes / 1e6:.0f} MB"
    print(  # noqa: T201
        f"{life} life, {what}: after {seconds:.1f} s and {used:.1f} s of CPU, resident {memory}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=int, default=5_000_000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--memory", action="store_true", help="state in memory instead of RocksDB")
    asked = parser.parse_args()
    if reason := unavailable_jars():
        sys.exit(f"needs a Kafka of its own: {reason}")
    right = asyncio.run(tried(asked.predictions, asked.labels, memory=asked.memory))
    print("every number was what was written" if right else "A NUMBER WAS WRONG")  # noqa: T201
    sys.exit(not right)


if __name__ == "__main__":
    main()
