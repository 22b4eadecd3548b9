"""What stands at one place in all records of a stream, and what it looks like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.lab.inspection.flatten import Scalar

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
