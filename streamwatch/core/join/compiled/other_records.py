"""Records that are neither prediction nor label; each is counted when the join reaches its row."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from streamwatch.core.events import Event, Invalid, NullRecord
from streamwatch.core.join.compiled.layout import LABEL, Records
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.models import JoinModels


class OtherRecords:
    """Counters of null and invalid records, as in `JoinCounters`.

    Parameters
    ----------
    join_models
        Models that have a place.
    """

    __slots__ = ("_join_models", "_uncounted", "invalid", "invalid_by_model", "null")

    def __init__(self, join_models: JoinModels) -> None:
        self._join_models = join_models
        self._uncounted: deque[tuple[int, NullRecord | Invalid]] = deque()
        self.null: dict[str, int] = {}
        self.invalid: dict[str, dict[str, int]] = {}
        self.invalid_by_model: dict[str, int] = {}

    def restore(self, counters: JoinCounters) -> None:
        """Continue from these counters."""
        self.null = dict(counters.null_records)
        self.invalid = {topic: dict(reasons) for topic, reasons in counters.records_invalid.items()}
        self.invalid_by_model = dict(counters.model_records_invalid)

    def note(self, rows: Records, places: Sequence[int], events: Sequence[Event]) -> None:
        """Store null and invalid events until `count_up_to` reaches their places.

        `rows` are the events' rows.
        """
        for number in np.flatnonzero(rows["side"] > LABEL).tolist():
            event = events[number]
            if isinstance(event, NullRecord | Invalid):
                self._uncounted.append((places[number], event))

    def count_up_to(self, stop: int) -> None:
        """Count those before row `stop`; whether a model has a place can change from row to row."""
        uncounted = self._uncounted
        while uncounted and uncounted[0][0] < stop:
            _, event = uncounted.popleft()
            if type(event) is NullRecord:
                self.null[event.topic] = self.null.get(event.topic, 0) + 1
            elif type(event) is Invalid:
                invalid = self.invalid.setdefault(event.topic, {})
                invalid[event.reason] = invalid.get(event.reason, 0) + 1
                if event.model is not None:
                    self._count_by_model(event.model)

    def _count_by_model(self, model: str) -> None:
        """Count an invalid record by its model, as `JoinRules` does."""
        counts, places = self.invalid_by_model, self._join_models
        if model in counts or model in places.models or len(counts) < places.maximum:
            counts[model] = counts.get(model, 0) + 1
