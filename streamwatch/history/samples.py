"""Conversion of series of models to named numbers, and to rows for a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streamwatch.core.metrics.series import Family, Histogram

_COLUMN: Final = {"value": "segment_value"}
"""Names of columns for labels that are called like another column."""


def samples_of(
    families: Iterable[Family], model: str | None = None
) -> Iterator[tuple[dict[str, str], float]]:
    """Yield metric and labels of each estimate, with its value.

    They are of one model, then without the label `model`, or of all. Histograms are left out.
    """
    for family in families:
        for labels, value in family.samples:
            row = dict(zip(family.labels, labels, strict=True))
            if isinstance(value, Histogram) or "model" not in row:
                continue
            if model is None or row.pop("model") == model:
                yield {"metric": family.name, **row}, value


def name_of(row: dict[str, str]) -> str:
    """Build the name of an estimate: its metric, then its label values in the order of label names."""
    return ":".join((row["metric"], *(row[label] for label in sorted(row) if label != "metric")))


def rows_of(families: Iterable[Family]) -> list[dict[str, str | float]]:
    """Return every estimate of every model as a row of `metric`, its labels, and `value`, a float."""
    return [
        {**{_COLUMN.get(name, name): label for name, label in row.items()}, "value": float(value)}
        for row, value in samples_of(families)
    ]


def counted(number: int, what: str) -> str:
    """Format a number with a noun: `1 model`, `2 models`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
