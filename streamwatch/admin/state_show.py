"""Overview of a state for `streamwatch state show`: identity, positions, waiting entries and their ages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from streamwatch.admin.state_contents import (
    estimators_of,
    incidents_of,
    kept_of,
    outbox_of,
    pending_by_model,
    positions_of,
    publications_of,
    reading,
)
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import COMPARISON, EARLY_HINT
from streamwatch.core.join.models import joined_folds
from streamwatch.core.pipeline.checkpoint import PIPELINE
from streamwatch.core.pipeline.journal import read
from streamwatch.core.pipeline.pipeline import decoded
from streamwatch.core.records.events import model_of
from streamwatch.edge.stores.rocksdb.inspect import Inspection

AGES_SECONDS: Final = (60, 600, 3_600, 6 * 3_600, 86_400, 3 * 86_400, 7 * 86_400, 28 * 86_400)
"""Upper bounds of the bins of ages; a last bin has older predictions."""


@dataclass(frozen=True, slots=True)
class Position:
    """Position at which a start continues to read a partition."""

    topic: str
    partition: int
    position: int


@dataclass(frozen=True, slots=True)
class Model:
    """One model's share of the state."""

    model: str
    pending: int
    ages: tuple[int, ...] | None
    """Pending predictions by bin of `AGES_SECONDS`; None if ages were not requested."""
    oldest_seconds: float | None
    """Age of the oldest pending prediction; None without one, or if ages were not requested."""
    snapshot_bytes: int | None
    """Size of the snapshot, summed over folds; None if all outcomes are in the journal."""


@dataclass(frozen=True, slots=True)
class OpenAlarm:
    """An announced alarm that has not ended."""

    model: str
    detector: str
    severity: str
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Contents of the overview. Ages are in record time, relative to the state's clock."""

    directory: str
    identity: str
    schema: int
    created_s: float
    in_use_by: int | None
    """Id of the process that has the state open; 0: a process in another container; None: none."""
    commits: int
    estimators: tuple[str, ...]
    positions: tuple[Position, ...]
    clock_ms: int | None
    models: tuple[Model, ...]
    age_bounds_seconds: tuple[int, ...]
    labels: Mapping[str, int]
    dedup_entries: int
    order_buffer: int
    journal: Mapping[str, int]
    alarms_open: tuple[OpenAlarm, ...]
    outbox: Mapping[str, int]
    """Number of notifications to be delivered, by receiver."""
    publications: Mapping[str, int]
    """Number of commits, outcomes and events that may not be written to topics of results yet."""
    bytes: Mapping[str, int]


def overview(directory: Path, *, ages: bool = True) -> Overview:
    """Read the overview of a state, which a daemon may have open.

    Parameters
    ----------
    directory
        Directory of the state.
    ages
        Whether to compute ages of pending predictions, which reads every entry.

    Raises
    ------
    StateRefused, StateFailed
        If the state cannot be read; as StateDamaged, if it cannot be decoded.
    """
    with reading(directory) as state:
        return _look(state, ages=ages)


def _look(state: Inspection, *, ages: bool) -> Overview:
    begun = state.manifest.commits > 0
    pipeline = decoded(state.sections[PIPELINE]) if begun else None
    join = pipeline.join if pipeline else None
    active = {each.name: each for each in join.join_models.models()} if join else {}
    pending = {model: each.pending for model, each in joined_folds(active).items()}
    snapshots: dict[str, int | None] = {}
    for key, value in state.items("models"):
        model, snapshot = model_of(key.decode()), kept_of(value).snapshot
        so_far = snapshots.get(model)
        snapshots[model] = so_far if snapshot is None else (so_far or 0) + len(snapshot)
    clock_ms = pipeline.clock_ms if pipeline else -1
    waits = _ages(state, clock_ms) if ages and begun else None
    entries = [(len(value), len(read(value))) for _, value in state.journal()]
    names = sorted(pending.keys() | snapshots.keys())
    waiting = publications_of(state)
    owed = Counter(receiver for entry in outbox_of(state).values() for receiver in entry.attempts)
    return Overview(
        directory=str(state.directory),
        identity=state.identity,
        schema=state.schema,
        created_s=state.created_s,
        in_use_by=state.process,
        commits=state.manifest.commits,
        estimators=tuple(estimators_of(state)[1].values()) if begun else (),
        positions=_positions(state) if begun else (),
        clock_ms=clock_ms if clock_ms >= 0 else None,
        models=tuple(
            _model(name, pending.get(name, 0), snapshots.get(name), waits, clock_ms) for name in names
        ),
        age_bounds_seconds=AGES_SECONDS,
        labels={
            "waiting": join.early if join else 0,
            "unmatched": join.unmatched if join else 0,
            "retained": join.retained if join else 0,
        },
        dedup_entries=sum(each.count for each in (*join.dedup.closed, join.dedup.opened)) if join else 0,
        order_buffer=sum(each.held for each in active.values()),
        journal={
            "entries": len(entries),
            "outcomes": sum(count for _, count in entries),
            "bytes": sum(size for size, _ in entries),
        },
        alarms_open=tuple(alarm for incident in incidents_of(state) for alarm in _open_alarms(incident)),
        outbox=dict(sorted(owed.items())),
        publications={
            "commits": len(waiting),
            "outcomes": sum(each.count for each in waiting),
            "events": sum(len(each.events) for each in waiting),
        },
        bytes=state.sizes(),
    )


def _open_alarms(incident: Notification) -> list[OpenAlarm]:
    """Return the open alarms of an incident; an early hint or a verdict on a challenger counts as one."""
    if not incident.parts:
        name = COMPARISON if incident.comparison is not None else EARLY_HINT
        return [OpenAlarm(incident.model, name, incident.severity, incident.started_at_ms)]
    return [
        OpenAlarm(part.alarm.model, part.alarm.detector, part.severity, part.started_at_ms)
        for part in incident.parts
        if part.is_open
    ]


@dataclass(slots=True)
class _Waits:
    shares: list[int]
    oldest_ms: int
    """Record time of the oldest pending prediction."""


def _ages(state: Inspection, now_ms: int) -> dict[str, _Waits]:
    """Count the pending predictions by model and bin of age."""
    bounds_ms = 1000 * np.array(AGES_SECONDS)
    found: dict[str, _Waits] = {}
    for name, record_ms in pending_by_model(state).items():
        bins = np.searchsorted(bounds_ms, now_ms - record_ms, side="right")
        shares = np.bincount(bins, minlength=len(bounds_ms) + 1)
        waits = found.setdefault(model_of(name), _Waits([0] * len(shares), int(record_ms.min())))
        waits.shares = [before + more for before, more in zip(waits.shares, shares.tolist(), strict=True)]
        waits.oldest_ms = min(waits.oldest_ms, int(record_ms.min()))
    return found


def _model(
    name: str, pending: int, snapshot: int | None, waits: Mapping[str, _Waits] | None, now_ms: int
) -> Model:
    of_model = waits.get(name) if waits is not None else None
    shares: Sequence[int] | None = None
    if waits is not None:
        shares = of_model.shares if of_model else [0] * (len(AGES_SECONDS) + 1)
    return Model(
        name,
        pending,
        None if shares is None else tuple(shares),
        None if of_model is None else max(0, now_ms - of_model.oldest_ms) / 1000,
        snapshot,
    )


def _positions(state: Inspection) -> tuple[Position, ...]:
    return tuple(
        Position(*partition, position)
        for partition, position in sorted(positions_of(state).positions.items())
    )
