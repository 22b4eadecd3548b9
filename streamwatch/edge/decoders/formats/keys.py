"""Decodes records whose keys were written with a schema: what a key says takes its place, as text or as JSON.

A key that is one text, number or boolean becomes its text, for `key` in a mapping; one with fields becomes
JSON text, for `key.field`. Values are then decoded as if the key had always been that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from streamwatch.core.events import Decoded
from streamwatch.core.ports import Decoder, Record
from streamwatch.core.records import RecordBatch
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.formats.json import UNREADABLE_JSON
from streamwatch.edge.decoders.formats.schema_decoder import SchemaDecoder
from streamwatch.edge.decoders.formats.transcoded import TranscodedRecord
from streamwatch.edge.decoders.schemas.schema import SchemaRequest
from streamwatch.edge.decoders.schemas.topics import WantsSchemas
from streamwatch.edge.decoders.schemas.wire import HEADER, KEY_HEADER

INVALID: Final = "invalid_key"
_JSON: Final = msgspec.json.Decoder()


class KeyDecoder:
    """Decodes the records of one topic; implements `core.ports.Decoder`.

    Parameters
    ----------
    keys
        Decoder of the keys' format, whose mapping is not looked at.
    values
        Decodes the records with the keys it is given.
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
        """Decode each record with its stamp."""
        return self._values.decode_all([with_key(self._keys, record) for record in records], stamps)

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records into columns; events of records that are out of the ordinary are objects."""
        return self._values.decode_batch([with_key(self._keys, record) for record in records])


def with_key(keys: SchemaDecoder, record: Record) -> Record:
    """Put what a record's key says in its place; a fault where the key cannot be read."""
    if record.key is None or record.fault is not None:
        return record
    read = keys.as_json(key_as_value(record))
    plain = None if read.value is None else _plain(read.value)
    return _but(record, None, None, INVALID) if plain is None else _but(record, plain, record.value, None)


def _plain(text: bytes) -> bytes | None:
    """What a key says: the text of a single content, else the JSON text itself; None where it is no JSON."""
    try:
        said: Any = _JSON.decode(text)
    except UNREADABLE_JSON:
        return None
    plain = None if isinstance(said, dict | list) else canonical_text(said)
    return text if plain is None else plain.encode()


def key_as_value(record: Record) -> Record:
    """Make a record whose value is this one's key, and whose headers name the key's schema."""
    headers = [(HEADER, content) for name, content in record.headers if name == KEY_HEADER]
    return TranscodedRecord(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        None,
        record.key,
        headers,
        record.fault,
        record.timestamp_type,
    )


def _but(record: Record, key: bytes | None, value: bytes | None, fault: str | None) -> Record:
    return TranscodedRecord(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        key,
        value,
        record.headers,
        fault,
        record.timestamp_type,
    )
