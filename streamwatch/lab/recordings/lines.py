"""One recorded line as the record that a topic would have carried, or why it is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

SAMPLE_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be used; `number` counts from 1, a header included; `sample` is safe to print."""

    number: int
    reason: str
    sample: str = ""
    source: str = ""


@dataclass(slots=True)
class UnusableLines:
    """Lines that could not be used."""

    reasons: Counter[str] = field(default_factory=Counter[str])
    first: list[BadLine] = field(default_factory=list[BadLine])
    kept: int = 5
    """Of them, at most."""

    def add(self, line: BadLine) -> None:
        """Count a line, and remember it if it is among the first."""
        self.reasons[line.reason] += 1
        if len(self.first) < self.kept:
            self.first.append(line)


@dataclass(slots=True)
class LineRecord:
    """A line as a record (`core.ports.Record`); all but `value` are only known of lines written by kcat."""

    number: int
    """Of the line, from 1."""
    value: bytes | None
    topic: str = ""
    partition: int = 0
    offset: int = 0
    timestamp: int = -1
    """-1 where the line has none but its event's."""
    timestamp_type: Literal[0, 1] = 0
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    fault: str | None = None


class _KcatLine(msgspec.Struct, gc=False):
    """What `kcat -J` writes of one record."""

    topic: str
    partition: int
    offset: int
    payload: msgspec.Raw
    ts: int = -1
    tstype: str = "create"
    key: msgspec.Raw = msgspec.Raw(b"null")
    headers: list[str | None] = []


_KCAT = msgspec.json.Decoder(_KcatLine)
_TEXT = msgspec.json.Decoder(str)


def kcat_record(line: bytes, number: int) -> LineRecord:
    """Read a line that `kcat -J` wrote: the payload is a string with the value in it, or the value itself.

    Raises
    ------
    msgspec.DecodeError
        It is no such line.
    """
    found = _KCAT.decode(line)
    names, contents = found.headers[::2], found.headers[1::2]
    headers = tuple(
        (name, content.encode())
        for name, content in zip(names, contents, strict=False)
        if name is not None and content is not None
    )
    return LineRecord(
        number,
        _content(found.payload),
        found.topic,
        found.partition,
        found.offset,
        found.ts,
        1 if found.tstype == "logappend" else 0,
        _content(found.key),
        headers,
    )


def is_kcat(line: bytes) -> bool:
    """Tell whether a line looks as `kcat -J` writes them."""
    try:
        _KCAT.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def sample_of(value: bytes | None) -> str:
    """Show the beginning of a value in printable ASCII."""
    if value is None:
        return "null"
    shown = value[:SAMPLE_CHARACTERS].decode("utf-8", "backslashreplace").strip()
    escaped = shown.encode("unicode_escape").decode("ascii")[:SAMPLE_CHARACTERS]
    return escaped + ("..." if len(value) > SAMPLE_CHARACTERS or len(escaped) == SAMPLE_CHARACTERS else "")


def _content(raw: msgspec.Raw) -> bytes | None:
    """Unpack a string; null is None, anything else stands for itself."""
    written = bytes(raw)
    if written == b"null":
        return None
    return _TEXT.decode(written).encode() if written.startswith(b'"') else written
