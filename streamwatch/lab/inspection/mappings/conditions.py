"""Which records of a topic are meant: a field that tells those with a class from all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from streamwatch.lab.inspection.columns import Column
from streamwatch.lab.inspection.streams import KIND_FILLED, MAX_KINDS, Stream
from streamwatch.lab.inspection.words import words

SURE: Final = 0.98
"""Share of the records with one text that have the class, or have none, from which the text tells."""
FEWEST: Final = 3
"""Records with a text below which it tells nothing."""
TELLING: Final = frozenset({"type", "kind", "event", "action", "operation"})
"""Words of a field that says what a record is; a status tells what became of it, and changes."""


def condition(stream: Stream, place: str) -> Mapping[str, tuple[str, ...]]:
    """Find the place, and the texts there, of all records with a content at `place` and of no others.

    Empty where no field tells, and of elements of arrays, which a condition on the record does not see.
    """
    if not stream.records or stream.records[0].element is not None:
        return {}
    present = _present(stream, place)
    found = [
        (column, texts)
        for column in stream.columns.values()
        if TELLING & set(words(column.leaf))
        and column.place != place
        and "[" not in column.place
        and (texts := _texts(column, present))
    ]
    if not found:
        return {}
    column, texts = min(found, key=lambda each: len(each[0].counts))
    return {column.place: texts}


def _present(stream: Stream, place: str) -> list[bool]:
    if place in stream.columns:
        return [text is not None for text in stream.columns[place].texts]
    return [row is not None for row in stream.vectors[place].rows]


def _texts(column: Column, present: list[bool]) -> tuple[str, ...]:
    """Texts of a column whose records have the class, if all others have none; else empty."""
    if column.filled < KIND_FILLED or not 2 <= len(column.counts) <= MAX_KINDS or column.is_continuous:
        return ()
    having = Counter(
        text for text, has in zip(column.texts, present, strict=True) if has and text is not None
    )
    meant: list[str] = []
    for text, count in column.counts.items():
        share = having[text] / count
        if count < FEWEST or 1 - SURE < share < SURE:
            return ()
        if share >= SURE:
            meant.append(text)
    return tuple(sorted(meant)) if 0 < len(meant) < len(column.counts) else ()
