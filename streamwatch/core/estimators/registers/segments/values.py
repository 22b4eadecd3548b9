"""Limits on a segment's values, and the choice of those with estimates of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OTHER: Final = "__other__"
"""Name for all values without estimates of their own together."""
EPOCH: Final = 10_000
"""Number of outcomes of a segment after which its values are compared by traffic."""
CANDIDATES: Final = 1_000
"""Most values without estimates that are counted within an epoch; further ones wait for the next epoch."""
_OUTWEIGHS: Final = 2
"""A candidate replaces a value if it had more than this many times its outcomes within an epoch."""


def exchanged(candidates: Mapping[str, int], own: Mapping[str, int]) -> list[tuple[str, str]]:
    """Choose the values to add and to remove at the end of an epoch, as pairs (added, removed).

    Parameters
    ----------
    candidates
        Outcomes within the epoch of the values without estimates of their own.
    own
        Outcomes within the epoch of the values that have estimates.

    Returns
    -------
    list
        The most frequent candidate in the place of the rarest value, if it had more than twice as many
        outcomes, and so on with the next; among equally frequent ones the first by name.
    """
    least = min(own.values(), default=0)
    frequent = [(name, n) for name, n in candidates.items() if name != OTHER and n > _OUTWEIGHS * least]
    coming = sorted(frequent, key=lambda each: (-each[1], each[0]))
    going = sorted(own.items(), key=lambda each: (each[1], each[0])) if coming else []
    found: list[tuple[str, str]] = []
    for (newcomer, outcomes), (value, before) in zip(coming, going, strict=False):
        if outcomes <= _OUTWEIGHS * before:
            break
        found.append((newcomer, value))
    return found
