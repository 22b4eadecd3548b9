"""Decoders of JSON records, by the topic's mapping; invalid records become `Invalid` with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgspec

from streamwatch.core.ports import Record
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Decoded, Event, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.batches import Batches
from streamwatch.edge.decoders.field_locations import (
    FieldLocations,
    is_framed,
    located,
    slot_locations,
)
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions, tree_decoder
from streamwatch.edge.decoders.judging import PIECE, SLOTS, UNDECODED, Columns, Judge
from streamwatch.edge.decoders.mapping import TopicMapping, carried_slots, threshold_of
from streamwatch.edge.decoders.paths import Row
from streamwatch.edge.decoders.scanner.plan import SEGMENT_SLOT, THRESHOLDS
from streamwatch.edge.decoders.trees import TreeDecoder, UnreadableValue, sided
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme

# JSON records whose mapping needs whole values (arrays, segments, joined names, class rules). Most are read
# by the scanner as columns; the others are read as trees.


def can_be_scanned(spec: DecoderSpec) -> bool:
    """Tell whether the scanner may read a topic: one mapping without conditions, envelope or texts."""
    conditional = spec.mapping.when or spec.mapping.optional
    return not (spec.mappings or spec.envelope or spec.texts or conditional)


class ScannedTrees:
    """Decodes the records of one topic by the scanner; those that it cannot read, by `trees`.

    Parameters
    ----------
    spec
        A topic that `can_be_scanned`.
    trees
        Decoder of the records that the scanner leaves.

    Raises
    ------
    ValueError
        A path is not in the notation.
    """

    def __init__(self, spec: DecoderSpec, trees: TreeDecoder) -> None:
        mapping = spec.mapping
        locations = slot_locations(mapping, SLOTS[spec.side])
        for slot, own in THRESHOLDS.items():
            if slot in locations and (path := threshold_of(mapping, slot)) is not None:
                locations[own] = located("threshold", path)
        if spec.side != "label":
            locations |= slot_locations(mapping, carried_slots(mapping))
            for name, path in mapping.segments.items():
                locations[SEGMENT_SLOT + name] = located("segments", path)
        self._trees = trees
        self._batches = Batches(
            spec.topic, spec.side, mapping, locations, spec.keys, spec.vocabulary, spec.folds
        )

    def decode(self, record: Record, record_ms: int) -> Decoded:
        """Decode one record by `TreeDecoder.decode`."""
        return self._trees.decode(record, record_ms)

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its record time (`stamps`, in ms), as `decode` does."""
        return self._trees.decode_all(records, stamps)

    def explain(self, record: Record, reason: str) -> str:
        """Say at which path the invalid content was expected, and which fields the record has."""
        return self._trees.explain(record, reason)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records to a batch: columns, and event objects for records that the scanner left."""
        return self._batches.decode(records, self._trees.decode_all)


_SYNTAX = msgspec.json.Decoder(msgspec.Raw)
_TREE = msgspec.json.Decoder()
UNREADABLE_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions that a reader raises on a value that is no JSON."""


class JsonDecoder:
    """Decodes the records of one topic. Never raises on bad input.

    Parameters
    ----------
    topic
        The topic's name (a mapping may use it as a field).
    side
        What the topic carries; `both` needs a `kind` rule in the mapping.
    mapping
        Paths of the fields.
    keys
        Function from valid ids to the keys that events carry; None: ids are kept.
    vocabulary
        Numbers of names; shared by all topics whose batches are merged. None: a new one.
    folds
        Scheme that decides which fold tests which id; without it, predictions with a fold are invalid.

    Raises
    ------
    ValueError
        A path is not in the notation, a constant or alias is no valid name, or `both` has no `kind` rule.
    """

    def __init__(
        self,
        topic: str,
        side: Side,
        mapping: TopicMapping,
        keys: IdKeys | None = None,
        vocabulary: Vocabulary | None = None,
        folds: Scheme | None = None,
    ) -> None:
        if side == "both" and mapping.kind is None:
            raise ValueError(f"topic {topic!r} carries predictions and labels: expected a kind rule")
        self._side: Side = side
        self._kind = mapping.kind
        self._slots = SLOTS[side]
        self._locations = FieldLocations(topic, mapping, self._slots)
        self._strict = self._locations.paths.strict or _refuse
        self._row = self._locations.paths.getter(self._slots)
        self._judge = Judge(mapping, keys, folds)
        self._trees = TreeDecoder(topic, sided(side, mapping), self._mapped_fields, None, keys, folds)
        self._at_once: Callable[[Sequence[Record], Sequence[int]], Sequence[Event] | None] | None = None
        if self._locations.paths.flat and not self._locations.outside and side != "both":
            columns = Columns(
                self._strict,
                self._judge.models,
                self._judge.classes,
                self._judge.scores,
                milliseconds=mapping.timestamp_unit == "ms",
                keys=keys,
            )
            self._at_once = columns.predictions if side == "prediction" else columns.labels
        self._batches = Batches(topic, side, mapping, self._locations.by_slot, keys, vocabulary, folds)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records to a batch: columns, and event objects for records that the scanner left."""
        return self._batches.decode(records, self.decode_all)

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its record time (`stamps`, in ms), as `decode` does."""
        if self._at_once is None:
            return list(map(self.decode, records, stamps))
        events: list[Decoded] = []
        for start in range(0, len(records), PIECE):
            piece, times = records[start : start + PIECE], stamps[start : start + PIECE]
            events += self._at_once(piece, times) or map(self.decode, piece, times)
        return events

    def explain(self, record: Record, reason: str) -> str:
        """Say at which path the invalid content was expected, and which fields the record has."""
        return self._trees.explain(record, reason, read_json)

    def decode(self, record: Record, record_ms: int) -> Decoded:
        """Decode one record; invalid ones become `Invalid` with a key of `mapping.REASONS`."""
        value = record.value
        if value is None:
            return self._trees.decode(record, record_ms)
        try:
            row = self._row(self._strict(value))
        except UNDECODED:
            return self._trees.decode(record, record_ms)
        return self._event(self._locations.completed(row, record), record, record_ms)

    def _event(self, row: Row, record: Record, record_ms: int) -> Event:
        side: Side | None = self._side
        if side == "both":
            *shared, label, kind = row
            side = self._side_of(kind)
            row = (shared[0], shared[1], label, shared[3]) if side == "label" else tuple(shared)
        if side is None:
            return self._judge.invalid(record, "unknown_kind", row[1])
        judge = self._judge.prediction if side == "prediction" else self._judge.label
        return judge(row, record, record_ms)

    def _side_of(self, kind: Any) -> Side | None:
        """Return the side that the kind rule gives for its content; None if it is neither."""
        text = canonical_text(kind)
        if self._kind is None or text is None:
            return None
        if text == self._kind.prediction:
            return "prediction"
        return "label" if text == self._kind.label else None

    def _mapped_fields(self, value: bytes) -> dict[str, Any] | UnreadableValue:
        """Read the mapped fields of an object, with contents of any type."""
        try:
            if not bytes(_SYNTAX.decode(value)).lstrip().startswith(b"{"):
                return UnreadableValue("not_an_object")
            return self._locations.paths.fields(value)
        except UNREADABLE_JSON:
            return UnreadableValue(_reason(value))


def read_json(value: bytes) -> Any | UnreadableValue:
    """Parse a value that is an object or an array; any other value is unreadable."""
    try:
        tree = _TREE.decode(value)
    except UNREADABLE_JSON:
        return UnreadableValue(_reason(value))
    return tree if isinstance(tree, dict | list) else UnreadableValue("not_an_object")


def read_object(value: bytes) -> Any | UnreadableValue:
    """Parse a value that is an object; any other value is unreadable."""
    tree = read_json(value)
    return UnreadableValue("not_an_object") if isinstance(tree, list) else tree


def read_any_json(value: bytes) -> Any | UnreadableValue:
    """Parse a value of any JSON type."""
    try:
        return _TREE.decode(value)
    except UNREADABLE_JSON:
        return UnreadableValue(_reason(value))


def _reason(value: bytes) -> str:
    """Return the reason why a value is no JSON."""
    if is_framed(value):
        return "schema_registry_framing"
    return "invalid_json" if _is_utf8(value) else "invalid_utf8"


def _refuse(_value: bytes) -> NoReturn:
    """Raise for any value: replaces the strict reader, which does not exist where paths overlap."""
    raise AttributeError


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def build(spec: DecoderSpec, options: FormatOptions) -> JsonDecoder | ScannedTrees | TreeDecoder:
    """Make the decoder of a topic in JSON: the fastest that fits the mappings."""
    del options
    if spec.as_trees:
        read = read_any_json if spec.any_value else read_json if spec.array_value else read_object
        trees = tree_decoder(spec, read)
        return ScannedTrees(spec, trees) if can_be_scanned(spec) else trees
    return JsonDecoder(spec.topic, spec.side, spec.mapping, spec.keys, spec.vocabulary, spec.folds)


KIND = FormatKind("json", (), build)
