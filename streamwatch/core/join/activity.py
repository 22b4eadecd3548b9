"""Activity of models in a join, and release of names that no record of the join uses any more."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.cold.contents import ColdEntries
from streamwatch.core.join.counted import OtherRecords
from streamwatch.core.join.counters import PENDING
from streamwatch.core.join.durable.totals import NUMBERS, JoinModelsState, models_state
from streamwatch.core.join.folding import end_streams
from streamwatch.core.join.layout import ACTIVITY, ADMITTED, REFUSED, UNDECIDED, Arrays, Records, one_record
from streamwatch.core.join.models import JoinModels, ModelActivity
from streamwatch.core.join.names import JoinNames
from streamwatch.core.join.prediction_order import PredictionOrder
from streamwatch.core.join.table import FREE
from streamwatch.core.records.outcomes import SEGMENTS_FROM

# Models of a compiled join: which are admitted, and when each was last active.


_LEAST_ROOM = 16
_FIELDS = ACTIVITY.names or ()


def with_room_for_models(arrays: Arrays, models: int) -> Arrays:
    """Return arrays whose `activity` has a record for each of `models` model numbers."""
    activity = arrays.activity
    missing = models - len(activity)
    if missing <= 0:
        return arrays
    fresh = np.zeros(max(missing, len(activity), _LEAST_ROOM), ACTIVITY)
    fresh["last_label"] = fresh["last_event_ms"] = -1
    return arrays._replace(activity=np.concatenate([activity, fresh]))


def admit_model(arrays: Arrays, names: JoinNames, join_models: JoinModels, row: np.void) -> None:
    """Decide whether the model of a row is admitted, and record the decision."""
    number = int(row["model"])
    admitted = join_models.admit(names.models.names[number], int(row["record_ms"]))
    activity = arrays.activity
    if admitted is None:
        activity["admission"][number] = REFUSED
        return
    activity["admission"][number] = ADMITTED
    activity["last_ms"][number] = admitted.last_ms
    arrays.totals["next_idle_check_s"] = join_models.next_look_s


class ActivityReader:
    """Reads the activity of models from the arrays of a compiled join.

    Objects are updated where a record has changed since the last time: with 10,000 models, a report would
    otherwise spend most of its time on those that have not.

    Parameters
    ----------
    names
        Names of the join.
    join_models
        Models of the join, whose objects are updated.
    """

    __slots__ = (
        "_first_ms",
        "_join_models",
        "_listed",
        "_models",
        "_names",
        "_numbers",
        "_seen",
        "_versions",
    )

    def __init__(self, names: JoinNames, join_models: JoinModels) -> None:
        self._names = names
        self._join_models = join_models
        self._versions: tuple[int, ...] = ()
        self._models: list[ModelActivity] = []
        self._listed: list[str] = []
        """Names of the models."""
        self._numbers = np.zeros(0, np.int64)
        self._first_ms = np.zeros(0, np.int64)
        self._seen: NDArray[np.int64] | None = None

    def _records(self, arrays: Arrays, held: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the records `ACTIVITY` of the models, in order of admission, and their outcomes held."""
        names = self._names
        versions = (
            self._join_models.version,
            names.models.version,
            names.classes.version,
            names.topics.version,
        )
        if versions != self._versions:
            self._versions = versions
            self._models = list(self._join_models.models.values())
            self._listed = [model.name for model in self._models]
            self._numbers = np.array([names.models[name] for name in self._listed], np.int64)
            self._first_ms = np.array([model.first_ms for model in self._models], np.int64)
            self._seen = None
        found = np.empty((len(self._models), len(_FIELDS) + 1), np.int64)
        found[:, :-1] = arrays.activity.view((np.int64, len(_FIELDS)))[self._numbers]
        found[:, -1] = held[self._numbers]
        return found

    def update(self, arrays: Arrays, held: NDArray[np.int64]) -> None:
        """Update the objects of the models.

        Parameters
        ----------
        arrays
            Arrays of the join.
        held
            int64, outcomes held for their order by model number.
        """
        found = self._records(arrays, held)
        seen, self._seen = self._seen, found
        changed = np.arange(len(found)) if seen is None else np.flatnonzero((found != seen).any(axis=1))
        labels, topics = self._names.classes.names, self._names.topics.names
        for position, row in zip(changed.tolist(), found[changed].tolist(), strict=True):
            model = self._models[position]
            _, model.pending, model.last_ms, model.last_event_ms, model.joined, model.left, label = row[:7]
            model.before, topic, label_topic = row[7:10]
            model.held = row[-1]
            model.last_label = None if label < 0 else labels[label]
            model.topic, model.label_topic = topics[topic] or None, topics[label_topic] or None

    def state(self, arrays: Arrays, held: NDArray[np.int64]) -> JoinModelsState:
        """Build the state of the models as `state_of_models` does, without the objects."""
        found = self._records(arrays, held).T
        columns = dict(zip((*_FIELDS, "held"), found, strict=True)) | {"first_ms": self._first_ms}
        topics = [np.where(columns[name] > 0, columns[name], -1) for name in ("topic", "label_topic")]
        return models_state(
            self._listed,
            np.stack([columns[name] for name in NUMBERS]),
            np.stack([columns["last_label"], *topics]),
            self._names.classes.names,
            self._names.topics.names,
            self._join_models.looked,
        )


def retire(
    arrays: Arrays, names: JoinNames, join_models: JoinModels, others: OtherRecords, clock_ms: int
) -> list[str]:
    """Remove the models that are idle at `clock_ms`, and return their names.

    Call `ActivityReader.update` before.
    """
    idle = join_models.retire(clock_ms)
    activity = arrays.activity
    for name in idle:
        reset_activity(activity, names.models[name])
    others.forget(idle)
    if idle:
        end_streams(arrays)
        activity["admission"][activity["admission"] == REFUSED] = UNDECIDED
    arrays.totals["next_idle_check_s"] = join_models.next_look_s
    arrays.counters["models_retired"] += len(idle)
    return idle


def reset_activity(activity: NDArray[np.void], number: int) -> None:
    """Reset the activity of the model with this number."""
    activity[number] = one_record(ACTIVITY, last_label=-1, last_event_ms=-1)[0]


def restored_activity(names: JoinNames, models: Collection[ModelActivity]) -> NDArray[np.void]:
    """Build the records `ACTIVITY` of models; models without a number get one."""
    numbers = [names.models[model.name] for model in models]
    activity = np.zeros(max(len(names.models.names), _LEAST_ROOM), ACTIVITY)
    activity["last_label"] = activity["last_event_ms"] = -1
    for number, model in zip(numbers, models, strict=True):
        label = -1 if model.last_label is None else names.classes[model.last_label]
        fields = (model.last_ms, model.last_event_ms, model.joined, model.left, label, model.before)
        topics = [0 if name is None else names.topics[name] for name in (model.topic, model.label_topic)]
        activity[number] = (ADMITTED, model.pending, *fields, *topics, 0)
    return activity


# Release of the numbers of unused names once there are many.


def release_names(
    arrays: Arrays, names: JoinNames, outside: ColdEntries | None, order: PredictionOrder
) -> None:
    """Release the unused names of each kind that is `crowded`.

    Parameters
    ----------
    arrays
        Arrays of the join.
    names
        Names of the join.
    outside
        Entries outside the table; None if there cannot be any.
    order
        Outcomes held for the order of predictions.
    """
    if names.classes.crowded:
        _release_classes(arrays, names, outside, order)
    if names.models.crowded:
        admitted = np.flatnonzero(arrays.activity["admission"] == ADMITTED).astype(np.int32)
        awaited = np.flatnonzero(arrays.partners["known_since"] >= 0).astype(np.int32)
        cold = [] if outside is None else outside.models()
        held = order.records()["model"], order.pairs()[:, 1]
        needed = [used_entries(arrays)["model"], *held, admitted, awaited, *cold]
        if len(arrays.owners):  # with folds, the models that they belong to
            used = np.unique(np.concatenate(needed))
            needed.append(arrays.owners[used[used >= 0]])
        for number in names.models.release_all_but(needed).tolist():
            reset_activity(arrays.activity, number)
    if names.segments.crowded:
        entries = used_entries(arrays)
        waiting = entries["true_or_scores"][entries["state"] == PENDING] - SEGMENTS_FROM
        sizes = len(names.classes.names), len(names.segments.names)
        _, scored = names.scores.used(*sizes)
        _, held = order.carried_names(*sizes)
        cold = [] if outside is None else outside.segments()
        names.segments.release_all_but((waiting, scored, held, *cold))


def _release_classes(
    arrays: Arrays, names: JoinNames, outside: ColdEntries | None, order: PredictionOrder
) -> None:
    entries = used_entries(arrays)
    pending = entries["state"] == PENDING
    last = arrays.activity["last_label"].astype(np.int32)
    assumed = arrays.limits["assume"].astype(np.int32)
    trues, known = entries["true_or_scores"][~pending], entries["label_at_prediction"][pending]
    if arrays.limits["numbered"][0]:
        known = np.empty(0, np.int32)
    cold = [] if outside is None else outside.classes()
    held = order.records()
    of_held = [held[name] for name in ("true_class", "predicted_class", "label_at_prediction")]
    of_held.append(order.pairs()[:, 2])
    streams = arrays.streams["label"], arrays.streams["before"]
    revised = [held["last_class"] - 1, *(column - 1 for column in classes_beside(arrays))]
    sizes = len(names.classes.names), len(names.segments.names)
    scored = names.scores.used(*sizes)[0], order.carried_names(*sizes)[0]
    further = (*streams, *of_held, *revised, *scored, *cold)
    names.classes.release_all_but((entries["predicted_class"], trues, known, last, assumed, *further))


def classes_beside(arrays: Arrays) -> list[NDArray[np.int32]]:
    """Return the side columns of pending predictions that hold classes, int32 (pending,): class + 1, or 0."""
    last_class = int(arrays.limits["last_class"][0])
    if last_class < 0:
        return []
    pending = arrays.entries["state"][: int(arrays.totals["top"][0])] == PENDING
    return [arrays.side[: len(pending), last_class][pending]]


def used_entries(arrays: Arrays) -> Records:
    """Entries of the table that are in use."""
    entries = arrays.entries[: int(arrays.totals["top"][0])]
    return entries[entries["state"] != FREE]
