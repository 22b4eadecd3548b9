"""Decodes records whose mappings ask for more than fields by name: values are read whole, as trees.

Elements of arrays, several mappings, classes made of scores, and envelopes need the whole value; a plain
mapping is read by the decoder of its format, several times as fast, with the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from streamwatch.core.events import Decoded, Event, EventGroup, Side
from streamwatch.core.ports import Record
from streamwatch.core.records import RecordBatch, batch_of
from streamwatch.edge.decoders.envelopes import EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.lookup import Content
from streamwatch.edge.decoders.mapped_part import MappedPart
from streamwatch.edge.decoders.mapping import SidedMapping, TopicMapping, places_of
from streamwatch.edge.decoders.places import InArray, InKey, Joined, Places, parse_places
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """A value that cannot be read, and the reason why, one of `reasons.REASONS`."""

    reason: str


ReadValue: TypeAlias = Callable[[bytes], "Any | UnreadableValue"]
"""From the bytes of a value to what they say, as of JSON: dict, list, str, int, float, bool or None."""


def needs_trees(mapping: TopicMapping) -> bool:
    """Tell whether a mapping asks for more than one field by name for each of its own."""
    several = isinstance(mapping.id, tuple) or isinstance(mapping.model, tuple)
    return several or bool(mapping.segments) or needs_whole_values(mapping)


def needs_whole_values(mapping: TopicMapping) -> bool:
    """Tell whether a mapping asks for more than fields by name, be they several for an id or a model."""
    plain = (mapping.prediction, mapping.label, mapping.timestamp, mapping.scores, mapping.fold)
    if (
        mapping.when
        or mapping.optional
        or not all(place is None or isinstance(place, str) for place in plain)
    ):
        return True
    kind = None if mapping.kind is None else mapping.kind.field
    return any(_is_deep(places_of(mapping, slot)) for slot in _SLOTS) or _is_deep(kind)


_SLOTS: Final = ("id", "model", "prediction", "label", "timestamp", "scores", "fold")


def _is_deep(places: Places | None) -> bool:
    """Tell whether a place lies in an array, or in a field of the key."""
    try:
        location = None if places is None else parse_places(places)
    except ValueError:
        return False  # whichever decoder is built says what is wrong, and with which field
    return any(
        isinstance(each, InArray) or (isinstance(each, InKey) and bool(each.path))
        for each in (location.parts if isinstance(location, Joined) else (location,))
    )


class TreeDecoder:
    """Decodes the records of one topic by one or more mappings. Never raises on bad input.

    Parameters
    ----------
    topic
        The topic's name.
    mappings
        What each mapping makes of a record. Events of a record follow in this order, predictions first, and
        within one mapping in that of the elements.
    read
        Reads values.
    envelope
        What values are wrapped in.
    keys
        What valid ids are known as from here on, if not as they are.
    folds
        Which fold tests which id.

    Raises
    ------
    ValueError
        A place is not in the notation, or a constant, class or alias is no valid name.
    """

    def __init__(
        self,
        topic: str,
        mappings: Sequence[SidedMapping],
        read: ReadValue,
        envelope: EnvelopeKind | None = None,
        keys: IdKeys | None = None,
        folds: Scheme | None = None,
    ) -> None:
        ordered = sorted(mappings, key=lambda each: each.side != "prediction")
        self._parts = [MappedPart(topic, each.side, each.mapping, keys, folds) for each in ordered]
        self._read = read
        self._open = None if envelope is None else envelope.open

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records into rows that all name objects, with their own timestamps."""
        stamps = [record.timestamp for record in records]
        offsets = np.array([record.offset for record in records], np.int64)
        return batch_of(self.decode_all(records, stamps), offsets, np.array(stamps, np.int64))

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its stamp, as `decode` does."""
        return list(map(self.decode, records, stamps))

    def decode(self, record: Record, record_ms: int) -> Decoded:
        """Decode one record: the event if it holds one, or `EventGroup`."""
        opened = self._opened(record)
        if opened is None:
            return EventGroup((), record_ms)
        if isinstance(opened, str):
            return self._refused(record, opened)
        content = Content(record, opened.tree)
        if opened.deleted:
            return _together(self._nulls(content, record_ms), record_ms)
        return self._mapped(content, record_ms)

    def _opened(self, record: Record) -> UnwrappedRecord | str | None:
        """What is left to be mapped of a record, the reason why it is invalid, or None if it is skipped."""
        if record.value is None:
            return record.fault or UnwrappedRecord(None, deleted=True)
        tree = self._read(record.value)
        if isinstance(tree, UnreadableValue):
            return tree.reason
        return UnwrappedRecord(tree) if self._open is None else self._open(tree, record)

    def _mapped(self, content: Content, record_ms: int) -> Decoded:
        events: list[Event] = []
        tied, unknown = 0, False
        for part in self._parts:
            applies = part.applies(content)
            unknown |= applies is None
            if applies:
                events += part.events(content, record_ms)
                tied += part.judge.take_tied()
        if not events and unknown:
            return self._parts[0].judge.invalid(content.record, "unknown_kind", self._model(content))
        return _together(events, record_ms, tied)

    def _nulls(self, content: Content, record_ms: int) -> Sequence[Event]:
        """What is withdrawn, by each mapping that is for the record, or one record that withdraws nothing."""
        applying = [part for part in self._parts if part.applies(content)]
        if not applying:
            return (self._parts[0].null(content, record_ms, withdraws=False),)
        return [part.null(content, record_ms, withdraws=True) for part in applying]

    def _refused(self, record: Record, reason: str) -> Event:
        """An invalid record whose value cannot be read; key, headers or the mapping may name its model."""
        return self._parts[0].judge.invalid(record, reason, self._model(Content(record)))

    def _model(self, content: Content) -> Any:
        """The content of the model's place, if all mappings find the same."""
        found = [part.model(content) for part in self._parts]
        first = found[0]
        if not isinstance(first, str | int | float):  # trees are no model, and may be too deep to be compared
            return None
        return first if all(each == first for each in found) else None


def sided(side: Side, mapping: TopicMapping) -> Sequence[SidedMapping]:
    """Name the sides for which one mapping makes events on a topic."""
    if side == "both":
        return (SidedMapping("prediction", mapping), SidedMapping("label", mapping))
    return (SidedMapping(side, mapping),)


def _together(events: Sequence[Event], record_ms: int, tied: int = 0) -> Decoded:
    """One event as it is; `EventGroup` where there is more to say."""
    return events[0] if len(events) == 1 and not tied else EventGroup(tuple(events), record_ms, tied)
