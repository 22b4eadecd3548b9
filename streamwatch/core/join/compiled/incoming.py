"""What comes to a compiled join, as its rows: events one by one, records in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Event
from streamwatch.core.join.compiled.layout import Records
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.join.compiled.other_records import OtherRecords
from streamwatch.core.join.compiled.record_rows import RecordNumbering
from streamwatch.core.join.compiled.rows import Digests, RowBuilder
from streamwatch.core.records import RecordBatch


class JoinRows:
    """Makes rows, in which names are numbers, and keeps what is neither prediction nor label.

    Parameters
    ----------
    digests
        What makes the ids' digests.
    names
        Of the join; those that are new get a number.
    others
        What counts null and invalid records.
    """

    __slots__ = ("_builder", "_numbering", "_others")

    def __init__(self, digests: Digests, names: JoinNames, others: OtherRecords) -> None:
        self._builder = RowBuilder(digests, names)
        self._numbering = RecordNumbering(names)
        self._others = others

    def rows(self, events: Sequence[Event]) -> Records:
        """Rows of events, to be joined in this order; what is null or invalid is counted at its place."""
        rows = self._builder.rows(events)
        self._others.note(rows, range(len(events)), events)
        return rows

    def record_rows(self, records: RecordBatch) -> Records:
        """Rows of records in columns, likewise; event objects among them are taken one by one."""
        places = records.object_places()
        events = records.placed(places)
        if events and len(events) == len(records):
            return self.rows(events)
        rows = self._numbering.rows(records.rows, records.vocabulary, records.topics)
        self.place_events(rows, places, events)
        return rows

    def place_events(self, rows: Records, places: NDArray[np.intp], events: Sequence[Event]) -> None:
        """Put event objects into rows at their places."""
        if events:
            built = self._builder.rows(events)
            rows.view(np.int64).reshape(len(rows), -1)[places] = built.view(np.int64).reshape(len(built), -1)
            self._others.note(built, places.tolist(), events)
