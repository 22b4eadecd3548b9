"""Parts that id buckets send to model buckets: outcomes and their positions, packed as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.contract import DUE, RECORD, Activity, InvalidOfModel
from streamwatch.core.buckets.id_join import RESOLUTION, PositionedOutcomes
from streamwatch.core.buckets.made import POSITION_COLUMNS, PackedPredictions
from streamwatch.core.buckets.pieces import NameNumbers
from streamwatch.core.join.durable.columns import PackedError, carried_in, pack_columns, unpack_columns
from streamwatch.core.join.durable.packed_scores import pack_scores, unpack_scores
from streamwatch.core.records.batch import Records
from streamwatch.core.records.events import CARRIED, Name
from streamwatch.core.records.outcomes import (
    OUTCOME,
    PAIR_COLUMNS,
    SEGMENTS_FROM,
    OutcomeBatch,
    Pairs,
    joined_pairs,
)
from streamwatch.core.records.scores import NO_LISTS, ScoreLists, joined_lists

_OF_OUTCOMES: Final = (
    "event_ms",
    "delay_ms",
    "model",
    "true_class",
    "predicted_class",
    "scores",
    "assumed",
)
_POSITIONS: Final = len(_OF_OUTCOMES) + 1
_MORE: Final = _POSITIONS + len(RESOLUTION) + len(POSITION_COLUMNS)
_LAST_CLASS: Final = _MORE + 3
_COUNT: Final = _LAST_CLASS + 1 + len(CARRIED)
"""Columns: `_OF_OUTCOMES`, segments, positions, time of the prediction, halves of the digest, last class and
the numbers of `core.records.events.CARRIED`.

Columns from `_MORE` on are left out if no setting needs them.
"""
WINDOW: Final = ("time_ms", "kind", *POSITION_COLUMNS, "own_ms")
"""Columns of windows: time and kind of the resolution, the rest of its position, time of the prediction."""


class PackedOutcomes(msgspec.Struct, array_like=True, frozen=True):
    """Outcomes as bytes; segments have a column of their own, and scores are packed separately."""

    columns: bytes
    models: Sequence[Name]
    classes: Sequence[Name]
    segments: Sequence[Name]
    scores: bytes = b""
    """As `pack_scores` packs them; empty without any."""
    pairs: bytes = b""
    """Packed columns `outcomes.Pairs`; empty without any."""

    def unpacked(self) -> PositionedOutcomes:
        """Unpack the outcomes; raises PackedError if a number has no name."""
        columns = unpack_columns(self.columns, _COUNT if self.columns[1:2] == bytes([_COUNT]) else _MORE)
        records = np.zeros(len(columns[0]), OUTCOME)
        for name, column in zip(_OF_OUTCOMES, columns, strict=False):
            records[name] = column
        records["label_at_prediction"] = -1
        named = columns[len(_OF_OUTCOMES)]
        segments = (len(self.segments), int(named.max(initial=-1)))
        for most, largest in (
            segments,
            (len(self.models), int(records["model"].max(initial=-1))),
            (len(self.classes), int(records["true_class"].max(initial=-1))),
            (len(self.classes), int(records["predicted_class"].max(initial=-1))),
        ):
            if largest >= most:
                raise PackedError(f"expected numbers of {most} names or scores, got {largest}")
        records["scores"] = np.where(named >= 0, named + SEGMENTS_FROM, -1)
        scores = self._scores_of(records, named.astype(np.int32))
        positions = [column.astype(np.int64) for column in columns[_POSITIONS:_MORE]]
        records["resolved_ms"] = positions[0]
        records["waited_ms"] = positions[0] - positions[len(RESOLUTION)]
        own_ms = np.zeros(len(records), np.int64)
        if len(columns) > _MORE:
            own_ms, low, high, last, *carried = (column.astype(np.int64) for column in columns[_MORE:])
            records["low"], records["high"] = low.view(np.uint64), high.view(np.uint64)
            self._set_last_classes(records, last)
            records["carried"] = carried_in(carried)
        outcomes = OutcomeBatch(
            records,
            self.models,
            self.classes,
            scores,
            self.segments,
            self._pairs(len(records)),
        )
        resolved, accepted = positions[: len(RESOLUTION)], positions[len(RESOLUTION) :]
        return PositionedOutcomes(outcomes, np.stack(resolved, axis=1), np.stack(accepted, axis=1), own_ms)

    def _scores_of(self, records: Records, segments: NDArray[np.int32]) -> ScoreLists:
        """Unpack the scores, and give their numbers to the outcomes."""
        if not self.scores:
            return NO_LISTS
        scored, scores = unpack_scores(self.scores, len(records))
        if int(scores.classes.max(initial=-1)) >= len(self.classes):
            raise PackedError(f"expected numbers of {len(self.classes)} classes, got {scores.classes.max()}")
        records["scores"][scored] = np.arange(len(scored))
        return replace(scores, beside=segments[scored])

    def _set_last_classes(self, records: Records, last: NDArray[np.int64]) -> None:
        if not 0 <= int(last.min(initial=0)) <= int(last.max(initial=0)) <= len(self.classes):
            raise PackedError(f"expected 1 + numbers of {len(self.classes)} classes, got {last.max()}")
        records["last_class"] = last

    def _pairs(self, outcomes: int) -> Pairs | None:
        if not self.pairs:
            return None
        pairs = np.stack(unpack_columns(self.pairs, PAIR_COLUMNS), axis=1).astype(np.int32)
        named = pairs[:, :3]
        if (named < 0).any() or (named >= (outcomes, len(self.models), len(self.classes))).any():
            raise PackedError(f"expected pairs of {outcomes} outcomes, got numbers without a name")
        return pairs


class ColumnPart(msgspec.Struct, array_like=True, frozen=True, tag="columns"):
    """Share of one model bucket in the results of one id bucket in one batch."""

    bucket: int
    """Number of the model bucket."""
    sender: int
    """Number of the id bucket."""
    reached_ms: int
    """Time that the batch has reached; -1 if no record has a time yet."""
    ended: bool
    """Whether the log ends with this batch (the end of a replay)."""
    ticks: Sequence[int]
    """Times of the first record in each second, among those of this id bucket."""
    outcomes: PackedOutcomes
    accepted: PackedPredictions
    """Predictions accepted in this batch."""
    activities: Sequence[Activity]
    invalid: Sequence[InvalidOfModel]
    clocks: bytes = b""
    """Packed column of all times of this id bucket's records; only where outcomes wait for their order."""
    windows: bytes = b""
    """Packed columns `WINDOW`; likewise."""

    def unpacked_clocks(self) -> NDArray[np.int64]:
        """Times of records, shape (n,), ascending."""
        return _unpacked(self.clocks, 1)[:, 0]

    def unpacked_windows(self) -> NDArray[np.int64]:
        """Columns `WINDOW`, shape (n, 7)."""
        return _unpacked(self.windows, len(WINDOW))


ENCODER: Final = msgspec.msgpack.Encoder()
PARTS: Final = msgspec.msgpack.Decoder(ColumnPart)


def _unpacked(value: bytes, columns: int) -> NDArray[np.int64]:
    if not value:
        return np.zeros((0, columns), np.int64)
    return np.stack([column.astype(np.int64) for column in unpack_columns(value, columns)], axis=1)


def pack_rows(rows: NDArray[np.int64]) -> bytes:
    """Pack rows of numbers, shape (n, columns), column by column."""
    return pack_columns(list(np.ascontiguousarray(rows.T)))


class OutcomeParts:
    """Outcomes of one batch, from which those of each model bucket are selected.

    Parameters
    ----------
    outcomes
        Outcomes in order, each with its own names and numbers.
    ranks
        Ranks of partitions by number, which replace the numbers in positions.
    complete
        Whether outcomes carry the time of their prediction, the digest of their id, the class predicted last,
        and with which probability their label was asked for.
    """

    def __init__(
        self, outcomes: Sequence[PositionedOutcomes], ranks: Sequence[int], *, complete: bool = False
    ) -> None:
        self._count = _COUNT if complete else _MORE
        self._models, self._classes, self._segments = NameNumbers(), NameNumbers(), NameNumbers()
        self._scores = [NO_LISTS]
        self._scored = 0
        found = [self._columns(each) for each in outcomes]
        self._columns_of_all = np.concatenate(found) if found else np.zeros((0, self._count), np.int64)
        self._pairs = self._all_pairs([each.outcomes for each in outcomes])
        by_number = np.array([*ranks, 0], np.int64)
        for at in (_POSITIONS + 1, _POSITIONS + len(RESOLUTION) + 1):
            self._columns_of_all[:, at] = by_number[self._columns_of_all[:, at]]

    @property
    def models(self) -> Sequence[str]:
        """Names of the models with outcomes, and of their partners."""
        return list(self._models.by_name)

    def of(self, models: NDArray[np.bool_]) -> PackedOutcomes:
        """Pack the outcomes of some models; the mask is by index in `models`."""
        columns = self._columns_of_all
        chosen = columns[models[columns[:, 2]]] if len(columns) else columns
        scored = np.flatnonzero(chosen[:, 5] >= 0)
        scores = pack_scores(scored, joined_lists(self._scores).only(chosen[scored, 5]))
        chosen[:, 5] = -1
        names = (self.models, list(self._classes.by_name), list(self._segments.by_name))
        pairs = b""
        if self._pairs is not None:
            kept = models[columns[:, 2]]
            own = self._pairs[kept[self._pairs[:, 0]]]
            own[:, 0] = (np.cumsum(kept) - 1)[own[:, 0]]
            pairs = pack_rows(own.astype(np.int64)) if len(own) else b""
        return PackedOutcomes(pack_rows(chosen), *names, scores, pairs)

    def windows(self) -> bytes:
        """Pack columns `WINDOW`: the newest prediction resolved at each time by each kind of resolution."""
        columns = self._columns_of_all
        assumed = columns[:, 6] != 0
        resolved = columns[:, _POSITIONS : _POSITIONS + len(RESOLUTION)]
        within = np.where(assumed[:, None], columns[:, _POSITIONS + len(RESOLUTION) : _MORE], resolved[:, 1:])
        kinds = np.where(assumed, DUE, RECORD)
        rows = np.column_stack([resolved[:, 0], kinds, within, columns[:, _MORE]])
        rows = rows[np.lexsort((*within.T[::-1], rows[:, -1], kinds, rows[:, 0]))]
        is_last = np.concatenate([(rows[1:, :2] != rows[:-1, :2]).any(axis=1), [True]])[: len(rows)]
        return pack_rows(rows[is_last])

    def _all_pairs(self, parts: Sequence[OutcomeBatch]) -> Pairs | None:
        """Pairs of all outcomes, with numbers of models and classes translated to those of this object."""
        pairs = joined_pairs(parts)
        if pairs is None:
            return None
        at = 0
        for part in parts:
            if part.pairs is not None:
                own = pairs[at : at + len(part.pairs)]
                own[:, 1] = self._models.of(part.pairs[:, 1], part.models)
                own[:, 2] = self._classes.of(part.pairs[:, 2], part.classes)
                at += len(own)
        return pairs

    def _columns(self, positioned: PositionedOutcomes) -> NDArray[np.int64]:
        outcomes, records = positioned.outcomes, positioned.outcomes.records
        found = np.empty((len(records), self._count), np.int64)
        found[:, 0], found[:, 1] = records["event_ms"], records["delay_ms"]
        found[:, 2] = self._models.of(records["model"], outcomes.models)
        found[:, 3] = self._classes.of(records["true_class"], outcomes.classes)
        found[:, 4] = self._classes.of(records["predicted_class"], outcomes.classes)
        found[:, 5] = -1
        scored, scores = outcomes.own_scores()
        found[scored, 5] = self._scored + np.arange(len(scored))
        self._scored += len(scored)
        self._scores.append(replace(scores, classes=self._classes.of(scores.classes, outcomes.classes)))
        found[:, 6] = records["assumed"]
        segments = outcomes.segment_numbers()
        found[:, 7] = -1 if segments is None else self._segments.of(segments, outcomes.segments)
        found[:, _POSITIONS : _POSITIONS + len(RESOLUTION)] = positioned.resolved
        found[:, _POSITIONS + len(RESOLUTION) : _MORE] = positioned.accepted
        if self._count > _MORE:
            found[:, _MORE] = positioned.own_ms
            found[:, _MORE + 1] = records["low"].view(np.int64)
            found[:, _MORE + 2] = records["high"].view(np.int64)
            found[:, _LAST_CLASS] = self._classes.of(records["last_class"] - 1, outcomes.classes) + 1
            found[:, _LAST_CLASS + 1 :] = records["carried"]
        return found
