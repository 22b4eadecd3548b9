"""Which field names the model of a prediction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from streamwatch.lab.inspection.columns import Column
from streamwatch.lab.inspection.streams import Stream
from streamwatch.lab.inspection.words import MODEL, weight, words

MAX_MODELS: Final = 100
ENOUGH: Final = 0.35
FILLED: Final = 0.98
NAMES: Final = frozenset({"id", "name", "model"})
"""Last steps that are the model's name where an object above is called model."""


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """A field that may name the model; `separates` tells that it keeps equal ids apart."""

    place: str
    models: tuple[str, ...]
    rank: float
    separates: bool


def model_places(stream: Stream, id_place: str, without: Collection[str] = ()) -> list[ModelPlace]:
    """Candidates by rank, the likeliest first."""
    ids = stream.id_columns[id_place]
    repeats = ids.uniqueness < REPEATING
    found: list[ModelPlace] = []
    for column in stream.columns.values():
        if column.place in without or column.filled < FILLED or len(column.counts) > MAX_MODELS:
            continue
        if column.is_continuous or column.is_boolean or 2 * len(column.counts) > len(column.raw) + 1:
            continue
        rank = _rank(column)
        separates = repeats and len(column.counts) > 1 and _separates(ids, column)
        if separates and (rank > 0 or not column.numbers):
            rank += 0.5
        if rank >= ENOUGH:
            found.append(ModelPlace(column.place, tuple(sorted(column.counts)), rank, separates))
    return sorted(found, key=lambda place: -place.rank)


REPEATING: Final = 0.9


def _rank(column: Column) -> float:
    rank = weight(column.place, MODEL, outer=0.7)
    if words(column.leaf)[-1:] and words(column.leaf)[-1] in NAMES and rank > 0:
        rank += 0.2
    return rank


def _separates(ids: Column, column: Column) -> bool:
    """Tell whether each id stands there once for each content of the column."""
    seen: defaultdict[str, list[str]] = defaultdict(list)
    for id_, text in zip(ids.texts, column.texts, strict=True):
        if id_ is not None and text is not None:
            seen[id_].append(text)
    several = [texts for texts in seen.values() if len(texts) > 1]
    return bool(several) and sum(len(set(texts)) == len(texts) for texts in several) > FILLED * len(several)
