"""Names and limits of a segment's values, and which of them have estimates of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OTHER: Final = "__other__"
"""All values without estimates of their own, together."""
EPOCH: Final = 10_000
"""Outcomes of a segment after which its values are compared by their traffic."""
CANDIDATES: Final = 1_000
"""Values without estimates that are counted within an epoch; later ones wait for the next."""
_OUTWEIGHS: Final = 2
"""A value takes the place of another if it had more than so many times its outcomes within an epoch."""


def exchanged(candidates: Mapping[str, int], own: Mapping[str, int]) -> list[tuple[str, str]]:
    """Say which values come, and in whose place, at the end of an epoch.

    Parameters
    ----------
    candidates
        Outcomes within the epoch of values without estimates of their own.
    own
        Of those that have some.

    Returns
    -------
    list
        The most frequent candidate in the place of the rarest value, if it had more than twice as many
        outcomes, and so on with the next; of equally frequent ones the first by name.
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
