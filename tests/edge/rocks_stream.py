"""A pipeline over a durable store, with ids as the decoder hands them on, beside one over a memory store."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from streamwatch.core.known import RESOLVED
from streamwatch.core.saving import Changes
from streamwatch.edge.keys import digest_id
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.core.join_stream import SIDES, Stream


def digested(events):
    """The same events with digests for ids."""
    return [
        msgspec.structs.replace(event, id=digest_id(event.id)) if getattr(event, "id", None) else event
        for event in events
    ]


def rocks_spec(directory, join, hot_records=300_000, due_records=5_000):
    return RocksSpec(
        directory, join.horizon_ms, join.early_horizon_ms, hot_records, 2**20, 2**22, due_records
    )


class DurableStream(Stream):
    """Feeds a durable store; commits and reopens when told."""

    def __init__(self, directory, spec, sides=SIDES, hot_records=300_000, due_records=5_000):
        self.sides = sides
        self.rocks = rocks_spec(directory, spec, hot_records, due_records)
        self.parts = 0
        super().__init__(spec, sides, store=RocksStore.open(self.rocks))

    def feed(self, *events):
        """What falls due in parts does so to the end."""
        outcomes = super().feed(*events)
        while self.pipeline.owes_time:
            outcomes += self.pass_time()
        return outcomes

    def pass_time(self):
        self.parts += 1
        return super().feed()

    def commit(self, **changes):
        sections = {"pipeline": self.pipeline.snapshot()}
        self.store.commit(replace(Changes(**changes), sections=sections))
        self.store.flush()

    def reopen(self):
        """As after a crash: what was not committed is gone."""
        self.store.close()
        super().__init__(self.spec, self.sides, store=RocksStore.open(self.rocks), monitors=self.monitors)
        saved = self.store.load()
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"])
        return saved


def alive_now(stream):
    """Everything that still counts of every record, in chain order by id."""
    floor = stream.pipeline._join.predictions.graveyard.floor
    rows = {}
    for key, first in stream.store.records().items():
        record = first
        while record is not None:
            if record.state >= RESOLVED:
                if record.generation >= floor:
                    row = (record.model, record.state, record.predicted, record.truth, record.generation)
                    rows.setdefault(key, []).append(row)
            else:
                row = (record.model, record.state, record.predicted, record.truth, record.at_ms)
                row += (record.timestamp_ms, record.scores, record.known)
                rows.setdefault(key, []).append(row)
            record = record.next
    return rows
