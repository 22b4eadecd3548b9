"""Activity of models in one id bucket, reported batch by batch to model buckets."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from streamwatch.core.buckets.parts import Activity
from streamwatch.core.buckets.places import Place
from streamwatch.core.join.models import JoinModels, ModelActivity


@dataclass(slots=True)
class _ToldModel:
    activity: ModelActivity
    goes_on: bool
    first: Place = ()
    accepted: int = 0
    joined: int = 0
    left: int = 0
    """The last three are totals as of the batch before."""

    def told(self) -> Activity | None:
        """Activity since the batch before; None if there is none."""
        own = self.activity
        new = (own.accepted - self.accepted, own.joined - self.joined, own.left - self.left)
        if not any(new):
            return None
        return Activity(own.name, self.first, self.goes_on, *new, own.last_ms, own.last_event_ms)

    def turn(self) -> None:
        own = self.activity
        self.first, self.goes_on = (), True
        self.accepted, self.joined, self.left = own.accepted, own.joined, own.left


class ToldModelState(msgspec.Struct, array_like=True, frozen=True):
    """Totals reported of a model up to a batch."""

    model: str
    accepted: int
    joined: int
    left: int


class ToldModels:
    """Tracks what was reported of each model, and returns what is new.

    Parameters
    ----------
    models
        Models of the join; one that it removes and adds again was idle in between.
    """

    __slots__ = ("_models", "_over", "_told_models")

    def __init__(self, models: JoinModels) -> None:
        self._models = models
        self._told_models: dict[str, _ToldModel] = {}
        self._over: list[_ToldModel] = []  # models that became idle in this batch

    def accepted(self, model: str, place: Place) -> None:
        """Record that a prediction of the model was accepted."""
        activity = self._models.models[model]
        told_model = self._told_models.get(model)
        if told_model is None or told_model.activity is not activity:
            if told_model is not None:
                self._over.append(told_model)
            told_model = self._told_models[model] = _ToldModel(activity, goes_on=False)
        if not told_model.first:
            told_model.first = place

    def turn(self) -> list[Activity]:
        """Activity of every model since the last call."""
        told_models = [*self._over, *self._told_models.values()]
        self._over = []
        told = [activity for told_model in told_models if (activity := told_model.told()) is not None]
        models = self._models.models
        self._told_models = {
            name: told_model
            for name, told_model in self._told_models.items()
            if models.get(name) is told_model.activity
        }
        for told_model in self._told_models.values():
            told_model.turn()
        return told

    def state(self) -> list[ToldModelState]:
        """State from which `restore` continues; to be taken between batches."""
        return [ToldModelState(name, s.accepted, s.joined, s.left) for name, s in self._told_models.items()]

    def restore(self, state: list[ToldModelState]) -> None:
        """Continue from a state, with the models restored from the same time."""
        self._told_models = {
            each.model: _ToldModel(
                self._models.models[each.model], True, (), each.accepted, each.joined, each.left
            )
            for each in state
        }
        self._over = []
