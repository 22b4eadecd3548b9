"""The area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence


def area_under_roc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Share of pairs in which the positive one is higher, equal ones half (Mann and Whitney 1947)."""
    ordered = sorted([(number, 0) for number in negative] + [(number, 1) for number in positive])
    wins = 0.0
    below = at = 0
    while at < len(ordered):
        stop = at
        while stop < len(ordered) and ordered[stop][0] == ordered[at][0]:
            stop += 1
        ups = sum(side for _, side in ordered[at:stop])
        downs = stop - at - ups
        wins += ups * (below + downs / 2)
        below += downs
        at = stop
    return wins / (len(positive) * len(negative))
