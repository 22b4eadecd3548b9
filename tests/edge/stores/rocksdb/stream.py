"""A pipeline over a durable store, with ids as the decoder hands them on."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch
from streamwatch.edge.keys import bytes_of_keys, digest_ids
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.core.join.join_stream import Stream


def digested(events):
    """The same events with digests for ids."""
    return [
        msgspec.structs.replace(event, id=digest_ids([event.id])[0]) if getattr(event, "id", None) else event
        for event in events
    ]


def rocks_spec(directory):
    """A directory with small buffers, so that files are written, too."""
    return RocksSpec(directory, 2**20, 2**22)


class DurableStream(Stream):
    """Feeds a durable store; commits and reopens on command."""

    def __init__(self, directory, spec=None):
        self.rocks = rocks_spec(directory)
        super().__init__(spec)
        self._open()

    def _open(self):
        self.store = RocksStore.open(self.rocks)
        self.pipeline = Pipeline(self.spec, self.monitors, bytes_of_keys)
        saved = self.store.load()
        self.commits = saved.commits
        if saved.commits:
            self.pipeline.restore(saved.sections["pipeline"], saved.columns)
        return saved

    def commit(self, **changes):
        self.commits += 1
        sections = {"pipeline": self.pipeline.snapshot()}
        columns = self.pipeline.join.changes(self.commits)
        self.store.commit(replace(CommitBatch(**changes), sections=sections, columns=columns))
        self.store.flush()

    def reopen(self):
        """As after a crash: what was not committed is gone."""
        self.store.close()
        return self._open()
