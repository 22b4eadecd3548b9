"""What a record costs from a broker's answer to a record object: the client library's parser, and this one.

    python -m tests.bench.parse

Both read the same batches in turn, checksum included; the median of the rounds is shown.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.opened import Scanner, compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from tests.edge.sources.kafka.batches.raw_batches import ZSTD, RawBatch, record

RECORDS, PER_BATCH, ROUNDS = 20_000, 500, 15
HERE = Partition("predictions", 0)
SCANNER = Scanner(compiled_scan(), 2_048, compiled_plain_batches())


def answer(value_bytes: int, codec: int, *, headers: bool) -> bytes:
    """What a broker answers: batches of predictions as JSON."""
    data = b""
    for base in range(0, RECORDS, PER_BATCH):
        written = []
        for i in range(PER_BATCH):
            fields = {"id": f"id-{base + i:08}", "model": "fraud-v3", "prediction": "legit", "p": ""}
            fields["p"] = "x" * (value_bytes - len(json.dumps(fields)))
            sent = [(b"trace", b"0123456789abcdef")] if headers else []
            written.append(record(i, json.dumps(fields).encode(), b"key-%d" % i, sent, i))
        data += RawBatch(written, base, codec, first_ms=1_700_000_000_000).bytes()
    return data


def the_clients(data: bytes) -> int:
    """Records by the client library."""
    tp = TopicPartition(*HERE)
    return len(list(PartitionRecords(tp, MemoryRecords(data), [], 0, None, None, True, READ_COMMITTED)))


def ours(data: bytes) -> int:
    """Records by the source."""
    reader = PartitionReader(HERE, data, 0, -1, (), SCANNER, 1 << 26)
    count = 0
    while not reader.done:
        count += len(reader.take(2_000))
    return count


def seconds(parse: Callable[[bytes], int], data: bytes) -> float:
    """CPU seconds of one round."""
    began = time.process_time()
    assert parse(data) == RECORDS
    return time.process_time() - began


def main() -> None:
    """Show the cost per record of both."""
    print(f"{'records':<34}{'client':>10}{'ours':>10}{'ratio':>8}")
    for name, size, codec, headers in (
        ("80 bytes", 80, 0, False),
        ("80 bytes, a header each", 80, 0, True),
        ("1,000 bytes", 1_000, 0, False),
        ("80 bytes, zstd", 80, ZSTD, False),
    ):
        data = answer(size, codec, headers=headers)
        rounds = [(seconds(the_clients, data), seconds(ours, data)) for _ in range(ROUNDS)]
        theirs, mine = (statistics.median(column) / RECORDS * 1e6 for column in zip(*rounds, strict=True))
        print(f"{name:<34}{theirs:>7.2f} µs{mine:>7.2f} µs{mine / theirs:>8.2f}")


if __name__ == "__main__":
    main()
