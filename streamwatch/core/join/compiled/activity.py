"""Models of a compiled join: which have a place, and when each was last active."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.folding import end_streams
from streamwatch.core.join.compiled.layout import ACTIVITY, PLACED, REFUSED, UNPLACED, Arrays, one_record
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.join.compiled.other_records import OtherRecords
from streamwatch.core.join.models import JoinModels, JoinModelsState

_LEAST_ROOM = 16


def with_room_for_models(arrays: Arrays, models: int) -> Arrays:
    """Return arrays whose `activity` has a record for each of `models` model numbers."""
    activity = arrays.activity
    missing = models - len(activity)
    if missing <= 0:
        return arrays
    fresh = np.zeros(max(missing, len(activity), _LEAST_ROOM), ACTIVITY)
    fresh["last_label"] = fresh["last_event_ms"] = -1
    return arrays._replace(activity=np.concatenate([activity, fresh]))


def place_model(arrays: Arrays, names: JoinNames, join_models: JoinModels, row: np.void) -> None:
    """Decide whether the model of a row gets a place, and record the decision."""
    number = int(row["model"])
    place = join_models.place(names.models.names[number], int(row["record_ms"]))
    activity = arrays.activity
    if place is None:
        activity["place"][number] = REFUSED
        return
    activity["place"][number] = PLACED
    activity["last_ms"][number] = place.last_ms
    arrays.totals["next_idle_check_s"] = join_models.next_look_s


def update_models(arrays: Arrays, names: JoinNames, join_models: JoinModels) -> None:
    """Update `join_models` from the arrays."""
    models = join_models.models
    numbers = [names.models[name] for name in models]
    labels = names.classes.names
    rows = arrays.activity[numbers]
    for model, row in zip(models.values(), rows.tolist(), strict=True):
        _, model.pending, model.last_ms, model.last_event_ms, model.joined, model.left, label, _ = row
        model.last_label = None if label < 0 else labels[label]


def retire(
    arrays: Arrays, names: JoinNames, join_models: JoinModels, others: OtherRecords, clock_ms: int
) -> list[str]:
    """Remove the models that are idle at `clock_ms`, and return their names; `join_models` is up to date."""
    idle = join_models.retire(clock_ms)
    activity = arrays.activity
    for name in idle:
        reset_activity(activity, names.models[name])
    others.forget(idle)
    if idle:
        end_streams(arrays)
        activity["place"][activity["place"] == REFUSED] = UNPLACED
    arrays.totals["next_idle_check_s"] = join_models.next_look_s
    arrays.counters["models_retired"] += len(idle)
    return idle


def reset_activity(activity: NDArray[np.void], number: int) -> None:
    """Reset the activity of the model with this number."""
    activity[number] = one_record(ACTIVITY, last_label=-1, last_event_ms=-1)[0]


def restored_activity(names: JoinNames, state: JoinModelsState) -> NDArray[np.void]:
    """Build the activity of the models in a state; models without a number get one."""
    numbers = [names.models[model.name] for model in state.models]
    activity = np.zeros(max(len(names.models.names), _LEAST_ROOM), ACTIVITY)
    activity["last_label"] = activity["last_event_ms"] = -1
    for number, model in zip(numbers, state.models, strict=True):
        label = -1 if model.last_label is None else names.classes[model.last_label]
        fields = (model.last_ms, model.last_event_ms, model.joined, model.left, label, 0)
        activity[number] = (PLACED, model.pending, *fields)
    return activity
