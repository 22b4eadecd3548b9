"""What stands at one place in all records of a stream, and what it looks like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.lab.inspection.flatten import FlatRecord, Scalar

FRACTIONAL: Final = 0.05
"""Share of numbers with a fraction from which a column is continuous."""


_NUMBER: Final = re.compile(r"-?\d{1,18}(\.\d{1,25})?([eE][+-]?\d{1,2})?", re.ASCII)


def _number(raw: Scalar | None) -> float | None:
    if isinstance(raw, str):
        return float(raw) if _NUMBER.fullmatch(raw) else None
    if raw is None or isinstance(raw, bool) or abs(raw) > LARGEST:
        return None
    return float(raw)


LARGEST: Final = 1e30


@dataclass
class Column:
    """One place in the records of a stream; `raw` and `texts` have an entry per record, None where absent."""

    place: str
    raw: Sequence[Scalar | None]

    @cached_property
    def texts(self) -> Sequence[str | None]:
        """Contents as the decoder would write them."""
        return [None if raw is None else canonical_text(raw) for raw in self.raw]

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of times that each text stands there."""
        return Counter(text for text in self.texts if text is not None)

    @cached_property
    def filled(self) -> float:
        """Share of the records that have it."""
        return self.counts.total() / len(self.raw) if self.raw else 0.0

    @cached_property
    def uniqueness(self) -> float:
        """Distinct contents over contents; 1 where none repeats."""
        return len(self.counts) / self.counts.total() if self.counts else 0.0

    @cached_property
    def numbers(self) -> Sequence[float]:
        """Contents that are numbers, or text that is one (cells of CSV are text); booleans are none."""
        return [number for raw in self.raw if (number := _number(raw)) is not None]

    @cached_property
    def is_continuous(self) -> bool:
        """Tell whether it holds numbers with fractions: a measurement or a score, no class and no id."""
        numbers = self.numbers
        broken = sum(not number.is_integer() for number in numbers)
        return bool(numbers) and broken > FRACTIONAL * len(numbers) and 2 * len(numbers) > self.counts.total()

    @cached_property
    def is_score(self) -> bool:
        """Tell whether it holds continuous numbers from 0 to 1."""
        return self.is_continuous and all(0 <= number <= 1 for number in self.numbers)

    @cached_property
    def is_boolean(self) -> bool:
        """Tell whether it holds nothing but true and false."""
        return bool(self.counts) and all(isinstance(raw, bool) for raw in self.raw if raw is not None)

    @property
    def leaf(self) -> str:
        """Last step of the place: the field's own name."""
        return self.place.removeprefix("header:").rpartition(".")[2]


@dataclass
class Stream:
    """Records of one topic, or of one kind in it, as columns.

    `kind` is the place that tells kinds apart and what stands there; None where the topic has one kind.
    """

    topic: str
    records: Sequence[FlatRecord]
    kind: tuple[str, str] | None = None
    columns: Mapping[str, Column] = field(init=False)

    def __post_init__(self) -> None:
        """Lay the records out by place."""
        places = dict.fromkeys(place for record in self.records for place in record.scalars)
        self.columns = {
            place: Column(place, [record.scalars.get(place) for record in self.records]) for place in places
        }

    @property
    def name(self) -> str:
        """Topic, and what stands at the place of its kind."""
        return self.topic if self.kind is None else f"{self.topic} ({self.kind[0]} = {self.kind[1]})"


def streams_of(topic: str, records: Sequence[FlatRecord]) -> Sequence[Stream]:
    """Whole topic first, then the kinds of records it may hold, by each place that could tell them apart."""
    readable = [record for record in records if not record.fault]
    whole = Stream(topic, readable)
    found = [whole]
    for column in whole.columns.values():
        if column.filled < KIND_FILLED or not 2 <= len(column.counts) <= MAX_KINDS or column.is_continuous:
            continue
        groups = {
            text: [r for r, t in zip(readable, column.texts, strict=True) if t == text]
            for text in column.counts
        }
        shapes = {text: _shape(group) for text, group in groups.items()}
        if len(set(shapes.values())) > 1:
            found += [Stream(topic, group, (column.place, text)) for text, group in groups.items()]
    return found


KIND_FILLED: Final = 0.98
MAX_KINDS: Final = 8
USUAL: Final = 0.5


def _shape(group: Sequence[FlatRecord]) -> frozenset[str]:
    """Places that most records of a group have."""
    counts = Counter(place for record in group for place in record.scalars)
    return frozenset(place for place, count in counts.items() if count > USUAL * len(group))
