"""Activity of models in one id bucket, reported batch by batch to model buckets."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from streamwatch.core.buckets.parts import Activity
from streamwatch.core.buckets.places import Place
from streamwatch.core.join.models import JoinModels, ModelActivity


@dataclass(slots=True)
class _ReportedModel:
    activity: ModelActivity
    was_active: bool
    first: Place = ()
    accepted: int = 0
    joined: int = 0
    left: int = 0
    """The last three are totals as of the batch before."""

    def new_activity(self) -> Activity | None:
        """Activity since the batch before; None if there is none."""
        own = self.activity
        new = (own.accepted - self.accepted, own.joined - self.joined, own.left - self.left)
        if not any(new):
            return None
        return Activity(own.name, self.first, self.was_active, *new, own.last_ms, own.last_event_ms)

    def mark_reported(self) -> None:
        own = self.activity
        self.first, self.was_active = (), True
        self.accepted, self.joined, self.left = own.accepted, own.joined, own.left


class ReportedTotals(msgspec.Struct, array_like=True, frozen=True):
    """Totals reported of a model up to a batch."""

    model: str
    accepted: int
    joined: int
    left: int


class ReportedActivity:
    """Tracks what was reported of each model, and returns what is new.

    Parameters
    ----------
    models
        Models of the join; one that it removes and adds again was idle in between.
    """

    __slots__ = ("_by_name", "_models", "_retired")

    def __init__(self, models: JoinModels) -> None:
        self._models = models
        self._by_name: dict[str, _ReportedModel] = {}
        self._retired: list[_ReportedModel] = []  # models that became idle in this batch

    def accepted(self, model: str, place: Place) -> None:
        """Record that a prediction of the model was accepted."""
        activity = self._models.models[model]
        reported = self._by_name.get(model)
        if reported is None or reported.activity is not activity:
            if reported is not None:
                self._retired.append(reported)
            reported = self._by_name[model] = _ReportedModel(activity, was_active=False)
        if not reported.first:
            reported.first = place

    def take_new(self) -> list[Activity]:
        """Activity of every model since the last call."""
        all_reported = [*self._retired, *self._by_name.values()]
        self._retired = []
        new = [activity for reported in all_reported if (activity := reported.new_activity()) is not None]
        models = self._models.models
        self._by_name = {
            name: reported
            for name, reported in self._by_name.items()
            if models.get(name) is reported.activity
        }
        for reported in self._by_name.values():
            reported.mark_reported()
        return new

    def state(self) -> list[ReportedTotals]:
        """State from which `restore` continues; to be taken between batches."""
        return [ReportedTotals(name, s.accepted, s.joined, s.left) for name, s in self._by_name.items()]

    def restore(self, state: list[ReportedTotals]) -> None:
        """Continue from a state, with the models restored from the same time."""
        self._by_name = {
            each.model: _ReportedModel(
                self._models.models[each.model], True, (), each.accepted, each.joined, each.left
            )
            for each in state
        }
        self._retired = []
