"""A number for each class instead of a class: which field it is, and which class each number speaks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from streamwatch.inspection.columns import Column, FlatRecord
from streamwatch.inspection.words import SCORES, area_under_roc, words

MAX_CLASSES: Final = 200
MIN_EACH: Final = 5
"""Joined records of a class from which its numbers show which of them is its own."""
USUAL: Final = 0.95
ABSENT: Final = float("-inf")
"""Number of a class that a record's object does not name."""
ROUNDED: Final = 0.02
"""Distance from 1 that a sum of rounded probabilities may have."""


@dataclass
class Vector:
    """Numbers at one location, one row a record, None where absent; `names` are empty for an array."""

    location: str
    names: tuple[str, ...]
    rows: Sequence[Sequence[float] | None]

    @cached_property
    def is_distribution(self) -> bool:
        """Tell whether the numbers are probabilities of all classes."""
        filled = [[number for number in row if number > ABSENT] for row in self.rows if row is not None]
        fits = sum(abs(sum(row) - 1) <= ROUNDED and min(row) >= 0 for row in filled)
        return fits >= USUAL * len(filled)

    @cached_property
    def are_probabilities(self) -> bool:
        """Tell whether all numbers are from 0 to 1, and add up to no more: some classes may be left out."""
        filled = [[number for number in row if number > ABSENT] for row in self.rows if row is not None]
        return all(
            min(row) >= -1e-6 and max(row) <= 1 + 1e-6 and sum(row) <= 1 + ROUNDED for row in filled if row
        )

    @cached_property
    def speaks(self) -> bool:
        """Tell whether it looks like one number for each class: by what it is called, or as probabilities."""
        return self.is_distribution or bool(SCORES & set(words(self.location.rpartition(".")[2])))

    @cached_property
    def largest(self) -> Sequence[int | None]:
        """Position of each row's largest number, the first of equal ones."""
        return [None if row is None else row.index(max(row)) for row in self.rows]

    def column(self, classes: Sequence[str]) -> Column:
        """Classes that mappings make of it."""
        return Column(self.location, [None if at is None else classes[at] for at in self.largest])

    def order(self, texts: Sequence[tuple[int, str]]) -> tuple[str, ...] | None:
        """Name the numbers of an array by the classes they speak for.

        Each class is the one whose records have a higher number there than all have; the names are given so
        that these differences add up to the most (`scipy.optimize.linear_sum_assignment`).

        Parameters
        ----------
        texts
            Row, and the class that stands beside it.

        Returns
        -------
        Classes by position, those that never occurred by their number; None where the numbers say nothing,
        or there are more classes than numbers.
        """
        rows = [(row, text) for at, text in texts if (row := self.rows[at]) is not None]
        width = len(rows[0][0]) if rows else 0
        classes = sorted({text for _, text in rows})
        if not 2 <= len(classes) <= width:
            return None
        numbered = tuple(map(str, range(width)))
        if set(classes) <= set(numbered):
            return numbered
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - takes .3 s; the daemon needs none

        groups: defaultdict[str, list[Sequence[float]]] = defaultdict(list)
        for row, text in rows:
            groups[text].append(row)
        overall = np.mean([row for row, _ in rows], axis=0)
        lifts = np.array([np.mean(groups[name], axis=0) - overall for name in classes])
        chosen, positions = linear_sum_assignment(-lifts)
        if any(lifts[c, p] <= 0 for c, p in zip(chosen, positions, strict=True)):
            return None
        named = dict(zip(positions.tolist(), (classes[c] for c in chosen), strict=True))
        return tuple(named.get(at, f"class {at}") for at in range(width))

    def separation(self, classes: Sequence[str], texts: Sequence[tuple[int, str]]) -> float:
        """Mean of 2 AUC - 1 over the classes: how well each number separates its class from all others."""
        areas: list[float] = []
        for at, name in enumerate(classes):
            own: list[float] = []
            others: list[float] = []
            for i, text in texts:
                if (row := self.rows[i]) is not None:
                    (own if text == name else others).append(row[at])
            if min(len(own), len(others)) >= MIN_EACH:
                areas.append(2 * area_under_roc(own, others) - 1)
        return max(0.0, float(np.mean(areas))) if areas else 0.0


def vectors_of(records: Sequence[FlatRecord]) -> Sequence[Vector]:
    """Arrays of one length and objects, of numbers alone, that most records have."""
    locations = dict.fromkeys(
        location for record in records for location in (*record.arrays, *record.numbers)
    )
    found = (_of_array(location, records) or _of_object(location, records) for location in locations)
    return [vector for vector in found if vector is not None]


def _of_array(location: str, records: Sequence[FlatRecord]) -> Vector | None:
    rows = [_numbers(record.arrays.get(location)) for record in records]
    widths = {len(row) for row in rows if row is not None}
    arrays = sum(location in record.arrays for record in records)
    if len(widths) != 1 or not 2 <= min(widths) <= MAX_CLASSES:
        return None
    return Vector(location, (), rows) if sum(row is not None for row in rows) == arrays else None


def _of_object(location: str, records: Sequence[FlatRecord]) -> Vector | None:
    objects: list[Mapping[str, float] | None] = [record.numbers.get(location) for record in records]
    names = sorted({name for content in objects if content is not None for name in content})
    if not 2 <= len(names) <= MAX_CLASSES:
        return None
    rows = [None if each is None else [float(each.get(name, ABSENT)) for name in names] for each in objects]
    return Vector(location, tuple(names), rows)


def _numbers(content: Sequence[Any] | None) -> Sequence[float] | None:
    """Numbers of an array that holds nothing else."""
    if content is None or any(type(each) not in {int, float} for each in content):
        return None
    return [float(each) for each in content]
