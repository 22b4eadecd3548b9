"""A hard limit on series: whole families are left out, the least needed first, until the rest fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch.core.series import Family, Histogram


def series_of(family: Family) -> int:
    """Lines a family takes in an exposition: a histogram's buckets, +Inf, sum and count are one each."""
    if not family.samples:
        return 0
    value = family.samples[0][1]
    return len(family.samples) * (len(value.counts) + 2 if isinstance(value, Histogram) else 1)


def left_out(families: Sequence[Family], max_series: int, ranks: Mapping[str, int]) -> frozenset[str]:
    """Names of the families that have to go.

    Parameters
    ----------
    families
        Everything that is to be shown.
    max_series
        Series that may be shown.
    ranks
        Name → rank; the highest go first, among equals the largest. What has none goes last.
    """
    sizes = {family.name: series_of(family) for family in families}
    total = sum(sizes.values())
    gone: set[str] = set()
    for name in sorted(sizes, key=lambda name: (ranks.get(name, 0), sizes[name], name), reverse=True):
        if total <= max_series:
            break
        if sizes[name]:
            gone.add(name)
            total -= sizes[name]
    return frozenset(gone)
