"""Decodes records that were written with a schema: their values become JSON text, and JSON's decoder goes on.

Whatever holds for JSON (mappings, aliases, reasons, order) so holds for every format; a format adds nothing
but the reading of bytes. Schemas are fetched before (`wanted`, `SchemaCache.fetch`): decoding waits for
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from streamwatch.core.events import Decoded
from streamwatch.core.fetched import FAULT, HEADER_COUNT, VALUE, VALUE_BYTES, FetchedRecords
from streamwatch.core.ports import Decoder, Record
from streamwatch.core.records import RecordBatch
from streamwatch.edge.decoders.formats.kind import FormatMisused, FormatOptions
from streamwatch.edge.decoders.formats.transcoded import (
    TranscodedRecord,
    faulty,
    joined,
    refs_of,
    with_values,
)
from streamwatch.edge.decoders.schemas.schema import (
    Compile,
    Readers,
    Schema,
    SchemaRef,
    SchemaRequest,
    SchemaUnusable,
    Undecodable,
    ValueReader,
)
from streamwatch.edge.decoders.schemas.wire import in_header, named_in

UNFRAMED: Final = "schema_missing"


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """Way to the schema of a topic's records.

    Attributes
    ----------
    compile
        Makes readers of the topic's format.
    invalid
        The reason for values that were not written with their schema.
    fixed
        The schema of every record; None where each record names its own.
    reader
        The reader of every record, where no schema has to be fetched.
    framed
        Whether records name their schema.
    """

    compile: Compile
    invalid: str
    fixed: SchemaRef | None = None
    reader: ValueReader | None = None
    framed: bool = True


def from_options(choice: SchemaChoice, kind: str, options: FormatOptions) -> SchemaChoice:
    """Complete a choice by the settings of a format, a schema in a file compiled.

    Raises
    ------
    FormatMisused
        The file holds no such schema, or there is no registry to ask.
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
        How schemas are found, and the format's reasons.
    readers
        Readers of schemas at hand; None where none has to be fetched.
    json
        Decodes what values become.
    """

    def __init__(self, choice: SchemaChoice, readers: Readers | None, json: Decoder) -> None:
        self._choice = choice
        self._readers = readers
        self._json = json

    def wanted(self, records: Sequence[Record]) -> Collection[SchemaRequest]:
        """Name the schemas that these records need and that have to be fetched."""
        choice = self._choice
        if choice.reader is not None:
            return ()
        if choice.fixed is not None:
            return (SchemaRequest(choice.fixed, choice.compile),) if len(records) else ()
        return {SchemaRequest(ref, choice.compile) for ref in refs_of(records)}

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode each record with its stamp."""
        return self._json.decode_all([self.as_json(record) for record in records], stamps)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records into columns; events of records that are out of the ordinary are objects."""
        if not isinstance(records, FetchedRecords):
            return self._json.decode_batch([self.as_json(record) for record in records])
        texts, faults = self._texts(records)
        plain = with_values(records, texts)
        if not faults:
            return self._json.decode_batch(plain)
        good = np.ones(len(records), np.bool_)
        good[list(faults)] = False
        batch = self._json.decode_batch(plain.part(plain.rows[good]))
        return joined(batch, records, self._refused(records, faults))

    def _refused(self, records: FetchedRecords, faults: Mapping[int, str]) -> Mapping[int, Decoded]:
        """Events of the records that have no text, by place."""
        found = {place: faulty(records.record(place), reason) for place, reason in faults.items()}
        events = self._json.decode_all(list(found.values()), [each.timestamp for each in found.values()])
        return dict(zip(found, events, strict=True))

    def _texts(self, records: FetchedRecords) -> tuple[list[bytes | None], dict[int, str]]:
        """JSON text of each record, None where the record stays as it is, and what has none, by place."""
        view = memoryview(records.data.data)
        texts: list[bytes | None] = []
        faults: dict[int, str] = {}
        columns = records.rows[:, (VALUE, VALUE_BYTES, HEADER_COUNT, FAULT)].tolist()
        for place, (at, size, headers, fault) in enumerate(columns):
            text: bytes | None = None
            if size >= 0 and not fault:
                header = None
                if headers:
                    record = records.record(place)
                    if record.fault is not None:
                        texts.append(None)
                        continue
                    header = in_header(record.headers)
                verdict = self._text(bytes(view[at : at + size]), header)
                if isinstance(verdict, str):
                    faults[place] = verdict
                else:
                    text = verdict
            texts.append(text)
        return texts, faults

    def as_json(self, record: Record) -> Record:
        """Write a record's value as JSON text; a fault takes its place where it has none."""
        if record.value is None:
            return record
        verdict = self._text(record.value, in_header(record.headers))
        if isinstance(verdict, str):
            return faulty(record, verdict)
        return TranscodedRecord(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.key,
            verdict,
            record.headers,
            None,
            record.timestamp_type,
        )

    def _text(self, value: bytes, header: bytes | None) -> bytes | str:
        """JSON text of a value, or the reason why it has none."""
        choice, start, preface, ref = self._choice, 0, None, self._choice.fixed
        if choice.framed:
            named = named_in(value if header is None else header)
            if named is None:
                return UNFRAMED
            ref, end = named
            start, preface = (end, None) if header is None else (0, header[end:])
        reader: ValueReader | str | None = choice.reader
        if reader is None:
            assert self._readers is not None and ref is not None  # noqa: S101, PT018 - see from_options
            reader = self._readers.reader(SchemaRequest(ref, choice.compile))
            if isinstance(reader, str):
                return reader
        try:
            return reader.to_json(value, start, preface)
        except Undecodable:
            return choice.invalid
