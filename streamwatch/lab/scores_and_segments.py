"""Scores of classes and values of segments that outcomes carry, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.probabilities.spec import probabilities_under
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.score_columns import ScoreColumns
from streamwatch.core.segments import segments_text
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.lab.columns import Numbers, column_of


def default_spec() -> MonitorsSpec:
    """Specify what a daemon keeps without settings, of outcomes with scores and segments, too."""
    plain = MonitorsSpec()
    return replace(plain, registers=(probabilities_under(plain.forgetting), SegmentsSpec()))


def scores_of(given: Any, count: int, segments: NDArray[np.int32]) -> ScoreColumns:
    """Scores of all outcomes by their positions, of no class where none are given, and their segments.

    Parameters
    ----------
    given
        A column of probabilities for each class, shape (count,): a mapping or a frame of pandas or polars.
        NaN where an outcome has no score of the class.
    count
        Outcomes.
    segments
        Number of each outcome's segments, shape (count,).

    Raises
    ------
    ValueError
        If a column is of another length, or holds what is no probability.
    """
    columns = columns_of(given, "scores")
    table = np.empty((count, len(columns)), np.float64)
    for place, (name, values) in enumerate(columns.items()):
        try:
            column = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"scores[{name!r}] must be numbers: {error}") from error
        _check_length(f"scores[{name!r}]", column, count)
        wrong = np.flatnonzero((column < 0) | (column > 1))
        if len(wrong):
            raise ValueError(
                f"scores[{name!r}] must be in [0, 1] or NaN, got {column[wrong[0]]} at position {wrong[0]}"
            )
        table[:, place] = column
    return ScoreColumns(list(columns), table, segments)


def segments_of(given: Any, count: int) -> tuple[NDArray[np.int32], list[str]]:
    """Number of each outcome's values of all segments, and their texts by number (`core.segments`).

    Parameters
    ----------
    given
        A column of values for each segment, shape (count,): texts, numbers, booleans; None or NaN where a
        prediction does not have the field. A mapping, or a frame of pandas or polars.
    count
        Outcomes.

    Returns
    -------
    (ndarray, list of str)
        Shape (count,), −1 of those without any segment.

    Raises
    ------
    ValueError
        If a column is of another length, or holds what is no value of a segment.
    """
    combined = np.zeros(count, np.int64)
    first = np.zeros(0, np.intp)
    columns: list[tuple[str, NDArray[np.int64], list[str]]] = []
    for name, column in columns_of(given, "segments").items():
        _check_length(f"segments[{name!r}]", column, count)
        numbers = Numbers()
        own = np.full(count, -1, np.int64)
        there = _present(column)
        own[there] = numbers.of(column[there], f"segments[{name!r}]")
        columns.append((name, own, numbers.names))
        combined = combined * (len(numbers.names) + 1) + own + 1
        _, first, combined = np.unique(combined, return_index=True, return_inverse=True)
    texts: list[str] = []
    number_of = np.full(len(first), -1, np.int32)
    for combination, at in enumerate(first.tolist()):
        values = {name: names[own[at]] for name, own, names in columns if own[at] >= 0}
        if values:
            number_of[combination] = len(texts)
            texts.append(segments_text(values))
    return (number_of[combined] if columns else np.full(count, -1, np.int32)), texts


def columns_of(given: Any, what: str) -> dict[str, NDArray[Any]]:
    """Columns of a mapping or a frame, by their names as the daemon writes them; none of None.

    Raises
    ------
    ValueError
        If a name is none, or two are the same.
    """
    if given is None:
        return {}
    names: Iterable[Any] = cast("Mapping[Any, Any]", given) if isinstance(given, Mapping) else given.columns
    found: dict[str, NDArray[Any]] = {}
    for name in names:
        text = canonical_text(name.item() if isinstance(name, np.generic) else name)
        if not text or text in found:
            raise ValueError(f"{what} must have columns of different names, got {name!r}")
        found[text] = column_of(given[name])
    return found


def part_of(columns: Mapping[str, NDArray[Any]], part: slice) -> dict[str, NDArray[Any]]:
    """Some rows of columns."""
    return {name: column[part] for name, column in columns.items()}


def _present(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell where a column has a value: None and NaN are none."""
    if column.dtype.kind == "f":
        return ~np.isnan(column)
    if column.dtype.kind != "O":
        return np.ones(len(column), np.bool_)
    listed: list[Any] = column.tolist()
    return np.array([not (v is None or (isinstance(v, float) and v != v)) for v in listed], np.bool_)  # noqa: PLR0124


def _check_length(what: str, column: NDArray[Any], count: int) -> None:
    if column.shape != (count,):
        raise ValueError(f"{what} must have one value per outcome ({count}), got shape {column.shape}")
