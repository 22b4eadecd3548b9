"""Activity of models in one id bucket with a compiled join, reported batch by batch to model buckets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamwatch.core.buckets.parts import Activity
from streamwatch.core.buckets.places import Place
from streamwatch.core.join.compiled.join import CompiledJoin
from streamwatch.core.words import Records, copied


class ColumnToldModel(msgspec.Struct, array_like=True):
    """Totals reported of a model that is not idle."""

    model: str
    goes_on: bool
    first: Place = ()
    accepted: int = 0
    joined: int = 0
    left: int = 0


class ColumnToldModels:
    """Tracks what was reported of each model, and returns what is new.

    Parameters
    ----------
    join
        Join in which the models are active.
    """

    __slots__ = ("_join", "_over", "_told_models")

    def __init__(self, join: CompiledJoin) -> None:
        self._join = join
        self._told_models: dict[str, ColumnToldModel] = {}
        self._over: list[Activity] = []

    def is_new(self, model: str) -> bool:
        """Tell whether no prediction of the model was accepted since it was last idle."""
        return model not in self._told_models

    def begin(self, model: str, first: Place) -> None:
        """Record that a prediction of a new or idle model was accepted."""
        self._told_models[model] = ColumnToldModel(model, goes_on=False, first=first)

    def turn(self) -> list[Activity]:
        """Activity since the last call; to be called between batches."""
        self._look(self._told_models, self._join.arrays.activity)
        told, self._over = self._over, []
        return told

    def retire(self, clock_ms: int) -> None:
        """Remove the join's models that are idle at `clock_ms`."""
        activity = copied(self._join.arrays.activity)
        idle = [name for name in self._join.retire(clock_ms) if name in self._told_models]
        self._look(idle, activity)
        for name in idle:
            del self._told_models[name]

    def _look(self, names: Iterable[str], activity: Records) -> None:
        """Record new activity of models from `activity`."""
        for name in names:
            told_model, row = self._told_models[name], activity[self._join.models[name]]
            joined, left = int(row["joined"]), int(row["left"])
            accepted = int(row["pending"]) + joined + left
            new = (accepted - told_model.accepted, joined - told_model.joined, left - told_model.left)
            if any(new):
                last = int(row["last_ms"]), int(row["last_event_ms"])
                self._over.append(Activity(name, told_model.first, told_model.goes_on, *new, *last))
                told_model.first, told_model.goes_on = (), True
                told_model.accepted, told_model.joined, told_model.left = accepted, joined, left

    def state(self) -> list[ColumnToldModel]:
        """State from which `restore` continues; to be taken between batches."""
        return list(self._told_models.values())

    def restore(self, state: list[ColumnToldModel]) -> None:
        """Continue from a state, with the join restored from the same time."""
        self._told_models = {told_model.model: told_model for told_model in state}
        self._over = []
