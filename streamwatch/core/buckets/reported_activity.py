"""Activity of models in one id bucket with a compiled join, reported batch by batch to model buckets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamwatch.core.buckets.contract import Activity, SequencePosition
from streamwatch.core.join.join import CompiledJoin
from streamwatch.core.records.batch import Records, copied
from streamwatch.core.records.events import Name


class ColumnReportedModel(msgspec.Struct, array_like=True):
    """Totals reported so far of a model that is not idle."""

    model: Name
    was_active: bool
    first: SequencePosition = ()
    accepted: int = 0
    joined: int = 0
    left: int = 0
    last: tuple[int, int] = (-1, -1)
    """Latest record time and event time, as in `Activity`; revisions of a prediction count, too."""


class ColumnReportedActivity:
    """Tracks the totals reported of each model, and returns the activity since.

    Parameters
    ----------
    join
        Join in which the models are active.
    """

    __slots__ = ("_by_name", "_join", "_new")

    def __init__(self, join: CompiledJoin) -> None:
        self._join = join
        self._by_name: dict[str, ColumnReportedModel] = {}
        self._new: list[Activity] = []

    def is_new(self, model: str) -> bool:
        """Return whether no prediction of the model was accepted since it was last idle."""
        return model not in self._by_name

    def begin(self, model: str, first: SequencePosition) -> None:
        """Record that a prediction of a new or idle model was accepted."""
        self._by_name[model] = ColumnReportedModel(model, was_active=False, first=first)

    def take_new(self) -> list[Activity]:
        """Activity since the last call; to be called between batches."""
        self._add_new(self._by_name, self._join.arrays.activity)
        new, self._new = self._new, []
        return new

    def retire(self, clock_ms: int) -> None:
        """Remove the join's models that are idle at `clock_ms`."""
        activity = copied(self._join.arrays.activity)
        idle = [name for name in self._join.retire(clock_ms) if name in self._by_name]
        self._add_new(idle, activity)
        for name in idle:
            del self._by_name[name]

    def _add_new(self, names: Iterable[str], activity: Records) -> None:
        """Compare the join's totals of these models with those reported, and record the differences."""
        for name in names:
            reported, row = self._by_name[name], activity[self._join.models[name]]
            joined, left = int(row["joined"]), int(row["left"])
            accepted = int(row["pending"]) + joined + left
            new = (accepted - reported.accepted, joined - reported.joined, left - reported.left)
            last = int(row["last_ms"]), int(row["last_event_ms"])
            if any(new) or last != reported.last:
                self._new.append(Activity(name, reported.first, reported.was_active, *new, *last))
                reported.first, reported.was_active = (), True
                reported.accepted, reported.joined, reported.left = accepted, joined, left
                reported.last = last

    def state(self) -> list[ColumnReportedModel]:
        """State from which `restore` continues; to be taken between batches."""
        return list(self._by_name.values())

    def restore(self, state: list[ColumnReportedModel]) -> None:
        """Continue from a state, with the join restored from the same time."""
        self._by_name = {reported.model: reported for reported in state}
        self._new = []
