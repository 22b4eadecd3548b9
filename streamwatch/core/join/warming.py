"""Compilation of the join, or loading of its compiled functions, before it is needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.join.cold.store import ColdSpec, MemoryRuns
from streamwatch.core.join.durable.columns import warm_up_columns
from streamwatch.core.join.durable.packed_scores import warm_up_packed_scores
from streamwatch.core.join.held_scores import warm_up_scores
from streamwatch.core.join.join import DONE, LOAD_OLDEST, CompiledJoin
from streamwatch.core.join.layout import TIMING
from streamwatch.core.join.prediction_order import PredictionOrder
from streamwatch.core.records.batch import no_records
from streamwatch.core.records.events import Event, Label, Prediction
from streamwatch.core.records.outcomes import OUTCOME, PAIR_COLUMNS, OutcomeBatch
from streamwatch.core.records.scores import NO_LISTS
from streamwatch.core.specs import ComparisonSpec, JoinSpec

_ENOUGH = 5_000
"""Number of ids for which hash table and entries have to grow."""
_TABLE = OverflowSpec(0, 4, ColdSpec(fanout=2))
_COMPARED = (ComparisonSpec("warm-up", ("*",)),)
_SOON = JoinSpec(
    horizon_ms=10_000, early_horizon_ms=10_000, dedup_horizon_ms=10_000, assume="a", comparisons=_COMPARED
)


def warm_up_join() -> None:
    """Join many predictions and a label, which calls the compiled functions of a join without an overflow."""
    join = _joined(_ENOUGH)
    list(join.take_outcomes(0))
    join.record_rows(no_records())
    rows = join.rows(())
    join.accepted(rows, join.predicted_scores(rows), 0, 0)
    warm_up_scores()


def warm_up_commits() -> None:
    """Compute the changes for a commit of a small join, and restore a join from them."""
    join = _joined(2)
    items = sorted(join.changes(1).items())
    written = [(key, value) for key, value in items if value is not None]
    CompiledJoin(JoinSpec(), _digests).restore(join.totals(), written)
    warm_up_columns()
    warm_up_packed_scores()
    PredictionOrder(0, 1).open_windows(np.zeros((0, 3), np.int64))  # as a model bucket is restored


def warm_up_order() -> None:
    """Hold an outcome with a pair for the order of predictions, restore it, and release it."""
    records = np.zeros(1, OUTCOME)
    records["scores"] = -1
    pairs = np.zeros((1, PAIR_COLUMNS), np.int32)
    batch = OutcomeBatch(records, ["warm-up"], ["a"], pairs=pairs)
    order, again = PredictionOrder(1, 1), PredictionOrder(1, 1)
    list(order.put(batch, np.zeros(1, TIMING), 0))
    _, rows = order.rows(order.take_fresh())
    again.restore(order.totals(), rows, np.zeros(0, np.int64), NO_LISTS)
    list(again.release_all(batch))


def warm_up_overflow() -> None:
    """Move entries of every kind out of a table, look them up, merge runs, and load entries that fall due."""
    store = MemoryRuns()
    join = CompiledJoin(_SOON, _digests, Overflow(store, _TABLE))
    for at_ms in (0, 1_000, 2_000):
        _take(join, [Prediction(f"{at_ms + n}", "warm-up", "a", at_ms) for n in range(8)])
        _take(join, [Label(f"{at_ms}", "a", at_ms), Label(f"{at_ms + 100}", "a", at_ms, "warm-up")])
    _take(join, [Prediction("100", "warm-up", "a", 2_000), Label("1", "a", 2_000)])
    merge = join.plan_merge()
    assert merge is not None  # noqa: S101 - there are several runs of a size
    merge.run()
    join.finish_merge(merge)
    values = {key: value for key, value in join.changes(1).items() if value is not None}
    changes = join.run_changes()
    assert changes is not None  # noqa: S101 - there is an overflow
    store.commit(changes)
    again = CompiledJoin(_SOON, _digests, Overflow(store, _TABLE))
    again.restore(join.totals(), sorted(values.items()))
    _take(again, [Prediction("5", "warm-up", "a", 30_000)])


def _joined(number: int) -> CompiledJoin:
    """Build a join of `number` predictions and a label."""
    join = CompiledJoin(JoinSpec(), _digests)
    events = [Prediction(str(id_), "warm-up", "a", 0) for id_ in range(number)]
    rows = join.rows([*events, Label("0", "a", 0)])
    at = 0
    while at < len(rows):
        at, _ = join.take(rows, at)
    return join


def _take(join: CompiledJoin, events: Sequence[Event]) -> None:
    """Join events as a pipeline does."""
    rows = join.rows(events)
    for work in join.prepare(rows):
        work()
    at, why = 0, -1
    while why != DONE:
        at, why = join.take(rows, at)
        list(join.take_outcomes(0))
        if why == LOAD_OLDEST:
            for work in join.load_oldest(rows, at):
                work()
    for work in join.finish():
        work()


def _digests(ids: Sequence[str]) -> bytes:
    """Digests of numbers; their lower halves are spread like those of a hash."""
    return b"".join((int(id_) * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16, "big") for id_ in ids)
