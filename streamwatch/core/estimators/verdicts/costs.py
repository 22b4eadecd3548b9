"""Cost tables as utilities; nothing here is compiled, so that settings can check a table without delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.specs import UtilitySpec


@dataclass(frozen=True, slots=True)
class CostTable:
    """Costs of answers, converted to utilities."""

    classes: tuple[str, ...]
    """Named classes; their indices in `utilities` start at 1, index 0 stands for any other class."""
    utilities: NDArray[np.float64]
    """Shape (K + 1, K + 1): utility by true class (row) and answer (column).

    (highest cost − cost) / (highest − lowest), so from 0 to 1.
    """

    def index(self, name: str) -> int:
        """Index of a class in `utilities`."""
        return self.classes.index(name) + 1 if name in self.classes else 0


def stacked(tables: Sequence[CostTable]) -> NDArray[np.float64]:
    """Stack utilities by (table, true class, answer); smaller tables are padded with the lowest utility."""
    size = max((len(table.utilities) for table in tables), default=1)
    utilities = np.zeros((len(tables), size, size))
    for i, table in enumerate(tables):
        utilities[i, : len(table.utilities), : len(table.utilities)] = table.utilities
    return utilities


def cost_table_of(spec: UtilitySpec) -> CostTable:
    """Build the table of a utility by costs; raises ValueError as `cost_table` does."""
    costs: dict[str, dict[str, float]] = {}
    for true_class, answer, cost in spec.costs:
        costs.setdefault(true_class, {})[answer] = cost
    return cost_table(costs, spec.other)


def cost_table(costs: Mapping[str, Mapping[str, float]], other: float | None) -> CostTable:
    """Build the utilities of a cost table.

    Parameters
    ----------
    costs
        Cost of an answer by true class and answered class; lower is better.
    other
        Cost of every pair missing in `costs`, hits among them. Without it every pair of named classes must be
        present, and a pair with any other class costs as much as the worst one.

    Raises
    ------
    ValueError
        If a pair is missing and `other` is None, a cost or the difference of two is not finite, or all costs
        are equal.
    """
    names = sorted({*costs, *(answer for row in costs.values() for answer in row)})
    given = [cost for row in costs.values() for cost in row.values()]
    if other is not None:
        given.append(other)
    if not np.isfinite(given).all():
        raise ValueError(f"costs must be finite, got {next(c for c in given if not np.isfinite(c))!r}")
    for true_class in names:
        for answer in names:
            if other is None and answer not in costs.get(true_class, {}):
                raise ValueError(
                    f"costs must name every pair or have other, got none for {true_class}: {answer}"
                )
    most, least = max(given, default=0.0), min(given, default=0.0)
    if most == least:
        raise ValueError(f"costs must differ, got {most!r} for every pair")
    if not np.isfinite(most - least):
        raise ValueError(f"costs must differ by a finite number, got {least!r} and {most!r}")
    table = np.full((len(names) + 1, len(names) + 1), most if other is None else other)
    for i, true_class in enumerate(names):
        for j, answer in enumerate(names):
            table[i + 1, j + 1] = costs.get(true_class, {}).get(answer, table[0, 0])
    return CostTable(tuple(names), (most - table) / (most - least))
