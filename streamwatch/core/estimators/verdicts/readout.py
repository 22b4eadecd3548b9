"""Reported values of verdicts, as arrays over records: mean lead since the last change, bounds, evidence.

Asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas 2021-24) over n blocks of 64:
with z̄ and σ̂ (with n − 1) mean and standard deviation of the block means and ρ² = 1/200,

    z̄ ± σ̂·√(2(nρ² + 1)/(n²ρ²)·ln(√(nρ² + 1)/δ)),        clipped to [−1, 1].

It is valid at all times. Blocks that began before the last change of verdict are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.verdicts.state import BETTER, WORSE

Floats: TypeAlias = NDArray[np.float64]

LEAST_BLOCKS = 20
RHO_SQUARED = 1.0 / 200.0


def mean_lead(records: NDArray[Any]) -> Floats:
    """Mean lead in [−1, 1], in the shape of the records (`VERDICT`); NaN before the first whole block."""
    return np.where(records["blocks"] > 0, records["mean"], np.nan)


def lead_bounds(records: NDArray[Any], delta: float) -> tuple[Floats, Floats]:
    """Lower and upper bound of the mean lead at confidence 1 − δ; NaN before 20 blocks.

    Parameters
    ----------
    records
        `VERDICT` records of any shape.
    delta
        δ in (0, 1).
    """
    n = np.where(records["blocks"] >= LEAST_BLOCKS, records["blocks"], np.nan).astype(np.float64)
    deviation = np.sqrt(records["spread"] / (n - 1.0))
    grown = n * RHO_SQUARED + 1.0
    width = deviation * np.sqrt(2.0 * grown / (n * n * RHO_SQUARED) * np.log(np.sqrt(grown) / delta))
    return np.clip(records["mean"] - width, -1.0, 1.0), np.clip(records["mean"] + width, -1.0, 1.0)


def evidence(records: NDArray[Any], threshold: float) -> tuple[Floats, Floats]:
    """Evidence for better and for worse: max(0, ln(mean M)/ln A).

    It is 0 until the evidence starts, and reaches 1 at a claim, which resets it to 0.
    """
    means = np.where(records["started"][..., None] > 0, records["sums"].mean(axis=-1), 0.0)
    found = np.log(np.maximum(means, 1.0)) / np.log(threshold)
    return found[..., BETTER], found[..., WORSE]


def dispersion(records: NDArray[Any]) -> Floats:
    """Dispersion φ ≥ 1: variance of the lead's sums relative to independent outcomes."""
    return np.maximum(records["dispersion"], 1.0)


class Verdicts(NamedTuple):
    """Verdicts of m models on all opponents, each array (opponents, m); NaN where undefined."""

    verdict: Floats
    """1 better, −1 worse, 0 open; undefined before the opponent's first answer."""
    since_seconds: Floats
    """Event time in seconds from which the verdict holds; undefined before the first verdict."""
    since: Floats
    """Number of the outcome from which the verdict holds."""
    lead: Floats
    lower: Floats
    upper: Floats
    better: Floats
    """Evidence, see `evidence`."""
    worse: Floats
    dispersion: Floats


def read_verdicts(
    steps: NDArray[np.int64], records: NDArray[Any], delta: float, threshold: float
) -> Verdicts:
    """Read records (`VERDICT` or `REPORTED`) after `steps` steps; `delta` is δ, `threshold` A."""
    judged = np.where(steps > 0, 1.0, np.nan)
    known = np.where(records["since"] > 0, 1.0, np.nan)
    lower, upper = lead_bounds(records, delta)
    better, worse = evidence(records, threshold)
    return Verdicts(
        verdict=judged * records["verdict"],
        since_seconds=known * records["since_ms"] / 1000.0,
        since=known * records["since"],
        lead=mean_lead(records),
        lower=lower,
        upper=upper,
        better=judged * better,
        worse=judged * worse,
        dispersion=judged * dispersion(records),
    )


def read_fold_verdicts(
    steps: NDArray[np.int64], records: NDArray[Any], delta: float, threshold: float
) -> Verdicts:
    """Read the records of the k folds of one model together, each array (opponents, 1).

    The verdict and its beginning are those of the fold whose verdict changed most often, as a fold that was
    added later has no earlier ones. Evidence is that of M averaged over folds, 0 in those where it has not
    started (see `judge`). The lead, its bounds and the dispersion are means over folds, NaN if one has none.

    Parameters
    ----------
    steps, records
        Shape (opponents, k).
    delta, threshold
        δ and A.
    """
    single = read_verdicts(steps, records, delta, threshold)
    leading = np.argmax(records["changes"], axis=1)[:, None]
    counted = np.where(records["started"] > 0, 1.0, 0.0)
    sums = (records["sums"] * counted[..., None, None]).mean(axis=1, keepdims=True)
    found = np.log(np.maximum(sums.mean(axis=-1), 1.0)) / np.log(threshold)
    judged = np.where((steps > 0).any(axis=1, keepdims=True), 1.0, np.nan)
    return Verdicts(
        verdict=judged * np.take_along_axis(records["verdict"], leading, 1),
        since_seconds=np.take_along_axis(single.since_seconds, leading, 1),
        since=np.take_along_axis(single.since, leading, 1),
        lead=_mean_over_folds(single.lead),
        lower=_mean_over_folds(single.lower),
        upper=_mean_over_folds(single.upper),
        better=judged * found[..., BETTER],
        worse=judged * found[..., WORSE],
        dispersion=_mean_over_folds(single.dispersion),
    )


def _mean_over_folds(values: Floats) -> Floats:
    """Mean over the last axis, which is kept; NaN if any value is: a mean over some is not the model's."""
    return values.mean(axis=-1, keepdims=True)
