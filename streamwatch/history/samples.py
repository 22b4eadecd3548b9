"""Series of models as named numbers, and as rows for a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streamwatch.core.metrics.series import Family, Histogram

_COLUMN: Final = {"value": "segment_value"}
"""Columns of rows by label, where a label is called as what is no label."""


def samples_of(
    families: Iterable[Family], model: str | None = None
) -> Iterator[tuple[dict[str, str], float]]:
    """Give metric and labels of each estimate with its value; of one model, without that label, or of all."""
    for family in families:
        for labels, value in family.samples:
            row = dict(zip(family.labels, labels, strict=True))
            if isinstance(value, Histogram) or "model" not in row:
                continue
            if model is None or row.pop("model") == model:
                yield {"metric": family.name, **row}, value


def name_of(row: dict[str, str]) -> str:
    """Name of an estimate: that of its metric, then the values of its labels in the order of their names."""
    return ":".join((row["metric"], *(row[label] for label in sorted(row) if label != "metric")))


def rows_of(families: Iterable[Family]) -> list[dict[str, str | float]]:
    """Every estimate of every model as a row: `metric`, its labels, and `value`; counts are floats, too."""
    return [
        {**{_COLUMN.get(name, name): label for name, label in row.items()}, "value": float(value)}
        for row, value in samples_of(families)
    ]


def counted(number: int, what: str) -> str:
    """A number and what it is of, in words: `1 model`, `2 models`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
