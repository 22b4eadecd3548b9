"""Results of labels that meet an entry, and the counters they are counted in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamwatch.core.join.entry import EVICTED, EXPIRED, OVER_LIMIT, WITHDRAWN, JoinEntry

JOINED: Final = -3
CORRECTED: Final = -2
DUPLICATE: Final = -1
ORPHAN: Final = 99
"""A label that has met nobody; the results of those that have are smaller."""

RESULT_BY_STATE: Final = (
    JOINED,
    DUPLICATE,
    DUPLICATE,
    DUPLICATE,
    DUPLICATE,
    EXPIRED,
    WITHDRAWN,
    EVICTED,
    OVER_LIMIT,
)
"""Result by the state of the entry, `PENDING` … `OVER_LIMIT`; a duplicate of another class is corrected.

Of a label that meets several entries the smallest result counts.
"""

COUNTED_AS: Final[Mapping[int, str]] = {
    JOINED: "joined",
    CORRECTED: "corrected",
    DUPLICATE: "duplicate",
    EXPIRED: "late",
    WITHDRAWN: "withdrawn",
    EVICTED: "evicted_prediction",
    OVER_LIMIT: "over_limit",
}
"""Field of `LabelCounters` by result."""


def result_of(entry: JoinEntry, true_class: str) -> int:
    """Return the result of a label that meets an entry; a dedup entry must not have been dropped."""
    result = RESULT_BY_STATE[entry.state]
    return CORRECTED if result == DUPLICATE and entry.true_class != true_class else result
