"""Parts that id buckets in columns send to model buckets: outcomes and places packed as one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.columns.id_join import RESOLUTION, PlacedOutcomes
from streamwatch.core.buckets.columns.name_numbers import NameNumbers
from streamwatch.core.buckets.columns.prediction_places import PLACE_COLUMNS
from streamwatch.core.buckets.parts import Activity, InvalidOfModel
from streamwatch.core.join.compiled.durable.packed import PackedError, pack_columns, unpack_columns
from streamwatch.core.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch, Pairs, joined_pairs

_OF_OUTCOMES: Final = (
    "event_ms",
    "delay_ms",
    "model",
    "true_class",
    "predicted_class",
    "scores",
    "assumed",
)
_COUNT: Final = len(_OF_OUTCOMES) + 1 + len(RESOLUTION) + len(PLACE_COLUMNS)


class PackedOutcomes(msgspec.Struct, array_like=True, frozen=True):
    """Outcomes as bytes; numbers of scores are indices in `scores`, and segments are a separate column."""

    columns: bytes
    models: Sequence[str]
    classes: Sequence[str]
    segments: Sequence[str]
    scores: Sequence[dict[str, float]]
    pairs: bytes = b""
    """Packed columns `outcomes.Pairs`; empty without any."""

    def unpacked(self) -> PlacedOutcomes:
        """Unpack the outcomes; raises PackedError if a number has no name."""
        columns = unpack_columns(self.columns, _COUNT)
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
            (len(self.scores), int(records["scores"].max(initial=-1))),
        ):
            if largest >= most:
                raise PackedError(f"expected numbers of {most} names or scores, got {largest}")
        scored = records["scores"]
        scored_segments = dict(zip(scored[scored >= 0].tolist(), named[scored >= 0].tolist(), strict=True))
        records["scores"] = np.where((scored < 0) & (named >= 0), named + SEGMENTS_FROM, scored)
        places = [column.astype(np.int64) for column in columns[len(_OF_OUTCOMES) + 1 :]]
        outcomes = OutcomeBatch(
            records,
            self.models,
            self.classes,
            dict(enumerate(self.scores)),
            self.segments,
            scored_segments,
            self._pairs(len(records)),
        )
        resolved, accepted = places[: len(RESOLUTION)], places[len(RESOLUTION) :]
        return PlacedOutcomes(outcomes, np.stack(resolved, axis=1), np.stack(accepted, axis=1))

    def _pairs(self, outcomes: int) -> Pairs | None:
        if not self.pairs:
            return None
        pairs = np.stack(unpack_columns(self.pairs, 3), axis=1).astype(np.int32)
        if (pairs < 0).any() or (pairs >= (outcomes, len(self.models), len(self.classes))).any():
            raise PackedError(f"expected pairs of {outcomes} outcomes, got numbers without a name")
        return pairs


class ColumnPart(msgspec.Struct, array_like=True, frozen=True, tag="columns"):
    """Share of one model bucket in the results of one id bucket in one batch; see `parts.Part`."""

    bucket: int
    sender: int
    reached_ms: int
    ended: bool
    ticks: Sequence[int]
    outcomes: PackedOutcomes
    activities: Sequence[Activity]
    invalid: Sequence[InvalidOfModel]


ENCODER: Final = msgspec.msgpack.Encoder()
PARTS: Final = msgspec.msgpack.Decoder(ColumnPart)


class OutcomeParts:
    """Outcomes of one batch, from which those of each model bucket are selected.

    Parameters
    ----------
    outcomes
        Outcomes in order, each with its own names and numbers.
    ranks
        Ranks of partitions by number, which replace the numbers in places.
    """

    def __init__(self, outcomes: Sequence[PlacedOutcomes], ranks: Sequence[int]) -> None:
        self._models, self._classes, self._segments = NameNumbers(), NameNumbers(), NameNumbers()
        self._scores: list[dict[str, float]] = []
        found = [self._columns(each) for each in outcomes]
        self._columns_of_all = np.concatenate(found) if found else np.zeros((0, _COUNT), np.int64)
        self._pairs = self._all_pairs([each.outcomes for each in outcomes])
        by_number = np.array([*ranks, 0], np.int64)
        for at in (_COUNT - len(PLACE_COLUMNS) - len(RESOLUTION) + 1, _COUNT - len(PLACE_COLUMNS) + 1):
            self._columns_of_all[:, at] = by_number[self._columns_of_all[:, at]]

    @property
    def models(self) -> Sequence[str]:
        """Names of the models with outcomes, and of their partners."""
        return list(self._models.by_name)

    def of(self, models: NDArray[np.bool_]) -> PackedOutcomes:
        """Pack the outcomes of some models; the mask is by index in `models`."""
        columns = self._columns_of_all
        chosen = columns[models[columns[:, 2]]] if len(columns) else columns
        scores: list[dict[str, float]] = []
        scored = np.flatnonzero(chosen[:, 5] >= 0)
        if len(scored):
            scores = [self._scores[number] for number in chosen[scored, 5].tolist()]
            chosen[scored, 5] = np.arange(len(scores))
        names = (self.models, list(self._classes.by_name), list(self._segments.by_name))
        pairs = b""
        if self._pairs is not None:
            kept = models[columns[:, 2]]
            own = self._pairs[kept[self._pairs[:, 0]]]
            own[:, 0] = (np.cumsum(kept) - 1)[own[:, 0]]
            pairs = pack_columns(list(np.ascontiguousarray(own.T.astype(np.int64)))) if len(own) else b""
        return PackedOutcomes(pack_columns(list(np.ascontiguousarray(chosen.T))), *names, scores, pairs)

    def _all_pairs(self, parts: Sequence[OutcomeBatch]) -> Pairs | None:
        """Pairs of all outcomes, with the numbers here."""
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

    def _columns(self, placed: PlacedOutcomes) -> NDArray[np.int64]:
        outcomes, records = placed.outcomes, placed.outcomes.records
        found = np.empty((len(records), _COUNT), np.int64)
        found[:, 0], found[:, 1] = records["event_ms"], records["delay_ms"]
        found[:, 2] = self._models.of(records["model"], outcomes.models)
        found[:, 3] = self._classes.of(records["true_class"], outcomes.classes)
        found[:, 4] = self._classes.of(records["predicted_class"], outcomes.classes)
        found[:, 5] = -1
        if outcomes.scores:
            numbers = records["scores"]
            scored = np.flatnonzero((numbers >= 0) & (numbers < SEGMENTS_FROM))
            found[scored, 5] = len(self._scores) + np.arange(len(scored))
            self._scores += [outcomes.scores[number] for number in numbers[scored].tolist()]
        found[:, 6] = records["assumed"]
        segments = outcomes.segment_numbers()
        found[:, 7] = -1 if segments is None else self._segments.of(segments, outcomes.segments)
        found[:, 8 : 8 + len(RESOLUTION)] = placed.resolved
        found[:, 8 + len(RESOLUTION) :] = placed.accepted
        return found
