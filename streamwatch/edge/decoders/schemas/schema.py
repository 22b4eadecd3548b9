"""A schema, how records name one, and the object that reads values written with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable
from uuid import UUID

from streamwatch.edge.decoders.transcoding.wanted import Transcoder, Wanted


class Version(NamedTuple):
    """A version of a subject, as registries count them."""

    subject: str
    number: int | None = None
    """None is the latest."""

    def __str__(self) -> str:
        return f"{self.subject}, version {'latest' if self.number is None else self.number}"


SchemaRef: TypeAlias = int | UUID | Version
"""A schema's name: its number, its global id, or a version of a subject."""


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
        Schemas that it refers to, by the name that its text has for each, those first that others need.
    """

    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class Undecodable(ValueError):  # noqa: N818  # it is about the value, not about a fault of ours
    """A value is not what its schema says."""


class SchemaUnusable(ValueError):  # noqa: N818
    """A schema is not one of its format, or asks for more than a reader gives."""


class SchemaUnknown(LookupError):  # noqa: N818
    """The registry answered that it has no such schema."""


class SchemaUnavailable(OSError):  # noqa: N818
    """A registry cannot be asked just now: whoever wants a schema of it waits."""


class ValueReader(Protocol):
    """Reads values that were written with one schema."""

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Write a value as JSON text.

        Parameters
        ----------
        value
            Bytes of a record's value.
        start
            Where the contents begin, behind the schema's name.
        preface
            Bytes that follow the schema's name where that stands in a header; None where it stands in the
            value, or nowhere.

        Raises
        ------
        Undecodable
            It was not written with this schema, or is too much.
        """
        ...

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Write the contents of many values as JSON texts, which takes a fraction of one by one.

        Parameters
        ----------
        contents
            What follows the schema's name in each value.

        Returns
        -------
        Sequence[bytes] | None
            As `to_json` gives them; None where one of them may not be what the schema says, or has to be read
            by itself.
        """
        ...

    def transcoder(self, wanted: Wanted) -> Transcoder | None:
        """Make what writes nothing but the wanted parts of ordinary values; None where nothing does."""
        ...


@runtime_checkable
class Describes(Protocol):
    """A reader whose values have a type with a name."""

    def described(self, value: bytes, start: int, preface: bytes | None, *, undecodable: bool) -> str:
        """Name the type of a value; of one that cannot be decoded, with its fields and those on the wire."""
        ...


Compile: TypeAlias = Callable[[Schema], ValueReader]
"""Makes a reader; blocks. Raises SchemaUnusable; what else it raises makes the schema unusable, too."""


class SchemaRequest(NamedTuple):
    """A schema that records need, and how it is compiled."""

    ref: SchemaRef
    compile: Compile


class Readers(Protocol):
    """Readers of schemas that are at hand."""

    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        """The reader of a schema, or the reason why its records are invalid."""
        ...


# Names of schemas in records, as Confluent's serializers write them.
#
# In front of the contents stands a zero byte and the schema's number (four bytes, most significant first),
# or a byte of one and its global id (sixteen bytes). The same may stand in the header `__value_schema_id`,
# and the value is then nothing but contents; of a key, in `__key_schema_id`. Protocol Buffers have the
# indexes of the message type behind it (Confluent, "Formats, Serializers, and Deserializers", section "Wire
# format").


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


# Address and credentials of a schema registry.


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """A registry that speaks Confluent's protocol, and who asks it."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """Sent as bearer token, instead of a name and password."""
    ca_file: str | None = None
    """Certificates to trust, PEM; the system's if absent."""
    timeout_seconds: float = 10.0
    """Of one request."""
