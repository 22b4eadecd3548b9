"""Decodes records whose mappings ask for more than fields by name: values are read whole, as trees.

Elements of arrays, several mappings, classes made of scores, and envelopes need the whole value; a plain
mapping is read by the decoder of its format, several times as fast, with the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
import numpy as np

from streamwatch.core.events import Decoded, Event, EventGroup, Side
from streamwatch.core.ports import Record
from streamwatch.core.records import RecordBatch, batch_of
from streamwatch.edge.decoders.class_rules import judged
from streamwatch.edge.decoders.envelopes import EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.field_locations import joined_text, located, located_joined, text_outside
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.judging import LABEL_SLOTS, PREDICTION_SLOTS, SAMPLING_SLOTS, Judge
from streamwatch.edge.decoders.mapping import (
    AnyLocation,
    Constant,
    FieldLocation,
    InArray,
    InHeader,
    InKey,
    InTopic,
    InValue,
    Joined,
    Places,
    SidedMapping,
    Step,
    TopicMapping,
    parse_places,
    places_of,
)
from streamwatch.edge.decoders.paths import Row
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

# Finds contents in records that were read whole: trees of objects and arrays, beside key and headers.


@dataclass(frozen=True, slots=True)
class Content:
    """A record and what was read of its value; None where it has none, or none that can be read."""

    record: Record
    tree: Any = None


_JSON: Final = msgspec.json.Decoder()
Lookup: TypeAlias = Callable[[Content], Any]


def walk(here: Any, steps: Sequence[Step]) -> Any:
    """The content at the end of a path; None where there is no such field or element."""
    for step in steps:
        if isinstance(step, str):
            here = cast("dict[str, Any]", here).get(step) if isinstance(here, dict) else None
        elif isinstance(here, list) and step < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[step]
        else:
            return None
    return here


def lookup(location: FieldLocation | None, topic: str) -> Lookup:
    """A function from a record to the content of a place, which is None if there is nothing.

    Of a place in each element of an array it gives the array.
    """
    match location:
        case None:
            return _nothing
        case InValue(path) | InArray(path):
            return lambda content: walk(content.tree, path)
        case InTopic():
            return lambda _: topic
        case Constant(text):
            return lambda _: text
        case InKey(path) if path:
            return lambda content: walk(key_tree(content.record), path)
        case InKey() | InHeader():
            return lambda content: text_outside(content.record, location)


def key_tree(record: Record) -> Any:
    """Tree of a record's key, read as JSON; None where it has none, or is none."""
    if record.key is None:
        return None
    try:
        return _JSON.decode(record.key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _nothing(_content: Content) -> None:
    return None


# One mapping of a topic's records, read as trees: predictions or labels, one a record or one an element.


MAX_ELEMENTS: Final = 4_096
"""Elements of one record: each of them is an event, which takes a few microseconds."""
_NEEDED: Final = frozenset({"id", "prediction", "label"})


class MappedPart:
    """Makes the events of one mapping.

    Parameters
    ----------
    topic
        The topic's name.
    side
        Which events the mapping makes.
    mapping
        Where each field lives.
    keys
        What valid ids are known as from here on, if not as they are.
    folds
        Which fold tests which id.

    Raises
    ------
    ValueError
        A place is not in the notation, or a name is not valid.
    """

    def __init__(
        self,
        topic: str,
        side: Literal["prediction", "label"],
        mapping: TopicMapping,
        keys: IdKeys | None,
        folds: Scheme | None,
    ) -> None:
        self._is_prediction = side == "prediction"
        self._slots = PREDICTION_SLOTS if self._is_prediction else LABEL_SLOTS
        self.judge = Judge(mapping, keys, folds)
        self._judged = self.judge.prediction if self._is_prediction else self.judge.label
        locations: dict[str, AnyLocation | None] = {
            slot: located_joined(slot, places_of(mapping, slot)) for slot in self._slots
        }
        if self._is_prediction:
            if mapping.label_probability is not None:
                slots = SAMPLING_SLOTS
                locations |= {slot: located_joined(slot, places_of(mapping, slot)) for slot in slots}
            places = mapping.segments.items()
            locations |= {f"segments.{name}": located("segments", place) for name, place in places}
        # A part is a place by itself: of a slot its only one, or one of several.
        self._parts = {slot: _named_parts(slot, location) for slot, location in locations.items()}
        singles = {name: part for parts in self._parts.values() for name, (part, _) in parts.items()}
        self._joined = {slot for slot, location in locations.items() if isinstance(location, Joined)}
        self._lookups = {part: lookup(location, topic) for part, location in singles.items()}
        self._optional = side if mapping.optional else None
        self._each: dict[str, tuple[Step, ...]] = {
            part: location.each
            for part, location in singles.items()
            if isinstance(location, InArray) and location.each is not None
        }
        self._needed = {
            name
            for slot in _NEEDED & self._parts.keys()
            for name, (_, may_miss) in self._parts[slot].items()
            if not may_miss
        }
        self._kind = None if mapping.kind is None else lookup(located("kind", mapping.kind.field), topic)
        self._kinds: Mapping[str, bool] = {}
        if mapping.kind is not None:
            rule = mapping.kind
            self._kinds = {rule.label: not self._is_prediction, rule.prediction: self._is_prediction}
        self._when = [(lookup(located("when", place), topic), texts) for place, texts in mapping.when.items()]

    def applies(self, content: Content) -> bool | None:
        """Tell whether the mapping is for a record; None: it should say of which kind it is, and does not."""
        for find, texts in self._when:
            if canonical_text(find(content)) not in texts:
                return False
        if self._kind is None:
            return True
        return self._kinds.get(canonical_text(self._kind(content)) or "")

    def model(self, content: Content) -> Any:
        """The content of the model's place."""
        return self._outside("model", content)

    def null(self, content: Content, record_ms: int, *, withdraws: bool) -> Event:
        """Make the event of a record without a value, or of one that says that a row was deleted."""
        id_ = None if self._each else self._outside("id", content)
        withdraws = withdraws and self._is_prediction
        return self.judge.null(content.record, record_ms, id_, self.model(content), withdraws=withdraws)

    def events(self, content: Content, record_ms: int) -> Iterable[Event]:
        """The events of one record; none if the class is optional and not there."""
        contents = {part: find(content) for part, find in self._lookups.items()}
        if self._optional is not None and self._content(self._optional, contents) is None:
            return ()
        if not self._each:
            return (self._judged(self._row(contents), content.record, record_ms),)
        reason, count = self._counted(contents)
        id_: str | None = None
        if not reason and not self._is_each("id"):
            id_, reason = judged(self._content("id", contents), "missing_id", "invalid_id")
        if reason:
            return (self.judge.invalid(content.record, reason, self.model(content)),)
        rows = [
            self._row(self._element(contents, i), None if id_ is None else f"{id_}#{i}") for i in range(count)
        ]
        if self._optional is not None:
            at = self._slots.index(self._optional)
            rows = [row for row in rows if row[at] is not None]
        return [self._judged(row, content.record, record_ms) for row in rows]

    def _outside(self, slot: str, content: Content) -> Any:
        """The content of a slot; None where a part of it is in each element of an array."""
        if self._is_each(slot):
            return None
        return self._content(slot, {part: self._lookups[part](content) for part in self._parts[slot]})

    def _is_each(self, slot: str) -> bool:
        return not self._each.keys().isdisjoint(self._parts[slot])

    def _content(self, slot: str, contents: Mapping[str, Any]) -> Any:
        """The content of a slot, from those of its parts."""
        if slot not in self._joined:
            return contents[slot]
        parts = self._parts[slot]
        return joined_text([contents[part] for part in parts], [may_miss for _, may_miss in parts.values()])

    def _row(self, contents: Mapping[str, Any], id_: str | None = None) -> Row:
        """Contents of the slots; `id_` is that of an element without one of its own, known by its place."""
        if id_ is None and not self._joined:
            return tuple(contents.values())
        row = {slot: self._content(slot, contents) for slot in self._parts}
        return tuple((row if id_ is None else row | {"id": id_}).values())

    def _element(self, contents: Mapping[str, Any], i: int) -> Mapping[str, Any]:
        """Contents of the parts in the i-th element."""
        element = dict(contents)
        for part, steps in self._each.items():
            array = contents[part]
            element[part] = None if array is None else walk(array[i], steps)
        return element

    def _counted(self, contents: Mapping[str, Any]) -> tuple[str, int]:
        """Elements of the arrays, or the reason why that is not one number."""
        lengths: set[int] = set()
        for part in self._each:
            array = contents[part]
            if isinstance(array, list):
                lengths.add(len(cast("Sequence[Any]", array)))
            elif array is not None or part in self._needed:
                return "missing_elements", 0
        if len(lengths) > 1:
            return "element_counts_differ", 0
        count = lengths.pop() if lengths else 0
        if count == 0:
            return "missing_elements", 0
        return ("too_many_elements", 0) if count > MAX_ELEMENTS else ("", count)


def _named_parts(slot: str, location: AnyLocation | None) -> Mapping[str, tuple[FieldLocation | None, bool]]:
    """Places of a slot by a name for each, and whether there may be nothing; one is called like its slot."""
    if not isinstance(location, Joined):
        return {slot: (location, False)}
    each = zip(location.parts, location.optional, strict=True)
    return {f"{slot}/{i}": part for i, part in enumerate(each)}


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """A value that cannot be read, and the reason why, one of `reasons.REASONS`."""

    reason: str


ReadValue: TypeAlias = Callable[[bytes], "Any | UnreadableValue"]
"""From the bytes of a value to what they say, as of JSON: dict, list, str, int, float, bool or None."""


def needs_trees(mapping: TopicMapping) -> bool:
    """Tell whether a mapping asks for more than one field by name for each of its own."""
    several = isinstance(mapping.id, tuple) or isinstance(mapping.model, tuple)
    plain = (mapping.prediction, mapping.label, mapping.scores)
    made_of_scores = not all(place is None or isinstance(place, str) for place in plain)
    beside = bool(mapping.segments) or mapping.label_probability is not None
    return several or made_of_scores or beside or needs_whole_values(mapping)


def needs_whole_values(mapping: TopicMapping) -> bool:
    """Tell whether a mapping asks for more than fields by name, and what is made of their contents."""
    if mapping.when or mapping.optional or isinstance(mapping.prediction, tuple):
        return True
    if isinstance(mapping.label, tuple):
        return True
    kind = None if mapping.kind is None else mapping.kind.field
    return any(_is_deep(places_of(mapping, slot)) for slot in _SLOTS) or _is_deep(kind)


_SLOTS: Final = (
    *("id", "model", "prediction", "label", "timestamp", "scores", "fold"),
    *("label_probability", "label_requested"),
)


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
