"""Names of schemas in records, as Confluent's serializers write them.

In front of the contents stands a zero byte and the schema's number (four bytes, most significant first), or a
byte of one and its global id (sixteen bytes). The same may stand in the header `__value_schema_id`, and the
value is then nothing but contents; of a key, in `__key_schema_id`. Protocol Buffers have the indexes of the
message type behind it (Confluent, "Formats, Serializers, and Deserializers", section "Wire format").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from streamwatch.edge.decoders.schemas.schema import SchemaRef

HEADER: Final = "__value_schema_id"
KEY_HEADER: Final = "__key_schema_id"
NUMBER_BYTES: Final = 5
GLOBAL_ID_BYTES: Final = 17


def named_in(content: bytes) -> tuple[SchemaRef, int] | None:
    """Read the schema's name at the beginning of `content`, and where it ends; None if there is none."""
    if len(content) >= NUMBER_BYTES and content[0] == 0:
        return int.from_bytes(content[1:NUMBER_BYTES], "big"), NUMBER_BYTES
    if len(content) >= GLOBAL_ID_BYTES and content[0] == 1:
        return UUID(bytes=content[1:GLOBAL_ID_BYTES]), GLOBAL_ID_BYTES
    return None


def in_header(headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """Content of the last header that names a schema; None without one."""
    for name, content in reversed(headers):
        if name == HEADER:
            return content
    return None
