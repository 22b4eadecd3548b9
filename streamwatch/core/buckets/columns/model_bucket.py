"""Model bucket that takes outcomes in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from streamwatch.core.buckets.columns.parts import PARTS
from streamwatch.core.buckets.columns.sequence import ColumnSequence
from streamwatch.core.buckets.model_bucket import ModelBucket
from streamwatch.core.buckets.parts import Part
from streamwatch.core.buckets.spec import BucketsSpec


class ColumnModelBucket(ModelBucket):
    """Model bucket (`contract.Bucket`) for id buckets in columns.

    Equivalent to `ModelBucket`, except that neither can read the other's log.

    Parameters
    ----------
    number
        Number of the model bucket, from 0.
    spec
        Partitioning of the stream.
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
