"""What models do in one id bucket, from when they appear there until they are idle there."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from streamwatch.core.buckets.parts import Activity
from streamwatch.core.buckets.places import Place
from streamwatch.core.join.models import JoinModels, ModelActivity


@dataclass(slots=True)
class _Stint:
    activity: ModelActivity
    goes_on: bool
    first: Place = ()
    accepted: int = 0
    joined: int = 0
    left: int = 0
    """The last three as of the batch before."""

    def told(self) -> Activity | None:
        """Tell what is new since the batch before; None if nothing is."""
        own = self.activity
        new = (own.accepted - self.accepted, own.joined - self.joined, own.left - self.left)
        if not any(new):
            return None
        return Activity(own.name, self.first, self.goes_on, *new, own.last_ms, own.last_event_ms)

    def turn(self) -> None:
        own = self.activity
        self.first, self.goes_on = (), True
        self.accepted, self.joined, self.left = own.accepted, own.joined, own.left


class StintState(msgspec.Struct, array_like=True, frozen=True):
    """State of what was told of a model up to a batch."""

    model: str
    accepted: int
    joined: int
    left: int


class Stints:
    """Keeps what was told of each model, and tells what is new.

    Parameters
    ----------
    models
        The models of the join; one that it lets go and takes up again was idle.
    """

    __slots__ = ("_models", "_over", "_stints")

    def __init__(self, models: JoinModels) -> None:
        self._models = models
        self._stints: dict[str, _Stint] = {}
        self._over: list[_Stint] = []  # models that were idle since, in this batch

    def accepted(self, model: str, place: Place) -> None:
        """A prediction of the model was accepted."""
        activity = self._models.models[model]
        stint = self._stints.get(model)
        if stint is None or stint.activity is not activity:
            if stint is not None:
                self._over.append(stint)
            stint = self._stints[model] = _Stint(activity, goes_on=False)
        if not stint.first:
            stint.first = place

    def turn(self) -> list[Activity]:
        """Tell what is new of every model since the last call."""
        stints = [*self._over, *self._stints.values()]
        self._over = []
        told = [activity for stint in stints if (activity := stint.told()) is not None]
        models = self._models.models
        self._stints = {
            name: stint for name, stint in self._stints.items() if models.get(name) is stint.activity
        }
        for stint in self._stints.values():
            stint.turn()
        return told

    def state(self) -> list[StintState]:
        """State that `restore` continues from; between batches."""
        return [StintState(name, s.accepted, s.joined, s.left) for name, s in self._stints.items()]

    def restore(self, state: list[StintState]) -> None:
        """Continue from a `state`, with the models of the same moment."""
        self._stints = {
            each.model: _Stint(
                self._models.models[each.model], True, (), each.accepted, each.joined, each.left
            )
            for each in state
        }
        self._over = []
