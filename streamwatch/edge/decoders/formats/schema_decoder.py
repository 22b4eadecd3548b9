"""Decodes records written with a schema: their values are converted to JSON text, and decoded as JSON.

So mappings, aliases, reasons and order are the same for every format; a format only adds a reader of bytes.
Schemas are fetched before (`wanted`, `SchemaCache.fetch`): decoding never waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.ports import Decoder, Explains, Record
from streamwatch.core.records.batch import ROW, RecordBatch, batch_of
from streamwatch.core.records.events import Decoded
from streamwatch.core.records.fetched import (
    FAULT,
    HEADER_COUNT,
    HEADERS,
    OFFSET,
    PADDING,
    TIMESTAMP,
    VALUE,
    VALUE_BYTES,
    FetchedRecords,
)
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.formats.json import UNREADABLE_JSON
from streamwatch.edge.decoders.formats.kind import FormatMisused, FormatOptions
from streamwatch.edge.decoders.scanner.contents import are_without_header
from streamwatch.edge.decoders.schemas.cache import WantsSchemas
from streamwatch.edge.decoders.schemas.schema import (
    HEADER,
    KEY_HEADER,
    NUMBER_BYTES,
    Compile,
    Describes,
    Narrows,
    Readers,
    Schema,
    SchemaRef,
    SchemaRequest,
    SchemaUnusable,
    Undecodable,
    ValueReader,
    in_header,
    named_in,
)
from streamwatch.edge.decoders.transcoding.wanted import Texts, Transcoder, Wanted

# Records whose values were converted to JSON text, or replaced by the reason why that failed.


class TranscodedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record whose value was converted to JSON text; implements `core.ports.Record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    fault: str | None
    timestamp_type: int


_BIG_ENDIAN: Final = 256 ** np.arange(NUMBER_BYTES - 1, -1, -1)
_BEYOND_NUMBERS: Final = 1 << 32
"""Bound of a value's first five bytes, as a big-endian number: those of a schema's number are less."""
_HEADER: Final = np.frombuffer(HEADER.encode() + bytes(PADDING), np.uint8)


def refs_of(records: Sequence[Record]) -> set[SchemaRef]:
    """Collect the names of schemas in records."""
    refs: set[SchemaRef] = set()
    if isinstance(records, FetchedRecords):
        numbers = _numbers_of(records)
        refs.update(np.unique(numbers[numbers >= 0]).tolist())
        others = np.flatnonzero((numbers < 0) & (records.rows[:, VALUE_BYTES] >= 0))
        records = [records.record(position) for position in others.tolist()]
    for record in records:
        if record.value is not None:
            header = in_header(record.headers)
            named = named_in(record.value if header is None else header)
            if named is not None:
                refs.add(named[0])
    return refs


def _copied(
    record: Record,
    key: bytes | None,
    value: bytes | str | None,
    headers: Sequence[tuple[str, bytes | None]] | None = None,
) -> TranscodedRecord:
    """Copy a record with another key and value, or with a fault (a text) instead of the value.

    Without `headers` it keeps its own, which may still name its model, as may its key.
    """
    return TranscodedRecord(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        key,
        None if isinstance(value, str) else value,
        record.headers if headers is None else headers,
        value if isinstance(value, str) else None,
        record.timestamp_type,
    )


def _numbers_of(records: FetchedRecords) -> NDArray[np.int64]:
    """Return the number of the schema that begins each value; -1 where another name may be there, or none."""
    rows, numbers = records.rows, np.full(len(records), -1)
    plain = (rows[:, VALUE_BYTES] >= NUMBER_BYTES) & (rows[:, FAULT] == 0) & _name_no_schema(records)
    prefixes = records.data[rows[plain, VALUE, None] + np.arange(NUMBER_BYTES)].astype(np.int64) @ _BIG_ENDIAN
    numbers[plain] = np.where(prefixes < _BEYOND_NUMBERS, prefixes, -1)
    return numbers


def _name_no_schema(records: FetchedRecords) -> NDArray[np.bool_]:
    """Tell for each record whether its headers name no schema; False where a name is not ASCII."""
    rows = records.rows
    found = rows[:, HEADER_COUNT] == 0
    if not found.all():
        some = np.flatnonzero(~found & (rows[:, FAULT] == 0))
        none = np.zeros(len(some), np.bool_)
        are_without_header(records.data, rows[some, HEADERS], rows[some, HEADER_COUNT], _HEADER, none)
        found[some] = none
    return found


def compile_header_scan() -> None:
    """Compile the search for schemas in headers, or load it from the cache of compiled functions."""
    none = np.zeros(0, np.int64)
    are_without_header(np.zeros(PADDING, np.uint8), none, none, _HEADER, np.zeros(0, np.bool_))


class _Rewritten:
    """Builder of fetched records with new values, set one by one or many at once.

    Parameters
    ----------
    records
        The records as fetched.
    """

    def __init__(self, records: FetchedRecords) -> None:
        self._records = records
        self._rows = records.rows.copy()
        self._pieces = [records.data[:-PADDING]]
        self._used = len(self._pieces[0])
        self._written: dict[int, bytes] = {}

    def put(self, position: int, text: bytes) -> None:
        """Replace a record's value by a text."""
        self._written[position] = text

    def put_all(self, positions: NDArray[np.int64], texts: Texts) -> NDArray[np.int64]:
        """Replace records' values by texts; return the positions of records without one."""
        is_there = texts.sizes >= 0
        done, before = positions[is_there], 0
        if texts.data is not None:
            before = self._used
            self._add(texts.data)
        self._rows[done, VALUE] = before + texts.starts[is_there]
        self._rows[done, VALUE_BYTES] = texts.sizes[is_there]
        return positions[~is_there]

    def records(self) -> FetchedRecords:
        """Return the records with their new values."""
        if self._written:
            given = self._written.values()
            positions = np.fromiter(self._written, np.int64, len(self._written))
            sizes = np.fromiter(map(len, given), np.int64, len(given))
            starts = np.cumsum(sizes) - sizes
            self.put_all(positions, Texts(np.frombuffer(b"".join(given), np.uint8), starts, sizes))
            self._written = {}
        if len(self._pieces) == 1:
            return self._records.over(self._records.data, self._rows)
        data = np.concatenate([*self._pieces, self._records.data[-PADDING:]])
        return self._records.over(data, self._rows)

    def _add(self, written: NDArray[np.uint8]) -> None:
        self._pieces.append(written)
        self._used += len(written)


def joined(
    batch: RecordBatch, good: NDArray[np.bool_], records: FetchedRecords, refused: Mapping[int, Decoded]
) -> RecordBatch:
    """Merge the batch of the good records with the events of refused ones, in the order of records.

    Parameters
    ----------
    batch
        Rows of the good records.
    good
        bool (n,): for each record whether it is in the batch.
    records
        All n records.
    refused
        Events of the others, by position.
    """
    rows = np.zeros(len(records), ROW)
    offsets, stamps_ms = records.rows[:, OFFSET], records.rows[:, TIMESTAMP]
    positions = np.fromiter(refused, np.int64, len(refused))
    others = batch_of(list(refused.values()), offsets[positions], stamps_ms[positions])
    whole = RecordBatch(rows, None, (), batch.vocabulary).with_rows(np.flatnonzero(good), batch)
    return whole.with_rows(positions, others)


UNFRAMED: Final = "schema_missing"
AT_ONCE: Final = 512
"""Values of one schema that are read together; if one of them is invalid, they are read one by one."""


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """Rule that finds the schema of a topic's records.

    Attributes
    ----------
    compile
        Function that makes readers of the topic's format.
    invalid
        Reason for values that were not written with their schema.
    fixed
        Name of the schema of every record; None where each record names its own.
    reader
        Reader of every record, where no schema has to be fetched; else None.
    framed
        Whether records name their schema.
    """

    compile: Compile
    invalid: str
    fixed: SchemaRef | None = None
    reader: ValueReader | None = None
    framed: bool = True


def from_options(choice: SchemaChoice, kind: str, options: FormatOptions) -> SchemaChoice:
    """Complete a choice by the settings of a format; compiles a schema given in a file.

    Raises
    ------
    FormatMisused
        The file has no schema of this format, or there is neither a file nor a registry.
    """
    if options.schema_text is not None:
        try:
            reader = choice.compile(Schema(kind, options.schema_text))
        except (SchemaUnusable, OSError) as error:
            raise FormatMisused(f"schema_file: {error}") from None
        return replace(choice, reader=reader, framed=False)
    if options.readers is None:
        raise FormatMisused("schemas come from schema_registry.url, or from schema_file: neither is set")
    return replace(choice, fixed=options.fixed, framed=options.fixed is None)


class SchemaDecoder:
    """Decodes the records of one topic; implements `core.ports.Decoder`.

    Parameters
    ----------
    choice
        Rule that finds schemas, and the format's reason.
    readers
        Readers of fetched schemas; None where none has to be fetched.
    json
        Decodes the records with JSON texts as values.
    wanted
        Parts of a value that `json` reads.
    """

    def __init__(self, choice: SchemaChoice, readers: Readers | None, json: Decoder, wanted: Wanted) -> None:
        self._choice = choice
        self._readers = readers
        self._json = json
        self._wanted = wanted
        self._transcoders: WeakKeyDictionary[ValueReader, Transcoder | None] = WeakKeyDictionary()
        self._narrowed: WeakKeyDictionary[ValueReader, ValueReader] = WeakKeyDictionary()

    def wanted(self, records: Sequence[Record]) -> Collection[SchemaRequest]:
        """Name the schemas that these records need and that have to be fetched."""
        choice = self._choice
        if choice.reader is not None:
            return ()
        if choice.fixed is not None:
            return (SchemaRequest(choice.fixed, choice.compile),) if len(records) else ()
        return {SchemaRequest(ref, choice.compile) for ref in refs_of(records)}

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its record time (`stamps`, in ms)."""
        return self._json.decode_all([self.as_json(record, narrow=True) for record in records], stamps)

    def explain(self, record: Record, reason: str) -> str:
        """Name the value's type, the path where the invalid content was expected, and the fields there."""
        of_schema = self._schema_text(record, undecodable=reason == self._choice.invalid)
        if reason != self._choice.invalid and isinstance(self._json, Explains):
            found = self._json.explain(self.as_json(record), reason)
            return f"{of_schema}: {found}" if of_schema and found else found
        return of_schema

    def _schema_text(self, record: Record, *, undecodable: bool) -> str:
        """Name the message or record type of a value; if it cannot be decoded, with the type's fields."""
        if record.value is None:
            return ""
        reader, start, preface = self._reader_for(record.value, record.headers)
        if not isinstance(reader, Describes):
            return ""
        return reader.described(record.value, start, preface, undecodable=undecodable)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records to a batch: columns, and event objects for records that the scanner left."""
        if not isinstance(records, FetchedRecords):
            return self._json.decode_batch([self.as_json(record, narrow=True) for record in records])
        plain, faults = self._plain(records)
        if not faults:
            return self._json.decode_batch(plain)
        good = np.ones(len(records), np.bool_)
        good[list(faults)] = False
        batch = self._json.decode_batch(plain.part(plain.rows[good]))
        return joined(batch, good, records, self._refused(records, faults))

    def _refused(self, records: FetchedRecords, faults: Mapping[int, str]) -> Mapping[int, Decoded]:
        """Make the events of the records with faults, by position."""
        found = zip(map(records.record, faults), faults.values(), strict=True)
        unread = [_copied(record, record.key, reason) for record, reason in found]
        events = self._json.decode_all(unread, [each.timestamp for each in unread])
        return dict(zip(faults, events, strict=True))

    def _plain(self, records: FetchedRecords) -> tuple[FetchedRecords, dict[int, str]]:
        """Convert values to JSON texts; returns the new records, and the faults of others by position."""
        new = _Rewritten(records)
        faults: dict[int, str] = {}
        rows, framed = records.rows, NUMBER_BYTES if self._choice.framed else 0
        readable = (rows[:, FAULT] == 0) & (rows[:, VALUE_BYTES] >= 0)
        names = _numbers_of(records) if framed else np.where(readable, 0, -1)
        for position in np.flatnonzero(readable & (names < 0)).tolist():
            self._read(position, records, new, faults)
        starts, stops = rows[:, VALUE] + framed, rows[:, VALUE] + rows[:, VALUE_BYTES]
        whole = b""
        for name in np.unique(names[names >= 0]).tolist():
            positions = np.flatnonzero(names == name)
            reader = self._reader_of(name if framed else self._choice.fixed)
            if (transcoder := self._transcoder(reader)) is not None:
                texts = transcoder.texts(records.data, starts[positions], stops[positions])
                positions = new.put_all(positions, texts)
            if len(positions) and not whole:
                whole = records.data.tobytes()
            for some in np.split(positions, range(AT_ONCE, len(positions), AT_ONCE)):
                spans = zip(starts[some].tolist(), stops[some].tolist(), strict=True)
                found = None
                if len(some) and not isinstance(reader, str):
                    found = self._narrow(reader).all_to_json([whole[at:end] for at, end in spans])
                for i, position in enumerate(some.tolist()):
                    if found is None:
                        self._read(position, records, new, faults)
                    else:
                        new.put(position, found[i])
        return new.records(), faults

    def _reader_for(
        self, value: bytes, headers: Sequence[tuple[str, bytes | None]]
    ) -> tuple[ValueReader | str, int, bytes | None]:
        """Return the reader of a value, or the reason for none; then `start` and `preface` for it."""
        if not self._choice.framed:
            return self._reader_of(self._choice.fixed), 0, None
        header = in_header(headers)
        named = named_in(value if header is None else header)
        if named is None:
            return UNFRAMED, 0, None
        ref, end = named
        reader = self._reader_of(ref)
        return (reader, end, None) if header is None else (reader, 0, header[end:])

    def _reader_of(self, ref: SchemaRef | None) -> ValueReader | str:
        """Return the reader of a schema, or of every record; or the reason for none."""
        if self._choice.reader is not None:
            return self._choice.reader
        assert self._readers is not None and ref is not None  # noqa: S101, PT018 - see from_options
        return self._readers.reader(SchemaRequest(ref, self._choice.compile))

    def _transcoder(self, reader: ValueReader | str) -> Transcoder | None:
        """Return the compiled transcoder of a reader, made at its first use; None where there is none."""
        if isinstance(reader, str):
            return None
        if reader not in self._transcoders:
            self._transcoders[reader] = reader.transcoder(self._wanted)
        return self._transcoders[reader]

    def _narrow(self, reader: ValueReader) -> ValueReader:
        """Return the reader of what the mapping reads, made at its first use; the reader itself if whole."""
        found = self._narrowed.get(reader)
        if found is None:
            if not isinstance(reader, Narrows):
                return reader
            found = self._narrowed[reader] = reader.narrowed(self._wanted)
        return found

    def _read(self, position: int, records: FetchedRecords, new: _Rewritten, faults: dict[int, str]) -> None:
        """Add the JSON text of one record to `new`, or its fault to `faults`."""
        record = records.record(position)
        if record.fault is not None or record.value is None:
            return
        verdict = self._text(record.value, record.headers, narrow=True)
        if isinstance(verdict, str):
            faults[position] = verdict
        else:
            new.put(position, verdict)

    def as_json(self, record: Record, *, narrow: bool = False) -> Record:
        """Convert a record's value to JSON text; where that fails, a fault replaces it.

        With `narrow`, parts that the mapping does not read may be left out.
        """
        if record.value is None:
            return record
        return _copied(record, record.key, self._text(record.value, record.headers, narrow=narrow))

    def _text(
        self, value: bytes, headers: Sequence[tuple[str, bytes | None]], *, narrow: bool
    ) -> bytes | str:
        """Convert a value to JSON text, or return the reason why that fails."""
        reader, start, preface = self._reader_for(value, headers)
        if isinstance(reader, str):
            return reader
        try:
            return (self._narrow(reader) if narrow else reader).to_json(value, start, preface)
        except Undecodable:
            return self._choice.invalid


# Decodes records whose keys were written with a schema: the key is replaced by its content as text.
#
# A key that is one text, number or boolean becomes its text, for `key` in a mapping; one with fields becomes
# JSON text, for `key.field`. Then the record is decoded by the decoder of its value.


INVALID: Final = "invalid_key"
_JSON: Final = msgspec.json.Decoder()


class KeyDecoder:
    """Decodes the records of one topic; implements `core.ports.Decoder`.

    Parameters
    ----------
    keys
        Decoder of the keys' format, whose mapping is not used.
    values
        Decoder of the records with replaced keys.
    """

    def __init__(self, keys: SchemaDecoder, values: Decoder) -> None:
        self._keys = keys
        self._values = values

    def wanted(self, records: Sequence[Record]) -> Collection[SchemaRequest]:
        """Name the schemas that these records need and that have to be fetched."""
        of_keys = self._keys.wanted([key_as_value(record) for record in records])
        of_values = self._values.wanted(records) if isinstance(self._values, WantsSchemas) else ()
        return {*of_keys, *of_values}

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its record time (`stamps`, in ms)."""
        return self._values.decode_all([with_key(self._keys, record) for record in records], stamps)

    def explain(self, record: Record, reason: str) -> str:
        """Say at which path the invalid content was expected, and which fields the record has."""
        if not isinstance(self._values, Explains):
            return ""
        return self._values.explain(with_key(self._keys, record), reason)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records to a batch, by the decoder of the records with replaced keys."""
        return self._values.decode_batch([with_key(self._keys, record) for record in records])


def with_key(keys: SchemaDecoder, record: Record) -> Record:
    """Replace a record's key by its content as text; the record has a fault where the key cannot be read."""
    if record.key is None or record.fault is not None:
        return record
    read = keys.as_json(key_as_value(record))
    plain = None if read.value is None else _plain(read.value)
    return _copied(record, None, INVALID) if plain is None else _copied(record, plain, record.value)


def _plain(text: bytes) -> bytes | None:
    """Return the text of a scalar, or else the JSON text itself; None where it is no JSON."""
    try:
        key: Any = _JSON.decode(text)
    except UNREADABLE_JSON:
        return None
    plain = None if isinstance(key, dict | list) else canonical_text(key)
    return text if plain is None else plain.encode()


def key_as_value(record: Record) -> Record:
    """Make a record with this one's key as its value, and the key's schema named in the header for values."""
    headers = [(HEADER, content) for name, content in record.headers if name == KEY_HEADER]
    return _copied(record, None, record.key if record.fault is None else record.fault, headers)
