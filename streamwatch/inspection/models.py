"""Models: fields that name the model of a prediction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from streamwatch.edge.decoders.fields import joined_text
from streamwatch.inspection.columns import Column
from streamwatch.inspection.streams import Stream
from streamwatch.inspection.words import MODEL, weight, words

MAX_MODELS: Final = 100
ENOUGH: Final = 0.35
FILLED: Final = 0.98
NAMES: Final = frozenset({"id", "name", "model"})
"""Last steps of a path that are a model's name if an outer step contains the word model."""
VERSION: Final = frozenset({"version", "ver", "revision", "rev", "release", "build"})
"""Words of a field with a model's version, not its name."""
DEPLOYMENT: Final = VERSION | {
    *("deployment", "variant", "stage", "alias", "tag", "arm", "endpoint"),
    *("sha", "commit", "digest", "hash", "v"),
}
"""Words of a field that may distinguish models of one name."""
FEWEST: Final = 3
"""Least number of repeated ids with which it is examined whether a field separates them."""


@dataclass(frozen=True, slots=True)
class ModelLocation:
    """A field that may name the model."""

    location: str
    models: tuple[str, ...]
    """Distinct texts of the field."""
    rank: float
    """Score by which candidates are ordered."""
    separates: bool
    """Whether ids repeat, and each id occurs once for each text."""


def model_locations(stream: Stream, id_location: str, without: Collection[str] = ()) -> list[ModelLocation]:
    """Find fields that may name the model, except at the locations `without`, the likeliest first."""
    ids = stream.id_columns[id_location]
    repeats = ids.uniqueness < REPEATING
    found: list[ModelLocation] = []
    for column in stream.columns.values():
        if column.location in without or column.filled < FILLED or len(column.counts) > MAX_MODELS:
            continue
        if column.is_continuous or column.is_boolean or 2 * len(column.counts) > len(column.raw) + 1:
            continue
        rank = _rank(column)
        separates = repeats and len(column.counts) > 1 and _separates(ids, column.texts)
        if separates and (rank > 0 or not column.numbers):
            rank += SEPARATES
        if rank >= ENOUGH:
            found.append(ModelLocation(column.location, tuple(sorted(column.counts)), rank, separates))
    return sorted(found, key=lambda location: -location.rank)


@dataclass(frozen=True, slots=True)
class ModelName:
    """Field that names the model, alone or with a version."""

    locations: tuple[str, ...]
    """Location of the name, and of the version if it is part of the name."""
    models: tuple[str, ...]
    """Distinct names."""
    rank: float
    second: ModelLocation | None = None
    """Next best location."""
    version: str = ""
    """Location of a version that is not part of the name, but differs for models of one name."""


def model_name(stream: Stream, id_location: str, without: Collection[str] = ()) -> ModelName | None:
    """Find the field that names the model, with its version if the name alone does not separate ids.

    None if no field may.
    """
    found = model_locations(stream, id_location, without)
    if not found:
        return None
    ids = stream.id_columns[id_location]
    named = [each for each in found if not VERSION & set(words(stream.columns[each.location].leaf))]
    if named and not named[0].separates:
        name = named[0]
        for column in _versions(stream, {*without, id_location, name.location}):
            texts = joined_texts(stream.columns[name.location], column)
            models = tuple(sorted({text for text in texts if text is not None}))
            if len(models) <= MAX_MODELS and _separates(ids, texts):
                return ModelName((name.location, column.location), models, name.rank + SEPARATES)
    best, *others = found
    differing = _differing(stream, best, without)
    return ModelName((best.location,), best.models, best.rank, others[0] if others else None, differing)


def joined_names(stream: Stream, id_location: str, models: Collection[str]) -> tuple[str, ...]:
    """Find two locations whose joined texts are all among these models; empty without any."""
    for name in model_locations(stream, id_location):
        for column in _versions(stream, {id_location, name.location}):
            if {text for text in joined_texts(stream.columns[name.location], column) if text} <= set(models):
                return name.location, column.location
    return ()


def are_separated(stream: Stream, id_location: str, locations: Sequence[str]) -> bool:
    """Return whether each id of a stream occurs once for each name at these locations."""
    name, *version = (stream.columns[location] for location in locations)
    texts = joined_texts(name, version[0]) if version else name.texts
    return _separates(stream.id_columns[id_location], texts)


def joined_texts(name: Column, version: Column) -> list[str | None]:
    """Join the texts of two columns, as a mapping with both locations does; None for missing ones."""
    joined = (joined_text(both, (False, False)) for both in zip(name.raw, version.raw, strict=True))
    return [text if isinstance(text, str) else None for text in joined]


def _versions(stream: Stream, without: Collection[str]) -> list[Column]:
    """Return fields that may distinguish models of one name, those named version first."""
    found = [
        column
        for column in stream.columns.values()
        if column.location not in without
        and column.filled >= FILLED
        and len(column.counts) <= MAX_MODELS
        and not column.is_boolean
        and DEPLOYMENT & set(words(column.leaf))
        and not OTHERS & set(words(column.leaf))
    ]
    return sorted(found, key=lambda column: -weight(column.location, NEAR, outer=0.5))


NEAR: Final = {"version": 0.5, "model": 0.4, "revision": 0.3, "deployment": 0.2}
"""Weights of words by which these fields are ordered."""
OTHERS: Final = frozenset(
    {"schema", "api", "protocol", "framework", "runtime", "app", "client", "sdk", "spec", "specversion"}
)
"""Words of other things that have versions."""
SEPARATES: Final = 0.5


def _differing(stream: Stream, name: ModelLocation, without: Collection[str]) -> str:
    """Find the location of a version that differs among records of one name; empty without any."""
    if VERSION & set(words(stream.columns[name.location].leaf)):
        return ""
    texts = stream.columns[name.location].texts
    for column in _versions(stream, {*without, name.location}):
        if len(set(zip(texts, column.texts, strict=True))) > len(name.models):
            return column.location
    return ""


REPEATING: Final = 0.9


def _rank(column: Column) -> float:
    rank = weight(column.location, MODEL, outer=0.7)
    if words(column.leaf)[-1:] and words(column.leaf)[-1] in NAMES and rank > 0:
        rank += 0.2
    return rank


def _separates(ids: Column, texts: Sequence[str | None]) -> bool:
    """Return whether ids repeat, and nearly each occurs once for each text."""
    seen: defaultdict[str, list[str]] = defaultdict(list)
    for id_, text in zip(ids.texts, texts, strict=True):
        if id_ is not None and text is not None:
            seen[id_].append(text)
    several = [found for found in seen.values() if len(found) > 1]
    alone = sum(len(set(found)) == len(found) for found in several)
    return len(several) >= FEWEST and alone > FILLED * len(several)
