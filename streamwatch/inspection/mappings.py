"""Mappings of several models that predict in the same records, such as a champion and its challenger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamwatch.inspection.classes import ClassPair
from streamwatch.inspection.columns import Column
from streamwatch.inspection.guessed import Choice, TopicGuess
from streamwatch.inspection.ids import INFORMATIVE, Pairing
from streamwatch.inspection.models import ENOUGH, MAX_MODELS
from streamwatch.inspection.streams import KIND_FILLED, MAX_KINDS, Stream
from streamwatch.inspection.words import MODEL, weight, words

SURE: Final = 0.98
"""Share of the records with a text that must have a class, or must have none, for it to be a condition."""
FEWEST: Final = 3
"""Least number of records with a text for it to be a condition."""
CONDITION_WORDS: Final = frozenset({"type", "kind", "event", "action", "operation"})
"""Words in the name of a field with the kind of a record; not `status`, as that of a record changes."""


def condition(stream: Stream, location: str) -> Mapping[str, tuple[str, ...]]:
    """Find a condition (`when`): a location whose texts distinguish records with a content at `location`.

    Empty if there is none, and for elements of arrays, to which conditions do not apply.
    """
    if not stream.records or stream.records[0].element is not None:
        return {}
    present = _present(stream, location)
    found = [
        (column, texts)
        for column in stream.columns.values()
        if CONDITION_WORDS & set(words(column.leaf))
        and column.location != location
        and "[" not in column.location
        and (texts := _texts(column, present))
    ]
    if not found:
        return {}
    column, texts = min(found, key=lambda each: len(each[0].counts))
    return {column.location: texts}


def _present(stream: Stream, location: str) -> list[bool]:
    if location in stream.columns:
        return [text is not None for text in stream.columns[location].texts]
    return [row is not None for row in stream.vectors[location].rows]


def _texts(column: Column, present: list[bool]) -> tuple[str, ...]:
    """Return the texts of a column whose records have the class, if records with others have none."""
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


# fmt: off
ROLES: Final = frozenset({
    "champion", "challenger", "shadow", "candidate", "control", "treatment", "primary", "secondary",
    "baseline", "incumbent", "production", "prod", "live", "current", "new", "old", "canary", "next",
    "main", "backup", "stable", "experimental", "legacy",
})
# fmt: on
"""Words that distinguish models in one record."""
IN_COMMON: Final = 0.9
"""Share of the classes of the field with fewer classes that the other field must also have."""
ALWAYS: Final = 0.98
"""Share of records (or fields of objects) with a content from which on those without count as mistakes."""
_NUMBERED: Final = re.compile(r"\d+|[a-z]")


@dataclass(frozen=True, slots=True)
class _Parallel:
    """Two locations that differ in one step."""

    steps: tuple[str, str]
    """The differing steps."""
    prefixes: tuple[str, str]
    """The locations up to and including the differing step."""
    inner: bool
    """Whether the step is an object around the class, not the field of the class."""


def with_challengers(guess: TopicGuess, pairing: Pairing) -> TopicGuess:
    """Add mappings for further models that predict in the same records, in the order of their fields.

    Returns the guess unchanged without any.
    """
    best, *others = pairing.classes or (None,)
    if best is None or guess.score is not None or guess.largest is not None or guess.prediction is None:
        return guess
    stream = pairing.predictions
    if (
        stream.fields
        or stream.kind is not None
        or not stream.records
        or stream.records[0].element is not None
    ):
        return guess
    found = [(pair, way) for pair in others if (way := _way(stream, best, pair)) is not None]
    if not found:
        return guess
    order = list(stream.columns)
    models = [(best, found[0][1], 0), *((pair, way, 1) for pair, way in found)]
    models.sort(key=lambda each: order.index(each[0].prediction))
    first, *further = [_mapping(guess, stream, *each) for each in models]
    return replace(first, others=tuple(further))


def _mapping(guess: TopicGuess, stream: Stream, pair: ClassPair, way: _Parallel, side: int) -> TopicGuess:
    """Make the mapping of one of the models from that of the likeliest one."""
    why = f"beside {way.steps[1 - side]}; equal to the label in {pair.agreement:.0%} of joined records"
    is_optional = stream.filled(pair.prediction) < ALWAYS
    when = condition(stream, pair.prediction) if is_optional else {}
    return replace(
        guess,
        model=_model(stream, way, side),
        prediction=Choice(pair.prediction, why),
        scores=None,
        when=when,
        optional=is_optional and not when,
    )


def _way(stream: Stream, best: ClassPair, pair: ClassPair) -> _Parallel | None:
    """Return how the field of another model differs from the best one; None if it is not another model's."""
    if (
        pair.label != best.label
        or pair.largest is not None
        or pair.unmatched
        or pair.association <= INFORMATIVE
    ):
        return None
    if dict(pair.aliases) != dict(best.aliases):
        return None
    one, other = (set(stream.columns[each.prediction].counts) for each in (best, pair))
    if len(one & other) < IN_COMMON * min(len(one), len(other)):
        return None
    way = _parallel(best.prediction, pair.prediction)
    if way is None or not (_are_roles(*way.steps) or (way.inner and _are_named(stream, way))):
        return None
    return way


def _parallel(one: str, other: str) -> _Parallel | None:
    left, right = one.split("."), other.split(".")
    apart = [i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b]
    if len(left) != len(right) or len(apart) != 1:
        return None
    at = apart[0]
    prefixes = ".".join(left[: at + 1]), ".".join(right[: at + 1])
    return _Parallel((left[at], right[at]), prefixes, at < len(left) - 1)


def _are_roles(one: str, other: str) -> bool:
    """Return whether two names, without their common words, are roles or numbers of models."""
    left, right = words(one), words(other)
    own = [word for word in left if word not in right], [word for word in right if word not in left]
    return all(side and all(word in ROLES or _NUMBERED.fullmatch(word) for word in side) for side in own)


def _are_named(stream: Stream, way: _Parallel) -> bool:
    return all(_name_column(stream, prefix) is not None for prefix in way.prefixes)


def _name_column(stream: Stream, prefix: str) -> Column | None:
    """Find the field beside the class that names its model; None without one."""
    found: Sequence[Column] = [
        column
        for column in stream.columns.values()
        if column.location.startswith(f"{prefix}.")
        and weight(column.location.removeprefix(f"{prefix}."), MODEL) >= ENOUGH
        and len(column.counts) <= MAX_MODELS
        and not column.is_continuous
        and not column.is_boolean
    ]
    return max(found, key=lambda column: weight(column.leaf, MODEL), default=None)


def _model(stream: Stream, way: _Parallel, side: int) -> Choice:
    """Choose the location of the model's name beside its class, else a constant of the differing words."""
    column = _name_column(stream, way.prefixes[side]) if way.inner else None
    if column is not None:
        return Choice(column.location, f"models: {', '.join(sorted(column.counts)[:4])}")
    step, other = way.steps[side], words(way.steps[1 - side])
    roles = [word for word in words(step) if word not in other]
    name = step if way.inner or not all(word in ROLES for word in roles) else "-".join(roles)
    return Choice(f"={re.sub(r'[^A-Za-z0-9._-]+', '-', name)}", "no field names it: one name for all", 0.5)
