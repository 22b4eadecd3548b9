"""Models and totals of a compiled join, as a commit writes them in addition to the entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.durable.columns import PackedError, pack_table, unpack_columns
from streamwatch.core.join.layout import (
    GENERATION,
    GENERATIONS_KEPT,
    NEVER_MS,
    NO_TIME,
    TOTALS,
    Arrays,
    one_record,
)
from streamwatch.core.join.models import JoinModels, ModelActivity
from streamwatch.core.join.pairing import PairingState
from streamwatch.core.join.prediction_order import OrderTotals
from streamwatch.core.join.table import DedupState, Generation
from streamwatch.core.records.events import Name

# State of the models of a join: names, and their activity in packed columns.


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
    """State of the models of the join, in columns, as one commit may write that of 10,000 models."""

    names: list[Name]
    """Names of the models, in order of admission."""
    classes: list[Name]
    """Last labels of the models, each once, sorted."""
    topics: list[Name]
    """Topics of the models' predictions and labels, each once, sorted."""
    activity: bytes
    """Packed columns `NUMBERS` and `NAMES`, a row for each model; names by their numbers, -1 for none."""
    looked_s: int
    """Second of the clock at which models were examined last; -1 before."""
    next_look_s: int
    """Second before which no model can be idle."""

    @property
    def looked(self) -> tuple[int, int]:
        """Both of these seconds, as `JoinModels.restore` takes them."""
        return self.looked_s, self.next_look_s

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
    used: list[int] = np.flatnonzero(np.bincount(numbers.reshape(-1) + 1)[1:]).tolist()
    used.sort(key=names.__getitem__)
    ranks = np.full(max(used, default=-1) + 2, -1, np.int64)  # -1 stands for the last one
    ranks[used] = np.arange(len(used))
    return [names[number] for number in used], ranks[numbers]


def state_of_models(join_models: JoinModels) -> JoinModelsState:
    """Build the state of the models of a join from its objects."""
    models = list(join_models.models.values())
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
        list(join_models.models),
        np.array(numbers, np.int64),
        np.array(named, np.int64),
        list(classes),
        list(topics),
        join_models.looked,
    )


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
