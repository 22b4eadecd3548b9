"""Contents that every commit writes beside the join entries, and what a start gets back of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from rocksdict import WriteBatch

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.join.compiled.cold.store import RunStore
from streamwatch.edge.stores.rocksdb.directory.database import Database
from streamwatch.edge.stores.rocksdb.directory.meta import StoreManifest, encoded, sections_of
from streamwatch.edge.stores.rocksdb.keys import SECTION_PREFIX, STATE_KEY, key_number, number_key

_PARTS: Final = ("models", "held", "outbox")


class CommitParts:
    """Journal, models, held outcomes, outbox, sections and manifest of a state.

    Parameters
    ----------
    database
        An open one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._journal = deque(key_number(key) for key, _ in database.items("journal"))

    def write(self, batch: WriteBatch, changes: CommitBatch, manifest: StoreManifest) -> None:
        """Add to the batch; `manifest` is that of the commit."""
        into = self._database.into
        into("journal", batch)
        if changes.journal:
            batch[number_key(manifest.commits)] = changes.journal
            self._journal.append(manifest.commits)
        while self._journal and self._journal[0] < changes.journal_floor:
            del batch[number_key(self._journal.popleft())]
        models = {name.encode(): value for name, value in changes.models.items()}
        outbox = {notification.encode(): value for notification, value in changes.outbox.items()}
        for part, values in zip(_PARTS, (models, changes.held, outbox), strict=True):
            into(part, batch)
            for key, value in values.items():
                if value is None:
                    del batch[key]
                else:
                    batch[key] = value
        into("meta", batch)
        batch[STATE_KEY] = encoded(manifest)
        for name, section in changes.sections.items():
            batch[SECTION_PREFIX + name.encode()] = section

    def load(
        self,
        commits: int,
        columns: Iterable[tuple[bytes, bytes]] = (),
        runs: RunStore | None = None,
    ) -> RecoveredState:
        """Contents of the last commit."""
        items = self._database.items
        return RecoveredState(
            commits,
            sections_of(self._database),
            {key.decode(): value for key, value in items("models")},
            [(key_number(key), value) for key, value in items("journal")],
            dict(items("held")),
            {key.decode(): value for key, value in items("outbox")},
            columns,
            runs,
        )
