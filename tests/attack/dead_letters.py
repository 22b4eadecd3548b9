"""Dead letters of every kind of fault to brokers of every kind of refusal: each arrives or is counted, alone.

python -m tests.attack.dead_letters --records 100000
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamwatch.edge.decoders.mapping import REASONS
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.dead_letters import DeadLetterTopic
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import DeadLettersDelayed, DeadLettersDropped, InternalEvent
from tests.edge.sources.kafka.fake_brokers import FakeBrokers, Written

UNREAD = ("record_structure", "record_too_large", "too_many_headers", "header_encoding")
"""Faults that leave neither key nor value."""
FOR_GOOD = (2, 10, 17, 18, 32, 43, 44, 73, 87, -1)
"""Codes by which brokers refuse what is in a batch."""
FOR_NOW = (5, 6, 7, 19, 20, 56)
CONTENTS = (None, b"", b"{", b"\x00\xff" * 30, b"x" * 3_000, b"y" * 600_000)
GIVE_UP_SECONDS = 0.02
MOST_SECONDS = 10.0
"""For one flush of some hundred records on a machine that is busy with other things."""


@dataclass
class Tally:
    """What was tried."""

    records: int = 0
    unchanged: int = 0
    stubs: int = 0
    dropped: int = 0
    reasons: set[str] = field(default_factory=set)
    longest_seconds: float = 0.0
    differences: list[str] = field(default_factory=list)


def record_of(chance: random.Random, offset: int, reason: str) -> KafkaRecord:
    """Make a record with this fault, or with the contents that any record may have."""
    if reason in UNREAD:
        return KafkaRecord("events", chance.randrange(3), offset, 0, fault=reason)
    key, value = chance.choice(CONTENTS[:5]), chance.choices(CONTENTS, (2, 2, 8, 4, 4, 0.1))[0]
    headers = [(chance.choice(("", "trace", "ü")), chance.choice((None, b"", b"t"))) for _ in range(2)]
    return KafkaRecord("events", chance.randrange(3), offset, 0, key, value, headers[: chance.randrange(3)])


@dataclass
class Refusing:
    """One way of refusing: what stands in it decides, so that the same record is always answered alike."""

    for_good: Mapping[int, int]
    """Code by remainder of the offset; a stub is taken where `stubs`."""
    for_now: Mapping[int, int]
    """Code by partition."""
    largest: int
    stubs: bool

    def __call__(self, written: Written) -> int:
        if code := self.for_now.get(written.partition, 0):
            return code
        headers = dict(written.headers)
        if "streamwatch.stub" in headers and self.stubs:
            return 0
        if len(written.value or b"") > self.largest:
            return 10
        return self.for_good.get(written.position[2] % 11, 0)


def refusing(chance: random.Random, partitions: int) -> Refusing:
    """Make one of the ways."""
    bad = chance.sample(range(11), chance.choice((0, 0, 1, 3, 11)))
    gone = [number for number in range(partitions) if chance.random() < 0.15]
    return Refusing(
        {remainder: chance.choice(FOR_GOOD) for remainder in bad},
        {number: chance.choice(FOR_NOW) for number in gone},
        chance.choice((10, 100, 1 << 20)),
        chance.random() < 0.7,
    )


async def attack(records: int, seed: int) -> Tally:
    """Deliver so many; stops at ten differences."""
    chance, tally = random.Random(seed), Tally()
    reasons = list(REASONS)
    while tally.records < records and len(tally.differences) < 10:
        number = chance.choice((1, 2, 30, 400))
        partitions = chance.choice((1, 3))
        refuses = refusing(chance, partitions)
        brokers = FakeBrokers(refuses, dict.fromkeys(range(partitions), 1))
        told: list[InternalEvent] = []
        to = DeadLetterTopic(KafkaSpec(), "dead", told.append, GIVE_UP_SECONDS, brokers)
        put = {
            offset: (record_of(chance, offset, reason), reason)
            for offset, reason in enumerate(chance.choices(reasons, k=number))
        }
        for record, reason in put.values():
            to.put(record, reason)
        began = time.monotonic()
        await to.flush()
        took = time.monotonic() - began
        await to.stop()
        tally.longest_seconds = max(tally.longest_seconds, took)
        if took > MOST_SECONDS:
            tally.differences.append(f"a flush of {number} took {took:.1f} s")
        _compare(put, brokers, refuses, told, tally)
    return tally


def _compare(
    put: Mapping[int, tuple[KafkaRecord, str]],
    brokers: FakeBrokers,
    refuses: Refusing,
    told: list[InternalEvent],
    tally: Tally,
) -> None:
    arrived = {written.position[2]: written for written in brokers.log}
    dropped = sum(event.dead_letters for event in told if isinstance(event, DeadLettersDropped))
    delayed = any(isinstance(event, DeadLettersDelayed) for event in told)
    for offset, (record, reason) in put.items():
        tally.records += 1
        tally.reasons.add(reason)
        written = arrived.get(offset)
        headers = [("streamwatch.topic", b"events"), ("streamwatch.partition", b"0")]
        headers.append(("streamwatch.offset", b"%d" % offset))
        taken_by_all = all(
            not refuses(Written(number, record.key, record.value, headers)) for number in brokers.partitions
        )
        empty = record.key is None and record.value is None
        if written is None:
            if taken_by_all and not empty:
                tally.differences.append(f"{record.offset} ({reason}) was lost, though brokers take it")
            continue
        headers = dict(written.headers)
        if headers["streamwatch.reason"] != reason.encode():
            tally.differences.append(f"{record.offset} arrived with another reason")
        if "streamwatch.stub" in headers:
            tally.stubs += 1
            if (written.key, written.value) != (None, b"") or (taken_by_all and not empty):
                tally.differences.append(
                    f"{record.offset} ({reason}) is a stub without need, or has contents"
                )
        else:
            tally.unchanged += 1
            own = list(written.headers)[: len(record.headers)]
            if (written.key, written.value, own) != (record.key, record.value, list(record.headers)):
                tally.differences.append(f"{record.offset} ({reason}) arrived otherwise than it was")
    tally.dropped += dropped
    if len(arrived) != len(brokers.log) or len(arrived) + dropped != len(put):
        tally.differences.append(
            f"{len(put)} put, {len(brokers.log)} written, {dropped} counted as dropped; delayed: {delayed}"
        )


def told(tally: Tally) -> str:
    """Say what was tried, in a line."""
    return (
        f"dead letters: {tally.records} of {len(tally.reasons)} faults: {tally.unchanged} unchanged,"
        f" {tally.stubs} stubs, {tally.dropped} dropped and counted, longest flush"
        f" {tally.longest_seconds:.2f} s; differences: {tally.differences or 'none'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    tally = asyncio.run(attack(asked.records, asked.seed))
    print(told(tally))  # noqa: T201
    sys.exit(len(tally.differences) > 0)


if __name__ == "__main__":
    main()
