"""Plan for reading the lines of a file in columns, derived from its header and the mappings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.timestamps import LOOK_AHEAD
from streamwatch.edge.decoders.mapping import (
    Constant,
    InValue,
    TopicMapping,
    carried_numbers,
    parse_field_location,
)
from streamwatch.edge.decoders.scanner.plan import UNITS, ContentTree, fields_of
from streamwatch.edge.decoders.scanner.shape import Fields
from streamwatch.history.outcome_rows.scan import (
    ID,
    LABEL,
    MODEL,
    OTHER,
    PREDICTION,
    REFUSED,
    TIME,
    believed_times,
)
from streamwatch.history.recordings.lines import RecordedTopic


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Roles of the columns of a CSV file, or of the fields of JSON lines."""

    header: Sequence[str]
    roles: NDArray[np.int64]
    """Role of each name in `header`, shape (columns,)."""
    model: str | None
    """Model of all rows; None if a column has it."""
    unit: int
    """Unit of times, as in `UNITS`."""


def plan_of(header: Sequence[str], topics: Mapping[str, RecordedTopic]) -> RowPlan | None:
    """Plan for CSV files with this header; None if rows may have more than the columns can represent.

    By the first mapping of predictions and the first one of labels, each row must be a prediction and its
    label: with their classes, one id, at most one model and one time, each in a column, and nothing else.
    """
    found = _columns(topics)
    if found is None or _ambiguous(header):
        return None
    columns, unused, model, unit = found
    roles = np.full(len(header), OTHER, np.int64)
    for role, column in columns.items():
        if column in header:
            if roles[header.index(column)] != OTHER:
                return None
            roles[header.index(column)] = role
        elif role != TIME:
            return None
    if any(_has_content(header, column) for column in unused):
        return None
    return RowPlan(tuple(header), roles, model, unit)


def line_plan(topics: Mapping[str, RecordedTopic]) -> tuple[RowPlan, Fields] | None:
    """Plan for JSON lines, likewise; `header` has all fields with a role, including `REFUSED`."""
    found = _columns(topics)
    if found is None:
        return None
    columns, unused, model, unit = found
    names = [*columns.values(), *unused]
    if any("." in name for name in names) or len(set(names)) < len(names):
        return None
    tree = ContentTree()
    for name in names:
        tree.content(InValue((name,)))
    fields = fields_of(tree)
    roles = [*columns, *(REFUSED for _ in unused)]
    return None if fields is None else (RowPlan(tuple(names), np.array(roles, np.int64), model, unit), fields)


def _columns(
    topics: Mapping[str, RecordedTopic],
) -> tuple[dict[int, str], list[str], str | None, int] | None:
    """Return columns by role, columns that must be absent, the model of all rows, and the unit of times.

    None if lines may not be outcomes, or may have more than these columns.
    """
    firsts = [_first(topics, ("prediction", "both")), _first(topics, ("label",))]
    made, known = (None if each is None else _plain_mapping(each) for each in firsts)
    if made is None or known is None:
        return None
    if (made.id, made.timestamp, made.timestamp_unit) != (known.id, known.timestamp, known.timestamp_unit):
        return None
    if known.model not in {None, made.model}:
        return None
    plain = (made.id, made.model or "", made.prediction, known.label)
    if not all(isinstance(path, str) for path in plain):
        return None
    id_, named, predicted, true = cast("tuple[str, ...]", plain)
    model = parse_field_location(named) if named else None
    wanted = {ID: id_, PREDICTION: predicted, LABEL: true}
    if made.timestamp is not None:
        wanted[TIME] = made.timestamp
    if not isinstance(model, Constant):
        wanted[MODEL] = named
    columns = {role: _column(path) for role, path in wanted.items()}
    unused = [
        each for mapping in (made, known) for each in (mapping.scores, mapping.fold) if each is not None
    ]
    others = [_column(path) if isinstance(path, str) else None for path in unused]
    found = {role: column for role, column in columns.items() if column is not None}
    refused = [column for column in dict.fromkeys(others) if column is not None]
    if len(found) < len(columns) or None in others:
        return None
    return found, refused, model.text if isinstance(model, Constant) else None, UNITS[made.timestamp_unit]


def _first(topics: Mapping[str, RecordedTopic], sides: Sequence[str]) -> RecordedTopic | None:
    return next((topic for topic in topics.values() if topic.spec.side in sides), None)


def _plain_mapping(topic: RecordedTopic) -> TopicMapping | None:
    """Return the mapping of a topic if it is the only one and does nothing but name paths; else None."""
    spec = topic.spec
    if topic.spec.side == "both" or len(topic.mappings) != 1 or spec.folds is not None:
        return None
    if spec.envelope is not None or spec.texts:
        return None
    mapping = topic.mappings[0].mapping
    if (
        mapping.segments
        or carried_numbers(mapping)
        or mapping.kind is not None
        or mapping.when
        or mapping.optional
    ):
        return None
    return mapping


def _column(path: str) -> str | None:
    parsed = parse_field_location(path) if path else None
    return ".".join(parsed.path) or None if isinstance(parsed, InValue) else None


def _has_content(header: Sequence[str], column: str) -> bool:
    """Tell whether columns of the header may have the value of `column`, or parts of it."""
    return any(
        name == column or name.startswith(column + ".") or column.startswith(name + ".")
        for name in header
        if name
    )


def _ambiguous(header: Sequence[str]) -> bool:
    """Tell whether two columns have the same name, or one is nested in another."""
    names = [name for name in header if name]
    if max(Counter(names).values(), default=0) > 1:
        return True
    return any(one != other and other.startswith(one + ".") for one in names for other in names)


# Times of a file's rows, up to the first that needs the full check of `core.merge.timestamps`.


class Dated(NamedTuple):
    """Times of rows, shape (n,) each."""

    believed: int
    """Number of rows, from the first on, up to one whose time needs the full check."""
    stamps_ms: NDArray[np.int64]
    """Timestamp of each row."""
    times_ms: NDArray[np.int64]
    """Time of the partition at each row: the running maximum of timestamps."""


class RowTimes:
    """Dates the rows of one file, in order (`scan.believed_times`).

    Parameters
    ----------
    max_future_ms
        Largest advance of a timestamp over earlier ones that is believed without a check.
    """

    def __init__(self, max_future_ms: int) -> None:
        self._max_future_ms = max_future_ms
        self.last_ms = 0
        """Timestamp of the last row; a row without a time comes a millisecond later."""
        self._running_ms = -1

    def dated(self, own_ms: NDArray[np.int64], timed: NDArray[np.bool_], host_ms: int) -> Dated:
        """Date the next rows; those that are not `timed` do not advance the time."""
        stamps_ms, times_ms = np.empty_like(own_ms), np.empty_like(own_ms)
        believed = believed_times(
            own_ms,
            timed,
            self.last_ms,
            self._running_ms,
            self._max_future_ms,
            host_ms + self._max_future_ms,
            LOOK_AHEAD,
            stamps_ms,
            times_ms,
        )
        return Dated(believed, stamps_ms, times_ms)

    def take(self, stamps_ms: NDArray[np.int64], times_ms: NDArray[np.int64]) -> None:
        """Continue after rows with these times."""
        if len(stamps_ms):
            self.last_ms, self._running_ms = int(stamps_ms[-1]), int(times_ms[-1])
