"""Read what records of recovery say, as arrays over them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.recovery.state import RECOVERY
from streamwatch.core.series import Histogram

Floats: TypeAlias = NDArray[np.float64]


class Recoveries(NamedTuple):
    """Drifts of m models, each array (m,), and what became of them."""

    recovering: Floats
    """1 while a drift is under way, else 0."""
    begun: Floats
    """Drifts so far."""
    recovered: Floats
    """Of these, drifts from which the error came back."""
    not_recovered: Floats
    """… and drifts that ended without."""
    depth: Floats
    """Of the last drift that ended; NaN before the first."""
    outcomes: Floats
    """From its start until the error was back; NaN if it did not come back, too."""


def read_recoveries(records: NDArray[Any]) -> Recoveries:
    """Read records (`RECOVERY` or `TRACED`), shape (m,)."""
    recovering = (records["since"] > 0).astype(np.float64)
    recovered = records["recovered"].astype(np.float64)
    not_recovered = records["not_recovered"].astype(np.float64)
    ended = np.where(recovered + not_recovered > 0, 1.0, np.nan)
    return Recoveries(
        recovering=recovering,
        begun=recovered + not_recovered + recovering,
        recovered=recovered,
        not_recovered=not_recovered,
        depth=ended * records["depth"],
        outcomes=ended * records["outcomes"],
    )


def read_histograms(records: NDArray[Any]) -> tuple[list[Histogram], list[Histogram]]:
    """Histograms of the depths and of the lengths of drifts that ended, of each record (`RECOVERY`)."""
    return tuple(
        [
            Histogram(tuple(counts), total)
            for counts, total in zip(
                np.cumsum(records[buckets], axis=1).tolist(), records[total].tolist(), strict=True
            )
        ]
        for buckets, total in (("depths", "depth_sum"), ("lengths", "outcomes_sum"))
    )  # pyright: ignore[reportReturnType]


def recovery_document(forgetting: str, error: float, record: np.void) -> dict[str, object]:
    """Describe the drift under way and the last that ended of one model, for people.

    Parameters
    ----------
    forgetting
        Name of the fading factor whose error is followed.
    error
        That error now.
    record
        Of `RECOVERY`, shape ().
    """
    said = read_recoveries(np.array([record], RECOVERY))
    document: dict[str, object] = {"forgetting": forgetting}
    if said.recovering[0]:
        document["under_way"] = {
            "since_outcome": int(record["since"]) + 1,
            "alarm_timestamp_seconds": float(record["alarm_ms"]) / 1000.0,
            "error_before_ratio": float(record["before"]),
            "error_now_ratio": error,
        }
    if said.recovered[0] + said.not_recovered[0] > 0:
        outcomes = float(said.outcomes[0])
        document["last"] = {
            "depth": float(said.depth[0]),
            "outcomes": outcomes if outcomes == outcomes else None,  # noqa: PLR0124 - NaN is not itself
        }
    return document
