"""Records laid out by location, as columns, and as fields with a number for each class."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.envelopes import EnvelopeKind
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.texts import Texts
from streamwatch.inspection.words import SCORES, area_under_roc, named_steps, words

Scalar: TypeAlias = str | int | float | bool
MAX_DEPTH: Final = 10
MAX_PATHS: Final = 400
"""Most locations of a record that are examined."""
MAX_ELEMENTS: Final = 2
"""Most elements of an array that are examined."""
MAX_CELLS: Final = 32
"""Most cells of a row of a table (an array in an array) that are examined."""
_FRAME: Final = 5
"""Bytes of a schema registry's wire format before the content: a zero byte and the id of a schema."""


@dataclass(slots=True)
class FlatRecord:
    """A record, or an element of its arrays, laid out by location."""

    record: Record
    scalars: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    """Texts, numbers and booleans by location (`value.a.b`, `key`, `header:x`)."""
    arrays: dict[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    """Arrays by location."""
    numbers: dict[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """Objects of at least two numbers and nothing else, by location."""
    unaddressable: set[str] = field(default_factory=set[str])
    """Fields whose names the notation of paths cannot write."""
    fault: str = ""
    """Reason why the value cannot be decoded; empty if it can."""
    tree: Any = None
    """Decoded value, out of its envelope."""
    element: int | None = None
    """Number of the element; None for a whole record."""

    @property
    def record_ms(self) -> int:
        """Record time in milliseconds; -1 if unknown."""
        return self.record.timestamp


NOT_JSON: Final = "not JSON"
NULL: Final = "null"
SKIPPED: Final = "skipped"
"""Faults: not JSON; and, harmless, a record without a value, and one skipped by the envelope."""


def flatten(
    record: Record, envelope: EnvelopeKind | None = None, texts: Texts | None = None, *, plain: bool = False
) -> FlatRecord:
    """Lay out key, headers and value of one record, out of its envelope.

    Parameters
    ----------
    record
        The record.
    envelope
        Envelope of the value; None without one.
    texts
        Decoders of texts in the value that contain structured data.
    plain
        Whether the value is a text, not JSON.
    """
    flat = FlatRecord(record)
    _fill_key(flat, record.key)
    for name, content in record.headers:
        if envelope is not None and name.startswith("ce_"):
            continue  # attributes of a CloudEvent, which its envelope adds to the value
        if (text := _text(content)) is not None and name:
            flat.scalars[f"header:{name}"] = text
    flat.fault = record.fault or _fill(flat, record.value, envelope, texts, plain=plain)
    return flat


def _fill_key(flat: FlatRecord, key: bytes | None) -> None:
    """Add a key as text, or its fields if it is a JSON object; nothing if it names a schema."""
    if key is None or framed_schema(key) is not None or (text := _text(key)) is None:
        return
    if text.startswith("{"):
        try:
            fields = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            walk("key", fields, flat)
            return
    flat.scalars["key"] = text


def walk(location: str, content: Any, flat: FlatRecord) -> None:
    """Add the content at a location, and everything below it, to a record."""
    for found, scalar in _walk(location, content, flat, 0):
        if len(flat.scalars) >= MAX_PATHS:
            break
        flat.scalars[found] = scalar


def framed_schema(value: bytes) -> int | None:
    """Return the schema id of a value in a schema registry's wire format; None for other values."""
    return int.from_bytes(value[1:_FRAME]) if len(value) > _FRAME and value[0] == 0 else None


def _fill(  # noqa: PLR0911
    flat: FlatRecord,
    value: bytes | None,
    envelope: EnvelopeKind | None,
    texts: Texts | None,
    *,
    plain: bool,
) -> str:
    if value is None:
        return NULL
    if (schema := framed_schema(value)) is not None:
        return f"framed by a schema registry (schema {schema})"
    content: Any = _text(value) if plain else None
    if plain and content is None:
        return "not text"
    try:
        content = content.strip() if plain else msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOT_JSON
    if envelope is not None:
        content, fault = _out_of(envelope, content, flat.record)
        if fault:
            return fault
    try:
        flat.tree = content if texts is None else texts.read(content)
    except ValueError:
        return "not written as the others"
    walk("value", flat.tree, flat)
    return ""


def _out_of(envelope: EnvelopeKind, content: Any, record: Record) -> tuple[Any, str]:
    """Return the content of an envelope, and a fault, which is empty if it can be examined."""
    opened = envelope.open(content, record)
    if opened is None:
        return None, SKIPPED
    if isinstance(opened, str):
        return None, f"not in the envelope {envelope.name}"
    tree = opened.tree
    if isinstance(tree, dict) and isinstance(
        tree.get("event"), dict
    ):  # as servers logged it, beside its parts
        tree = tree | {"event": {name: part for name, part in tree["event"].items() if name not in _PARTS}}
    return tree, NULL if opened.deleted else ""


_PARTS: Final = frozenset({"data", "request", "response"})


def _walk(location: str, content: Any, flat: FlatRecord, depth: int) -> Iterator[tuple[str, Scalar]]:
    if isinstance(content, dict) and depth < MAX_DEPTH:
        if len(content) > 1 and all(map(_is_number, content.values())):
            flat.numbers[location] = content
        for name, inner in content.items():
            if not name or not name.isprintable() or set(name) & _UNWRITABLE:
                flat.unaddressable.add(f"{location}: {name!r}")
            else:
                yield from _walk(f"{location}.{_step(name)}", inner, flat, depth + 1)
    elif isinstance(content, list) and depth < MAX_DEPTH:
        flat.arrays[location] = content
        if (named := _names_elements(content)) is not None:
            for name, inner in named:
                yield from _walk(f"{location}[{name}]", inner, flat, depth + 1)
            return
        most = MAX_CELLS if location.endswith("]") else MAX_ELEMENTS  # a row of a table, or elements alike
        for at, inner in enumerate(content[:most]):
            yield from _walk(f"{location}[{at}]", inner, flat, depth + 1)
    elif isinstance(content, str | int | float):
        yield location, content


def _names_elements(array: Sequence[Any]) -> list[tuple[str, Any]] | None:
    """Name the elements of an array of key-value pairs by their keys; None for other arrays."""
    for field_ in ("key", "name", "label"):
        names = [each.get(field_) for each in array if isinstance(each, dict) and "value" in each]
        if (
            len(array) > 0
            and len(names) == len(array) == len({*map(str, names)})
            and all(map(_is_name, names))
        ):
            return [
                (f"{field_}={name}", {k: v for k, v in each.items() if k != field_})
                for name, each in zip(names, array, strict=True)
            ]
    return None


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable() and name != "" and not set(name) & _OF_STEPS


_OF_STEPS: Final = frozenset('[]"')


def _step(name: str) -> str:
    """Write the name of a field as a step of a location: quoted if it has a dot, bracket or asterisk."""
    return f'"{name}"' if _SPECIAL & set(name) else name


_SPECIAL: Final = frozenset(".[]*")
_UNWRITABLE: Final = frozenset('"\\')


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


FRACTIONAL: Final = 0.05
"""Share of numbers with a fraction above which a column is continuous."""


_NUMBER: Final = re.compile(r"-?\d{1,18}(\.\d{1,25})?([eE][+-]?\d{1,2})?", re.ASCII)


def _number(raw: Scalar | None) -> float | None:
    if isinstance(raw, str):
        return float(raw) if _NUMBER.fullmatch(raw) else None
    if raw is None or isinstance(raw, bool) or abs(raw) > LARGEST:
        return None
    return float(raw)


def _is_number(content: Any) -> bool:
    return type(content) in {int, float} and abs(content) <= LARGEST


LARGEST: Final = 1e30
"""Largest magnitude of what counts as a number; JSON has whole numbers that no float can hold."""


@dataclass
class Column:
    """Contents at one location in the records of a stream."""

    location: str
    raw: Sequence[Scalar | None]
    """Content of each record; None if it has none."""

    @cached_property
    def texts(self) -> Sequence[str | None]:
        """Content of each record as the text that a decoder makes of it; None if it has none."""
        return [None if raw is None else canonical_text(raw) for raw in self.raw]

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of records with each text."""
        return Counter(text for text in self.texts if text is not None)

    @cached_property
    def filled(self) -> float:
        """Share of the records that have a content; 0 without records."""
        return self.counts.total() / len(self.raw) if self.raw else 0.0

    @cached_property
    def uniqueness(self) -> float:
        """Number of distinct contents divided by that of all; 1 if none repeats, 0 without contents."""
        return len(self.counts) / self.counts.total() if self.counts else 0.0

    @cached_property
    def numbers(self) -> Sequence[float]:
        """Contents that are numbers or texts of numbers (as in CSV), without booleans."""
        return [number for raw in self.raw if (number := _number(raw)) is not None]

    @cached_property
    def is_continuous(self) -> bool:
        """Return whether contents are numbers with fractions: measurements or scores, not classes or ids."""
        numbers = self.numbers
        broken = sum(not number.is_integer() for number in numbers)
        return bool(numbers) and broken > FRACTIONAL * len(numbers) and 2 * len(numbers) > self.counts.total()

    @cached_property
    def is_score(self) -> bool:
        """Return whether contents are continuous numbers in [0, 1]."""
        return self.is_continuous and all(0 <= number <= 1 for number in self.numbers)

    @cached_property
    def is_boolean(self) -> bool:
        """Return whether all contents are booleans."""
        return bool(self.counts) and all(isinstance(raw, bool) for raw in self.raw if raw is not None)

    @property
    def leaf(self) -> str:
        """Last step of the location, which is the field's own name."""
        return named_steps(self.location).removeprefix("header:").rpartition(".")[2]


# Vectors: fields with a number for each class, and the class that each number is of.


MAX_CLASSES: Final = 200
MIN_EACH: Final = 5
"""Least number of joined records of a class with which its number or its score is examined."""
USUAL: Final = 0.95
"""Least share of rows that must be distributions."""
ABSENT: Final = float("-inf")
"""Number of a class that the object of a record does not name."""
ROUNDED: Final = 0.02
"""Largest distance of a sum of rounded probabilities from 1."""


@dataclass
class Vector:
    """Numbers at one location."""

    location: str
    names: tuple[str, ...]
    """Names of the numbers, if they are an object; empty for an array."""
    rows: Sequence[Sequence[float] | None]
    """Numbers of each record; None if it has none."""

    @cached_property
    def is_distribution(self) -> bool:
        """Return whether the numbers are probabilities that sum to 1."""
        filled = [[number for number in row if number > ABSENT] for row in self.rows if row is not None]
        fits = sum(abs(sum(row) - 1) <= ROUNDED and min(row) >= 0 for row in filled)
        return fits >= USUAL * len(filled)

    @cached_property
    def are_probabilities(self) -> bool:
        """Return whether the numbers are in [0, 1] with sums of at most 1: some classes may be left out."""
        filled = [[number for number in row if number > ABSENT] for row in self.rows if row is not None]
        return all(
            min(row) >= -1e-6 and max(row) <= 1 + 1e-6 and sum(row) <= 1 + ROUNDED for row in filled if row
        )

    @cached_property
    def is_likely_scores(self) -> bool:
        """Return whether these are likely the scores of classes, by name or as a distribution."""
        return self.is_distribution or bool(SCORES & set(words(self.location.rpartition(".")[2])))

    @cached_property
    def largest(self) -> Sequence[int | None]:
        """Index of the largest number of each row, the first of equal ones; None for missing rows."""
        return [None if row is None else row.index(max(row)) for row in self.rows]

    def column(self, classes: Sequence[str]) -> Column:
        """Return the class of each row's largest number, as a mapping does."""
        return Column(self.location, [None if at is None else classes[at] for at in self.largest])

    def order(self, texts: Sequence[tuple[int, str]]) -> tuple[str, ...] | None:
        """Find the class of each number of an array.

        The lift of a class at a position is the mean number of its records there minus that of all records.
        Classes are assigned to positions so that the sum of lifts is largest
        (`scipy.optimize.linear_sum_assignment`).

        Parameters
        ----------
        texts
            (number of the row, true class) of joined records.

        Returns
        -------
        tuple[str, ...] | None
            Classes by position: the position itself if all classes are positions; otherwise by lift, and
            `class <position>` for positions without a class. None if a lift is not positive, or there are
            more classes than numbers, or fewer than two.
        """
        rows = [(row, text) for at, text in texts if (row := self.rows[at]) is not None]
        width = len(rows[0][0]) if rows else 0
        classes = sorted({text for _, text in rows})
        if not 2 <= len(classes) <= width:
            return None
        numbered = tuple(map(str, range(width)))
        if set(classes) <= set(numbered):
            return numbered
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - takes .3 s; the daemon needs none

        groups: defaultdict[str, list[Sequence[float]]] = defaultdict(list)
        for row, text in rows:
            groups[text].append(row)
        overall = np.mean([row for row, _ in rows], axis=0)
        lifts = np.array([np.mean(groups[name], axis=0) - overall for name in classes])
        chosen, positions = linear_sum_assignment(-lifts)
        if any(lifts[c, p] <= 0 for c, p in zip(chosen, positions, strict=True)):
            return None
        named = dict(zip(positions.tolist(), (classes[c] for c in chosen), strict=True))
        return tuple(named.get(at, f"class {at}") for at in range(width))

    def separation(self, classes: Sequence[str], texts: Sequence[tuple[int, str]]) -> float:
        """Mean over the classes of 2 AUC - 1 of each number for its class, at least 0."""
        areas: list[float] = []
        for at, name in enumerate(classes):
            own: list[float] = []
            others: list[float] = []
            for i, text in texts:
                if (row := self.rows[i]) is not None:
                    (own if text == name else others).append(row[at])
            if min(len(own), len(others)) >= MIN_EACH:
                areas.append(2 * area_under_roc(own, others) - 1)
        return max(0.0, float(np.mean(areas))) if areas else 0.0


def vectors_of(records: Sequence[FlatRecord]) -> Sequence[Vector]:
    """Find arrays of constant length, and objects, that contain only numbers."""
    locations = dict.fromkeys(
        location for record in records for location in (*record.arrays, *record.numbers)
    )
    found = (_of_array(location, records) or _of_object(location, records) for location in locations)
    return [vector for vector in found if vector is not None]


def _of_array(location: str, records: Sequence[FlatRecord]) -> Vector | None:
    rows = [_numbers(record.arrays.get(location)) for record in records]
    widths = {len(row) for row in rows if row is not None}
    arrays = sum(location in record.arrays for record in records)
    if len(widths) != 1 or not 2 <= min(widths) <= MAX_CLASSES:
        return None
    return Vector(location, (), rows) if sum(row is not None for row in rows) == arrays else None


def _of_object(location: str, records: Sequence[FlatRecord]) -> Vector | None:
    objects: list[Mapping[str, float] | None] = [record.numbers.get(location) for record in records]
    names = sorted({name for content in objects if content is not None for name in content})
    if not 2 <= len(names) <= MAX_CLASSES:
        return None
    rows = [None if each is None else [float(each.get(name, ABSENT)) for name in names] for each in objects]
    return Vector(location, tuple(names), rows)


def _numbers(content: Sequence[Any] | None) -> Sequence[float] | None:
    """Return an array as numbers; None if it has other elements."""
    if content is None or not all(map(_is_number, content)):
        return None
    return [float(each) for each in content]
