"""State of id buckets beside many predictions that wait: memory, bytes of logs, CPU to build them again.

    python -m tests.bench.buckets_waiting [predictions]

Eight models, four id buckets, one after the other in one process; an engine builds them side by
side, and has to read the bytes first. A log is longest before the delta that begins it anew: its deltas are
then as long as its base.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.records.events import Partition
from streamwatch.edge.keys import bytes_of_keys
from tests.bench.buckets import BATCH, BEGIN_MS, PER_MS, SPEC, records, vocabulary

FOREVER_MS = 10**9
PAGE = resource.getpagesize()


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    batches = -(-wanted // BATCH)
    join = replace(SPEC.join, horizon_ms=FOREVER_MS, early_horizon_ms=FOREVER_MS, max_pending=2 * wanted)
    spec = replace(SPEC, join=join)
    reader, names = ColumnReader(spec, bytes_of_keys), vocabulary()
    buckets = [ColumnIdBucket(number, spec) for number in range(spec.id_buckets)]
    logs: list[list[bytes]] = [[] for _ in buckets]
    fed_seconds, before = 0.0, resident_bytes()
    for batch in range(batches):
        arrivals = records(names, "predictions", batch * BATCH)
        pieces = dict(reader.split(Partition("predictions", 0), arrivals, BEGIN_MS))
        end_ms = BEGIN_MS + (batch + 1) * BATCH // PER_MS - 1
        began = time.process_time()
        for number, bucket in enumerate(buckets):
            logs[number].append(bucket.feed(batch + 1, [pieces[number]], end_ms).delta)
        fed_seconds += time.process_time() - began
    waiting = batches * BATCH
    held = resident_bytes() - before - sum(len(delta) for log in logs for delta in log)
    print(f"{waiting:,} predictions wait in {held / 1e6:.0f} MB, {held / waiting:.0f} bytes each")
    print(f"to take one in: {fed_seconds / waiting * 1e6:.2f} µs of CPU")
    began = time.process_time()
    bases = [bucket.base() for bucket in buckets]
    base_seconds = time.process_time() - began
    for what, several in (("deltas", logs), ("bases", bases)):
        size = sum(len(part) for log in several for part in log)
        seconds = rebuilt(spec, several)
        print(
            f"{what}: {size / 1e6:.0f} MB, {size / waiting:.1f} bytes each; built in {seconds:.2f} s of CPU"
        )
    print(f"writing the bases: {base_seconds:.2f} s of CPU")


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def rebuilt(spec, logs: Sequence[Sequence[bytes]]) -> float:
    """CPU seconds until all buckets are as their logs say."""
    began = time.process_time()
    for number, log in enumerate(logs):
        bucket = ColumnIdBucket(number, spec)
        for delta in log:
            bucket.take_in(delta)
    return time.process_time() - began


if __name__ == "__main__":
    main()
