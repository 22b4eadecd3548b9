"""Vectors: fields with a number for each class, and the class that each number is of."""

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
"""Least number of joined records of a class with which its number or its score is examined."""
USUAL: Final = 0.95
"""Least share of rows that must be distributions."""
ABSENT: Final = float("-inf")
"""Number of a class that the object of a record does not name."""
ROUNDED: Final = 0.02
"""Largest distance of a sum of rounded probabilities from 1."""


@dataclass
class Vector:
    """Numbers at one location."""

    location: str
    names: tuple[str, ...]
    """Names of the numbers, if they are an object; empty for an array."""
    rows: Sequence[Sequence[float] | None]
    """Numbers of each record; None if it has none."""

    @cached_property
    def is_distribution(self) -> bool:
        """Return whether the numbers are probabilities that sum to 1."""
        filled = [[number for number in row if number > ABSENT] for row in self.rows if row is not None]
        fits = sum(abs(sum(row) - 1) <= ROUNDED and min(row) >= 0 for row in filled)
        return fits >= USUAL * len(filled)

    @cached_property
    def are_probabilities(self) -> bool:
        """Return whether the numbers are in [0, 1] with sums of at most 1: some classes may be left out."""
        filled = [[number for number in row if number > ABSENT] for row in self.rows if row is not None]
        return all(
            min(row) >= -1e-6 and max(row) <= 1 + 1e-6 and sum(row) <= 1 + ROUNDED for row in filled if row
        )

    @cached_property
    def is_likely_scores(self) -> bool:
        """Return whether these are likely the scores of classes, by name or as a distribution."""
        return self.is_distribution or bool(SCORES & set(words(self.location.rpartition(".")[2])))

    @cached_property
    def largest(self) -> Sequence[int | None]:
        """Index of the largest number of each row, the first of equal ones; None for missing rows."""
        return [None if row is None else row.index(max(row)) for row in self.rows]

    def column(self, classes: Sequence[str]) -> Column:
        """Return the class of each row's largest number, as a mapping does."""
        return Column(self.location, [None if at is None else classes[at] for at in self.largest])

    def order(self, texts: Sequence[tuple[int, str]]) -> tuple[str, ...] | None:
        """Find the class of each number of an array.

        The lift of a class at a position is the mean number of its records there minus that of all records.
        Classes are assigned to positions so that the sum of lifts is largest
        (`scipy.optimize.linear_sum_assignment`).

        Parameters
        ----------
        texts
            (number of the row, true class) of joined records.

        Returns
        -------
        tuple[str, ...] | None
            Classes by position: the position itself if all classes are positions; otherwise by lift, and
            `class <position>` for positions without a class. None if a lift is not positive, or there are
            more classes than numbers, or fewer than two.
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
        """Mean over the classes of 2 AUC - 1 of each number for its class, at least 0."""
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
    """Find arrays of constant length, and objects, that contain only numbers."""
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
    """Return an array as numbers; None if it has other elements."""
    if content is None or any(type(each) not in {int, float} for each in content):
        return None
    return [float(each) for each in content]
