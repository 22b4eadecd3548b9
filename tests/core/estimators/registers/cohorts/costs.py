"""A table of costs, and utilities as they are defined."""

from __future__ import annotations

from collections.abc import Callable

from streamwatch.core.specs import UtilitySpec

COSTS = UtilitySpec(
    kind="costs",
    costs=(
        *((str(label), str(label), 0.0) for label in range(10)),
        *(("0", str(answer), 1.0 + 0.3 * answer) for answer in range(1, 10)),
        ("1", "0", 9.0),
        ("1", "2", 0.5),
        ("2", "3", 0.0),
        ("3", "4", -1.0),
    ),
    other=4.0,
)
"""A hit on class 3 costs more than taking it for 4, and taking 2 for 3 costs as little as a hit."""


def utility_of(spec: UtilitySpec) -> Callable[[object, object], float]:
    """By the definition: 1 for the least cost of the table, 0 for the largest, and a line between."""
    assert spec.other is not None
    other = spec.other
    given = {(true, named): cost for true, named, cost in spec.costs}
    most, least = max(other, *given.values()), min(other, *given.values())

    def utility(label: object, answer: object) -> float:
        return (most - given.get((str(label), str(answer)), other)) / (most - least)

    return utility
