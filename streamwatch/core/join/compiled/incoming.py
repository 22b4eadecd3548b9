"""Conversion of events, and of records in columns, to the rows of a compiled join."""

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
    """Builds rows, in which names are numbers, and counts records that are neither prediction nor label.

    Parameters
    ----------
    digests
        Function that computes the ids' digests.
    names
        Names of the join; new names get a number.
    others
        Counters of null and invalid records.
    """

    __slots__ = ("_builder", "_numbering", "_others")

    def __init__(self, digests: Digests, names: JoinNames, others: OtherRecords) -> None:
        self._builder = RowBuilder(digests, names)
        self._numbering = RecordNumbering(names)
        self._others = others

    def rows(self, events: Sequence[Event]) -> Records:
        """Build the rows of events, in order.

        Null and invalid ones are counted when the join reaches their row.
        """
        rows = self._builder.rows(events)
        self._others.note(rows, range(len(events)), events)
        return rows

    def record_rows(self, records: RecordBatch) -> Records:
        """Build the rows of records in columns, as `rows` does.

        Event objects among them are converted one by one.
        """
        places = records.object_places()
        events = records.placed(places)
        if events and len(events) == len(records):
            return self.rows(events)
        rows = self._numbering.rows(records.rows, records.vocabulary, records.topics)
        self.place_events(rows, places, events)
        return rows

    def place_events(self, rows: Records, places: NDArray[np.intp], events: Sequence[Event]) -> None:
        """Replace the rows at `places` by those of these event objects."""
        if events:
            built = self._builder.rows(events)
            rows.view(np.int64).reshape(len(rows), -1)[places] = built.view(np.int64).reshape(len(built), -1)
            self._others.note(built, places.tolist(), events)
