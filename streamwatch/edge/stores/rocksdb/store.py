"""State on local disk: survives the process and the machine, whatever is pending.

One value per id holds all that is known of it (`packing`), so one look-up finds every model's prediction, a
label that waits, and the tombstones of what is settled. What resolves between two commits reaches the disk
only as a tombstone. In memory are the ids touched last and what falls due next (`records`, `front`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from rocksdict import WriteBatch

from streamwatch.core.events import Label, NullRecord, Prediction
from streamwatch.core.known import Known
from streamwatch.core.saving import Changes, Saved
from streamwatch.core.series import Family
from streamwatch.core.step import Found, Needs, Step
from streamwatch.edge.stores.rocksdb.database import FAMILIES, Database
from streamwatch.edge.stores.rocksdb.front import STATES, Front
from streamwatch.edge.stores.rocksdb.graves import Graves
from streamwatch.edge.stores.rocksdb.keys import (
    SECTION_PREFIX,
    STATE_KEY,
    key_number,
    name_key,
    number_key,
)
from streamwatch.edge.stores.rocksdb.meta import (
    Standing,
    encoded,
    identity_of,
    names_of,
    sections_of,
    standing_of,
)
from streamwatch.edge.stores.rocksdb.names import Names
from streamwatch.edge.stores.rocksdb.opening import closed_on_failure, open_database
from streamwatch.edge.stores.rocksdb.packing import Packing
from streamwatch.edge.stores.rocksdb.records import Records
from streamwatch.edge.stores.rocksdb.spec import RocksSpec

_WITH_ID: Final = frozenset((Prediction, Label, NullRecord))
_CLEARING: Final = 4
"""Dead tombstones cleared per event, at most: more than any stream makes."""


class RocksStore:
    """A `Store` over RocksDB; `open` it in a thread, it may take seconds."""

    def __init__(self, database: Database, spec: RocksSpec) -> None:
        self._database = database
        standing = standing_of(database) or Standing()
        self._standing = standing
        self._identity = identity_of(database) or ""
        self._names = Names(names_of(database))
        self._packing = Packing(self._names, standing.horizon_ms, standing.early_horizon_ms, standing.floor)
        empty = standing.commits == 0
        self._records = Records(database, self._packing, spec.hot_records, empty=empty)
        self._fronts = [
            Front(kind, spec.front_records, None if empty else standing.since_s[kind], spec.due_records)
            for kind in range(len(STATES))
        ]
        self._graves = Graves(database, standing.floor)
        self._journal = deque(key_number(key) for key, _ in database.items("journal"))
        self._events = 0
        self._ids: list[str | None] = []

    @classmethod
    def open(cls, spec: RocksSpec) -> RocksStore:
        """Open the directory, or begin a state in it.

        Raises
        ------
        StateRefused
            If it cannot be used as it is.
        StateFailed
            If the disk fails.
        """
        database = open_database(spec)
        with closed_on_failure(database):
            return cls(database, spec)

    @property
    def durable(self) -> bool:
        """State survives."""
        return True

    @property
    def identity(self) -> str:
        """Given when the directory was made."""
        return self._identity

    def load(self) -> Saved:
        """What the last commit left, beside the records of ids."""
        items = self._database.items
        return Saved(
            self._standing.commits,
            sections_of(self._database),
            {key.decode(): value for key, value in items("models")},
            [(key_number(key), value) for key, value in items("journal")],
            dict(items("held")),
            {key.decode(): value for key, value in items("outbox")},
        )

    def fetch(self, needs: Needs) -> Found:
        """Read what is not in memory."""
        with_id = _WITH_ID
        ids: list[str | None] = [
            event.id  # pyright: ignore[reportAttributeAccessIssue] - those in the set have one
            for event in needs.events
            if type(event) in with_id
        ]
        self._ids = ids
        records = self._records
        records.find(ids)
        pending, early, retained = self._fronts
        spoken = set(ids)
        label_s, prediction_s, in_parts = needs.label_deadline_s, needs.prediction_deadline_s, needs.time_last
        pending.cover(prediction_s, needs.oldest_predictions, spoken, records, in_parts=in_parts)
        early.cover(label_s, needs.oldest_labels, spoken, records, in_parts=in_parts)
        retained.cover(label_s, needs.oldest_labels, spoken, records, in_parts=in_parts)
        reached_s = (pending.until_s, early.until_s, retained.until_s)
        return Found(records.known, pending.index, early.index, retained.index, reached_s)

    def keep(self, step: Step) -> None:
        """Note what changed."""
        changed = self._records.changed
        changed.update(dict.fromkeys(self._ids))
        changed.update(dict.fromkeys(step.changed))
        self._events += len(step.events)
        self._graves.bury(step.buried)
        if step.dropped:
            self._graves.drop(step.dropped)
            self._packing.floor = self._graves.floor

    def commit(self, changes: Changes) -> None:
        """One batch over all families."""
        with self._database.batch() as batch:
            self._write(batch, changes)
        self._events = 0
        self._records.let_go(self._fronts)

    def _write(self, batch: WriteBatch, changes: Changes) -> None:
        into, standing = self._database.into, self._standing
        commit, number = standing.commits + 1, standing.entries
        into("expiry", batch)
        for front in self._fronts:
            number = front.write(batch, number)
        into("graves", batch)
        self._graves.write(batch, commit)
        into("known", batch)
        self._graves.clear(self._records, batch, _CLEARING * self._events + 64)
        self._records.write(batch)
        into("journal", batch)
        if changes.journal:
            batch[number_key(commit)] = changes.journal
            self._journal.append(commit)
        while self._journal and self._journal[0] < changes.journal_floor:
            del batch[number_key(self._journal.popleft())]
        models = {name.encode(): value for name, value in changes.models.items()}
        outbox = {notice.encode(): value for notice, value in changes.outbox.items()}
        for family, values in (("models", models), ("held", changes.held), ("outbox", outbox)):
            into(family, batch)
            for key, value in values.items():
                if value is None:
                    del batch[key]
                else:
                    batch[key] = value
        pending, early, retained = (front.since_s() for front in self._fronts)
        self._standing = Standing(
            commit,
            number,
            self._graves.floor,
            (pending, early, retained),
            standing.horizon_ms,
            standing.early_horizon_ms,
        )
        into("meta", batch)
        batch[STATE_KEY] = encoded(self._standing)
        for name, section in changes.sections.items():
            batch[SECTION_PREFIX + name.encode()] = section
        names = self._names
        for place, name in enumerate(names.fresh, len(names.names) - len(names.fresh)):
            batch[name_key(place)] = name.encode()
        names.fresh.clear()

    def flush(self) -> None:
        """Flush the write-ahead log."""
        self._database.flush()

    def records(self) -> Mapping[str, Known]:
        """Everything, read from disk: for inspection and tests."""
        known, changed = self._records.known, self._records.changed
        found = dict(known)
        for key, value in self._database.items("known"):
            id = key.decode("latin-1")  # noqa: A001 - the events' own word
            if id not in found and id not in changed:
                first = self._packing.unpack(id, value)
                if first is not None:
                    found[id] = first
        return found

    def families(self) -> Sequence[Family]:
        """What it holds and how much room that takes."""
        figure = self._database.figure
        sizes = [((name,), float(figure(name, "live-sst-files-size"))) for name in FAMILIES]
        buffered = figure("known", "cur-size-all-mem-tables")
        return [
            Family(
                "state_bytes",
                "gauge",
                "Bytes of state on disk by column family, without the write-ahead log.",
                ("part",),
                sizes,
            ),
            _gauge("state_buffered_bytes", "Bytes written and not yet sorted into files.", buffered),
            _gauge(
                "state_records",
                "Ids known on disk, as RocksDB estimates it.",
                figure("known", "estimate-num-keys"),
            ),
            _gauge("state_hot_records", "Ids whose records are in memory.", len(self._records.known)),
        ]

    def close(self) -> None:
        """Free the directory."""
        self._database.close()


def _gauge(name: str, help: str, value: int) -> Family:  # noqa: A002 - Prometheus' own word
    return Family(name, "gauge", help, (), [((), float(value))])
