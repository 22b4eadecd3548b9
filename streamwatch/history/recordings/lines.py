"""Conversion of recorded lines to records and events, and reasons of unusable lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from streamwatch.core.ports import Decoder, Explains
from streamwatch.core.records.events import (
    Decoded,
    EventGroup,
    Int64,
    Invalid,
    Label,
    Prediction,
    Side,
    is_decodable,
)
from streamwatch.edge.decoders.fields import fixed_text
from streamwatch.edge.decoders.formats import DecoderSpec, FormatOptions, json
from streamwatch.edge.decoders.mapping import KeyOf, SidedMapping, TimestampUnit, paths_of
from streamwatch.edge.decoders.trees import sided
from streamwatch.history.recordings.file import RecordingError, printable

SAMPLE_CHARACTERS: Final = 80
_HEADER_CHARACTERS: Final = 200
NEITHER: Final = "neither_prediction_nor_label"
"""Reason of a line with neither a prediction nor a label."""
_EXPLAINED: Final = 2
"""Most mappings whose explanations an error has."""
_TIMES: Final[Mapping[TimestampUnit, str]] = {
    "s": "seconds since 1970 (timestamp_unit: s)",
    "ms": "milliseconds since 1970 (timestamp_unit: ms)",
    "us": "microseconds since 1970 (timestamp_unit: us)",
    "ns": "nanoseconds since 1970 (timestamp_unit: ns)",
    "iso8601": "a time such as 2026-03-01T12:00:00Z (timestamp_unit: iso8601)",
}


@dataclass(frozen=True, slots=True)
class BadLine:
    """Unusable line; `number` counts from 1, a header included; `sample` is safe to print."""

    number: int
    reason: str
    sample: str = ""
    source: str = ""
    why: str = ""
    """Where mappings looked, and which fields the line has, without values; may be empty."""


@dataclass(slots=True)
class UnusableLines:
    """Counter of unusable lines."""

    reasons: Counter[str] = field(default_factory=Counter[str])
    first: list[BadLine] = field(default_factory=list[BadLine])
    kept: int = 5
    """Largest size of `first`."""

    @property
    def full(self) -> bool:
        """Tell whether `first` is full, so that further lines are only counted."""
        return len(self.first) >= self.kept

    def add(self, line: BadLine) -> None:
        """Count a line, and keep it if it is among the first."""
        self.reasons[line.reason] += 1
        if len(self.first) < self.kept:
            self.first.append(line)


@dataclass(slots=True)
class LineRecord:
    """Line as a record (`core.ports.Record`); fields besides `value` are known for lines of kcat only."""

    number: int
    """Number of the line, from 1."""
    value: bytes | None
    topic: str = ""
    partition: int = 0
    offset: int = 0
    timestamp: int = -1
    """Record timestamp in milliseconds; -1 without one."""
    timestamp_type: Literal[0, 1] = 0
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    fault: str | None = None


class _KcatLine(msgspec.Struct, gc=False):
    """Line of `kcat -J`: one record."""

    topic: str
    partition: Int64
    offset: Int64
    payload: msgspec.Raw
    ts: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] = -1
    tstype: str = "create"
    key: msgspec.Raw = msgspec.Raw(b"null")
    headers: list[str | None] = []


_KCAT = msgspec.json.Decoder(_KcatLine)
_TEXT = msgspec.json.Decoder(str)


def kcat_record(line: bytes, number: int) -> LineRecord:
    """Convert a line of `kcat -J`, whose payload is the value itself or a string that contains it.

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
    """Tell whether a line can be decoded as one of `kcat -J`."""
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
    """Decode a string; null is None, any other value is returned as written."""
    written = bytes(raw)
    if written == b"null":
        return None
    return _TEXT.decode(written).encode() if written.startswith(b'"') else written


# Conversion of CSV rows to JSON values.
#
# A row becomes an object with a field for each column that is not empty; dots in a column's name nest fields.


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """Columns that a CSV header is expected to have.

    The header must have one of `ids` and one of `classes`, unless these are empty, and no column of any of
    these purposes twice. Cells of `scores` are JSON objects.
    """

    ids: Sequence[str] = ("id",)
    classes: Sequence[str] = ("prediction", "label")
    others: Sequence[str] = ("model",)
    scores: Sequence[str] = ("scores",)
    times: Sequence[str] = ("timestamp",)

    def check(self, header: Sequence[str], name: str) -> None:
        """Check a header.

        Raises
        ------
        RecordingError
            It has no column of ids, none of classes, a column twice, or is not UTF-8.
        """
        shown = _shown_header(header)
        for wanted in (self.ids, self.classes):
            if not _names_one(header, wanted):
                expected = ", ".join(dict.fromkeys((*self.ids, *self.others, *self.classes)))
                # A line without a comma is no header; it may be a secret, such as the first line of a key.
                found = shown if len(header) > 1 else self._separated(header[0])
                raise RecordingError(f"{name}: expected a CSV header with {expected}; got {found}")
        for column in (*self.ids, *self.others, *self.classes, *self.scores, *self.times):
            if header.count(column) > 1:
                raise RecordingError(f"{name}: expected one column {column} in the CSV header; got {shown}")
        if any("\udc80" <= each <= "\udcff" for each in "".join(header)):
            raise RecordingError(f"{name}: expected a CSV header in UTF-8; got {shown}")

    def _separated(self, line: str) -> str:
        """Describe a line without a comma: by what its columns are separated instead, if by anything."""
        for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
            if self.fit([cell.strip(' "') for cell in line.split(separator)]):
                return f"columns separated by {word}"
        return "a line without a comma"

    def fit(self, header: Sequence[str]) -> bool:
        """Tell whether `check` accepts a header."""
        return all(_names_one(header, wanted) for wanted in (self.ids, self.classes))


class CsvRows:
    """Converts the rows of one file to records.

    Parameters
    ----------
    header
        Names of its columns.
    columns
        Names of the columns with JSON objects.
    name
        Name of the file, for unusable rows.
    """

    def __init__(self, header: Sequence[str], columns: CsvColumns, name: str) -> None:
        self._count = len(header)
        self._paths = [(i, column.split(".")) for i, column in enumerate(header) if column]
        self._objects = {i for i, column in enumerate(header) if column in columns.scores}
        self._name = name

    def record(self, row: Sequence[str], number: int) -> LineRecord | BadLine:
        """Convert a row that ends on line `number`."""
        if len(row) != self._count:
            written = ",".join(row).encode(errors="replace")
            return BadLine(number, "wrong_number_of_columns", sample_of(written), self._name)
        try:
            return LineRecord(number, msgspec.json.encode(self._value(row)), offset=number)
        except UnicodeEncodeError:
            written = ",".join(row).encode(errors="surrogateescape")
            return BadLine(number, "invalid_utf8", sample_of(written), self._name)

    def _value(self, row: Sequence[str]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for i, (*above, name) in self._paths:
            if not row[i]:
                continue
            here = value
            for step in above:
                below = here.setdefault(step, {})
                here = below if isinstance(below, dict) else {}
            here[name] = _object(row[i]) if i in self._objects else row[i]
        return value


def _shown_header(header: Sequence[str]) -> str:
    """Show the beginning of a header."""
    shown = printable(", ".join(header))
    return shown if len(shown) <= _HEADER_CHARACTERS else f"{shown[:_HEADER_CHARACTERS]}..."


def _names_one(header: Sequence[str], wanted: Sequence[str]) -> bool:
    return not wanted or bool(set(wanted) & set(header))


def _object(cell: str) -> Any:
    """Decode a JSON cell; other text is returned as it is, which decoders refuse as no object."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return cell


# Choice of the topic whose mapping fits a line, and the event that it yields.
#
# A line of a known topic is decoded like the topic's records. Any other line is a prediction if a prediction
# topic's mapping finds one in it, a label if a label topic's does, and an outcome if both do. A class that a
# mapping names as a constant (`label: =fraud`) is found in every line, so it makes no outcome: such a line is
# a prediction if it has one.


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """A topic, and the decoder of its records."""

    spec: DecoderSpec
    decoder: Decoder

    @property
    def mappings(self) -> Sequence[SidedMapping]:
        """Every mapping of the topic, those of predictions first."""
        return self.spec.mappings or sided(self.spec.side, self.spec.mapping)

    def has_constant_class(self, side: Side) -> bool:
        """Tell whether a mapping of this side has a constant class."""
        paths = [paths_of(each.mapping, each.side) for each in self.mappings if each.side == side]
        return any(fixed_text(each) is not None for each in paths)


class Both(NamedTuple):
    """Events of a line with a prediction and its label."""

    prediction: Prediction
    label: Label


Fitted: TypeAlias = "Decoded | Both"

_PERHAPS_A_LABEL: Final = frozenset(
    {
        "missing_model",
        "missing_model_part",
        "missing_prediction",
        "missing_prediction_part",
        "missing_elements",
        "unknown_kind",
    }
)


class Fitting:
    """Decodes lines by the topics of the settings.

    Parameters
    ----------
    topics
        Topics by name, in the order of the settings.
    """

    def __init__(self, topics: Mapping[str, RecordedTopic]) -> None:
        self._topics = topics
        sides = (("prediction", "both"), ("label",))
        self._predictions, self._labels = (
            [topic for topic in topics.values() if topic.spec.side in side] for side in sides
        )
        # Computed once, as they are needed for every line.
        self._constant_predictions = _constant(self._predictions, "prediction")
        self._constant_labels = _constant(self._labels, "label")
        # Decoders that need no model, to distinguish a label from a prediction without a model.
        self._nameless = [
            json.build(
                replace(topic.spec, mapping=replace(topic.spec.mapping, model="=any")), FormatOptions()
            )
            for topic in topics.values()
            if topic.spec.side != "label"
            and not topic.spec.mappings
            and not isinstance(topic.spec.mapping.model, KeyOf)
        ]

    def decode(self, records: Sequence[LineRecord], topic: str | None) -> list[Fitted]:
        """Decode each line by a topic; None: by whichever topic fits it."""
        if topic is not None:
            return list(self._topics[topic].decoder.decode_all(records, [0] * len(records)))
        predictions = _first_fit(self._predictions, records)
        labels = _first_fit(self._labels, records)
        return [
            self._chosen(record, *found, *other)
            for record, found, other in zip(records, predictions, labels, strict=True)
        ]

    def explain(self, record: LineRecord, reason: str, topic: str | None) -> str:
        """Describe where mappings looked in an unusable line, and which fields it has, without values."""
        topics = [*self._predictions, *self._labels] if topic is None else [self._topics[topic]]
        reasons = ("missing_prediction", "missing_label") if reason == NEITHER else (reason,)
        explanations = [
            each.decoder.explain(record, one)
            for each in topics
            if isinstance(each.decoder, Explains)
            for one in reasons
        ]
        shown = list(dict.fromkeys(filter(None, explanations)))[:_EXPLAINED]
        if reason == "invalid_timestamp":
            mappings = [each.mapping for topic in topics for each in topic.mappings]
            times = (_TIMES[each.timestamp_unit] for each in mappings if each.timestamp is not None)
            shown.append(f"expected {' or '.join(dict.fromkeys(times))}")
        return "; ".join(shown)

    def _chosen(
        self,
        record: LineRecord,
        event: Decoded,
        by: RecordedTopic | None,
        other: Decoded,
        other_by: RecordedTopic | None,
    ) -> Fitted:
        """Choose between the events of a prediction topic and a label topic for a line, or combine them."""
        if type(event) is Invalid:
            return self._if_no_prediction(record, event, other)
        several = type(event) is EventGroup and all(type(each) is Prediction for each in event.events)
        if not (several or type(event) is Prediction) or type(other) is not Label:
            return event
        if by is None or other_by is None or id(other_by) in self._constant_labels:
            return event
        if isinstance(event, EventGroup):  # of several models, to each of which the label applies
            return EventGroup((*event.events, other), event.record_ms, event.tied)
        assert isinstance(event, Prediction)  # noqa: S101 - it is no group
        return other if id(by) in self._constant_predictions else Both(event, other)

    def _if_no_prediction(self, record: LineRecord, refused: Invalid, other: Decoded) -> Decoded:
        """Return the label that a line has instead, or the more helpful of two reasons why it is invalid."""
        reason = refused.reason
        if reason not in _PERHAPS_A_LABEL or (reason == "missing_model" and self._lacks_a_model(record)):
            return refused
        if type(other) is not Invalid or other.reason != "missing_label":
            return other
        if reason != "unknown_kind":
            refused.reason = NEITHER
        return refused

    def _lacks_a_model(self, record: LineRecord) -> bool:
        return any(type(probe.decode(record, 0)) is Prediction for probe in self._nameless)


def _constant(topics: Sequence[RecordedTopic], side: Side) -> frozenset[int]:
    """Return the `id()` of each topic with a constant class of this side."""
    return frozenset(id(topic) for topic in topics if topic.has_constant_class(side))


def _first_fit(
    topics: Sequence[RecordedTopic], records: Sequence[LineRecord]
) -> list[tuple[Decoded, RecordedTopic | None]]:
    """Decode each record by the first topic that can; if none can, with the reason of the first topic."""
    found: list[tuple[Decoded, RecordedTopic | None]] = []
    for topic in topics:
        if not found:
            found = [(event, topic) for event in topic.decoder.decode_all(records, [0] * len(records))]
            continue
        left = [i for i, (event, _) in enumerate(found) if not is_decodable(event)]
        events = topic.decoder.decode_all([records[i] for i in left], [0] * len(left))
        for i, event in zip(left, events, strict=True):
            if is_decodable(event):
                found[i] = event, topic
    if not found:
        return [(Invalid("", 0, record.offset, "missing_label"), None) for record in records]
    return found
