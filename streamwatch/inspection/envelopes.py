"""Detection of envelopes, and of predictions and labels in the same records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from streamwatch.edge.decoders.envelopes import KINDS, EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.envelopes.cloudevents import is_event
from streamwatch.inspection.classes import MIN_PAIRS, class_pairs, score_pair
from streamwatch.inspection.columns import FlatRecord
from streamwatch.inspection.ids import IdPair, Pairing, id_columns
from streamwatch.inspection.models import model_locations
from streamwatch.inspection.streams import Stream
from streamwatch.inspection.words import ID, LABEL, PREDICTION, weight

USUAL: Final = 0.5
"""Share of a topic's records above which they count as being in an envelope."""


def envelope_of(records: Sequence[FlatRecord]) -> tuple[EnvelopeKind, str] | None:
    """Find the envelope of most records of a topic, and a note on it; None without one."""
    readable = [record for record in records if not record.fault]
    for name, fits, note in _ENVELOPES:
        kind = KINDS[name]
        opened = [kind.open(record.tree, record.record) for record in readable if fits(record)]
        counted = sum(each is None or isinstance(each, UnwrappedRecord) for each in opened)
        if counted > USUAL * len(readable) and any(isinstance(each, UnwrappedRecord) for each in opened):
            return kind, note
    return None


def _is_debezium(record: FlatRecord) -> bool:
    """Return whether a record has Debezium's `op` and `source`."""
    return any(
        f"{head}op" in record.scalars
        and any(location.startswith(f"{head}source.") for location in record.scalars)
        for head in ("value.payload.", "value.")
    )


def _is_event(record: FlatRecord) -> bool:
    return is_event(record.tree, record.record)


def _is_logged(record: FlatRecord) -> bool:
    """Return whether a record is a request or an answer logged by a server."""
    tree = record.tree
    return _is_event(record) or (isinstance(tree, dict) and bool({"request", "response"} & tree.keys()))


def _is_any(record: FlatRecord) -> bool:
    return isinstance(record.tree, dict)


_ENVELOPES: Final[tuple[tuple[str, Callable[[FlatRecord], bool], str], ...]] = (
    ("seldon", _is_any, "Seldon: rows of data; requests are skipped"),
    ("kserve_v2", _is_any, "KServe v2: tensors as arrays with an element for each instance"),
    ("kserve_v1", _is_logged, "KServe v1: instances and predictions; requests are skipped"),
    ("debezium", _is_debezium, "Debezium: rows as they are after a change; deletions withdraw predictions"),
    ("cloudevents", _is_event, "CloudEvents: attributes beside value.data, in structured and binary mode"),
)


SURE: Final = 0.3
"""Least weight of the names of both class fields, as equal contents of one record prove little."""


def within(stream: Stream) -> Pairing | None:
    """Pair a stream with itself, if its records have both predictions and labels by names; else None."""
    ids = [
        IdPair(c.location, c.location, len(c.counts), 1.0, 1.0, c.uniqueness + 0.5 * weight(c.location, ID))
        for c in id_columns(stream)
    ]
    ids.sort(key=lambda pair: -pair.rank)
    joined = [(row, row) for row in range(len(stream.records))]
    if not ids or len(joined) < MIN_PAIRS:
        return None
    location = ids[0].left
    classes = [
        pair
        for pair in class_pairs(stream, stream, joined, [location])
        if pair.prediction != pair.label
        and (pair.largest is not None or weight(pair.prediction, PREDICTION) > SURE)
        and weight(pair.label, LABEL) > SURE
    ]
    scored = score_pair(
        stream, stream, joined, [location, *(each.location for each in model_locations(stream, location))]
    )
    pairing = Pairing(stream, stream, ids, classes, 0.0, scored)
    return pairing if pairing.is_usable else None
