"""Reads a topic to its end in a process of its own, and says what that took: nobody else's memory counts.

    python -m tests.integration.reading_process SERVERS TOPIC MAX_BATCH_BYTES

Writes a line of JSON: what was read and lost, bytes of memory at most beyond those before the first record,
how often the event loop turned meanwhile, and the longest it stood still.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from streamwatch.edge.sources.kafka import KafkaSpec
from streamwatch.telemetry import BatchSkipped, InternalEvent
from tests.integration.polling import Reader
from tests.integration.topics import reading

TURN_SECONDS = 0.005


def most_resident_bytes() -> int:
    """Since `forget_the_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1_024
    raise AssertionError("no VmHWM")


def forget_the_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def read_to_the_end(servers: str, topic: str, max_batch_bytes: int) -> dict[str, Any]:
    spec = KafkaSpec(bootstrap_servers=servers, poll_timeout_ms=50, max_batch_bytes=max_batch_bytes)
    heard: list[InternalEvent] = []
    pauses: list[float] = []

    async def turn() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(TURN_SECONDS)
            pauses.append(time.monotonic() - began - TURN_SECONDS)

    async with reading(spec, topic, emit=heard.append) as source:
        forget_the_peak()
        before = most_resident_bytes()
        turning = asyncio.create_task(turn())
        reader = Reader(source)
        began = time.monotonic()
        await reader.until_caught_up()
        seconds = time.monotonic() - began
        turning.cancel()
        return {
            "values": [None if value is None else value.decode() for value in reader.values],
            "losses": dict(source.losses),
            "records_lost": dict(source.records_lost),
            "skipped": [
                (event.topic, event.partition, event.offset, event.records)
                for event in heard
                if isinstance(event, BatchSkipped)
            ],
            "bytes": most_resident_bytes() - before,
            "seconds": seconds,
            "turns": len(pauses),
            "longest_pause": max(pauses, default=0.0),
        }


def main() -> None:
    servers, topic, max_batch_bytes = sys.argv[1:]
    print(json.dumps(asyncio.run(read_to_the_end(servers, topic, int(max_batch_bytes)))))  # noqa: T201


if __name__ == "__main__":
    main()
