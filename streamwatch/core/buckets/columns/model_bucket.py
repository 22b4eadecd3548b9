"""A bucket of models that takes outcomes in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from streamwatch.core.buckets.columns.parts import PARTS
from streamwatch.core.buckets.columns.sequence import ColumnSequence
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
