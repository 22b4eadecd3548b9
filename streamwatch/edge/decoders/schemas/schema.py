"""A schema, how records name one, and the object that reads values written with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias
from uuid import UUID


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
    """No registry has this schema, and the one asked said so."""


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
