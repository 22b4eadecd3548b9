"""A pipeline over a durable store, with ids as the decoder hands them on, beside one over a memory store."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.join.entry import RESOLVED
from streamwatch.edge.keys import digest_id
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.core.join.join_stream import Stream, clocked


def digested(events):
    """The same events with digests for ids."""
    return [
        msgspec.structs.replace(event, id=digest_id(event.id)) if getattr(event, "id", None) else event
        for event in events
    ]


def rocks_spec(directory, join, cache_entries=300_000, due_records=5_000):
    return RocksSpec(
        directory, join.horizon_ms, join.early_horizon_ms, cache_entries, 2**20, 2**22, due_records
    )


class DurableStream(Stream):
    """Feeds a durable store; commits and reopens when told."""

    def __init__(self, directory, spec, cache_entries=300_000, due_records=5_000):
        self.rocks = rocks_spec(directory, spec, cache_entries, due_records)
        self.parts = 0
        super().__init__(spec, store=RocksStore.open(self.rocks))

    def feed(self, *events):
        """Where more falls due at once than is lent, part by part to the end."""
        left, outcomes = clocked(events, self.pipeline.clock_ms), []
        while True:
            step = self.take(left)
            outcomes += step.outcomes
            left = left[len(step.events) :]
            if not left:
                return outcomes

    def take(self, events):
        """As many as what is lent allows, perhaps none."""
        self.parts += 1
        step = self.pipeline.advance(events, self.store.fetch(self.pipeline.read_set(events)))
        self.store.apply(step)
        assert self.pipeline.identities() == []
        return step

    def commit(self, **changes):
        sections = {"pipeline": self.pipeline.snapshot()}
        self.store.commit(replace(CommitBatch(**changes), sections=sections))
        self.store.flush()

    def reopen(self):
        """As after a crash: what was not committed is gone."""
        self.store.close()
        super().__init__(self.spec, store=RocksStore.open(self.rocks), monitors=self.monitors)
        saved = self.store.load()
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"])
        return saved


def alive_now(stream):
    """Everything that still counts of every record, in chain order by id."""
    floor = stream.pipeline._join.predictions.dedup.floor
    rows = {}
    for key, first in stream.store.records().items():
        record = first
        while record is not None:
            if record.state >= RESOLVED:
                if record.generation >= floor:
                    row = (
                        record.model,
                        record.state,
                        record.predicted_class,
                        record.true_class,
                        record.generation,
                    )
                    rows.setdefault(key, []).append(row)
            else:
                row = (
                    record.model,
                    record.state,
                    record.predicted_class,
                    record.true_class,
                    record.record_ms,
                )
                row += (record.timestamp_ms, record.scores, record.label_at_prediction)
                rows.setdefault(key, []).append(row)
            record = record.next
    return rows
