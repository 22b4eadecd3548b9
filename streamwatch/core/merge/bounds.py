"""Bounds up to which records may be released, from the progress of every partition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.columns import EVER, find_bounds
from streamwatch.core.merge.partitions import Partitions


class Bounds(NamedTuple):
    """Bounds up to which records may be released, times in milliseconds; by default all of them may."""

    read: tuple[int, int] = (EVER, EVER)
    """Time and place up to which no record that is yet to be read can precede."""
    rested: tuple[int, int] = (EVER, EVER)
    """Beyond this a partition that was found at its end may deliver what precedes; so what is beyond must
    have arrived up to `fetched_ms`, and be of a time up to `rest_ms` or have arrived up to `waited_ms`."""
    fetched_ms: int = EVER
    rest_ms: int = EVER
    waited_ms: int = EVER


def bounds_of(
    partitions: Partitions,
    waiting: NDArray[np.bool_],
    *,
    settle_ms: int,
    rested_ms: int | None,
    waited_ms: int,
) -> Bounds:
    """Compute the bounds up to which no partition has to be waited for.

    Parameters
    ----------
    partitions
        Progress of every partition.
    waiting
        bool, one for each partition: whether some of its records have no time yet.
    settle_ms
        Least time from a record's arrival to the sending of the fetch that found a partition at its end.
    rested_ms, waited_ms
        By the host's clock times up to `rested_ms` have rested (None while that clock is behind), and records
        that arrived up to `waited_ms` have waited long enough for it.
    """
    read_ms, read_place, least_ms, place, fetched_ms = find_bounds(
        partitions.running_ms, partitions.held, partitions.at_end_ms, partitions.left_behind, waiting
    )
    if place == EVER:
        return Bounds(read=(read_ms, read_place))
    return Bounds(
        (read_ms, read_place),
        (least_ms, place),
        fetched_ms - settle_ms,
        EVER if rested_ms is None else rested_ms,
        waited_ms,
    )
