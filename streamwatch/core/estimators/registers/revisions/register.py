"""Register of revisions: sums of first and last predictions of every model, by waiting time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.fingerprints import fingerprint
from streamwatch.core.estimators.names import Batch, Classes
from streamwatch.core.estimators.registers.late_labels.geometry import BINS, geometry_of
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.revisions.comparison import compared
from streamwatch.core.estimators.registers.revisions.document import document_of
from streamwatch.core.estimators.registers.revisions.measures import MEASURES
from streamwatch.core.estimators.registers.revisions.observe import observe
from streamwatch.core.estimators.registers.revisions.sums import ALL_OUTCOMES, COUNTS, SQUARES, SUMS, WEIGHT
from streamwatch.core.estimators.samples import Slice
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.series import Sample

VERSION: Final = 1
"""Incremented when the meaning of the state changes."""


class _RegisterState(msgspec.Struct, frozen=True, array_like=True):
    counts: list[int]
    bins: list[tuple[int, list[float]]]
    """Number and sums of each bin with outcomes."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_RegisterState)


class Revisions:
    """First and last predictions of up to `capacity` models; takes O(1) per outcome and 1.1 kB per model."""

    def __init__(self, spec: RevisionsSpec, capacity: int) -> None:
        self._geometry = geometry_of(spec.horizon_ms)
        self._sums = np.zeros((capacity, BINS, SUMS))
        self._counts = np.zeros((capacity, COUNTS), np.int64)
        self._factors = np.full(SUMS, spec.alpha)
        self._factors[SQUARES] = spec.alpha * spec.alpha
        self.section = fingerprint("revisions", (spec, BINS), None, VERSION)
        self.title = f"revisions, fading:{spec.alpha!r}"

    def observe(self, batch: Batch) -> None:
        """Compare first and last predictions of outcomes with their labels."""
        first = batch.true_class == batch.predicted_class
        last, revised = first, np.zeros(len(first), np.bool_)
        if not isinstance(batch.outcomes, OutcomeBatch):  # outcomes in columns have no revised predictions
            last = first.copy()
            for position, outcome in enumerate(batch.outcomes):
                if outcome.last_class is not None:
                    last[position] = outcome.last_class == outcome.true_class
                    revised[position] = outcome.last_class != outcome.predicted_class
        edges_ms = self._geometry.edges_ms
        observe(
            self._sums, self._counts, edges_ms, self._factors, batch.rows, first, last, revised,
            batch.delay_ms,
        )  # fmt: skip

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._sums[row] = 0.0
        self._counts[row] = 0

    def snapshot(self, row: int) -> bytes:
        """Encode the state of a row; the same outcomes give the same bytes."""
        sums = self._sums[row]
        used: list[int] = np.flatnonzero(sums[:, WEIGHT]).tolist()
        return _ENCODER.encode(
            _RegisterState(self._counts[row].tolist(), [(k, sums[k].tolist()) for k in used])
        )

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
        """
        kept = _DECODER.decode(state)
        if len(kept.counts) != COUNTS:
            raise ValueError(f"expected {COUNTS} counts of revisions, got {len(kept.counts)}")
        for number, sums in kept.bins:
            if not 0 <= number < BINS or len(sums) != SUMS:
                raise ValueError(
                    f"expected {SUMS} sums of one of {BINS} waiting times, got {len(sums)} of {number}"
                )
        self._counts[row] = kept.counts
        for number, sums in kept.bins:
            self._sums[row, number] = sums

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Accuracies of first and last predictions, their difference, and the share revised."""
        found: dict[str, list[Sample]] = {measure.name: [] for measure in MEASURES}
        for one in chosen:
            said = compared(self._sums[one.row].sum(axis=0))
            for measure in MEASURES:
                if isfinite(value := measure.of(said)):
                    found[measure.name].append(((one.model,), value))
        return found

    def details(self, row: int, classes: Classes) -> Mapping[str, object]:
        """Both accuracies, their difference with its interval, and the same by waiting time."""
        counts: NDArray[np.int64] = self._counts[row]
        if not classes or not counts[ALL_OUTCOMES]:
            return {}
        sums = self._sums[row]
        by_bin = [compared(sums[k]) for k in range(BINS)]
        whole = compared(sums.sum(axis=0))
        return {"revisions": document_of(counts, whole, by_bin, self._geometry.edges_ms)}
