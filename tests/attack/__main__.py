"""`make attack`: attacks on the HTTP server, by records, schemas and envelopes, and what they did."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.attack import dead_letters, envelopes, schemas
from tests.attack.batches import fuzz, told
from tests.attack.http import ATTACKS
from tests.attack.reading import BATCHES, read_hostile
from tests.attack.siege import Health, rounds, siege
from tests.integration.kafka_broker import KafkaBroker, unavailable_jars

HEADER = (
    "attack       size  asked   health beyond control: median, p99, max ms  unanswered  peak MB  log lines"
)
MUTATED_RECORDS = 1_000_000
DEAD_LETTERS = 100_000
HOSTILE_SCHEMAS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0, help="how much of each attack's usual size")
    parser.add_argument("--models", type=int, default=2_000)
    kinds = ("http", "batches", "records", "dead-letters", "schemas", "envelopes")
    parser.add_argument("--only", choices=kinds, help="one kind")
    asked = parser.parse_args()
    failed = 0
    if asked.only in (None, "http", "batches"):
        print(HEADER)  # noqa: T201
    if asked.only in (None, "http"):
        failed += asyncio.run(_over_http(asked.factor, asked.models))
    if asked.only in (None, "batches"):
        failed += asyncio.run(_over_kafka(asked.factor))
    if asked.only in (None, "records"):
        tally = fuzz(round(MUTATED_RECORDS * asked.factor), seed=1)
        print(told(tally))  # noqa: T201
        failed += len(tally.differences)
    if asked.only in (None, "dead-letters"):
        written = asyncio.run(dead_letters.attack(round(DEAD_LETTERS * asked.factor), seed=1))
        print(dead_letters.told(written))  # noqa: T201
        failed += len(written.differences)
    if asked.only in (None, "schemas"):
        hostile = asyncio.run(schemas.attack(round(HOSTILE_SCHEMAS * asked.factor), seed=1))
        print(schemas.told(hostile))  # noqa: T201
        failed += len(hostile.faults)
    if asked.only in (None, "envelopes"):
        enveloped = envelopes.attack(round(MUTATED_RECORDS * asked.factor), seed=1)
        print(envelopes.told(enveloped))  # noqa: T201
        failed += len(enveloped.faults)
    sys.exit(failed > 0)


async def _over_http(factor: float, models: int) -> int:
    failed = 0
    for name, (attack, usual) in ATTACKS.items():
        size = max(1, round(usual * factor))
        async with siege("--models", str(models)) as besieged:
            before = besieged.resident_bytes
            await attack(besieged, size)
            await rounds(besieged, 3)
            peak = besieged.peak_bytes - before
            failed += _tell(name, size, besieged.health(), peak, besieged.lines)
    return failed


async def _over_kafka(factor: float) -> int:
    """Batches that a daemon reads from Apache Kafka; left out by name where that cannot be had."""
    if reason := unavailable_jars():
        print(f"batches: left out, needs a Kafka of its own: {reason}")  # noqa: T201
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder) / "kafka")
        try:
            broker.start()
            for name, hostile in BATCHES.items():
                read = await read_hostile(broker, Path(folder), hostile, factor)
                failed += _tell(name, read.written - 2, read.health, read.extra_bytes, read.lines)
        finally:
            broker.kill()
    return failed


def _tell(name: str, size: int, health: Health, peak_bytes: int, lines: list[str]) -> int:
    print(  # noqa: T201
        f"{name:12} {size:5}  {health.asked:5}  {1_000 * health.median:29.1f}, {1_000 * health.p99:6.1f},"
        f" {1_000 * health.largest:6.1f}  {health.unanswered:10}  {peak_bytes / 1e6:7.1f}  {len(lines):9}",
        flush=True,
    )
    return health.unanswered + sum("Traceback" in line for line in lines)


if __name__ == "__main__":
    main()
