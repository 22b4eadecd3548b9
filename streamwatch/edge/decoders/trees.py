"""Decodes records from values parsed to trees: of mappings without a scanner, and what a scanner leaves.

Elements of arrays, several mappings, classes made of scores, and envelopes need the whole value. Trees of a
plain mapping have only the fields that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np

from streamwatch.core.ports import Record
from streamwatch.core.records.batch import RecordBatch, batch_of
from streamwatch.core.records.events import Decoded, Event, EventGroup, Side
from streamwatch.edge.decoders.envelopes import EnvelopeKind, UnwrappedRecord
from streamwatch.edge.decoders.explaining import explained
from streamwatch.edge.decoders.fields import (
    FRAMED,
    canonical_text,
    is_framed,
    joined_text,
    located,
    slot_locations,
    text_outside,
)
from streamwatch.edge.decoders.judging import Judge, Row, ScoreAndThreshold, judged
from streamwatch.edge.decoders.mapping import (
    AnyLocation,
    Constant,
    FieldLocation,
    InArray,
    InFields,
    InHeader,
    InKey,
    InTopic,
    InValue,
    Joined,
    Named,
    Paths,
    SidedMapping,
    Step,
    TopicMapping,
    all_paths,
    carried_numbers,
    is_each,
    notation,
    parse_paths,
    parts_of,
    paths_of,
    threshold_of,
)
from streamwatch.edge.decoders.texts import TextRule, Texts, index_named
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

# Look-up of contents in records whose values were parsed to trees of objects and arrays.


class Content(NamedTuple):
    """A record and its parsed value; the tree is None where the value is absent or cannot be read."""

    record: Record
    tree: Any = None


_JSON: Final = msgspec.json.Decoder()
Lookup: TypeAlias = Callable[[Content], Any]


def walk(here: Any, steps: Sequence[Step]) -> Any:
    """Return the content at the end of a path; None where a field or element on it is absent."""
    for step in steps:
        if isinstance(step, str):
            here = cast("dict[str, Any]", here).get(step) if isinstance(here, dict) else None
        elif isinstance(step, Named):
            here = _element_of(here, step)
        elif isinstance(here, list) and step < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[step]
        else:
            return None
    return here


def _element_of(array: Any, named: Named) -> Any:
    """Return the first object of an array whose field has the text that is named; None without one."""
    if not isinstance(array, list):
        return None
    at = index_named(cast("list[Any]", array), named)
    return None if at is None else cast("list[Any]", array)[at]


def lookup(location: FieldLocation | None, topic: str) -> Lookup:  # noqa: PLR0911 - a form each
    """Make the function from a record to the content at a location; None where it is absent.

    For a path in each element of an array it returns the array; for one in each field of an object, an array
    of the fields' names or contents.
    """
    match location:
        case None:
            return _nothing
        case InValue(path) | InArray(path):
            return lambda content: walk(content.tree, path)
        case InFields():
            return lambda content: _fields(walk(content.tree, location.path), location)
        case InTopic():
            return lambda _: topic
        case Constant(text):
            return lambda _: text
        case InKey(path) if path:
            return lambda content: _in_key(content.record, path)
        case InKey() | InHeader():
            return lambda content: text_outside(content.record, location)


def _fields(found: Any, location: InFields) -> list[Any] | str | None:
    """List names or contents of matching fields; None without any, a text where `found` is no object."""
    if found is None:
        return None
    if not isinstance(found, dict):
        return "no object"
    start, end = location.prefix, location.suffix
    least, most = len(start), len(end)
    fields = [
        (name[least : len(name) - most], content)
        for name, content in cast("dict[str, Any]", found).items()
        if len(name) > least + most and name.startswith(start) and name.endswith(end)
    ]
    return [name if location.each is None else content for name, content in fields] or None


def _in_key(record: Record, path: Sequence[str]) -> Any:
    """Return the content at a path in the key; `FRAMED` for a key in the Confluent wire format."""
    if record.key is not None and is_framed(record.key):
        return FRAMED
    return walk(key_tree(record), path)


def key_tree(record: Record) -> Any:
    """Parse a record's key as JSON; None where it is absent or no JSON."""
    if record.key is None:
        return None
    try:
        return _JSON.decode(record.key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _nothing(_content: Content) -> None:
    return None


# One mapping of a topic: predictions or labels, one for each record or for each element.


MAX_ELEMENTS: Final = 4_096
"""Elements of one record at most; each is an event, which takes a few microseconds."""
MAX_SHARED_SCORES: Final = 20_000
"""Scores at most that the elements of one record have from outside their array, counted for each element: a
record of 100 KB could otherwise have millions, which take seconds."""
_NEEDED: Final = frozenset({"id", "prediction", "label"})


class MappedPart:
    """Makes the events of one mapping.

    Parameters
    ----------
    topic
        The topic's name.
    side
        Whether the mapping makes predictions or labels.
    mapping
        Paths of the fields.
    keys
        Function from valid ids to the keys that events carry; None: ids are kept.
    folds
        Scheme that decides which fold tests which id.

    Raises
    ------
    ValueError
        A path is not in the notation, or a name is not valid.
    """

    def __init__(
        self,
        topic: str,
        side: Literal["prediction", "label"],
        mapping: TopicMapping,
        keys: IdKeys | None,
        folds: Scheme | None,
    ) -> None:
        self._mapping = mapping
        self._side: Literal["prediction", "label"] = side
        self._is_prediction = side == "prediction"
        self.judge = Judge(mapping, keys, folds)
        self._judged = self.judge.prediction if self._is_prediction else self.judge.label
        locations = slot_locations(mapping, side)
        # A part is one path of a slot: the only one, or one of several that are joined.
        self._parts = {slot: _named_parts(slot, location) for slot, location in locations.items()}
        self._made: dict[str, Make] = {
            slot: _joining(location) for slot, location in locations.items() if isinstance(location, Joined)
        }
        if (threshold := threshold_of(mapping, side)) is not None:
            self._parts[side] |= {THRESHOLD: (located("threshold", threshold), False)}
            self._made[side] = _with_threshold
        singles = {name: part for parts in self._parts.values() for name, (part, _) in parts.items()}
        self._lookups = {part: lookup(location, topic) for part, location in singles.items()}
        self._optional = side if mapping.optional else None
        self._each: dict[str, tuple[Step, ...]] = {
            part: location.each or ()
            for part, location in singles.items()
            if is_each(location) and isinstance(location, InArray | InFields)
        }
        self._names_events = _check_fields(mapping, side, singles)
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
        self._when = [(lookup(located("when", path), topic), texts) for path, texts in mapping.when.items()]

    def applies(self, content: Content) -> bool | None:
        """Tell whether the mapping applies to a record; None where the kind rule finds no kind in it."""
        for find, texts in self._when:
            if canonical_text(find(content)) not in texts:
                return False
        if self._kind is None:
            return True
        return self._kinds.get(canonical_text(self._kind(content)) or "")

    def model(self, content: Content) -> Any:
        """Return the content of the model's path."""
        return self._outside("model", content)

    def null(self, content: Content, record_ms: int, *, withdraws: bool) -> Event:
        """Make the event of a record without a value, or of one that reports a deleted row."""
        id_ = None if self._each else self._outside("id", content)
        withdraws = withdraws and self._is_prediction
        return self.judge.null(content.record, record_ms, id_, self.model(content), withdraws=withdraws)

    def explain(self, reason: str, content: Content) -> str:
        """Explain the reason why a record is invalid; empty for a reason of the other side's mapping."""
        if reason.startswith(f"missing_{'label' if self._is_prediction else 'prediction'}"):
            return ""
        return explained(reason, self._mapping, self._side, content.tree, content.record)

    def events(self, content: Content, record_ms: int) -> Iterable[Event]:
        """Make the events of one record; none if the class is optional and absent."""
        contents = {part: find(content) for part, find in self._lookups.items()}
        if self._optional is not None and self._content(self._optional, contents) is None:
            return ()
        if not self._each:
            return (self._judged(self._row(contents), content.record, record_ms),)
        reason, count = self._counted(contents)
        id_: str | None = None
        if not reason and not self._names_events:
            id_, reason = judged(self._content("id", contents), "missing_id", "invalid_id")
        if reason:
            return (self.judge.invalid(content.record, reason, self.model(content)),)
        rows = [
            self._row(self._element(contents, i), None if id_ is None else f"{id_}#{i}") for i in range(count)
        ]
        if self._optional is not None:
            at = list(self._parts).index(self._optional)
            rows = [row for row in rows if row[at] is not None]
        return [self._judged(row, content.record, record_ms) for row in rows]

    def _outside(self, slot: str, content: Content) -> Any:
        """Return the content of a slot; None where a part of it is in each element of an array."""
        if self._is_each(slot):
            return None
        return self._content(slot, {part: self._lookups[part](content) for part in self._parts[slot]})

    def _is_each(self, slot: str) -> bool:
        return not self._each.keys().isdisjoint(self._parts[slot])

    def _content(self, slot: str, contents: Mapping[str, Any]) -> Any:
        """Make the content of a slot from the contents of its parts."""
        make = self._made.get(slot)
        if make is None:
            return contents[slot]
        return make([contents[part] for part in self._parts[slot]])

    def _row(self, contents: Mapping[str, Any], id_: str | None = None) -> Row:
        """Return the contents of the slots; `id_`, if given, replaces that of the id."""
        if id_ is None and not self._made:
            return tuple(contents.values())
        row = {slot: self._content(slot, contents) for slot in self._parts}
        return tuple((row if id_ is None else row | {"id": id_}).values())

    def _element(self, contents: Mapping[str, Any], i: int) -> Mapping[str, Any]:
        """Return the contents of the parts for the i-th element."""
        element = dict(contents)
        for part, steps in self._each.items():
            array = contents[part]
            element[part] = None if array is None else walk(array[i], steps)
        return element

    def _counted(self, contents: Mapping[str, Any]) -> tuple[str, int]:
        """Return ("", number of elements of the arrays), or (reason why the record is invalid, 0)."""
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
        shared = sum(
            len(cast("Sequence[Any]", content))
            for part, content in contents.items()
            if part not in self._each and isinstance(content, dict | list)
        )
        too_many = count > MAX_ELEMENTS or (count > 1 and count * shared > MAX_SHARED_SCORES)
        return ("too_many_elements", 0) if too_many else ("", count)


Make: TypeAlias = Callable[[Sequence[Any]], Any]
"""Contents of a slot's parts → the slot's content."""
THRESHOLD: Final = "threshold"
"""Name of the part with the threshold of a score."""


def _joining(location: Joined) -> Make:
    affixes = location.affixes if any(map(any, location.affixes)) else None
    return lambda contents: joined_text(contents, location.optional, affixes)


def _with_threshold(contents: Sequence[Any]) -> ScoreAndThreshold | None:
    score, threshold = contents
    return None if score is None else ScoreAndThreshold(score, threshold)


def _check_fields(mapping: TopicMapping, side: str, singles: Mapping[str, FieldLocation | None]) -> bool:
    """Tell whether array elements have ids of their own, or events are fields of an object.

    If neither, `#<index>` is appended to the record's id.

    Raises
    ------
    ValueError
        Fields of an object are events, but the mapping names no class, or neither model nor id, in them; or
        it reads several objects, or arrays as well.
    """
    parts = {part: location for part, location in singles.items() if isinstance(location, InFields)}
    if not parts:
        return any(part.partition("/")[0] == "id" and is_each(location) for part, location in singles.items())
    objects = {(each.path, each.prefix, each.suffix) for each in parts.values()}
    if len(objects) > 1 or any(isinstance(each, InArray) and is_each(each) for each in singles.values()):
        raise ValueError("expected the fields of one object to be events, got several objects or arrays")
    if not any(part.partition("/")[0] == side for part in parts):
        raise ValueError(
            f"{side}: expected a path in the fields that key_of names, such as value.scores.*, "
            f"got {notation(paths_of(mapping, side))}"
        )
    if not any(part.partition("/")[0] in {"id", "model"} for part in parts):
        raise ValueError(
            f"model: expected {{key_of: …}} where each field of an object is a {side}, "
            f"got {notation(mapping.model)}"
        )
    return True


def _named_parts(slot: str, location: AnyLocation | None) -> dict[str, tuple[FieldLocation | None, bool]]:
    """Name each path of a slot, with whether it is optional; a single one has the name of the slot."""
    if not isinstance(location, Joined):
        return {slot: (location, False)}
    each = zip(location.parts, location.optional, strict=True)
    return {f"{slot}/{i}": part for i, part in enumerate(each)}


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """Result for a value that cannot be read: the reason, a key of `mapping.REASONS`."""

    reason: str


ReadValue: TypeAlias = Callable[[bytes], "Any | UnreadableValue"]
"""Bytes of a value → dict, list, str, int, float, bool or None, as parsed from JSON; or why that fails."""


def needs_trees(mapping: TopicMapping) -> bool:
    """Tell whether a mapping needs whole values, as for segments, class rules, conditions or arrays."""
    made = (mapping.id, mapping.model, mapping.prediction, mapping.label, mapping.scores)
    plain = all(path is None or isinstance(path, str) for path in made)
    beside = bool(mapping.segments) or bool(carried_numbers(mapping)) or bool(mapping.when)
    return not plain or beside or mapping.optional or any(map(_is_deep, all_paths(mapping)))


def _is_deep(paths: Paths) -> bool:
    """Tell whether a path leads into an array, `*`, or the key's fields, or is the whole value."""
    try:
        location = parse_paths(paths)
    except ValueError:
        return False  # the decoder that is built raises, and names the field
    return any(
        isinstance(each, InArray | InFields)
        or (isinstance(each, InKey) and bool(each.path))
        or each == InValue(())
        for each in parts_of(location)
    )


class TreeDecoder:
    """Decodes the records of one topic by one or more mappings. Never raises on bad input.

    Parameters
    ----------
    topic
        The topic's name.
    mappings
        The mappings. Events of a record are in this order, predictions first, and within one mapping in the
        order of the elements.
    read
        Parses values.
    envelope
        Envelope of the values; None without one.
    keys
        Function from valid ids to the keys that events carry; None: ids are kept.
    folds
        Scheme that decides which fold tests which id.
    texts
        Rules for texts inside values that are parsed.

    Raises
    ------
    ValueError
        A path is not in the notation, or a constant, class or alias is no valid name.
    """

    def __init__(
        self,
        topic: str,
        mappings: Sequence[SidedMapping],
        read: ReadValue,
        envelope: EnvelopeKind | None = None,
        keys: IdKeys | None = None,
        folds: Scheme | None = None,
        texts: Sequence[TextRule] = (),
    ) -> None:
        ordered = sorted(mappings, key=lambda each: each.side != "prediction")
        self._parts = [MappedPart(topic, each.side, each.mapping, keys, folds) for each in ordered]
        self._read = read
        self._open = None if envelope is None else envelope.open
        self._texts = Texts(texts) if texts else None

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records to a batch in which every row refers to an event object."""
        stamps = [record.timestamp for record in records]
        offsets = np.array([record.offset for record in records], np.int64)
        return batch_of(self.decode_all(records, stamps), offsets, np.array(stamps, np.int64))

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its record time (`stamps`, in ms), as `decode` does."""
        return list(map(self.decode, records, stamps))

    def decode(self, record: Record, record_ms: int) -> Decoded:
        """Decode one record: its event, or an `EventGroup` of none or several."""
        opened = self._opened(record, self._read)
        if opened is None:
            return EventGroup((), record_ms)
        if isinstance(opened, str):
            return self._refused(record, opened)
        content = Content(record, opened.tree)
        if opened.deleted:
            return _together(self._nulls(content, record_ms), record_ms)
        return self._mapped(content, record_ms)

    def explain(self, record: Record, reason: str, read: ReadValue | None = None) -> str:
        """Say at which path the invalid content was expected, and which fields the record has.

        Parameters
        ----------
        record
            The record.
        reason
            Reason for which it is invalid.
        read
            Parses whole values, where the decoder's own reader does not.
        """
        opened = self._opened(record, read or self._read)
        if not isinstance(opened, UnwrappedRecord):
            return ""
        content = Content(record, opened.tree)
        parts = [part for part in self._parts if part.applies(content) is not False]
        reasons = dict.fromkeys(part.explain(reason, content) for part in parts)
        return "; ".join(each for each in reasons if each)

    def _opened(self, record: Record, read: ReadValue) -> UnwrappedRecord | str | None:
        """Open the envelope: the content to map, the reason why it is invalid, or None if it is skipped."""
        if record.value is None:
            return record.fault or UnwrappedRecord(None, deleted=True)
        tree = read(record.value)
        if isinstance(tree, UnreadableValue):
            return tree.reason
        opened = UnwrappedRecord(tree) if self._open is None else self._open(tree, record)
        if self._texts is None or not isinstance(opened, UnwrappedRecord):
            return opened
        try:
            return opened._replace(tree=self._texts.read(opened.tree))
        except ValueError:
            return "invalid_text"

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
        """Make the null events of all mappings that apply to the record; else one that withdraws nothing."""
        applying = [part for part in self._parts if part.applies(content)]
        if not applying:
            return (self._parts[0].null(content, record_ms, withdraws=False),)
        return [part.null(content, record_ms, withdraws=True) for part in applying]

    def _refused(self, record: Record, reason: str) -> Event:
        """Make the event of a record whose value cannot be read, with its model if key or headers name it."""
        return self._parts[0].judge.invalid(record, reason, self._model(Content(record)))

    def _model(self, content: Content) -> Any:
        """Return the content of the model's path if all mappings find the same; else None."""
        found = [part.model(content) for part in self._parts]
        first = found[0]
        if not isinstance(first, str | int | float):  # a tree is no model, and may be too deep to compare
            return None
        return first if all(each == first for each in found) else None


def sided(side: Side, mapping: TopicMapping) -> Sequence[SidedMapping]:
    """Pair a topic's one mapping with each side that the topic carries."""
    if side == "both":
        return (SidedMapping("prediction", mapping), SidedMapping("label", mapping))
    return (SidedMapping(side, mapping),)


def _together(events: Sequence[Event], record_ms: int, tied: int = 0) -> Decoded:
    """Return a single event itself; an `EventGroup` for none, several, or ties to be counted."""
    return events[0] if len(events) == 1 and not tied else EventGroup(tuple(events), record_ms, tied)
