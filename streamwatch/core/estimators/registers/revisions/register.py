"""Register of revisions: sums of first and last predictions of every model, by waiting time."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.names import Batch, Classes, Details, Slice
from streamwatch.core.estimators.registers.late_labels.observe import BINS, geometry_of
from streamwatch.core.estimators.registers.revisions import (
    ALL_GAINED,
    ALL_LOST,
    ALL_OUTCOMES,
    ALL_REVISED,
    COUNTS,
    FIRST,
    GAINED,
    LOST,
    MEASURES,
    REVISED,
    SQUARES,
    SUMS,
    WEIGHT,
    Comparison,
    RevisionsSpec,
    compared,
)
from streamwatch.core.jit import entry
from streamwatch.core.metrics.series import Sample
from streamwatch.core.ranges import MOST_COUNTED, require, require_all

# JSON document of a model's revisions for the API.


def document_of(
    counts: NDArray[np.int64],
    whole: Comparison,
    by_bin: Sequence[Comparison],
    edges_ms: NDArray[np.int64],
) -> dict[str, object]:
    """Build counts since the register's start, and faded comparisons; undefined values are absent.

    Parameters
    ----------
    counts
        Counts of a model with outcomes, shape (4,).
    whole
        Comparison over all its outcomes.
    by_bin
        Comparison in each bin of waiting time.
    edges_ms
        Edges of the bins, shape (len(by_bin) + 1,).
    """
    there = [k for k, comparison in enumerate(by_bin) if isfinite(comparison.first)]
    gain: dict[str, float] = {"value": whole.gain, "effective_sample_size": whole.n_eff}
    if isfinite(whole.lower):
        gain |= {"lower": whole.lower, "upper": whole.upper}
    return {
        "outcomes": int(counts[ALL_OUTCOMES]),
        "revised": int(counts[ALL_REVISED]),
        "gained": int(counts[ALL_GAINED]),
        "lost": int(counts[ALL_LOST]),
        "first_accuracy": whole.first,
        "last_accuracy": whole.last,
        "revised_ratio": whole.revised,
        "gain": gain,
        "by_waiting_time": {
            "over_seconds": [int(edges_ms[k]) / 1000 for k in there],
            "up_to_seconds": [int(edges_ms[k + 1]) / 1000 for k in there],
            "weight": [by_bin[k].weight for k in there],
            "first_accuracy": [by_bin[k].first for k in there],
            "last_accuracy": [by_bin[k].last for k in there],
            "revised_ratio": [by_bin[k].revised for k in there],
        },
    }


# Compiled loop over outcomes: faded sums of first and last predictions by waiting time, for all models.


_NOTHING = 1e-100
"""Weight below which a bin is reset, as arithmetic with denormal numbers is slow."""


@entry
def observe(sums, counts, edges_ms, factors, rows, first, last, revised, delay_ms):
    """Add outcomes.

    Parameters
    ----------
    sums
        float64 (models, bins, 6), changed.
    counts
        int64 (models, 4), changed.
    edges_ms
        int64 (bins + 1,): a waiting time t lies in bin k where edges_ms[k] < t ≤ edges_ms[k + 1]; 0 lies in
        the first bin, and a time beyond the last edge in the last.
    factors
        float64 (6,): factor of each column per outcome.
    rows, first, last, revised, delay_ms
        int32, bool, bool, bool, int64 (n,): row of the model, whether its first and its last prediction were
        right, whether they differ, and the waiting time.
    """
    bins = sums.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        for k in range(bins):
            if sums[row, k, WEIGHT] <= 0.0:
                continue
            for c in range(SUMS):
                sums[row, k, c] *= factors[c]
            if sums[row, k, WEIGHT] < _NOTHING:
                for c in range(SUMS):
                    sums[row, k, c] = 0.0
        k = 0
        while k < bins - 1 and delay_ms[i] > edges_ms[k + 1]:
            k += 1
        gained = last[i] and not first[i]
        lost = first[i] and not last[i]
        sums[row, k, WEIGHT] += 1.0
        sums[row, k, SQUARES] += 1.0
        counts[row, ALL_OUTCOMES] += 1
        if first[i]:
            sums[row, k, FIRST] += 1.0
        if gained:
            sums[row, k, GAINED] += 1.0
            counts[row, ALL_GAINED] += 1
        if lost:
            sums[row, k, LOST] += 1.0
            counts[row, ALL_LOST] += 1
        if revised[i]:
            sums[row, k, REVISED] += 1.0
            counts[row, ALL_REVISED] += 1


_ROUNDING: Final = 1e-9
"""Part by which rounding may have made a sum larger than that of which it is a part."""
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
        records = batch.outcomes.records
        kept = records["last_class"] - 1
        last = np.where(kept >= 0, kept == records["true_class"], first)
        revised = (kept >= 0) & (kept != records["predicted_class"])
        edges_ms = self._geometry.edges_ms
        observe(
            self._sums, self._counts, edges_ms, self._factors, batch.rows, first, last, revised,
            batch.delay_ms,
        )  # fmt: skip

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._sums[row] = 0.0
        self._counts[row] = 0

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows; the same outcomes give the same bytes."""
        return [self._snapshot(row) for row in rows.tolist()]

    def _snapshot(self, row: int) -> bytes:
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
            most = sums[WEIGHT] * (1.0 + _ROUNDING)
            require("revisions", "weight", sums[WEIGHT], 0, MOST_COUNTED)
            require_all("revisions", "sum", np.array(sums), 0.0, most)
            require("revisions", "weight of what was gained and lost", sums[GAINED] + sums[LOST], 0, most)
        self._counts[row] = kept.counts
        for number, sums in kept.bins:
            self._sums[row, number] = sums

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Accuracies of first and last predictions, their difference, and the share revised."""
        found: dict[str, list[Sample]] = {measure.name: [] for measure in MEASURES}
        for one in chosen:
            comparison = compared(self._sums[one.row].sum(axis=0))
            for measure in MEASURES:
                if isfinite(value := measure.of(comparison)):
                    found[measure.name].append(((one.model,), value))
        return found

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Both accuracies, their difference with its interval, and the same by waiting time."""
        return [self._details(one.row, one.classes) for one in chosen].__getitem__

    def _details(self, row: int, classes: Classes) -> Mapping[str, object]:
        counts: NDArray[np.int64] = self._counts[row]
        if not classes or not counts[ALL_OUTCOMES]:
            return {}
        sums = self._sums[row]
        by_bin = [compared(sums[k]) for k in range(BINS)]
        whole = compared(sums.sum(axis=0))
        return {"revisions": document_of(counts, whole, by_bin, self._geometry.edges_ms)}
