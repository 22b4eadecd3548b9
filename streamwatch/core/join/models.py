"""Models admitted to the join, up to a maximum, until they are idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.counters import deadline
from streamwatch.core.join.durable.columns import PackedError, pack_table, unpack_columns
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
    """Latest record time of a prediction that was accepted, or replaced an accepted one."""
    last_label: Name | None = None
    """Label that resolved a prediction last, even if the outcome is still in the order buffer."""
    last_event_ms: int = -1
    """Latest event time of such a prediction, each limited to its record time; -1 before any."""
    first_ms: int = -1
    """Clock at the first prediction."""
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


NUMBERS: Final = (
    "pending",
    "held",
    "last_ms",
    "last_event_ms",
    "first_ms",
    "joined",
    "left",
    "before",
)
"""Attributes of `ModelActivity` that are numbers."""
NAMES: Final = ("last_label", "topic", "label_topic")
"""Attributes of `ModelActivity` that are names."""


class JoinModelsState(msgspec.Struct, frozen=True):
    """State of the models of the join; that of 10,000 models is part of each commit."""

    names: list[Name]
    """Names of the models, in order of admission."""
    classes: list[Name]
    """Last labels of the models, each once, sorted."""
    topics: list[Name]
    """Topics of the models' predictions and labels, each once, sorted."""
    activity: bytes
    """Packed columns `NUMBERS` and `NAMES`, a row for each model; names by their numbers, -1 for none."""
    looked_s: int
    next_look_s: int

    def models(self) -> list[ModelActivity]:
        """Decode the activity of each model.

        Raises
        ------
        PackedError
            If the columns are not those of these names.
        """
        try:
            return self._models()
        except PackedError as error:
            raise PackedError(f"the models of the join cannot be read: {error}") from error

    def _models(self) -> list[ModelActivity]:
        if len(set(self.names)) < len(self.names):
            raise PackedError("expected each model of the join once, got one several times")
        found = [column.astype(np.int64) for column in unpack_columns(self.activity, len(NUMBERS + NAMES))]
        if len(found[0]) != len(self.names):
            raise PackedError(f"expected the activity of {len(self.names)} models, got {len(found[0])}")
        for attribute, names in zip(NAMES, self._names(), strict=True):
            column = found[(NUMBERS + NAMES).index(attribute)]
            if len(column) and not (column.min() >= -1 and column.max() < len(names)):
                raise PackedError(f"expected numbers of {len(names)} names as {attribute}, got others")
        values: dict[str, list[Any]] = dict(
            zip(NUMBERS + NAMES, (column.tolist() for column in found), strict=True)
        )
        for attribute, names in zip(NAMES, self._names(), strict=True):
            values[attribute] = [None if number < 0 else names[number] for number in values[attribute]]
        return list(
            map(ModelActivity, self.names, *(values[each.name] for each in fields(ModelActivity)[1:]))
        )

    def _names(self) -> tuple[list[str], list[str], list[str]]:
        """Return the names that numbers in the columns `NAMES` stand for."""
        return self.classes, self.topics, self.topics


def models_state(
    names: list[str],
    numbers: NDArray[np.int64],
    named: NDArray[np.int64],
    classes: Sequence[str],
    topics: Sequence[str],
    looked: tuple[int, int],
) -> JoinModelsState:
    """Build the state of the models of a join from columns; equal activity gives an equal state.

    Parameters
    ----------
    names
        Names of the models, in order of admission.
    numbers
        int64 (8, models): the attributes `NUMBERS`.
    named
        int64 (3, models): the attributes `NAMES`, by numbers of classes and topics; -1 for none.
    classes, topics
        Names by number.
    looked
        `looked_s` and `next_look_s` of the state.
    """
    table = np.empty((len(NUMBERS) + len(NAMES), len(names)), np.int64)
    table[: len(NUMBERS)] = numbers
    used_classes, table[len(NUMBERS)] = _sorted_names(named[0], classes)
    used_topics, table[len(NUMBERS) + 1 :] = _sorted_names(named[1:], topics)
    return JoinModelsState(names, used_classes, used_topics, pack_table(table), *looked)


def _sorted_names(numbers: NDArray[np.int64], names: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names used, sorted, and the numbers replaced by those of this list; -1 stays -1."""
    used: list[int] = [number for number in np.unique(numbers).tolist() if number >= 0]
    used.sort(key=names.__getitem__)
    ranks = np.full(max(used, default=-1) + 2, -1, np.int64)  # -1 stands for the last one
    ranks[used] = np.arange(len(used))
    return [names[number] for number in used], ranks[numbers]


def joined_folds(models: Mapping[str, ModelActivity]) -> Mapping[str, ModelActivity]:
    """Add up the activity of each model's folds; return `models` itself if no model predicts in folds."""
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
        """How many times models were admitted, removed or replaced."""

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

    def begin_anew(self, state: JoinModelsState, clock_ms: int) -> None:
        """Continue from a state's models, their topics, and how many predictions each made, and nothing else.

        Parameters
        ----------
        state
            State of a join that begins anew.
        clock_ms
            Clock when it begins anew.
        """
        self.restore(state)
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

    def state(self) -> JoinModelsState:
        """State that `restore` continues from."""
        models = list(self.models.values())
        numbers = [[getattr(model, name) for model in models] for name in NUMBERS]
        classes, topics = dict[str, int](), dict[str, int]()
        named = [
            [-1 if text is None else known.setdefault(text, len(known)) for text in texts]
            for known, texts in (
                (classes, [model.last_label for model in models]),
                (topics, [model.topic for model in models]),
                (topics, [model.label_topic for model in models]),
            )
        ]
        return models_state(
            list(self.models),
            np.array(numbers, np.int64),
            np.array(named, np.int64),
            list(classes),
            list(topics),
            self.looked,
        )

    def restore(self, state: JoinModelsState) -> None:
        """Continue from a `state`; raises PackedError if it is not one."""
        self.models = {activity.name: activity for activity in state.models()}
        self.version += 1
        self._looked_s = state.looked_s
        self._next_look_s = state.next_look_s
