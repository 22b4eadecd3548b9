"""A bucket of models that takes outcomes in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from streamwatch.core.buckets.columns.parts import PARTS
from streamwatch.core.buckets.columns.sequence import ColumnSequence
from streamwatch.core.buckets.label_history import LabelHistories
from streamwatch.core.buckets.model_bucket import ModelBucket
from streamwatch.core.buckets.parts import Part
from streamwatch.core.buckets.spec import BucketsSpec


class ColumnModelBucket(ModelBucket):
    """A `contract.Keeper` of models whose id buckets are in columns.

    It does what `ModelBucket` does. Its log is its own: neither reads the other's.

    Parameters
    ----------
    number
        Which of the model buckets it is, from 0.
    spec
        How the stream is cut.
    """

    FORM: ClassVar[str] = " in columns"
    sequence: ColumnSequence

    def _sequence_of(self, number: int, spec: BucketsSpec) -> ColumnSequence:
        return ColumnSequence(number, spec)

    def _read(self, pieces: Sequence[bytes]) -> Sequence[Part]:
        parts = [PARTS.decode(piece) for piece in pieces]
        self.sequence.take([part.outcomes.unpacked() for part in parts])
        return [
            Part(
                part.bucket,
                part.sender,
                part.reached_ms,
                part.ended,
                list(part.ticks),
                [],
                list(part.activities),
                list(part.invalid),
                [],
            )
            for part in parts
        ]

    def take_in(self, delta: bytes) -> None:
        """See `contract.Keeper`."""
        super().take_in(delta)
        sequence = self.sequence
        if histories := sequence.histories.state():  # of a base
            sequence.labels.restore(histories)
            sequence.histories = LabelHistories()

    def base(self) -> list[bytes]:
        """See `contract.Keeper`."""
        sequence = self.sequence
        sequence.histories.restore(sequence.labels.state(self.reached_ms - sequence.kept_ms))
        parts = super().base()
        sequence.histories = LabelHistories()
        return parts
