"""Checks of entries that are kept as rows: of ids, their indices, names, and what the join counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from streamwatch.admin.state_check import Check, check_of, sections_of
from streamwatch.admin.state_contents import (
    UNREADABLE,
    gauge,
    pipeline_of,
)
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED
from streamwatch.edge.stores.rocksdb.keys import NAME_PREFIX, name_key
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.reading.verify import Census, Faults, survey


def checks_of_entries(state: Inspection, told: Callable[[int, int], None]) -> Iterator[Check]:
    """Entries row by row: those of ids, the indices of them, and what the join counts."""
    about = state.estimate("entries")
    census = survey(state, lambda done: told(done, max(done, about)))
    waiting = census.waiting.total()
    settled = census.dedup_entries.total()
    yield check_of(
        "records", f"{census.ids:,} ids: {waiting:,} wait, {settled:,} dedup entries", census.records
    )
    named = f"{census.entries:,} entries name {census.named:,} ids, {census.settled:,} of them settled since"
    yield check_of("index of deadlines", named, census.index)
    yield check_of(
        "dedup",
        f"{census.dedup:,} name the dedup entries of {len(census.dedup_entries)} generations",
        census.dedup_faults,
    )
    yield _names(state)
    if state.manifest.commits:
        yield sections_of(state)
        yield from _counts(state, census)


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
    return check_of("names", f"{len(keys)} of models and classes", faults)


def _counts(state: Inspection, census: Census) -> Iterator[Check]:
    """The join's own sums, and its counts beside what the scan found."""
    faults, sums = Faults(), Faults()
    try:
        pipeline = pipeline_of(state)
    except UNREADABLE as error:
        sums.add(f"the join, or an outcome that waits for its order, cannot be decoded: {error}")
        yield check_of("counters", "cannot be read", sums)
        return
    for rule in pipeline.identities():
        sums.add(rule)
    counters = pipeline.counters
    accepted, labels = counters.predictions_accepted, counters.with_model.accepted
    labels += counters.without_model.accepted
    yield check_of("counters", f"{accepted:,} predictions and {labels:,} labels accounted for", sums)
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
    yield check_of("counted as found", f"{sum(pending.values()):,} pending of {len(pending)} models", faults)
    yield Check("outcomes held", f"{len(pipeline.order):,} wait for their order")


def _same(what: str, counted: int, found: int, faults: Faults) -> None:
    if counted != found:
        faults.add(f"{what}: the counters say {counted:,}, the scan found {found:,}")
