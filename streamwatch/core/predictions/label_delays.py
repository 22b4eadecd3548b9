"""Label delays: share of predictions labelled by age, with predictions still waiting as censored.

The distribution of the delays of labels alone would be too favourable, as it lacks predictions without a
label. Here every accepted prediction counts from its arrival on, by prediction time, delay and class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.kind import (
    ActiveHint,
    PredictionBatch,
    PredictionRegisterKind,
)
from streamwatch.core.records.events import OTHER, Name, Outcome, fold_of
from streamwatch.core.records.outcome_objects import in_columns

# Share labelled by age, from counts by prediction time and delay.
#
# Kaplan, Meier 1958, and by kind Aalen, Johansen 1978.


Integers: TypeAlias = NDArray[np.int64]
Shares: TypeAlias = NDArray[np.float64]


def shares_labelled(
    predictions: Integers, labelled: Integers, ages_ms: Integers, edges_ms: Integers
) -> tuple[Shares, Shares]:
    """Compute the share labelled by the end of each bin of delay, of all kinds and by kind.

    A stretch of prediction time contributes to the bins that all of its predictions have lived through; those
    without a label then are censored. Of the predictions still waiting at the start of bin k, a share h(k) is
    labelled in it; S(k) = S(k − 1)·(1 − h(k)) remain waiting. For kind z, S(k − 1)·h(k, z) is added in bin k,
    so that kinds add up to 1 − S.

    Parameters
    ----------
    predictions
        Predictions of each stretch, shape (n,).
    labelled
        Labels of each stretch by kind and bin, shape (n, kinds, bins); not more than predictions.
    ages_ms
        Lower bound of the age of a stretch's predictions, shape (n,).
    edges_ms
        Ends of the bins, shape (bins,).

    Returns
    -------
    shares, by_kind
        Shape (bins,) and (kinds, bins); NaN from the first bin on at whose start no prediction is known to
        wait, unless everything was labelled by then.
    """
    kinds, bins = labelled.shape[1:]
    shares, by_kind = np.full(bins, np.nan), np.full((kinds, bins), np.nan)
    waiting, sums = 1.0, [0.0] * kinds
    before = labelled.sum(axis=1)
    at_risk = predictions[:, None] - np.cumsum(before, axis=1) + before
    has_lived = ages_ms[:, None] >= edges_ms  # shape (n, bins)
    risks = (at_risk * has_lived).sum(axis=0).tolist()
    counts = (labelled * has_lived[:, None, :]).sum(axis=0).T.tolist()  # by bin and kind
    # A few numbers at a time: numbers of Python are several times as fast as arrays.
    for k, (risk, ended) in enumerate(zip(risks, counts, strict=True)):
        if waiting > 0.0:
            if risk <= 0:
                break
            hazard = [count / risk for count in ended]
            sums = [total + waiting * each for total, each in zip(sums, hazard, strict=True)]
            waiting *= 1.0 - sum(hazard)
            if sum(ended) >= risk:
                waiting = 0.0
        shares[k], by_kind[:, k] = 1.0 - waiting, sums
    return shares, by_kind


BUCKETS: Final = 64
"""Number of stretches of prediction time kept behind the newest record, in total 1.5 horizons.

As many are kept ahead of it.
"""
BINS: Final = 23
HIT, ERROR = range(2)
_WIDTH: Final = 1 + 2 * BINS
"""Numbers per stretch: predictions, hits by delay, errors by delay."""
_FIRST_EDGE: Final = 240
"""The first bin of delay is the horizon divided by this."""
_VERSION: Final = 1
_NEVER: Final = -1

Counts: TypeAlias = dict[int, NDArray[np.int64]]
"""Arrays of `_WIDTH` numbers by stretch."""


class _KeptClass(msgspec.Struct, frozen=True, array_like=True):
    name: Name
    stretches: list[tuple[int, list[int]]]


class _RegisterState(msgspec.Struct, frozen=True, array_like=True):
    since_ms: int
    now_ms: int
    models: list[tuple[Name, list[_KeptClass]]]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_RegisterState)


def edges_of(horizon_ms: int) -> Integers:
    """Ends of the bins of delay, shape (23,): from a 240th of the horizon to the horizon, geometric."""
    return np.rint(np.geomspace(horizon_ms / _FIRST_EDGE, horizon_ms, BINS)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LabelDelaysSpec:
    """Parameters of label delays."""

    horizon_ms: int = 14 * 86_400_000
    """Longest time that a label may take."""
    max_classes: int = 8
    """Number of predicted classes of a model with curves of their own, the first to occur.

    Others share one.
    """


class LabelDelays:
    """Label delays of all models; folds of a model are left out.

    Predictions made before the register's start, or more than 1.5 horizons before or after the newest record,
    are not counted, nor are their labels. A prediction that is withdrawn, evicted or expires counts as never
    labelled.
    """

    def __init__(self, spec: LabelDelaysSpec) -> None:
        self._spec = spec
        self._edges_ms = edges_of(spec.horizon_ms)
        self._width_ms = -(-3 * spec.horizon_ms // (2 * BUCKETS))
        self._since_ms = self._now_ms = _NEVER
        self._models: dict[str, dict[str, Counts]] = {}
        self.section = f"label_delays(horizon={spec.horizon_ms},classes={spec.max_classes}) v{_VERSION}"

    def observe(self, predictions: PredictionBatch) -> None:
        """Count predictions by their own times."""
        records = predictions.records
        if self._since_ms == _NEVER:
            self._since_ms = int(records["record_ms"][0])
        clocks = np.maximum(np.maximum.accumulate(records["record_ms"]), self._now_ms)
        made_ms = records["event_ms"]
        stretches, newest = made_ms // self._width_ms, clocks // self._width_ms
        chosen = (made_ms >= self._since_ms) & (np.abs(stretches - newest) < BUCKETS)
        for model, named, stretch, count in _counted(records["model"], records["class"], stretches, chosen):
            name = predictions.models[model]
            if fold_of(name) is not None:
                continue
            classes = self._models.setdefault(name, {})
            counts = self._entered(classes, predictions.classes[named])
            counts.setdefault(stretch, np.zeros(_WIDTH, np.int64))[0] += count
        moved = clocks[-1] // self._width_ms > self._now_ms // self._width_ms
        self._now_ms = int(clocks[-1])
        if moved:
            self._forget_old()

    def _entered(self, classes: dict[str, Counts], name: str) -> Counts:
        """Counts of a predicted class: its own if it is among the first, else those shared by all others."""
        if name not in classes and len(classes) - (OTHER in classes) >= self._spec.max_classes:
            name = OTHER
        return classes.setdefault(name, {})

    def _forget_old(self) -> None:
        oldest = self._now_ms // self._width_ms - BUCKETS
        for classes in self._models.values():
            for counts in classes.values():
                for stretch in [stretch for stretch in counts if stretch <= oldest]:
                    del counts[stretch]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Count labels by the times of their predictions, and by their delays."""
        if self._since_ms == _NEVER or not len(outcomes):
            return
        batch = in_columns(outcomes)
        records = batch.records
        delays_ms = records["delay_ms"]
        made_ms = records["event_ms"] - delays_ms
        stretches = made_ms // self._width_ms
        chosen = (
            (made_ms >= self._since_ms) & (delays_ms <= self._spec.horizon_ms) & (records["assumed"] == 0)
        )
        # Later predictions may have been observed before, or not yet: the oldest stretch kept follows them,
        # and the newest the clock at the outcome.
        chosen &= stretches > self._now_ms // self._width_ms - BUCKETS
        chosen &= stretches < records["resolved_ms"] // self._width_ms + BUCKETS
        is_error = records["true_class"] != records["predicted_class"]
        columns = 1 + BINS * is_error + np.searchsorted(self._edges_ms, delays_ms)
        keys = stretches * _WIDTH + columns
        for model, named, key, count in _counted(records["model"], records["predicted_class"], keys, chosen):
            classes = self._models.get(batch.models[model], {})
            counts = classes.get(batch.classes[named], classes.get(OTHER))
            if counts is not None:  # otherwise the prediction was not counted either
                stretch, column = divmod(key, _WIDTH)
                counts.setdefault(stretch, np.zeros(_WIDTH, np.int64))[column] += count

    def forget(self, model: str) -> None:
        """Remove a model."""
        self._models.pop(model, None)

    def snapshot(self) -> bytes:
        """Encode the counts of all models; a model's classes are in order of first occurrence."""
        if self._since_ms == _NEVER:
            return b""
        models = [
            (
                model,
                [
                    _KeptClass(name, [(stretch, counts[stretch].tolist()) for stretch in sorted(counts)])
                    for name, counts in classes.items()
                ],
            )
            for model, classes in sorted(self._models.items())
        ]
        return _ENCODER.encode(_RegisterState(self._since_ms, self._now_ms, models))

    def restore(self, state: bytes) -> None:
        """Set an empty register to a snapshot.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
        """
        kept = _DECODER.decode(state)
        for _, classes in kept.models:
            for each in classes:
                for stretch, counts in each.stretches:
                    if len(counts) != _WIDTH:
                        raise ValueError(f"expected {_WIDTH} counts of stretch {stretch}, got {len(counts)}")
        self._since_ms, self._now_ms = kept.since_ms, kept.now_ms
        self._models = {
            model: {each.name: {s: np.array(counts) for s, counts in each.stretches} for each in classes}
            for model, classes in kept.models
        }

    def families(self) -> Sequence[Family]:
        """Share of each model's predictions labelled by the end of the horizon, or by the last known age."""
        samples: list[tuple[tuple[str, ...], float]] = []
        for model, classes in sorted(self._models.items()):
            shares = self._curve(list(classes.values()))[0]
            known = shares[np.isfinite(shares)]
            if len(known):
                samples.append(((model,), float(known[-1])))
        return [family("predictions_labelled_ratio", samples)]

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Curves of every model for the API."""
        return {model: {"label_delays": self._document(classes)} for model, classes in self._models.items()}

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Return no hints, as this register gives none."""
        return {}

    def unrepresentative(self) -> AbstractSet[str]:
        """Return the empty set: nothing is known here of how likely predictions are to be labelled."""
        return frozenset()

    def _document(self, classes: Mapping[str, Counts]) -> Mapping[str, object]:
        shares, by_kind = self._curve(list(classes.values()))
        known = int(np.isfinite(shares).sum())
        curves = {name: self._curve([counts])[0] for name, counts in classes.items()}
        return {
            "age_seconds": (self._edges_ms[:known] / 1000).tolist(),
            "labelled": shares[:known].tolist(),
            "labelled_hits": by_kind[HIT, :known].tolist(),
            "labelled_errors": by_kind[ERROR, :known].tolist(),
            "classes": {name: curve[np.isfinite(curve)].tolist() for name, curve in curves.items()},
        }

    def _curve(self, classes: Sequence[Counts]) -> tuple[Shares, Shares]:
        """Compute `shares_labelled` over the sums of some classes."""
        sums: Counts = {}
        for counts in classes:
            for stretch, row in counts.items():
                sums[stretch] = sums[stretch] + row if stretch in sums else row
        stretches = np.array(sorted(sums), np.int64)
        table = np.array([sums[stretch] for stretch in stretches.tolist()], np.int64).reshape(-1, _WIDTH)
        labelled = table[:, 1:].reshape(-1, 2, BINS)
        # A label that came before its prediction may be counted in another stretch.
        predictions = np.maximum(table[:, 0], labelled.sum(axis=(1, 2)))
        ages_ms = self._now_ms - (stretches + 1) * self._width_ms
        return shares_labelled(predictions, labelled, ages_ms, self._edges_ms)


def _counted(
    models: NDArray[np.int32], classes: NDArray[np.int32], keys: Integers, chosen: NDArray[np.bool_]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield each (model, class, key) of the chosen entries with its count, in order of first occurrence."""
    if not chosen.any():
        return
    least = int(keys[chosen].min())
    width = int(keys[chosen].max()) - least + 1  # of all stretches in the batch
    most = int(classes.max()) + 1  # the product stays below 2⁶², as the join limits the numbers of names
    together = (models.astype(np.int64) * most + classes) * width + keys - least
    unique, firsts, counts = np.unique(together[chosen], return_index=True, return_counts=True)
    order = np.argsort(firsts)
    for each, count in zip(unique[order].tolist(), counts[order].tolist(), strict=True):
        of, key = divmod(each, width)
        yield of // most, of % most, key + least, count


LABEL_DELAYS: Final = PredictionRegisterKind("label_delays", LabelDelaysSpec, LabelDelays)
"""Share of predictions labelled by age, for each model, outcome kind and predicted class."""
