"""Mutated records in raw batches: reader and decoder beside slow ones, record by record.

python -m tests.attack.batches --records 10000000
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, field
from itertools import starmap

from aiokafka.record.util import calc_crc32c

from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.sources.kafka.batches.opened import Scanner
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from tests.attack.slow_batch import SlowBatch, SlowRecord, slow_batch
from tests.edge.decoders.test_fuzz_long import mutated as mutated_json
from tests.edge.sources.kafka.batches.raw_batches import APPEND_TIME, RawBatch, compressed, sized, varint

HERE = Partition("events", 3)
RECORDS = 40
MOST = 1 << 20
EXTREMES = (0, 1, -1, 63, 64, 1_001, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
NOISE = (b"\xff" * 11, b"\x80", b"\x00", b"\xff", b"\xc3\x28", varint(1_001), varint(-1), varint(2**40))
NAMES = (b"model", b"", b"\xc3\xa9", b"\xc3\x28", b"\xff")
CODECS = (0,) * 16 + (1, 2, 3, 4)


@dataclass
class Tally:
    """What was tried."""

    batches: int = 0
    mutated: int = 0
    """Mutated records that were read, or at which reading a batch ended."""
    faulty: int = 0
    """Records passed over for a fault of their own."""
    broken: int = 0
    """Batches whose rest could not be read."""
    differences: list[str] = field(default_factory=list)


def fuzz(records: int, seed: int) -> Tally:
    """Read batches until so many mutated records were read; stops at ten differences."""
    chance, tally = random.Random(seed), Tally()
    scanner = Scanner(compiled_scan(), 16)
    fast, slow = (JsonDecoder(DecoderSpec(HERE.topic, "prediction", TopicMapping())) for _ in range(2))
    while tally.mutated < records and len(tally.differences) < 10:
        batch, body, touched = mutated_batch(chance)
        expected = slow_batch(
            body,
            batch.base,
            batch.last_delta or 0,
            batch.count or 0,
            batch.first_ms,
            batch.max_ms,
            batch.flags,
        )
        data = bytearray(batch.bytes())
        data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
        asked = batch.base + chance.randrange(3)
        reader = PartitionReader(HERE, bytes(data), asked, -1, (), scanner, MOST)
        found: list[KafkaRecord] = []
        while taken := reader.take(chance.randrange(1, 30)):
            found += taken
        tally.batches += 1
        tally.mutated += sum(touched[: expected.frames])
        tally.broken += expected.broken
        said = difference(expected, found, reader, asked, batch)
        if not said:
            wanted = [record for record in expected.records if record.offset >= asked]
            tally.faulty += sum(record.fault is not None for record in wanted)
            stamps = [record.timestamp for record in wanted]
            said = decoded_differently(list(fast.decode_all(found, stamps)), wanted, stamps, slow)
        if said:
            tally.differences.append(f"{said}: {bytes(data).hex()}")
    return tally


def difference(
    expected: SlowBatch, found: list[KafkaRecord], reader: PartitionReader, asked: int, batch: RawBatch
) -> str:
    """What differs between the two readings; empty if nothing does."""
    after = batch.base + (batch.last_delta or 0) + 1
    ours = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers), r.fault) for r in found]
    theirs = [
        (r.offset, r.timestamp, r.key, r.value, r.headers, r.fault)
        for r in expected.records
        if r.offset >= asked
    ]
    if ours != theirs:
        return "records"
    damage = reader.damage
    if expected.broken:
        last = theirs[-1][0] + 1 if theirs else asked
        if damage is None or damage[:3] != ("corrupt_batch", max(last, batch.base), after):
            return f"damage {damage}"
    elif damage is not None or not reader.done or reader.position != max(after, asked):
        return f"damage {damage} at {reader.position}"
    return ""


def decoded_differently(
    together: list[object], records: list[SlowRecord], stamps: list[int], slow: JsonDecoder
) -> str:
    """Whether any record means something else when it is decoded alone."""
    alone = list(starmap(slow.decode, zip(records, stamps, strict=True)))
    return "" if together == alone else "events"


def mutated_batch(chance: random.Random) -> tuple[RawBatch, bytes, list[bool]]:
    """A batch, its records decompressed, and which of them are mutated; one in twenty is compressed."""
    delta, pieces, touched = -1, [], []
    for _ in range(RECORDS):
        delta += 1 if chance.random() < 0.9 else chance.randrange(1, 5)
        piece, is_mutated = mutated_record(chance, delta)
        pieces.append(piece)
        touched.append(is_mutated)
    body = b"".join(pieces)
    codec = chance.choice(CODECS)
    lost = chance.choice((0, 0, 0, 0, 0, 0, 0, 1))
    batch = RawBatch(
        [],
        base=chance.choice((0, 7, 10**12, 2**62)),
        codec=codec,
        flags=APPEND_TIME if chance.random() < 0.1 else 0,
        first_ms=chance.choice((0, 1_700_000_000_000, 2**63 - 1, -(2**63) + 1, -5)),
        max_ms=chance.choice((-1, 1_700_000_000_000, 2**63 - 1)),
        last_delta=delta if chance.random() < 0.95 else chance.choice((delta // 2, 2**31 - 1)),
        count=RECORDS + lost,
        body=compressed(codec, body),
        crc=0,  # the fuzz puts the right one in: an exact but slow table would take most of the time
    )
    return batch, body, touched


def mutated_record(chance: random.Random, delta: int) -> tuple[bytes, bool]:
    """A framed record, and whether anything of it was changed."""
    kind = chance.random()
    stamp = chance.choice(EXTREMES) if kind < 0.05 else chance.randrange(1_000)
    key = None if kind < 0.5 else b"k%d" % delta
    value = None if chance.random() < 0.05 else mutated_json(chance)
    names = [
        chance.choice((b"model", b"", b"\xc3\xa9", b"\xc3\x28", b"\xff")) for _ in range(chance.randrange(3))
    ]
    if chance.random() < 0.0003:
        names = [b""] * chance.choice((1_000, 1_001))
    headers = b"".join(sized(name) + sized(chance.choice((None, b"", b"x"))) for name in names)
    fields = [varint(stamp), varint(delta), sized(key), sized(value), varint(len(names)), headers]
    if kind < 0.3:
        at = chance.choice((0, 2, 3, 3, 4, 4, 4, 5) if kind < 0.297 else (1,))
        number = varint(chance.choice(EXTREMES))
        fields[at] = chance.choice((number, chance.choice(NOISE), fields[at][:-1])) if at else number
    body = bytearray(b"\x00" + b"".join(fields))
    if kind > 0.7:
        placed = 1 + len(fields[0]) + len(fields[1])
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(placed, len(body))  # before that, a change costs all that follows
            match chance.randrange(3):
                case 0:
                    body[at] = chance.randrange(256)
                case 1:
                    body[at:at] = chance.choice(NOISE)
                case _:
                    del body[at : at + chance.randrange(1, 9)]
                    body += b"" if len(body) > placed else b"\x00" * 5
    framed = sized(bytes(body))
    if kind > 0.998:
        framed = chance.choice((framed[1:], varint(chance.choice(EXTREMES)) + body, chance.choice(NOISE)))
    return framed, kind < 0.3 or kind > 0.7 or value is not None


def told(tally: Tally) -> str:
    """What was tried, in a line."""
    return (
        f"{tally.mutated:,} mutated records in {tally.batches:,} batches: {tally.faulty:,} passed over for"
        f" a fault of their own, {tally.broken:,} batches broken, {len(tally.differences)} differences"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began, cpu = time.monotonic(), time.process_time()
    tally = fuzz(asked.records, asked.seed)
    print(  # noqa: T201
        told(tally), f"({time.monotonic() - began:.0f} s, {time.process_time() - cpu:.0f} s of a processor)"
    )
    for said in tally.differences:
        print(said)  # noqa: T201
    sys.exit(bool(tally.differences))


if __name__ == "__main__":
    main()
