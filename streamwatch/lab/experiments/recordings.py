"""Recorded answers of several classifiers on one stream."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Classes: TypeAlias = NDArray[np.int64]
TRUTH = "y_true"
LEAST = 2_000
"""Outcomes below which windows of 1,000 and orders of dependence tell nothing."""


class AnswersError(ValueError):
    """A file that an experiment cannot evaluate; the message says what was expected of it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Labels and answers, outcome by outcome."""

    labels: tuple[str, ...]
    """Names of the classes, sorted."""
    true_class: Classes
    """(n,), by index in `labels`."""
    answers: dict[str, Classes]
    """By classifier, (n,)."""

    @property
    def tree(self) -> str:
        """Classifier in the place of the papers' Hoeffding tree: `ht@8`, as on Elec2, else the first."""
        return "ht@8" if "ht@8" in self.answers else next(iter(self.answers))


def read_recording(path: Path | None, *, answers: bool = True) -> Recording:
    """Read a CSV, .gz or not, with the labels in `y_true` and a column per classifier.

    A column `i` is left out. `answers`: whether there must be a classifier.

    Raises
    ------
    AnswersError
        If there is no such file or column, or too few rows.
    """
    if path is None:
        raise AnswersError(
            f"expected --recording FILE, a CSV with a column {TRUTH} and one per classifier; got none"
        )
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            rows = list(csv.reader(lines))
    except (OSError, UnicodeDecodeError) as error:
        raise AnswersError(f"{path} cannot be read: {error}") from error
    header = rows[0] if rows else []
    if TRUTH not in header or len(rows) < 2:
        raise AnswersError(f"{path}: expected rows below a header with {TRUTH}, got {', '.join(header)}")
    if len(rows) <= LEAST:
        raise AnswersError(f"{path}: expected at least {LEAST:,} rows, got {len(rows) - 1:,}")
    if wrong := [number for number, row in enumerate(rows, 1) if len(row) != len(header)]:
        raise AnswersError(f"{path}: expected {len(header)} cells in line {wrong[0]}")
    columns = dict(zip(header, np.array(rows[1:]).T, strict=True))
    labels = tuple(sorted(set(columns[TRUTH].tolist())))
    others = {name: column for name, column in columns.items() if name not in {TRUTH, "i"}}
    if answers and not others:
        raise AnswersError(f"{path}: expected a column of answers per classifier beside {TRUTH}, got none")
    if len(labels) < 2:
        raise AnswersError(f"{path}: expected at least two classes in {TRUTH}, got {', '.join(labels)} only")
    for name, column in others.items():
        if unknown := sorted(set(column.tolist()) - set(labels)):
            raise AnswersError(f"{path}: {name} answers {unknown[0]!r}, which is never a label")
    return Recording(
        labels,
        np.searchsorted(labels, columns[TRUTH]),
        {name: np.searchsorted(labels, column) for name, column in others.items()},
    )
