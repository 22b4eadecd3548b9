"""JSON: ordinary records are read as columns by the scanner, all others as trees.

Both find the same in a record. Invalid records become `Invalid` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, starmap
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.ports import Record
from streamwatch.core.records.batch import RecordBatch, batch_of
from streamwatch.core.records.events import Decoded, EventGroup, Invalid
from streamwatch.core.records.fetched import (
    COLUMNS,
    FAULT,
    KEY,
    KEY_BYTES,
    OFFSET,
    PADDING,
    TIMESTAMP,
    VALUE,
    VALUE_BYTES,
    FetchedRecords,
)
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.fields import canonical_text, is_framed, located, slot_locations
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatKind, FormatOptions, tree_decoder
from streamwatch.edge.decoders.mapping import AnyLocation, Constant, InTopic, InValue, threshold_of
from streamwatch.edge.decoders.scanner.plan import THRESHOLDS, plan_of, score_rules
from streamwatch.edge.decoders.scanner.reader import ColumnReader
from streamwatch.edge.decoders.trees import ReadValue, UnreadableValue
from streamwatch.edge.keys import IdKeys

FEWEST_AT_ONCE: Final = 512
"""Records from which on `decode_all` scans; fewer are read as trees, which needs no compiled code."""
FIRST_LEARNT: Final = 32
"""Number of the records left by the scanner that are decoded, to teach it names, before it reads the others
again; it is doubled each time. A record decoded so takes as long as hundreds that are scanned."""
COPIED_BYTES: Final = 1 << 22
"""Bytes of keys and values, and `ROW_BYTES` for each record, of which `decode_all` makes one copy for the
scanner, at most, besides its first record."""
ROW_BYTES: Final = 512


class JsonDecoder:
    """Decodes the records of one topic; implements `core.ports.Decoder`. Never raises on bad input.

    Parameters
    ----------
    spec
        The topic.

    Raises
    ------
    ValueError
        A path is not in the notation, a constant or alias is no valid name, or one mapping of a topic with
        both sides has no `kind` rule.
    """

    def __init__(self, spec: DecoderSpec) -> None:
        if spec.side == "both" and not spec.mappings and spec.mapping.kind is None:
            raise ValueError(f"topic {spec.topic!r} carries predictions and labels: expected a kind rule")
        self._trees = tree_decoder(spec, _reader_of(spec))
        self._explained_by = None if spec.as_trees else read_json
        self._columns = _column_reader(spec, spec.vocabulary or Vocabulary())

    def decode(self, record: Record, record_ms: int) -> Decoded:
        """Decode one record; invalid ones become `Invalid` with a key of `mapping.REASONS`."""
        return self._trees.decode(record, record_ms)

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its record time (`stamps`, in ms), as `decode` does."""
        reader = self._columns
        if reader is None or len(records) < FEWEST_AT_ONCE:
            return self._trees.decode_all(records, stamps)
        found: list[Decoded] = []
        for part in _parts(records):
            some, times = records[part], stamps[part]
            found += decoded_of(self._scanned(reader, some, *_written(some, times, reader)))
        return found

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records to a batch: columns, and event objects for records that the scanner left."""
        reader = self._columns
        if reader is not None and isinstance(records, FetchedRecords):
            return self._scanned(reader, records, records.data, records.rows)
        if reader is None:
            return self._trees.decode_batch(records)
        stamps = [record.timestamp for record in records]
        return self._scanned(reader, records, *_written(records, stamps, reader))

    def explain(self, record: Record, reason: str) -> str:
        """Say at which path the invalid content was expected, and which fields the record has."""
        return self._trees.explain(record, reason, self._explained_by)

    def _scanned(
        self,
        reader: ColumnReader,
        records: Sequence[Record],
        data: NDArray[np.uint8],
        rows: NDArray[np.int64],
    ) -> RecordBatch:
        """Scan records; if many are left, decode some of them, learn their names and scan the rest again.

        Parameters
        ----------
        reader
            The topic's reader.
        records
            The records.
        data, rows
            The same records as in `FetchedRecords`.
        """
        batch, left = reader.read(data, rows)
        first = np.arange(len(batch))  # position in `records` of each record of the last scan
        part = FIRST_LEARNT
        given: list[tuple[NDArray[np.int64], Sequence[Decoded]]] = []
        while len(left):
            now, later = left[:part], left[part:]
            positions = first[now]
            unusual = [records[position] for position in positions.tolist()]
            decoded = self._trees.decode_all(unusual, rows[positions, TIMESTAMP].tolist())
            given.append((positions, decoded))
            learnt = [
                reader.learn(data, rows[first[index], None], index, found)
                for index, found in zip(now.tolist(), decoded, strict=True)
            ]
            if not any(learnt):
                part, left = len(left), later
                continue
            part *= 2
            first = first[later]
            again, left = reader.read(data, rows[first])
            batch = batch.with_rows(first, again)
        if not given:
            return batch
        positions = np.concatenate([positions for positions, _ in given])
        times = batch.rows[positions]
        others = [each for _, decoded in given for each in decoded]
        return batch.with_rows(positions, batch_of(others, times["offset"], times["record_ms"]))


def _parts(records: Sequence[Record]) -> Iterator[slice]:
    """Divide records into parts that are copied one after the other, so that copies take bounded memory."""
    sizes = [ROW_BYTES + len(record.key or b"") + len(record.value or b"") for record in records]
    fulls = np.cumsum(sizes) // COPIED_BYTES
    starts = [0, *(np.flatnonzero(np.diff(fulls)) + 1).tolist(), len(records)]
    return starmap(slice, pairwise(starts))


def _written(
    records: Sequence[Record], stamps: Sequence[int], reader: ColumnReader
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Copy records to `data` and `rows` as in `FetchedRecords`; one that headers matter to has a fault."""
    rows = np.zeros((len(records), COLUMNS), np.int64)
    contents = [content for record in records for content in (record.key, record.value)]
    sizes = np.array([-1 if content is None else len(content) for content in contents], np.int64)
    lengths = np.maximum(sizes, 0)
    starts = np.cumsum(lengths) - lengths
    rows[:, KEY], rows[:, KEY_BYTES] = starts[::2], sizes[::2]
    rows[:, VALUE], rows[:, VALUE_BYTES] = starts[1::2], sizes[1::2]
    rows[:, OFFSET], rows[:, TIMESTAMP] = [record.offset for record in records], stamps
    rows[:, FAULT] = [
        record.fault is not None or (reader.reads_headers and bool(record.headers)) for record in records
    ]
    data = np.frombuffer(bytearray().join((*filter(None, contents), bytes(PADDING))), np.uint8)
    return data, rows


def decoded_of(batch: RecordBatch) -> list[Decoded]:
    """Return what a batch says of each record, in the form that a decoder gives a record alone."""
    spread = batch.spread()
    events = spread.batch.events()
    for event in events:
        if isinstance(event, Invalid):
            event.record_ms = -1  # as long as nobody has set it
    if not len(batch.elements):
        return list[Decoded](events)
    times, found, at = batch.rows["record_ms"].tolist(), list[Decoded](), 0
    for record_ms, count, tied in zip(times, spread.events.tolist(), spread.tied.tolist(), strict=True):
        is_one = count == 1 and not tied
        own = events[at : at + count]
        found.append(own[0] if is_one else EventGroup(tuple(own), record_ms, tied))
        at += max(count, 1)
    return found


def _column_reader(spec: DecoderSpec, vocabulary: Vocabulary) -> ColumnReader | None:
    """Make the scanner's reader of a topic; None where it cannot read the mapping.

    It reads one mapping without conditions, envelope or texts.
    """
    mapping = spec.mapping
    if spec.mappings or spec.envelope or spec.texts or mapping.when or mapping.optional:
        return None
    locations = slot_locations(mapping, spec.side)
    for slot, own in THRESHOLDS.items():
        if slot in locations and (path := threshold_of(mapping, slot)) is not None:
            locations[own] = located("threshold", path)
    keys = spec.keys or IdKeys()
    plan = plan_of(
        spec.side,
        mapping,
        locations,
        _fixed_numbers(spec, locations, vocabulary),
        keys.prefix.encode(),
        rules=score_rules(mapping, vocabulary.classes.fixed_number),
        reads_folds=spec.folds is not None and spec.folds.prequential,
    )
    if plan is None:
        return None
    return ColumnReader(plan, vocabulary, mapping.classes, keep_texts=not keys.digest)


def _fixed_numbers(
    spec: DecoderSpec, locations: Mapping[str, AnyLocation | None], vocabulary: Vocabulary
) -> dict[str, int]:
    """Numbers of the names that are the same for every record, by slot; invalid names are left out."""
    numbers: dict[str, int] = {}
    for slot, location in locations.items():
        if not isinstance(location, Constant | InTopic):
            continue
        text = canonical_text(location.text if isinstance(location, Constant) else spec.topic)
        if text is not None and slot == "model":
            numbers[slot] = vocabulary.models.fixed_number(text)
        elif text is not None and slot in ("prediction", "label"):
            numbers[slot] = vocabulary.classes.fixed_number(spec.mapping.classes.get(text, text))
    return numbers


_TREE = msgspec.json.Decoder()
_SYNTAX = msgspec.json.Decoder(msgspec.Raw)
UNREADABLE_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions that a reader raises on a value that is no JSON."""


def _reader_of(spec: DecoderSpec) -> ReadValue:
    """Choose what of a value is parsed: the fields that a plain mapping names, or else all of it."""
    if spec.as_trees:
        return read_any_json if spec.any_value else read_json if spec.array_value else read_object
    locations = slot_locations(spec.mapping, spec.side).values()
    return _fields_reader(location.path[0] for location in locations if isinstance(location, InValue))


def _fields_reader(names: Iterable[str]) -> Callable[[bytes], Any | UnreadableValue]:
    """Make the reader of an object's fields of some names, with contents of any type; others are skipped."""
    attributes = {name: f"field_{i}" for i, name in enumerate(dict.fromkeys(names))}
    fields = [(attribute, Any, None) for attribute in attributes.values()]
    renamed = {attribute: name for name, attribute in attributes.items()}
    decoder = msgspec.json.Decoder(msgspec.defstruct("Fields", fields, rename=renamed))

    def read(value: bytes) -> Any | UnreadableValue:
        try:
            found = decoder.decode(value)
            return {name: getattr(found, attribute) for name, attribute in attributes.items()}
        except UNREADABLE_JSON:
            return UnreadableValue("not_an_object" if _is_no_object(value) else _reason(value))

    return read


def read_json(value: bytes) -> Any | UnreadableValue:
    """Parse a value that is an object or an array; any other value is unreadable."""
    tree = read_any_json(value)
    return tree if isinstance(tree, dict | list | UnreadableValue) else UnreadableValue("not_an_object")


def read_object(value: bytes) -> Any | UnreadableValue:
    """Parse a value that is an object; any other value is unreadable."""
    tree = read_any_json(value)
    return tree if isinstance(tree, dict | UnreadableValue) else UnreadableValue("not_an_object")


def read_any_json(value: bytes) -> Any | UnreadableValue:
    """Parse a value of any JSON type."""
    try:
        return _TREE.decode(value)
    except UNREADABLE_JSON:
        return UnreadableValue(_reason(value))


def _is_no_object(value: bytes) -> bool:
    """Tell whether a value is JSON, but no object."""
    try:
        return not bytes(_SYNTAX.decode(value)).lstrip().startswith(b"{")
    except UNREADABLE_JSON:
        return False


def _reason(value: bytes) -> str:
    """Return the reason why a value is no JSON."""
    if is_framed(value):
        return "schema_registry_framing"
    try:
        value.decode()
    except UnicodeDecodeError:
        return "invalid_utf8"
    return "invalid_json"


def build(spec: DecoderSpec, options: FormatOptions) -> JsonDecoder:
    """Make the decoder of a topic in JSON."""
    del options
    return JsonDecoder(spec)


KIND = FormatKind("json", (), build)
