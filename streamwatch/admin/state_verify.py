"""Checks of `streamwatch state verify`: every promise of a closed state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from streamwatch.admin.state_contents import (
    SECTIONS,
    UNREADABLE,
    check_columns,
    check_comparisons,
    decoding,
    estimators_of,
    gauge,
    incidents_of,
    kept_of,
    monitors_of,
    outbox_of,
    outcomes_of,
    pipeline_of,
    places_of,
    progress_of,
)
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED
from streamwatch.edge.stores.errors import StateDamaged
from streamwatch.edge.stores.rocksdb.keys import NAME_PREFIX, name_key
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.reading.verify import Census, Faults, survey


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, how much of it there is, and what is wrong with it."""

    what: str
    found: str
    faults: tuple[str, ...] = ()
    """The first of them."""
    count: int = 0
    """All of them."""

    @property
    def good(self) -> bool:
        """Nothing is wrong with it."""
        return self.count == 0


def verified(directory: Path, told: Callable[[int, int], None] = lambda _done, _of: None) -> Iterator[Check]:
    """Check after check, as they end; a file that cannot be read ends the last one.

    Parameters
    ----------
    directory
        Of a state that no daemon has open; none can open it meanwhile.
    told
        Called meanwhile with the ids read, and about how many there are.

    Raises
    ------
    StateRefused
        If there is no state, it is in use, or of another schema.
    """
    log = Check("write-ahead log", "whole")
    try:
        state = Inspection(directory, closed=True, whole_log=True)
    except StateDamaged as damage:
        try:
            state = Inspection(directory, closed=True)
        except StateDamaged as error:
            yield _damaged(error)
            return
        log = Check("write-ahead log", f"counts up to commit {state.manifest.commits}", (str(damage),), 1)
    try:
        yield log
        yield from _checks(state, told)
    except StateDamaged as error:
        yield _damaged(error)
    finally:
        state.close()


def _damaged(error: StateDamaged) -> Check:
    return Check("files", "cannot all be read", (str(error),), 1)


def _checks(state: Inspection, told: Callable[[int, int], None]) -> Iterator[Check]:
    if state.manifest.in_columns:
        faults = Faults()
        yield _check("entries in columns", check_columns(state, faults), faults)
        yield _sections(state)
    else:
        yield from _entries(state, told)
    if state.manifest.commits:
        yield _models(state)
        faults = Faults()
        yield _check("comparisons", f"{check_comparisons(state, faults):,} bytes", faults)
        yield _positions(state)
    yield _journal(state)
    yield _alarms(state)
    files = [path for path in state.directory.iterdir() if path.suffix == ".sst"]
    size = sum(path.stat().st_size for path in files)
    yield Check("files", f"{len(files)} of {size / 1e6:,.1f} MB, all that is in them as it was written")


def _entries(state: Inspection, told: Callable[[int, int], None]) -> Iterator[Check]:
    """Entries row by row: those of ids, the indices of them, and what the join counts."""
    about = state.estimate("entries")
    census = survey(state, lambda done: told(done, max(done, about)))
    waiting = census.waiting.total()
    settled = census.dedup_entries.total()
    yield _check(
        "records", f"{census.ids:,} ids: {waiting:,} wait, {settled:,} dedup entries", census.records
    )
    named = f"{census.entries:,} entries name {census.named:,} ids, {census.settled:,} of them settled since"
    yield _check("index of deadlines", named, census.index)
    yield _check(
        "dedup",
        f"{census.dedup:,} name the dedup entries of {len(census.dedup_entries)} generations",
        census.dedup_faults,
    )
    yield _names(state)
    if state.manifest.commits:
        yield _sections(state)
        yield from _counts(state, census)


def _check(what: str, found: str, faults: Faults) -> Check:
    return Check(what, found, tuple(faults.named), faults.count)


def _names(state: Inspection) -> Check:
    faults = Faults()
    keys = [key for key, _ in state.items("meta", NAME_PREFIX) if key.startswith(NAME_PREFIX)]
    for number, key in enumerate(keys):
        if key != name_key(number):
            faults.add(f"name {number} is missing: {key!r} stands in its place")
            break
    else:
        if len(keys) < state.manifest.names:
            faults.add(f"name {len(keys)} is missing: there were {state.manifest.names} at the last commit")
    for name, times in Counter(state.names).items():
        if times > 1:
            faults.add(f"{name!r} has {times} numbers")
    return _check("names", f"{len(keys)} of models and classes", faults)


def _sections(state: Inspection) -> Check:
    faults = Faults()
    for name in SECTIONS:
        if name not in state.sections:
            faults.add(f"the section {name!r} is missing")
    size = sum(map(len, state.sections.values()))
    return _check("sections", f"{len(state.sections)} of {size:,} bytes", faults)


def _counts(state: Inspection, census: Census) -> Iterator[Check]:
    """The join's own sums, and its counts beside what the scan found."""
    faults, sums = Faults(), Faults()
    try:
        pipeline = pipeline_of(state)
    except UNREADABLE as error:
        sums.add(f"the join, or an outcome that waits for its order, cannot be decoded: {error}")
        yield _check("counters", "cannot be read", sums)
        return
    for rule in pipeline.identities():
        sums.add(rule)
    counters = pipeline.counters
    accepted, labels = counters.predictions_accepted, counters.with_model.accepted
    labels += counters.without_model.accepted
    yield _check("counters", f"{accepted:,} predictions and {labels:,} labels accounted for", sums)
    pending = {model: int(count) for (model,), count in gauge(pipeline, "pending_predictions").items()}
    found = {model: count for (kind, model), count in census.waiting.items() if kind == PENDING}
    for model in sorted(pending.keys() | found.keys()):
        _same(f"pending predictions of {model}", pending.get(model, 0), found.get(model, 0), faults)
    states = Counter[int]()
    for (kind, _), count in census.waiting.items():
        states[kind] += count
    for name, count in (
        ("waiting", states[EARLY]),
        ("unmatched", states[UNMATCHED]),
        ("retained", states[UNMATCHED] + states[RETAINED]),
    ):
        _same(f"labels {name}", int(gauge(pipeline, f"labels_{name}")[()]), count, faults)
    _same("dedup_entries", int(gauge(pipeline, "dedup_entries")[()]), census.dedup_entries.total(), faults)
    yield _check("counted as found", f"{sum(pending.values()):,} pending of {len(pending)} models", faults)
    yield Check("outcomes held", f"{len(pipeline.order):,} wait for their order")


def _same(what: str, counted: int, found: int, faults: Faults) -> None:
    if counted != found:
        faults.add(f"{what}: the counters say {counted:,}, the scan found {found:,}")


def _models(state: Inspection) -> Check:
    """Every snapshot is put into estimators of the state's own settings, and must come out the same."""
    faults = Faults()
    snapshots = retired = 0
    with decoding("the settings of the estimators", faults):
        spec, _ = estimators_of(state)
        monitors = monitors_of(state, replace(spec, max_models=1))
        for key, value in state.items("models"):
            model = key.decode()
            with decoding(f"what is kept of model {model!r}", faults):
                kept = kept_of(value)
                if kept.place.commit > state.manifest.commits:
                    faults.add(f"model {model!r} is of commit {kept.place.commit}, later than the last")
                if kept.snapshot is None:
                    retired += 1
                    continue
                snapshots += 1
                named = monitors.restore(kept.snapshot)
                if named != model:
                    faults.add(f"the snapshot kept of model {model!r} is of {named!r}")
                elif monitors.snapshot(model) != kept.snapshot:
                    faults.add(f"the snapshot of model {model!r} is not what the estimators restored from it")
                monitors.retire(named)
    return _check("models", f"{snapshots} snapshots restored, {retired} retired", faults)


def _positions(state: Inspection) -> Check:
    faults = Faults()
    partition_count = 0
    with decoding("positions", faults):
        positions = places_of(state).positions
        partition_count = len(positions)
        for partition, position in progress_of(state).positions.items():
            if positions.get(partition) != position:
                faults.add(f"{partition.topic}[{partition.partition}] was evaluated up to another offset")
        for partition, position in positions.items():
            if position < 0:
                faults.add(f"{partition.topic}[{partition.partition}] goes on at {position}")
    return _check("positions", f"{partition_count} partitions", faults)


def _journal(state: Inspection) -> Check:
    faults = Faults()
    entries = outcomes = 0
    for number, value in state.journal():
        entries += 1
        if not 0 < number <= state.manifest.commits:
            faults.add(f"entry {number} is of no commit up to {state.manifest.commits}")
        with decoding(f"entry {number}", faults):
            outcomes += len(outcomes_of(value))
    return _check("journal", f"{outcomes:,} outcomes of {entries:,} commits", faults)


def _alarms(state: Inspection) -> Check:
    faults = Faults()
    owed = opened = 0
    with decoding("the book of alarms", faults):
        for incident in incidents_of(state):
            opened += incident.hint is not None
            opened += sum(part.is_open for part in incident.parts)
    with decoding("a notification of the outbox", faults):
        entries = outbox_of(state)
        owed = len(entries)
        for name, entry in entries.items():
            if entry.notification.id != name:
                faults.add(f"the notification {entry.notification.id} is kept as {name}")
            if not entry.attempts:
                faults.add(f"the notification {name} is owed to nobody")
    return _check("alarms", f"{opened} open, {owed} notifications in the outbox", faults)
