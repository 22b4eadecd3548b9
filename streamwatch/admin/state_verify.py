"""Checks of `streamwatch state verify`: consistency of a closed state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from streamwatch.admin.state_contents import (
    SECTIONS,
    Faults,
    check_comparisons,
    check_entries,
    decoding,
    estimators_of,
    incidents_of,
    kept_of,
    outbox_of,
    positions_of,
    publications_of,
)
from streamwatch.core.estimators.set import EstimatorSet, without
from streamwatch.core.pipeline.checkpoint import ESTIMATORS
from streamwatch.core.pipeline.journal import read
from streamwatch.core.pipeline.sections import BEGINNINGS, Beginnings
from streamwatch.daemon import MERGE, restored_progress
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.history.samples import counted


@dataclass(frozen=True, slots=True)
class Check:
    """Result of checking one part of a state."""

    what: str
    """Name of the part."""
    found: str
    """Size of the part, or its condition, in words."""
    faults: tuple[str, ...] = ()
    """Descriptions of the first faults."""
    count: int = 0
    """Number of faults."""

    @property
    def good(self) -> bool:
        """Return whether there is no fault."""
        return self.count == 0


def check_of(what: str, found: str, faults: Faults) -> Check:
    """Make the result of a check from the faults that it collected."""
    return Check(what, found, tuple(faults.named), faults.count)


def sections_of(state: Inspection) -> Check:
    """Check that the last commit has every section, and that evaluation epochs can be decoded."""
    faults = Faults()
    for name in SECTIONS:
        if name not in state.sections:
            faults.add(f"the section {name!r} is missing")
    with decoding("the section of what began anew", faults):
        Beginnings().restore(state.sections.get(BEGINNINGS))
    size = sum(map(len, state.sections.values()))
    return check_of("sections", f"{len(state.sections)} of {size:,} bytes", faults)


def verified(directory: Path) -> Iterator[Check]:
    """Yield the result of each check as it ends; a file that cannot be read ends the checks.

    Parameters
    ----------
    directory
        Directory of a closed state, which is locked against daemons meanwhile.

    Raises
    ------
    StateRefused
        If there is no state, it is in use, or it has another schema.
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
        yield from _checks(state)
    except StateDamaged as error:
        yield _damaged(error)
    finally:
        state.close()


def _damaged(error: StateDamaged) -> Check:
    return Check("files", "cannot all be read", (str(error),), 1)


def _checks(state: Inspection) -> Iterator[Check]:
    if state.manifest.commits:
        faults = Faults()
        yield check_of("entries", check_entries(state, faults), faults)
        yield sections_of(state)
        yield _models(state)
        faults = Faults()
        yield check_of("comparisons", f"{check_comparisons(state, faults):,} bytes", faults)
        yield _positions(state)
    yield _journal(state)
    yield _alarms(state)
    yield _publications(state)
    files = [path for path in state.directory.iterdir() if path.suffix == ".sst"]
    size = sum(path.stat().st_size for path in files)
    yield Check("files", f"{len(files)} of {size / 1e6:,.1f} MB, all that is in them as it was written")


def _models(state: Inspection) -> Check:
    """Check that each model's snapshot, restored under the state's own settings, gives the same snapshot.

    Sections of estimators that this version no longer has, or has in addition, are not compared.
    """
    faults = Faults()
    snapshots = retired = 0
    with decoding("the settings of the estimators", faults):
        spec, written = estimators_of(state)
        monitors = EstimatorSet(replace(spec, max_models=1))
        monitors.restore_totals(state.sections[ESTIMATORS])
        now = monitors.estimators().keys()
        for key, value in state.items("models"):
            model = key.decode()
            with decoding(f"what is kept of model {model!r}", faults):
                if not model:
                    raise ValueError("expected the name of a model, got an empty one")
                kept = kept_of(value)
                if kept.position.commit > state.manifest.commits:
                    faults.add(f"model {model!r} is of commit {kept.position.commit}, later than the last")
                if kept.snapshot is None:
                    retired += 1
                    continue
                snapshots += 1
                named = monitors.restore(kept.snapshot)
                if named != model:
                    faults.add(f"the snapshot kept of model {model!r} is of {named!r}")
                elif without(monitors.snapshot(named), now - written.keys()) != without(
                    kept.snapshot, written.keys() - now
                ):
                    faults.add(f"the snapshot of model {model!r} is not what the estimators restored from it")
                monitors.retire(named)
    return check_of("models", f"{snapshots} snapshots restored, {retired} retired", faults)


def _positions(state: Inspection) -> Check:
    faults = Faults()
    partition_count = 0
    with decoding("positions", faults):
        positions = positions_of(state).positions
        partition_count = len(positions)
        for partition, position in restored_progress(state.sections[MERGE]).positions.items():
            if positions.get(partition) != position:
                faults.add(f"{partition.topic}[{partition.partition}] was evaluated up to another offset")
        for partition, position in positions.items():
            if position < 0:
                faults.add(f"{partition.topic}[{partition.partition}] goes on at {position}")
    return check_of("positions", counted(partition_count, "partition"), faults)


def _journal(state: Inspection) -> Check:
    faults = Faults()
    entries = outcomes = 0
    for number, value in state.journal():
        entries += 1
        if not 0 < number <= state.manifest.commits:
            faults.add(f"entry {number} is of no commit up to {state.manifest.commits}")
        with decoding(f"entry {number}", faults):
            outcomes += len(read(value))
    return check_of("journal", f"{outcomes:,} outcomes of {entries:,} commits", faults)


def _publications(state: Inspection) -> Check:
    """Check that publications can be decoded, and that their outcome numbers are contiguous."""
    faults = Faults()
    outcomes = events = 0
    with decoding("a publication", faults):
        waiting = publications_of(state)
        for before, after in pairwise(waiting):
            if after.life == before.life and after.outcomes_before != before.last_outcome:
                faults.add(
                    f"the publication of commit {after.commit} begins after outcome "
                    f"{after.outcomes_before:,}, the one before it ends with {before.last_outcome:,}"
                )
        outcomes = sum(each.count for each in waiting)
        events = sum(len(each.events) for each in waiting)
    return check_of("publications", f"{outcomes:,} outcomes and {events:,} events for topics", faults)


def _alarms(state: Inspection) -> Check:
    faults = Faults()
    owed = opened = 0
    with decoding("the book of alarms", faults):
        for incident in incidents_of(state):
            opened += not incident.parts
            opened += sum(part.is_open for part in incident.parts)
    with decoding("a notification of the outbox", faults):
        entries = outbox_of(state)
        owed = len(entries)
        for name, entry in entries.items():
            if entry.notification.id != name:
                faults.add(f"the notification {entry.notification.id} is kept as {name}")
            if not entry.attempts:
                faults.add(f"the notification {name} is owed to nobody")
    return check_of("alarms", f"{opened} open, {owed} notifications in the outbox", faults)
