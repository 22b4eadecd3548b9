"""JSON document of a model's late labels for the API."""

from __future__ import annotations

from math import isfinite
from typing import Literal, TypeAlias

import numpy as np

from streamwatch.core.estimators.registers.late_labels.accuracy import LEAST_SHARE
from streamwatch.core.estimators.registers.late_labels.estimate import Estimate, OneShare
from streamwatch.core.estimators.registers.late_labels.geometry import ERROR, HIT, Geometry
from streamwatch.core.events import ErrorChange

WhyUndefined: TypeAlias = Literal["too_few_settled", "hits_too_late", "errors_too_late", "too_few_recent"]


def why_undefined(estimate: Estimate, geometry: Geometry) -> WhyUndefined | None:
    """Tell why there is no corrected accuracy; None where there is one.

    Returns
    -------
    why
        `too_few_settled`: fewer than 30 predictions are a horizon old. `hits_too_late`, `errors_too_late`: at
        an age of half a horizon, the age of the oldest predictions used, fewer than a fifth of these labels
        have arrived, as when a dispute window closes then; only the settled accuracy tells the accuracy of
        the model, and will. `too_few_recent`: of recent predictions fewer than 30 have labels.
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
                "errors": estimate.shares[ERROR, 1:].tolist(),
                "hits": estimate.shares[HIT, 1:].tolist(),
            }
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
