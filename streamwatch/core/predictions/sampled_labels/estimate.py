"""Accuracy and leads of all predictions from the labels of some, with intervals that hold at every look.

With v the loss (or the lead), π the probability of the label and g a guess at v made from earlier labels,

    Z = g + 1[label](v − g)/(π·ρ),  ρ = Σ 1/π over labels ÷ n predictions,

has the mean of v over all predictions if labels go missing regardless of the outcome (augmented inverse
probability weighting: Robins, Rotnitzky, Zhao 1994; prediction-powered inference: Zrnic, Candès 2024,
PNAS). g = a + b·f, f the expected error of the score's bin, clipped to the range of v; a and b by least
squares weighted (1/π − 1)/π over the labels of buckets that were settled when the bucket began, b times
m/(m + 100) for m of them. Without such labels g = 0. The estimate is the mean of Z over the newest settled
buckets.

Its interval is an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas 2024) with
k = (Σ 1/π)²/Σ 1/π² effective labels as its time, ρ² = 1/200, and the variance of Z as found from the sums and
one further label of each value, times a dispersion φ from differences of neighbouring buckets. It is given
from 200·φ effective labels in 9 buckets on: with fewer, rare heavy weights may not have been seen yet, or too
few losses are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log, nan, sqrt
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.predictions.sampled_labels.observe import (
    BINS,
    CELLS,
    EXPECTED_ERRORS,
    INVERSE,
    INVERSE_SQUARED,
    LOSS,
    NUMBER,
    OPPONENTS,
    VALUES,
    ages_of,
    width_of,
)

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

LEAST_LABELS: Final = 200.0
"""Effective number of labels, divided by the dispersion, from which an interval is given …"""
LEAST_BUCKETS: Final = 9
"""… and number of settled buckets."""
MOST_LABELS: Final = 2_000.0
"""Effective number of labels that is enough: older buckets are left out."""
RHO_SQUARED: Final = 1.0 / 200.0
"""Tunes the interval to be tightest at about 1,750 labels."""
SHRINKAGE: Final = 100.0
COMPLETE: Final = 0.99
"""Share of the labels by an age that counts as all of them."""
TOLERATED: Final = 0.05
"""Share of the labels asked for that may be missing, or too many, without being reported."""
ERRORS: Final = 4.0
"""Standard errors by which a number of labels must differ from Σπ to be reported."""
LENGTHS: Final = (1, 4)
"""Numbers of buckets in the sums whose differences measure dispersion."""
LEAST_DIFFERENCES: Final = 8
OVERLAP: Final = 3.0
"""Subtracted from the number of differences, so that 1/φ is right on average (see `verdicts.state`)."""

_VALUES: Final = np.array(VALUES)
_EXPECTED: Final = np.array(EXPECTED_ERRORS)


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimate with its interval; NaN where it is undefined."""

    value: float = nan
    lower: float = nan
    upper: float = nan
    labels: float = 0.0
    """Effective number of labels."""
    dispersion: float = nan
    """Variance between buckets relative to that of independent predictions, at least 1."""


@dataclass(frozen=True, slots=True)
class SampledEstimate:
    """Estimates of one model, and how many of the labels asked for came.

    Attributes
    ----------
    loss, leads
        Mean loss, and mean lead over each opponent.
    since_ms, until_ms
        Record times of the predictions that the estimates are about; 0 without any.
    age_ms
        Age from which predictions count as settled.
    predictions
        Number of these predictions.
    settled
        Predictions with a probability in all settled buckets that are kept; `without` likewise, of those
        without one.
    asked
        Labels asked for of `settled`: as the predictions state, or Σπ where some do not.
    arrived
        Labels of them that came.
    asked_is_known
        Whether all predictions state whether their label was asked for.
    arrived_ratio
        arrived/asked; undefined without any.
    missing
        Whether more labels are missing than `TOLERATED` of those asked for, and more than chance explains
        where `asked` is Σπ.
    too_many
        Whether more labels came, or, where `asked_is_known`, more or fewer were asked for, than the
        probabilities imply, by more than `TOLERATED` and chance.
    """

    loss: Interval
    leads: tuple[Interval, ...]
    since_ms: int
    until_ms: int
    age_ms: int
    predictions: int
    settled: int
    without: int
    asked: float
    arrived: int
    asked_is_known: bool
    arrived_ratio: float
    missing: bool
    too_many: bool


@dataclass(frozen=True, slots=True)
class _Buckets:
    """Sums of the buckets in use, oldest first: k buckets.

    Attributes
    ----------
    number
        Numbers counted from the epoch, (k,).
    predictions
        Predictions by bin of the score, (k, BINS).
    sums
        Sums of labels by bin and cell, (k, BINS, cells, 3).
    settled, window
        Whether all labels have come, and whether the estimates are about the bucket, (k,).
    gap
        A label may be used for predictions of buckets that begin this number of buckets after its own.
    late
        Largest share of the labels of settled buckets that may still come.
    heaviest
        Largest 1/π of a prediction so far.
    """

    number: Integers
    predictions: Integers
    sums: Floats
    settled: NDArray[np.bool_]
    window: NDArray[np.bool_]
    gap: int
    late: float
    heaviest: float


def estimate(record: Any, horizon_ms: int, delta: float) -> SampledEstimate:
    """Estimate loss and leads of one model from its `SAMPLED` record; intervals hold with 1 − `delta`."""
    width_ms = width_of(horizon_ms)
    used = np.flatnonzero(record["stamp"] > 0)
    used = used[np.argsort(record["stamp"][used])]
    number = record["stamp"][used] - 1
    age_ms, late = _age(record, used, number, horizon_ms)
    settled = (number + 1) * width_ms + age_ms <= record["clock_ms"]
    predictions = np.ascontiguousarray(record["predictions"][:, used].T)
    sums = np.ascontiguousarray(record["sums"][:, used].swapaxes(0, 1))
    window = _window(sums, settled)
    gap = 1 + -(-age_ms // width_ms)
    heaviest = 1.0 / float(record["least"])
    kept = _Buckets(number, predictions, sums, settled, window, gap, late, heaviest)
    loss, *leads = (_interval(kept, which, delta) for which in range(len(CELLS)))
    whole = used[settled]
    about = number[window]
    asked_is_known = not record["bucket_unstated"][whole].any()
    expected = float(record["bucket_expected"][whole].sum())
    tolerated = TOLERATED * expected + ERRORS * sqrt(float(record["bucket_spread"][whole].sum()))
    requested = int(record["bucket_requested"][whole].sum())
    arrived = int(record["delays"][whole].sum())
    asked = float(requested) if asked_is_known else expected
    return SampledEstimate(
        loss=loss,
        leads=tuple(leads),
        since_ms=int(about[0]) * width_ms if len(about) else 0,
        until_ms=(int(about[-1]) + 1) * width_ms if len(about) else 0,
        age_ms=age_ms,
        predictions=int(predictions[window].sum()),
        settled=int(predictions[settled].sum()),
        without=int(record["bucket_without"][whole].sum()),
        asked=asked,
        arrived=arrived,
        asked_is_known=asked_is_known,
        arrived_ratio=arrived / asked if asked > 0.0 else nan,
        missing=arrived < ((1.0 - TOLERATED) * asked if asked_is_known else expected - tolerated),
        too_many=abs(requested - expected) > tolerated if asked_is_known else arrived > expected + tolerated,
    )


def accuracy_of(loss: Interval) -> Interval:
    """Convert a mean loss and its interval to an accuracy: 1 − loss."""
    return Interval(1.0 - loss.value, 1.0 - loss.upper, 1.0 - loss.lower, loss.labels, loss.dispersion)


def _age(record: Any, used: Integers, number: Integers, horizon_ms: int) -> tuple[int, float]:
    """Age from which labels count as complete, and the share that may come later.

    The age is the first by which 99 % have come of the labels asked for, or of all labels of predictions that
    are one horizon old; else the horizon. The share is an upper bound, (m + 2.5·√m + 3)/labels, if m came
    later.
    """
    ages_ms, width_ms, clock_ms = ages_of(horizon_ms), width_of(horizon_ms), int(record["clock_ms"])
    ends_ms = (number + 1) * width_ms
    by_age = np.cumsum(record["delays"][used], axis=1)
    old = ends_ms + horizon_ms <= clock_ms
    for k, age_ms in enumerate(ages_ms[:-1].tolist()):
        lived = ends_ms + age_ms <= clock_ms
        ways = [(int(by_age[old, -1].sum()), int(by_age[old, k].sum()))]
        if not record["bucket_unstated"][used[lived]].any():
            ways.append((int(record["bucket_requested"][used[lived]].sum()), int(by_age[lived, k].sum())))
        for labels, early in ways:
            later = max(labels - early, 0)
            bound = later + 2.5 * sqrt(later) + 3.0
            if bound <= (1.0 - COMPLETE) * labels:
                return age_ms, bound / labels
    return horizon_ms, 0.0


def _window(sums: Floats, settled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Choose the newest settled buckets that together have `MOST_LABELS` effective labels, or all of them."""
    of_loss = sums[:, :, slice(*CELLS[LOSS])].sum(axis=(1, 2))
    window = np.zeros(len(settled), np.bool_)
    inverse = squared = 0.0
    for c in np.flatnonzero(settled)[::-1].tolist():
        window[c] = True
        inverse += float(of_loss[c, INVERSE])
        squared += float(of_loss[c, INVERSE_SQUARED])
        if inverse * inverse >= MOST_LABELS * squared > 0.0:
            break
    return window


def _interval(kept: _Buckets, which: int, delta: float) -> Interval:
    """Compute an estimate with its interval; `which` is `LOSS`, `NO_CHANGE` or `MAJORITY`."""
    cells = slice(*CELLS[which])
    values, sums = _VALUES[cells], kept.sums[:, :, cells]
    guesses = _guesses(kept, sums, values)
    window, settled = kept.window, kept.settled
    n = float(kept.predictions[window].sum())
    inverse = float(sums[window][..., INVERSE].sum())
    if n == 0.0 or inverse == 0.0:
        return Interval()
    effective = inverse * inverse / float(sums[window][..., INVERSE_SQUARED].sum())
    guessed = float((kept.predictions * guesses)[window].sum()) / n
    residuals = values - guesses[:, :, None]  # (k, BINS, values)
    residual = float((residuals * sums[..., INVERSE])[window].sum()) / inverse
    value = guessed + residual
    # Per prediction, ψ = (g − mean g) + 1[label](v − g − mean residual)/(π·ρ); here Σψ and Σψ² by bucket.
    beside = guesses - guessed
    scaled = (residuals - residual) * (n / inverse)
    total = (kept.predictions * beside).sum(axis=1) + (scaled * sums[..., INVERSE]).sum(axis=(1, 2))
    squares = (kept.predictions * beside * beside).sum(axis=1)
    squares += (2.0 * beside[:, :, None] * scaled * sums[..., INVERSE]).sum(axis=(1, 2))
    squares += (scaled * scaled * sums[..., INVERSE_SQUARED]).sum(axis=(1, 2))
    counted = kept.predictions.sum(axis=1)
    there = settled & (counted > 0)
    dispersion = _dispersion(total[there] / counted[there], squares[there] / counted[there] ** 2.0)
    if effective < LEAST_LABELS * dispersion or np.count_nonzero(there) < LEAST_BUCKETS:
        return Interval(value, labels=effective, dispersion=dispersion)
    # One further label of each value, of the largest weight that a label can have: of predictions that are
    # seldom labelled, none that is wrong may have been seen yet.
    heavy = kept.heaviest * (n / inverse)
    variance = float(squares[window].sum()) + heavy * heavy * float(((values - value) ** 2.0).sum())
    deviation = sqrt(dispersion * variance) / n
    grown = effective * RHO_SQUARED + 1.0
    width = deviation * sqrt(2.0 * grown / (grown - 1.0) * log(sqrt(grown) / delta))
    width += kept.late * float(values.max() - values.min())
    lowest, highest = float(values.min()), float(values.max())
    return Interval(value, max(value - width, lowest), min(value + width, highest), effective, dispersion)


def _guesses(kept: _Buckets, sums: Floats, values: Floats) -> Floats:
    """Compute g by bucket and bin, (k, BINS), from the labels settled when the bucket began.

    Predictions without a score have no f: theirs is the mean alone.
    """
    weights = sums[..., INVERSE_SQUARED] - sums[..., INVERSE]  # Σ (1/π − 1)/π
    before = np.searchsorted(kept.number, kept.number - kept.gap, side="right")
    # Before the first bucket there are no labels.
    weight, labels = (
        np.concatenate([np.zeros_like(each[:1]), np.cumsum(each, axis=0)])[before]
        for each in (weights, sums[..., NUMBER])
    )
    lines = [
        _lines(_EXPECTED[bins], weight[:, bins], labels[:, bins].sum(axis=(1, 2)), values)
        for bins in (slice(0, 1), slice(1, BINS))
    ]
    return np.clip(np.concatenate(lines, axis=1), values.min(), values.max())


def _lines(f: Floats, weight: Floats, labels: Floats, values: Floats) -> Floats:
    """Fit a + b·f to the labels before each of k buckets, and evaluate it, (k, bins); 0 without weight.

    Parameters
    ----------
    f
        By bin, (bins,).
    weight
        Sum of the weights of the labels by bin and value, (k, bins, values).
    labels
        Number of labels m, (k,).
    values
        (values,).
    """
    of_bin = weight.sum(axis=2)
    total = of_bin.sum(axis=1)
    known = total > 0.0
    scale = np.where(known, total, 1.0)
    mean_f = (of_bin @ f) / scale
    mean_v = (weight.sum(axis=1) @ values) / scale
    apart = f - mean_f[:, None]
    spread = (of_bin * apart * apart).sum(axis=1)
    together = (weight * apart[:, :, None] * (values - mean_v[:, None])[:, None, :]).sum(axis=(1, 2))
    # Labels of one bin do not determine a slope, and rounding is no spread.
    sloped = spread > 1e-12 * scale
    slope = np.where(sloped, together, 0.0) / np.where(sloped, spread, 1.0) * (labels / (labels + SHRINKAGE))
    return np.where(known[:, None], mean_v[:, None] + slope[:, None] * apart, 0.0)


def _dispersion(means: Floats, variances: Floats) -> float:
    """Variance of buckets relative to that of independent predictions, at least 1; means, variances (k,)."""
    found = 1.0
    for length in LENGTHS:
        whole = len(means) // length * length
        if whole // length - 1 < LEAST_DIFFERENCES:
            continue
        grouped = means[len(means) - whole :].reshape(-1, length).mean(axis=1)
        expected = variances[len(means) - whole :].reshape(-1, length).mean(axis=1) / length
        changes = np.diff(grouped)
        number = len(changes)
        between = float((expected[1:] + expected[:-1]).sum())
        if between > 0.0:
            found = max(found, float((changes * changes).sum()) / between * number / (number - OVERLAP))
    return found


# JSON document of a model's sampled labels for the API.


Verdict: TypeAlias = Literal["better", "worse", "open"]


def document_of(record: Any, found: SampledEstimate) -> dict[str, object]:
    """Build the document of one model from its `SAMPLED` record; undefined values are absent."""
    seen, without = int(record["seen"]), int(record["without"])
    document: dict[str, object] = {
        "predictions": seen,
        "predictions_without_probability": without,
        "share_without_probability": without / (seen + without),
        "share_expected": float(record["expected"]) / seen,
        "labels": int(record["labels"]),
        "labels_unasked": int(record["unasked"]),
        "settled": {
            "predictions": found.settled,
            "age_seconds": found.age_ms / 1000.0,
            "labels_asked": found.asked,
            "labels_arrived": found.arrived,
            "labels_missing": max(0.0, found.asked - found.arrived),
            "asked_is_known": found.asked_is_known,
        },
        "labels_missing": found.missing,
        "probabilities_differ": found.too_many,
        "leads": {
            name: {"verdict": verdict_of(lead), **_numbers(lead)}
            for name, lead in zip(OPPONENTS, found.leads, strict=True)
        },
    }
    if isfinite(found.arrived_ratio):
        document["arrived_ratio"] = found.arrived_ratio
    if isfinite(found.loss.value):
        document["accuracy"] = _numbers(accuracy_of(found.loss))
        document["since_timestamp_seconds"] = found.since_ms / 1000.0
        document["until_timestamp_seconds"] = found.until_ms / 1000.0
        document["estimated_predictions"] = found.predictions
    return document


def verdict_of(lead: Interval) -> Verdict:
    """Return the side of 0 on which the interval of a lead lies: open if it includes 0 or is undefined."""
    if lead.lower > 0.0:
        return "better"
    return "worse" if lead.upper < 0.0 else "open"


def _numbers(found: Interval) -> dict[str, object]:
    numbers: dict[str, object] = {"effective_labels": found.labels}
    for name in ("value", "lower", "upper", "dispersion"):
        if isfinite(value := getattr(found, name)):
            numbers[name] = value
    return numbers
