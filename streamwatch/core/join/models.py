"""Models admitted to the join, up to a maximum, until they are idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streamwatch.core.join.counters import deadline
from streamwatch.core.records.events import SEPARATOR, Name, model_of

_NEVER: Final = 2**62


@dataclass(slots=True)
class ModelActivity:
    """Activity of one model, or of one fold of a model, in the join."""

    name: Name
    pending: int
    held: int
    """Outcomes in the order buffer."""
    last_ms: int
    """Latest record time of a prediction that was accepted, or that revised a pending one."""
    last_label: Name | None = None
    """Label that resolved a prediction last, even if the outcome is still in the order buffer."""
    last_event_ms: int = -1
    """Latest event time of such a prediction, each limited to its record time; -1 before any."""
    first_ms: int = -1
    """Clock at the first prediction, or at which the join began anew; -1 before."""
    joined: int = 0
    """Predictions that met their label."""
    left: int = 0
    """Predictions that ended without a label: expired, evicted or withdrawn."""
    before: int = 0
    """Predictions accepted before the join began anew; they count in `Outcome.made` only."""
    topic: Name | None = None
    """Topic of the prediction that was accepted last; None before any, or if it is unknown."""
    label_topic: Name | None = None
    """Topic of the label that resolved a prediction last; None before any, or if it is unknown."""

    @property
    def accepted(self) -> int:
        """Number of predictions accepted, whatever became of them."""
        return self.pending + self.joined + self.left


def joined_folds(models: Mapping[str, ModelActivity]) -> Mapping[str, ModelActivity]:
    """Add up the activity of each model's folds; return `models` itself if no model predicts in folds.

    `last_label` and `before` are not joined.
    """
    if not any(SEPARATOR in name for name in models):
        return models
    found: dict[str, ModelActivity] = {}
    for name, own in models.items():
        model = model_of(name)
        so_far = found.setdefault(model, ModelActivity(model, 0, 0, own.last_ms, first_ms=own.first_ms))
        so_far.pending += own.pending
        so_far.held += own.held
        so_far.joined += own.joined
        so_far.left += own.left
        so_far.first_ms = min(so_far.first_ms, own.first_ms)
        so_far.last_ms = max(so_far.last_ms, own.last_ms)
        so_far.last_event_ms = max(so_far.last_event_ms, own.last_event_ms)
        so_far.topic = own.topic or so_far.topic
        so_far.label_topic = own.label_topic or so_far.label_topic
    return found


class JoinModels:
    """Models by name, in order of first appearance.

    A model is idle once its last prediction is `idle_ms` old, rounded up to seconds, and it has no pending
    prediction and no outcome held. Models are examined at most once per second of the clock.
    """

    __slots__ = ("_idle_ms", "_looked_s", "_next_look_s", "maximum", "models", "version")

    def __init__(self, maximum: int, idle_ms: int) -> None:
        self.maximum = maximum
        self._idle_ms = idle_ms
        self._looked_s = -1
        self._next_look_s = 0  # no model can be idle before
        self.models: dict[str, ModelActivity] = {}
        self.version = 0
        """Number of times that models were admitted, removed or replaced."""

    def admit(self, model: str, record_ms: int) -> ModelActivity | None:
        """Return the activity of a model, admitted if it is new; None if there are too many."""
        activity = self.models.get(model)
        if activity is not None:
            return activity
        if len(self.models) >= self.maximum:
            return None
        activity = self.models[model] = ModelActivity(model, 0, 0, record_ms, first_ms=record_ms)
        self.version += 1
        self._next_look_s = min(self._next_look_s, deadline(record_ms, self._idle_ms))
        return activity

    @property
    def next_look_s(self) -> int:
        """Second before which no model can be idle."""
        return self._next_look_s

    def retire(self, clock_ms: int) -> list[str]:
        """Remove the models that are idle at the clock, and return their names."""
        now_s = clock_ms // 1000
        if now_s <= self._looked_s:
            return []
        self._looked_s = now_s
        if now_s < self._next_look_s:
            return []
        due = {name: deadline(activity.last_ms, self._idle_ms) for name, activity in self.models.items()}
        idle = [
            name
            for name, activity in self.models.items()
            if due[name] <= now_s and activity.pending == 0 and activity.held == 0
        ]
        for name in idle:
            del self.models[name]
            del due[name]
        self.version += len(idle)
        self._next_look_s = max(min(due.values(), default=_NEVER), now_s + 1)
        return idle

    def begin_anew(self, models: Iterable[ModelActivity], looked: tuple[int, int], clock_ms: int) -> None:
        """Continue from models with their topics, last prediction times and numbers of predictions made.

        All else of their activity begins empty.

        Parameters
        ----------
        models, looked
            Those of a join that begins anew, as for `restore`.
        clock_ms
            Clock when it begins anew.
        """
        self.restore(models, looked)
        for name, model in self.models.items():
            before = model.before + model.accepted
            self.models[name] = ModelActivity(
                name,
                0,
                0,
                model.last_ms,
                first_ms=clock_ms,
                before=before,
                topic=model.topic,
                label_topic=model.label_topic,
            )

    @property
    def looked(self) -> tuple[int, int]:
        """Second at which models were examined last, and `next_look_s`."""
        return self._looked_s, self._next_look_s

    def restore(self, models: Iterable[ModelActivity], looked: tuple[int, int]) -> None:
        """Continue from models, in order of admission, and from what was `looked`."""
        self.models = {activity.name: activity for activity in models}
        self.version += 1
        self._looked_s, self._next_look_s = looked
