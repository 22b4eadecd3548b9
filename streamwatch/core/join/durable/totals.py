"""Totals of a compiled join, as a commit writes them in addition to the entries."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.durable.model_columns import JoinModelsState
from streamwatch.core.join.layout import (
    GENERATION,
    GENERATIONS_KEPT,
    NEVER_MS,
    NO_TIME,
    TOTALS,
    Arrays,
    one_record,
)
from streamwatch.core.join.pairing import PairingState
from streamwatch.core.join.prediction_order import OrderTotals
from streamwatch.core.join.table import DedupState, Generation
from streamwatch.core.records.events import Name


class Stream(msgspec.Struct, array_like=True):
    """Latest state of the stream of resolved ids of a model whose folds test some ids only.

    If a fold with every tenth outcome took its own previous label, labels would seem less persistent than
    they are. So y_{t−1} of an outcome is the label of the previous distinct id resolved by any fold of its
    model, and every fold's outcome has it in place of the label known at the prediction.
    """

    id: Name
    """The id resolved last."""
    label: Name
    """Its label."""
    before: Name | None
    """The label of the previous distinct id; None at the stream's beginning."""


@dataclass(frozen=True, slots=True)
class JoinTotals:
    """State of a compiled join without its entries; times and numbers of entries as in `layout.TOTALS`."""

    passed_ms: int
    counters: JoinCounters
    join_models: JoinModelsState
    dedup: DedupState
    early: int
    unmatched: int
    retained: int
    start_ms: int | None
    order: OrderTotals
    clock_ms: int
    pairing: PairingState = field(default_factory=PairingState)
    fold_streams: dict[Name, Stream] = field(default_factory=dict[str, Stream])


def totals_of(
    arrays: Arrays,
    join_models: JoinModelsState,
    counters: JoinCounters,
    order: OrderTotals,
    pairing: PairingState,
    fold_streams: dict[str, Stream],
) -> JoinTotals:
    """Build the totals that a commit writes in addition to the entries."""
    t = arrays.totals[0]
    start_ms = int(arrays.limits["start_ms"][0])
    closed = [
        Generation(int(g["number"]), int(g["count"]), int(g["newest_ms"]))
        for g in (
            arrays.generations[(int(t["closed_start"]) + k) % GENERATIONS_KEPT]
            for k in range(int(t["closed"]))
        )
    ]
    opened = Generation(int(t["generation"]), int(t["open_entries"]), int(t["open_newest_ms"]))
    return JoinTotals(
        int(t["passed_ms"]),
        counters,
        join_models,
        DedupState(closed, opened, int(t["opened_ms"]), int(t["dedup_clock_ms"]), int(t["floor"])),
        int(t["early"]),
        int(t["unmatched"]),
        int(t["retained"]),
        None if start_ms == NO_TIME else start_ms,
        order,
        int(t["clock_ms"]),
        pairing,
        fold_streams,
    )


def restored_totals(
    totals: JoinTotals, ends: dict[int, tuple[int, int]], count: int, pending: int
) -> NDArray[np.void]:
    """Build `TOTALS` of a join whose entries are not linked yet."""
    dedup = totals.dedup
    first, end = ends.get(dedup.opened.number, (-1, 0))
    return one_record(
        TOTALS,
        free=-1,
        top=count,
        pending=pending,
        early=totals.early,
        unmatched=totals.unmatched,
        retained=totals.retained,
        first=-1,
        last=-1,
        generation=dedup.opened.number,
        floor=dedup.floor,
        open_entries=dedup.opened.count,
        open_newest_ms=dedup.opened.newest_ms,
        open_first=first,
        open_last=end - 1,
        opened_ms=dedup.opened_ms,
        dedup_clock_ms=dedup.clock_ms,
        closed=len(dedup.closed),
        closed_entries=sum(each.count for each in dedup.closed),
        dead_first=-1,
        dead_last=-1,
        passed_ms=totals.passed_ms,
        clock_ms=totals.clock_ms,
        used=count,
        pair_generation=-1,
        partners_ms=NEVER_MS,
    )


def restored_generations(dedup: DedupState, ends: dict[int, tuple[int, int]]) -> NDArray[np.void]:
    """Build the ring of `GENERATION` records; `ends` holds the index range of each generation's entries."""
    generations = np.zeros(GENERATIONS_KEPT, GENERATION)
    for g, each in zip(generations, dedup.closed, strict=False):
        first, end = ends.get(each.number, (-1, 0))
        g["number"], g["count"], g["newest_ms"] = each.number, each.count, each.newest_ms
        g["first"], g["last"] = first, end - 1
    return generations
