"""Topics of results in memory, which fail where a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from streamwatch.core.publishing.kept import KeptOutcomes, Keys
from streamwatch.core.publishing.publications import Event, Ledger, Publication
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.edge.sources.kafka.transactions import ProducerWasFenced, PublishingFailed


@dataclass
class Broker:
    """What is committed, and who may write."""

    outcomes: list[tuple[str, bytes]] = field(default_factory=list)
    events: list[bytes] = field(default_factory=list)
    ledger: Ledger | None = None
    epoch: int = 0
    reachable: bool = True
    fails: list[str] = field(default_factory=list)
    """Where the next transactions fail: `begin`, `send`, `commit` (nothing is there) or `answer` (all is)."""
    transactions: int = 0
    most_outcomes: int | None = None
    """Outcomes that a transaction may have before its deadline is over; None: any number."""


class FakeTransactions:
    """Implements `Transactions`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._epoch = 0
        self.opened = 0

    async def open(self) -> Ledger | None:
        await asyncio.sleep(0)
        self._require_reachable()
        self._broker.epoch += 1
        self._epoch = self._broker.epoch
        self.opened += 1
        return self._broker.ledger

    async def read(self) -> Ledger | None:
        await asyncio.sleep(0)
        self._require_reachable()
        return self._broker.ledger

    async def write(self, publications: Sequence[Publication], ledger: Ledger) -> None:
        await asyncio.sleep(0)
        broker = self._broker
        self._require_reachable()
        if self._epoch != broker.epoch:
            raise ProducerWasFenced("fenced")
        fault = broker.fails.pop(0) if broker.fails else ""
        if fault in ("begin", "send", "commit"):
            raise PublishingFailed(f"at {fault}")
        if (
            broker.most_outcomes is not None
            and sum(each.count for each in publications) > broker.most_outcomes
        ):
            raise PublishingFailed("TimeoutError")
        for publication in publications:
            broker.outcomes += records_of(publication)
            broker.events += [event.value for event in publication.events]
        broker.ledger = ledger
        broker.transactions += 1
        if fault == "answer":
            raise PublishingFailed("no answer")

    async def close(self) -> None:
        self._epoch = -1

    def _require_reachable(self) -> None:
        if not self._broker.reachable:
            raise PublishingFailed("nobody answers")


def publication(
    commit: int,
    first: int,
    count: int,
    events: Sequence[Event] = (),
    events_before: int = 0,
    models: Sequence[str] = ("m",),
) -> Publication:
    """Outcomes numbered from `first` on, of a commit; the ids are their numbers."""
    records, ids = np.zeros(count, OUTCOME), [str(number) for number in range(first, first + count)]
    records["model"] = np.arange(first, first + count) % len(models)
    texts = "".join(f"{each}\n" for each in ids).encode()
    sizes = np.array([len(each) for each in ids], np.int64)
    keys = Keys(np.frombuffer(bytearray(texts), np.uint8), np.cumsum(sizes + 1) - sizes - 1, sizes)
    kept = [KeptOutcomes.of(OutcomeBatch(records, models, ["a"]), keys)] if count else []
    return Publication(commit, first - 1, events_before, kept, list(events), "state.0")


def records_of(publication: Publication) -> list[tuple[str, bytes]]:
    """Key and value of each outcome."""
    found: list[tuple[str, bytes]] = []
    for part in publication.lines():
        lines = part.written.text.tobytes().splitlines()
        keys = [part.keys[number] for number in part.key_numbers.tolist()]
        found += zip(keys, lines, strict=True)
    return found
