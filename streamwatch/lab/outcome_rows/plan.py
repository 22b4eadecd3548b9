"""Whether the rows of a CSV file can be read in columns, by its header and the mappings; and as what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.decoders.mapping import (
    Constant,
    InValue,
    TimestampUnit,
    TopicMapping,
    parse_field_location,
)
from streamwatch.edge.decoders.scanner.contents import MICROSECONDS, MILLISECONDS, NANOSECONDS, SECONDS
from streamwatch.lab.fitting import RecordedTopic
from streamwatch.lab.outcome_rows.scan import ID, LABEL, MODEL, OTHER, PREDICTION, TIME

_UNITS: Final[Mapping[TimestampUnit, int]] = {
    "ms": MILLISECONDS,
    "s": SECONDS,
    "us": MICROSECONDS,
    "ns": NANOSECONDS,
}


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Roles of the columns of the rows."""

    header: Sequence[str]
    roles: NDArray[np.int64]
    """Shape (columns,)."""
    model: str | None
    """Of all rows; None where a column tells."""
    unit: int
    """Of times."""


def plan_of(  # noqa: PLR0911 - a reason each
    header: Sequence[str], topics: Mapping[str, RecordedTopic]
) -> RowPlan | None:
    """Plan of files with this header; None where some row could hold more than columns of numbers.

    Each row must be an outcome by the first mapping of predictions and the first of labels: both find id,
    class and time in cells, of one id and one time, and nothing else that a cell could tell.
    """
    firsts = [_first(topics, ("prediction", "both")), _first(topics, ("label",))]
    mappings = [None if each is None else _plain_mapping(each) for each in firsts]
    made, known = mappings
    if made is None or known is None or _ambiguous(header):
        return None
    if (made.id, made.timestamp, made.timestamp_unit) != (known.id, known.timestamp, known.timestamp_unit):
        return None
    if known.model not in {None, made.model} or made.timestamp_unit not in _UNITS:
        return None
    places: dict[int, str | None] = {ID: made.id, TIME: made.timestamp}
    model = None if made.model is None else parse_field_location(made.model)
    if isinstance(model, Constant):
        name: str | None = model.text
    else:
        name, places[MODEL] = None, made.model
    if not isinstance(made.prediction, str) or not isinstance(known.label, str):
        return None
    places |= {PREDICTION: made.prediction, LABEL: known.label}
    roles = np.full(len(header), OTHER, np.int64)
    for role, place in places.items():
        column = _column(place)
        if column is None and role == TIME and place is None:
            continue
        if column is None or (column not in header and role != TIME):
            return None
        if column in header:
            if roles[header.index(column)] != OTHER:
                return None
            roles[header.index(column)] = role
    unused = [place for each in (made, known) for place in (each.scores, each.fold) if place is not None]
    if any(not isinstance(place, str) or _is_told(header, place) for place in unused):
        return None
    return RowPlan(tuple(header), roles, name, _UNITS[made.timestamp_unit])


def _first(topics: Mapping[str, RecordedTopic], sides: Sequence[str]) -> RecordedTopic | None:
    return next((topic for topic in topics.values() if topic.side in sides), None)


def _plain_mapping(topic: RecordedTopic) -> TopicMapping | None:
    """The one mapping of a topic that does no more than name places."""
    spec = topic.spec
    if topic.side == "both" or len(topic.mappings) != 1 or spec.folds is not None:
        return None
    if spec.envelope is not None:
        return None
    mapping = topic.mappings[0].mapping
    if mapping.segments or mapping.kind is not None or mapping.when or mapping.optional:
        return None
    return mapping


def _column(place: str | None) -> str | None:
    parsed = None if place is None else parse_field_location(place)
    return ".".join(parsed.path) if isinstance(parsed, InValue) else None


def _is_told(header: Sequence[str], place: str) -> bool:
    """Whether a column, or several, could hold the content of a place."""
    column = _column(place)
    if column is None:
        return True  # not in the value: whoever reads single rows knows
    return any(
        name == column or name.startswith(column + ".") or column.startswith(name + ".")
        for name in header
        if name
    )


def _ambiguous(header: Sequence[str]) -> bool:
    """Whether two columns have one name, or one is within another."""
    names = [name for name in header if name]
    if max(Counter(names).values(), default=0) > 1:
        return True
    return any(one != other and other.startswith(one + ".") for one in names for other in names)
