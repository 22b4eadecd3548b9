"""The past of models as a state directory has it: counts by stretches of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamwatch.admin.state_contents import UNREADABLE, estimators_of, kept_of
from streamwatch.core.commit.journal import JournalPosition, unfolded
from streamwatch.core.estimators.models.snapshot import decode
from streamwatch.core.fold_names import model_of
from streamwatch.core.past import MINUTE_S, NONE, NOTHING, STRETCH, PastView
from streamwatch.edge.stores.errors import StateDamaged
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection


@dataclass(frozen=True, slots=True)
class StatePasts:
    """Pasts of all models at the last commit."""

    days: int
    """`monitors.history_days` of the state; 0: nothing is kept."""
    views: Mapping[str, tuple[PastView, ...]]
    """By model, one for each of its folds if it has any; without the journal's hits of no change."""


def state_pasts(directory: Path) -> StatePasts:
    """Read the past of every model, be a daemon writing to the directory or not.

    Of each model, what its snapshot has and the journal's outcomes after that.

    Raises
    ------
    StateRefused, StateFailed
        If the state cannot be read.
    """
    state = Inspection(directory)
    try:
        return _read(state)
    except UNREADABLE as error:
        raise StateDamaged(
            f"the state in {directory} cannot be decoded ({type(error).__name__}: {error}): "
            "`streamwatch state verify` says where"
        ) from error
    finally:
        state.close()


def _read(state: Inspection) -> StatePasts:
    if not state.manifest.commits:
        return StatePasts(0, {})
    days = estimators_of(state)[0].history_days
    settled: dict[str, np.ndarray] = {}
    behind: dict[str, JournalPosition] = {}
    for key, value in state.items("models"):
        name, kept = key.decode(), kept_of(value)
        behind[name] = kept.place
        if kept.snapshot is not None:
            past = decode(kept.snapshot).past
            settled[name] = NONE if past is None else np.frombuffer(past.stretches, STRETCH)
    later: dict[str, dict[int, list[int]]] = {}
    for _, outcomes in unfolded(list(state.journal()), behind):
        for outcome in outcomes:
            minutes = later.setdefault(outcome.model, {})
            counts = minutes.setdefault(outcome.event_ms // (1_000 * MINUTE_S), [0, 0])
            counts[0] += 1
            counts[1] += outcome.true_class == outcome.predicted_class
    views: dict[str, tuple[PastView, ...]] = {}
    for name in sorted(settled.keys() | later.keys()):
        rows = [(minute, *counts, 0) for minute, counts in later.get(name, {}).items()]
        gathered = np.array(rows, np.int64) if rows else NOTHING
        view = PastView(settled.get(name, NONE), gathered)
        views[model_of(name)] = (*views.get(model_of(name), ()), view)
    return StatePasts(days, views)
