"""Register of late labels: outcomes by the time of their predictions, and accuracies from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import isfinite
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.estimators.registers.late_labels.accuracy import (
    LEAST_SHARE,
    Estimate,
    Estimates,
    OneShare,
    changes_of,
    estimates_of,
)
from streamwatch.core.estimators.registers.late_labels.observe import (
    BINS,
    BUCKETS,
    ERROR,
    HIT,
    Geometry,
    geometry_of,
)
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing, RingSnapshot
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.metrics.metric import gauge
from streamwatch.core.metrics.series import Columns, ModelKeys
from streamwatch.core.records.events import DelayKind, ErrorChange
from streamwatch.core.specs import DAY_MS

_CHANGES: Final = 256
"""Number of changes located at once, with 13 kB each."""

# JSON document of a model's late labels for the API.


WhyUndefined: TypeAlias = Literal["too_few_settled", "hits_too_late", "errors_too_late", "too_few_recent"]


def why_undefined(estimate: Estimate, geometry: Geometry) -> WhyUndefined | None:
    """Find why there is no corrected accuracy; None where there is one.

    Returns
    -------
    why
        `too_few_settled`: fewer than 30 predictions are a horizon old. `hits_too_late`, `errors_too_late`: at
        an age of half a horizon, the age of the oldest predictions used, fewer than a fifth of these labels
        have arrived, as when a dispute window closes then; only the settled accuracy estimates the
        model's accuracy, then and later. `too_few_recent`: of recent predictions fewer than 30 have labels.
    """
    if isfinite(estimate.corrected.value):
        return None
    if not isfinite(estimate.settled.value):
        return "too_few_settled"
    edges_ms = geometry.edges_ms.astype(np.float64)
    hits, errors = (np.interp(geometry.horizon_ms / 2, edges_ms, estimate.shares[z]) for z in (HIT, ERROR))
    if min(hits, errors) < LEAST_SHARE:
        return "hits_too_late" if hits <= errors else "errors_too_late"
    return "too_few_recent"


def document_of(estimate: Estimate, geometry: Geometry, *, assumed: bool) -> dict[str, object]:
    """Build accuracies with intervals, delays, and errors by prediction time; undefined values are absent.

    Parameters
    ----------
    estimate
        Estimate of a model with outcomes.
    geometry
        Widths of its buckets and bins.
    assumed
        Whether missing labels count as a class. Only settled predictions have an accuracy then, and delays
        are left out.
    """
    document: dict[str, object] = {
        "horizon_seconds": geometry.horizon_ms / 1000,
        "as_of_timestamp_seconds": estimate.now_ms / 1000,
        "by_prediction_time": _by_prediction_time(estimate, geometry),
    }
    is_settled = isfinite(estimate.settled.value)
    if is_settled:
        document["settled"] = _share(estimate.settled)
    if not assumed:
        if isfinite(estimate.corrected.value):
            document["delay_corrected"] = _share(estimate.corrected)
            document["naive"] = estimate.naive
            document["bias"] = estimate.naive - estimate.corrected.value
        if (why := why_undefined(estimate, geometry)) is not None:
            document["delay_corrected_undefined"] = why
        if is_settled:
            document["share_labelled"] = {
                "age_seconds": (geometry.edges_ms[1:] / 1000).tolist(),
                **{
                    name: estimate.shares[z, 1:].tolist()
                    for name, z in (("errors", ERROR), ("hits", HIT))
                    if estimate.outcomes[:, z].any()
                },
            }
        if moved := _moved(estimate):
            document["delays_moved"] = moved
    if (change := estimate.change(geometry)) is not None:
        document["change"] = change_document(change)
    return document


def change_document(change: ErrorChange) -> dict[str, float]:
    """Build the JSON object of a change of the error among predictions."""
    return {
        "since_timestamp_seconds": change.since_ms / 1000,
        "earliest_timestamp_seconds": change.earliest_ms / 1000,
        "latest_timestamp_seconds": change.latest_ms / 1000,
        "before": change.before,
        "after": change.after,
    }


def _share(share: OneShare) -> dict[str, float]:
    return {
        "accuracy": share.value,
        "lower": share.lower,
        "upper": share.upper,
        "effective_sample_size": share.n_eff,
    }


def _moved(estimate: Estimate) -> dict[str, dict[str, float]]:
    """Typical delays of the kinds whose delays have moved."""
    named = {"errors": estimate.moved[ERROR], "hits": estimate.moved[HIT]}
    return {
        name: {"before_seconds": found[0] / 1000, "after_seconds": found[1] / 1000}
        for name, found in named.items()
        if found is not None
    }


def _by_prediction_time(estimate: Estimate, geometry: Geometry) -> dict[str, object]:
    """Errors and outcomes of each bucket that has outcomes, oldest first."""
    total = estimate.outcomes.sum(axis=1)
    there = total > 0
    starts = (estimate.first_bucket + there.nonzero()[0]) * geometry.width_ms / 1000
    return {
        "width_seconds": geometry.width_ms / 1000,
        "start_timestamp_seconds": starts.tolist(),
        "outcomes": total[there].tolist(),
        "errors": estimate.outcomes[there, ERROR].tolist(),
    }


VERSION: Final = 1
"""Incremented when the meaning of the state changes."""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(RingSnapshot)

LATE_LABELS_BYTES: Final = 18_000
"""Largest number of bytes of one model: its ring (12.8 kB) and cached estimate; snapshots are no larger."""

METRICS: Final = (
    gauge(
        "accuracy_delay_corrected_ratio",
        "Accuracy of the predictions of the last half horizon, corrected for labels that have not "
        "arrived: each outcome weighs 1 / (share of the labels of its kind, hit or error, that "
        "have arrived at its age)",
        "model",
    ),
    gauge(
        "accuracy_settled_ratio",
        "Accuracy of predictions that are 1 to 1.5 horizons old and have all the labels they will get",
        "model",
    ),
    gauge(
        "label_delay_bias",
        "Accuracy by the labels that have arrived for the predictions of the last half horizon, "
        "minus the corrected one; below 0, the visible accuracy is too low because errors are "
        "labelled sooner than hits",
        "model",
    ),
    gauge(
        "accuracy_delay_corrected_effective_sample_size",
        "Effective number of outcomes of the delay-corrected accuracy, (Σw)²/Σw²",
        "model",
    ),
    gauge("accuracy_settled_effective_sample_size", "Labelled outcomes of settled predictions", "model"),
)


@dataclass(frozen=True, slots=True)
class LateLabelsSpec:
    """Parameters of late labels, as set for the join.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take, at least a second (`JoinSpec.horizon_ms`).
    assumed
        Whether a prediction without a label counts as a class at its deadline (`JoinSpec.assume`). Quick and
        late labels are of different classes then, and only settled predictions have an accuracy.
    """

    horizon_ms: int = 14 * DAY_MS
    assumed: bool = False


class LateLabels:
    """Late labels of up to `capacity` models; takes O(1) per outcome and 12.8 kB per model."""

    def __init__(self, spec: LateLabelsSpec, capacity: int) -> None:
        self._spec = spec
        self._ring = LabelRing(capacity, geometry_of(spec.horizon_ms))
        self._estimates: dict[int, tuple[Estimates, int]] = {}
        """Estimates that last included a row, and the row's index in them, by row."""
        self._known: NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        """Whether a row has had no outcomes since its last estimate."""
        self._values: NDArray[np.float64] = np.full((capacity, len(METRICS)), np.nan)
        """Values of the metrics at the last estimate of each row."""
        self.section = fingerprint("late_labels", (spec, BUCKETS, BINS), None, VERSION)
        self.title = f"late labels (horizon {spec.horizon_ms / 1000:g} s)"

    def observe(self, batch: Batch) -> None:
        """Count outcomes by the time of their predictions."""
        if not len(batch.rows):
            return
        hits = batch.true_class == batch.predicted_class
        self._ring.observe(batch.rows, hits, batch.event_ms, batch.delay_ms)
        self._known[batch.rows] = False

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._ring.clear(row)
        self._estimates.pop(row, None)
        self._known[row] = False

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows; the same outcomes give the same bytes."""
        return list(map(_ENCODER.encode, self._ring.snapshots(rows)))

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one."""
        self._ring.restore(row, _DECODER.decode(state))
        self._known[row] = False

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Columns]:
        """Corrected and settled accuracies of some models, with n_eff; undefined values give no sample."""
        rows = np.array([one.row for one in chosen], np.int64)
        self._estimate(rows)
        keys = ModelKeys(tuple([one.model for one in chosen]))
        values = self._values[rows]
        found: dict[str, Columns] = {}
        for metric, own in zip(METRICS, np.where(np.isfinite(values), values, np.nan).T, strict=True):
            found[metric.name] = Columns()
            found[metric.name].add(keys, own)
        return found

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Accuracies with intervals, delays, and errors by prediction time.

        Empty before the first outcome.
        """
        rows = [one.row for one in chosen]
        self._estimate(np.array(rows, np.int64))
        estimates = [self._estimates[row] for row in rows]
        geometry, assumed = self._ring.geometry, self._spec.assumed

        def document(index: int) -> Mapping[str, object]:
            of_all, own = estimates[index]
            estimate = of_all[own]
            if estimate.head < 0 or not chosen[index].classes:
                return {}
            return {"late_labels": document_of(estimate, geometry, assumed=assumed)}

        return document

    def changes_at(self, batch: Batch, positions: Sequence[int]) -> Sequence[ErrorChange | None]:
        """Locate the latest changes among predictions as of some outcomes of a batch not yet observed.

        One for each position; None if there is none.
        """
        starts = range(0, len(positions), _CHANGES)
        parts = (self._changes(batch, positions[start : start + _CHANGES]) for start in starts)
        return list(chain.from_iterable(parts))

    def _changes(self, batch: Batch, positions: Sequence[int]) -> list[ErrorChange | None]:
        """Locate changes as `changes_at` does, with a copy of the model's ring for each."""
        rows = batch.rows[np.array(positions, np.int64)].astype(np.int64)
        before = [
            np.flatnonzero(batch.rows[: position + 1] == row)
            for position, row in zip(positions, rows.tolist(), strict=True)
        ]
        upto, own = np.concatenate(before), np.arange(len(rows), dtype=np.int32)
        hits = batch.true_class[upto] == batch.predicted_class[upto]
        ring = self._ring.copy_of(rows)
        ring.observe(np.repeat(own, list(map(len, before))), hits, batch.event_ms[upto], batch.delay_ms[upto])
        return changes_of(ring, own.astype(np.int64))

    def change_of(self, row: int) -> SegmentChange | None:
        """Return None, as this register has no segments."""
        del row

    def delays_moved(self, row: int) -> tuple[DelayKind, ...]:
        """Find the kinds of labels of a row whose delays differ between neighbouring halves of a horizon.

        Empty if missing labels are assumed, as quick and late labels are of different classes then.
        """
        if self._spec.assumed:
            return ()
        self._estimate(np.array([row], np.int64))
        of_all, own = self._estimates[row]
        named: dict[DelayKind, int] = {"errors": ERROR, "hits": HIT}
        return tuple(name for name, kind in named.items() if of_all[own].moved[kind] is not None)

    def only_quick_labels(self, age_ms: int) -> bool:
        """Tell whether a model's first predictions are younger than the horizon."""
        return age_ms < self._spec.horizon_ms

    def _estimate(self, rows: NDArray[np.int64]) -> None:
        """Estimate those of the rows that have had outcomes since their last estimate, all at once."""
        changed = rows[~self._known[rows]]
        if not len(changed):
            return
        found = estimates_of(self._ring, changed)
        self._estimates.update(zip(changed.tolist(), zip(repeat(found), range(len(changed))), strict=False))
        self._known[changed] = True
        settled, corrected = found.late.settled, found.late.corrected
        is_settled = np.isfinite(settled.value)
        is_corrected = np.isfinite(corrected.value) & (not self._spec.assumed)
        by_name = {
            "accuracy_settled_ratio": settled.value,
            "accuracy_settled_effective_sample_size": np.where(is_settled, settled.n_eff, np.nan),
            "accuracy_delay_corrected_ratio": np.where(is_corrected, corrected.value, np.nan),
            "label_delay_bias": np.where(is_corrected, found.late.bias, np.nan),
            "accuracy_delay_corrected_effective_sample_size": np.where(is_corrected, corrected.n_eff, np.nan),
        }
        self._values[changed] = np.stack([by_name[metric.name] for metric in METRICS], axis=1)


KIND: Final = RegisterKind("late_labels", LateLabelsSpec, METRICS, LateLabels)
