"""Attacks by those who write records: the daemon reads them from Apache Kafka while asked for its health."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiokafka.record.util import calc_crc32c

from tests.attack.siege import Health, Siege, around, rounds
from tests.edge.sources.kafka.batches.raw_batches import GZIP, LZ4, SNAPPY, ZSTD, RawBatch, record
from tests.integration.bombs import bomb
from tests.integration.conftest import Broker
from tests.integration.raw_produce import produce
from tests.integration.running import Samples, parsed
from tests.integration.topics import create_topic, fresh, send

MEBIBYTE = 1 << 20
DEADLINE_SECONDS = 300.0
COUNTERS = (
    "kafka_records_lost_total",
    "records_invalid_total",
    "predictions_accepted_total",
    "predictions_duplicate_total",
)
"""Each record is in one of them."""


class Hostile(NamedTuple):
    """A batch, written again and again."""

    batch: Callable[[], RawBatch]
    count: int
    """How often it is written."""


def of_values(values: Iterable[bytes]) -> RawBatch:
    """Records of these values, compressed with zstd."""
    return RawBatch([record(i, value) for i, value in enumerate(values)], codec=ZSTD, crc=0)


def scored(record_number: int, classes: int) -> bytes:
    """A prediction with scores of classes that no other record has."""
    scores = {f"c{record_number}-{i}": 0.0 for i in range(classes)}
    content = {"id": f"h{record_number}", "model": "m", "prediction": "a", "scores": scores}
    return json.dumps(content).encode()


def long_text(field: str, size: int) -> bytes:
    """A prediction with a field that is far too long."""
    return json.dumps({"id": "h", "model": "m", "prediction": "a", field: "é\\" * (size // 8)}).encode()


BATCHES: Mapping[str, Hostile] = {
    "bomb_zstd": Hostile(lambda: bomb(ZSTD, 300 * MEBIBYTE, 10), 20),
    "bomb_gzip": Hostile(lambda: bomb(GZIP, 500 * MEBIBYTE, 1), 10),
    "bomb_lz4": Hostile(lambda: bomb(LZ4, 200 * MEBIBYTE, 1), 20),
    "bomb_snappy": Hostile(lambda: bomb(SNAPPY, 80 * MEBIBYTE, 1), 10),
    "fits_gzip": Hostile(lambda: bomb(GZIP, 60 * MEBIBYTE, 1), 10),
    "fits_huge": Hostile(lambda: bomb(ZSTD, 6 * MEBIBYTE, 10, b"["), 10),
    "fits_nested": Hostile(lambda: bomb(ZSTD, MEBIBYTE - 99, 63, b"["), 5),
    "long_ids": Hostile(lambda: of_values([long_text("id", 900_000)] * 40), 3),
    "long_others": Hostile(lambda: of_values([long_text("other", 900_000)] * 40), 3),
    "many_scores": Hostile(lambda: of_values(scored(i, 40_000) for i in range(40)), 3),
    "some_scores": Hostile(lambda: of_values(scored(i, 4_096) for i in range(300)), 1),
}
"""Bombs that unpack to more than `kafka.max_batch_bytes`; others fit, and are looked at."""


class Read(NamedTuple):
    """What reading took."""

    seconds: float
    health: Health
    extra_bytes: int
    """Resident, at most, beyond those before."""
    counted: Mapping[str, int]
    written: int
    """Records, the two of no harm included."""
    lines: list[str]


async def read_hostile(kafka: Broker, folder: Path, hostile: Hostile, factor: float = 1.0) -> Read:
    """Write a batch so often and let a daemon read it between two records of no harm."""
    topic = await create_topic(kafka, fresh("hostile"), max_message_bytes="20000000")
    count = max(1, round(hostile.count * factor))
    made = await asyncio.to_thread(hostile.batch)
    batch = bytearray(made.bytes())
    batch[17:21] = calc_crc32c(bytes(batch[21:])).to_bytes(4, "big")
    await _send_sound(kafka, topic, "before")
    async with daemon_reading(kafka, folder, topic) as besieged:
        await _counted(besieged, 1)
        before = besieged.resident_bytes
        besieged.rounds.clear()
        began = time.monotonic()
        await produce(kafka.bootstrap_servers, topic, {0: [bytes(batch)] * count})
        await _send_sound(kafka, topic, "after")
        written = count * (len(made.records) if made.count is None else made.count)
        samples = await _counted(besieged, written + 2)
        seconds = time.monotonic() - began
        await rounds(besieged, 3)
        counted = {name: int(total(samples, name)) for name in COUNTERS}
        extra = besieged.peak_bytes - before
        return Read(seconds, besieged.health(), extra, counted, written + 2, besieged.lines)


@asynccontextmanager
async def daemon_reading(kafka: Broker, folder: Path, predictions: str) -> AsyncIterator[Siege]:
    """`streamwatch run` on these predictions, asked for its health."""
    labels = await create_topic(kafka, fresh("labels"))
    log = folder / f"{predictions}.log"
    command = [sys.executable, "-m", "streamwatch", "run"]
    for setting in (
        "http.listen=127.0.0.1:0",
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={predictions}",
        f"topics.labels={labels}",
        f"state.directory={folder / predictions}",
    ):
        command += ["--set", setting]
    with log.open("wb") as out:
        daemon = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
    try:
        url = await _served_at(daemon, log)
        async with around(daemon, url, log) as besieged:
            yield besieged
    finally:
        if daemon.returncode is None:
            daemon.kill()
        await daemon.wait()


async def _served_at(daemon: asyncio.subprocess.Process, log: Path) -> str:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (found := re.search(r"http://[\d.]+:\d+", told(log))):
            assert daemon.returncode is None, told(log)
            await asyncio.sleep(0.05)
    return found[0]


async def _counted(besieged: Siege, records: int) -> Samples:
    """The numbers once so many records are counted, in whatever way."""
    async with asyncio.timeout(DEADLINE_SECONDS), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{besieged.url}/metrics") as answer:
                samples = parsed(await answer.text())
            if sum(total(samples, name) for name in COUNTERS) >= records:
                return samples
            await asyncio.sleep(0.1)


def told(log: Path) -> str:
    return log.read_text()


def total(samples: Samples, name: str) -> float:
    """Over all labels."""
    return sum(number for (found, _), number in samples.items() if found == name)


async def _send_sound(kafka: Broker, topic: str, id_: str) -> None:
    record = {"id": id_, "model": "m", "prediction": "a"}
    await send(kafka.bootstrap_servers, topic, [json.dumps(record).encode()])
