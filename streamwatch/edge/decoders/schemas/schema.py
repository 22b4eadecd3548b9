"""Schemas: their names in records and registries, and the protocol of readers of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable
from uuid import UUID

from streamwatch.edge.decoders.transcoding.wanted import Transcoder, Wanted


class Version(NamedTuple):
    """A version of a subject in a registry."""

    subject: str
    number: int | None = None
    """None: the latest."""

    def __str__(self) -> str:
        return f"{self.subject}, version {'latest' if self.number is None else self.number}"


SchemaRef: TypeAlias = int | UUID | Version
"""Name of a schema: its number, its global id, or a version of a subject."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a registry keeps it.

    Attributes
    ----------
    type
        `AVRO`, `PROTOBUF` or `JSON`.
    text
        The schema itself.
    references
        (name in the text, text) of each schema that it refers to, those first that others need.
    """

    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class Undecodable(ValueError):  # noqa: N818  # it is about the value, not about a fault of ours
    """A value does not fit its schema."""


class SchemaUnusable(ValueError):  # noqa: N818
    """A schema is invalid in its format, or exceeds the limits of readers."""


class SchemaUnknown(LookupError):  # noqa: N818
    """The registry answered that it has no such schema."""


class SchemaUnavailable(OSError):  # noqa: N818
    """A registry is unreachable for now: records that need a schema wait."""


class SchemaWithheldError(SchemaUnavailable):
    """A registry answers a request for one schema with an error that may concern this schema alone.

    These are 401, 403, 408, 429 and 5xx.
    """


class ValueReader(Protocol):
    """Converts values that were written with one schema to JSON text."""

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Convert a value to JSON text.

        Parameters
        ----------
        value
            Bytes of a record's value.
        start
            Position at which the contents begin, after the schema's name if the value has it.
        preface
            Bytes after the schema's name in a header; None where no header names the schema.

        Raises
        ------
        Undecodable
            The value does not fit the schema, or its JSON would be too long.
        """
        ...

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Convert the contents of many values to JSON texts, several times as fast as one by one.

        Parameters
        ----------
        contents
            Bytes after the schema's name in each value.

        Returns
        -------
        Sequence[bytes] | None
            Equal to those of `to_json`; None where any value may be invalid, or has to be read alone.
        """
        ...

    def transcoder(self, wanted: Wanted) -> Transcoder | None:
        """Make the compiled writer of the wanted parts of values; None where the schema is not supported."""
        ...


@runtime_checkable
class Describes(Protocol):
    """A reader whose values have named types."""

    def described(self, value: bytes, start: int, preface: bytes | None, *, undecodable: bool) -> str:
        """Name the type of a value; if it cannot be decoded, also its fields and those on the wire."""
        ...


@runtime_checkable
class Narrows(Protocol):
    """A reader of values that may be very wide."""

    def narrowed(self, wanted: Wanted) -> ValueReader:
        """Return a reader of the same values that writes wanted parts only; it does not refer to this one."""
        ...


Compile: TypeAlias = Callable[[Schema], ValueReader]
"""Makes the reader of a schema; blocks. Any exception means that the schema is unusable."""


class SchemaRequest(NamedTuple):
    """Name of a schema that records need, and the function that compiles it."""

    ref: SchemaRef
    compile: Compile


class Readers(Protocol):
    """Access to readers of fetched schemas."""

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        """Return the reader of a schema, or the reason why its records are invalid."""
        ...


# Names of schemas in records, as Confluent's serializers write them.
#
# A value begins with a zero byte and the schema's number (four bytes, big-endian), or with a byte 1 and its
# global id (sixteen bytes); its contents follow. Instead, the same bytes may be in the header
# `__value_schema_id` (for keys `__key_schema_id`), and the value has only contents. With Protocol Buffers,
# indexes of the message type follow the schema's name (Confluent, "Formats, Serializers, and Deserializers",
# section "Wire format").


HEADER: Final = "__value_schema_id"
KEY_HEADER: Final = "__key_schema_id"
NUMBER_BYTES: Final = 5
GLOBAL_ID_BYTES: Final = 17


def named_in(content: bytes) -> tuple[SchemaRef, int] | None:
    """Read the schema's name at the beginning of `content`; return it and its length, or None without one."""
    if len(content) >= NUMBER_BYTES and content[0] == 0:
        return int.from_bytes(content[1:NUMBER_BYTES], "big"), NUMBER_BYTES
    if len(content) >= GLOBAL_ID_BYTES and content[0] == 1:
        return UUID(bytes=content[1:GLOBAL_ID_BYTES]), GLOBAL_ID_BYTES
    return None


def in_header(headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """Return the content of the last header that names a value's schema; None without one."""
    for name, content in reversed(headers):
        if name == HEADER:
            return content
    return None


# Address and credentials of a schema registry.


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """Address of a registry with Confluent's API, and the credentials for it."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """Bearer token, used instead of a name and password."""
    ca_file: str | None = None
    """Certificates to trust, PEM; the system's if absent."""
    timeout_seconds: float = 10.0
    """Time limit for fetching one schema with all schemas that it refers to."""
