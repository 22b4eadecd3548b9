"""Ids: pairs of fields of two streams with shared contents, and the pairing of predictions with labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import mean
from typing import Final

from streamwatch.edge.decoders.mapping import Affixes
from streamwatch.inspection.classes import (
    INFORMATIVE,
    MIN_PAIRS,
    ClassPair,
    ScorePair,
    class_pairs,
    score_pair,
    scores,
)
from streamwatch.inspection.columns import Column
from streamwatch.inspection.models import model_locations
from streamwatch.inspection.streams import EACH, Stream, unit_of
from streamwatch.inspection.words import ID, LABEL, LABEL_TOPIC, PREDICTION, PREDICTION_TOPIC, weight, words

MIN_DISTINCT: Final = 8
MIN_SHARED: Final = 3
MAX_PAIRS: Final = 20_000
LOOKED_AT: Final = 8
"""Number of best pairs whose joined records are examined."""
NOISE: Final = 0.01
"""Share of contents in common, of the smaller side, below which it counts as chance."""


@dataclass(frozen=True, slots=True)
class IdPair:
    """A field of predictions and one of labels with contents in common."""

    left: str
    """Location in predictions."""
    right: str
    """Location in labels."""
    shared: int
    """Number of distinct contents in common."""
    cover: float
    """Shared contents as a share of the distinct contents of the side with fewer."""
    fan_out: float
    """Mean number of records that a joined record would match; 1 if no content repeats on both sides."""
    rank: float
    """Score by which candidates are ordered."""


def id_columns(stream: Stream) -> list[Column]:
    """Return the columns that could be ids: neither measurements nor times, with enough distinct contents."""
    record_ms = [record.record_ms for record in stream.records]
    found: list[Column] = []
    for column in stream.id_columns.values():
        if column.is_continuous or column.is_boolean or len(column.counts) < MIN_DISTINCT:
            continue
        unit = unit_of(column, record_ms)
        if unit == "iso8601" or (unit is not None and weight(column.location, ID) <= 0):
            continue
        found.append(column)
    return found


def id_pairs(left: Stream, right: Stream) -> list[IdPair]:
    """Find pairs of fields with contents in common, the likeliest first."""
    found: list[IdPair] = []
    rights = id_columns(right)
    for a in id_columns(left):
        for b in rights:
            pair = _pair(a, b)
            if pair is not None:
                found.append(pair)
    found.sort(key=lambda pair: -pair.rank)
    best = found[:LOOKED_AT]
    return sorted((_corroborated(pair, best, left, right) for pair in best), key=lambda pair: -pair.rank)


def _pair(a: Column, b: Column) -> IdPair | None:
    common = a.counts.keys() & b.counts.keys()
    smaller = min(len(a.counts), len(b.counts))
    cover = len(common) / smaller
    if len(common) < MIN_SHARED or cover < NOISE:
        return None
    pairs = sum(a.counts[text] * b.counts[text] for text in common)
    fan_out = pairs / sum(max(a.counts[text], b.counts[text]) for text in common)
    names = (
        weight(a.location, ID)
        + weight(b.location, ID)
        + (0.3 if a.leaf.casefold() == b.leaf.casefold() else 0.0)
    )
    rank = (
        (a.uniqueness * b.uniqueness) ** 0.5 / fan_out
        + 0.5 * cover**0.5
        + 0.2 * names
        + (0.1 if "[" not in (a.location + b.location).replace(EACH, "") else 0.0)
        - DEPTH * (a.location.count(".") + b.location.count("."))
    )
    return IdPair(a.location, b.location, len(common), cover, fan_out, rank)


DEPTH: Final = 0.02
"""Deduction from the rank for each step of a location, so that the outer of two equal fields is chosen."""


def _corroborated(pair: IdPair, others: Sequence[IdPair], left: Stream, right: Stream) -> IdPair:
    """Raise or lower the rank of a pair by how far other shared fields agree in the records it joins.

    Records joined by the id of a request agree on the user; those joined by the user differ in the request.
    """
    joined = joined_rows(left, right, pair)
    agreed: list[float] = []
    for other in others:
        if other.left == pair.left or other.right == pair.right or other.cover < SHARED_MUCH:
            continue
        a, b = left.id_columns[other.left].texts, right.id_columns[other.right].texts
        both = [(a[i], b[j]) for i, j in joined if a[i] is not None and b[j] is not None]
        if both:
            agreed.append(sum(x == y for x, y in both) / len(both))
    return replace(pair, rank=pair.rank + CORROBORATION * (max(agreed) - 0.5)) if agreed else pair


SHARED_MUCH: Final = 0.3
CORROBORATION: Final = 0.6


def joined_rows(left: Stream, right: Stream, pair: IdPair) -> list[tuple[int, int]]:
    """Return (left row, right row) of records with equal ids, by right row; about `MAX_PAIRS` at most."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(left.id_columns[pair.left].texts):
        if text is not None:
            rows[text].append(i)
    joined: list[tuple[int, int]] = []
    for j, text in enumerate(right.id_columns[pair.right].texts):
        if text is not None and text in rows:
            joined += [(i, j) for i in rows[text]]
            if len(joined) >= MAX_PAIRS:
                break
    return joined


NOTHING: Final = Affixes()


@dataclass(frozen=True, slots=True)
class Affix:
    """Reason why the ids of two fields do not match, such as a prefix on one side."""

    left: str
    right: str
    note: str
    """Reason in words."""
    shared: int
    """Number of ids that would match otherwise."""
    of_left: Affixes = NOTHING
    """Prefix and suffix to remove from ids on the left, so that they match; empty if that does not help."""
    of_right: Affixes = NOTHING
    """The same on the right."""


def with_affixes(streams: Mapping[str, Sequence[Stream]]) -> Mapping[str, Sequence[Stream]] | None:
    """Remove a prefix or suffix from the ids of two topics so that they match; None if that does not help."""
    wholes = [of_topic[0] for of_topic in streams.values() if of_topic]
    found = [
        (affix, left, right)
        for left, right in combinations(wholes, 2)
        for affix in affixes(left, right)
        if any(affix.of_left + affix.of_right)
    ]
    if not found:
        return None
    affix, left, right = max(found, key=lambda each: each[0].shared)
    changed = {left.topic: {affix.left: affix.of_left}, right.topic: {affix.right: affix.of_right}}
    return {
        topic: [
            replace(stream, affixes={k: v for k, v in changed.get(topic, {}).items() if any(v)})
            for stream in of_topic
        ]
        for topic, of_topic in streams.items()
    }


def with_composites(left: Stream, right: Stream) -> tuple[Stream, Stream] | None:
    """Find two or three fields that together are the id on both sides; None without any.

    A field of one side corresponds to one of the other if they have contents in common.
    """
    pairs = _shared_columns(left, right)
    for size in (2, 3):
        for chosen in combinations(pairs, size):
            lefts, rights = tuple(a for a, _ in chosen), tuple(b for _, b in chosen)
            if len(set(lefts)) < size or len(set(rights)) < size:
                continue
            streams = tuple(
                replace(stream, composites={" and ".join(locations): locations})
                for stream, locations in ((left, lefts), (right, rights))
            )
            a, b = (next(iter(stream.composites)) for stream in streams)
            pair = _pair(streams[0].id_columns[a], streams[1].id_columns[b])
            if pair is not None and pair.fan_out < TOGETHER and pair.cover > SHARED_MUCH:
                return streams[0], streams[1]
    return None


TOGETHER: Final = 1.1
"""Largest `fan_out` of an id of several fields."""
MAX_COLUMNS: Final = 8
"""Number of best pairs of fields that are tried."""


def _shared_columns(left: Stream, right: Stream) -> list[tuple[str, str]]:
    """Return pairs of locations that could be parts of an id, those with the most shared contents first."""
    found: list[tuple[float, str, str]] = []
    for a in _parts(left):
        for b in _parts(right):
            common = len(a.counts.keys() & b.counts.keys())
            alike = a.leaf.casefold() == b.leaf.casefold()
            if common > PART_IN_COMMON * min(len(a.counts), len(b.counts)) and (
                alike or common >= MIN_DISTINCT
            ):
                found.append((common * (1.0 + alike), a.location, b.location))
    return [(a, b) for _, a, b in sorted(found, reverse=True)[:MAX_COLUMNS]]


PART_IN_COMMON: Final = 0.5


def _parts(stream: Stream) -> list[Column]:
    return [
        column
        for column in stream.columns.values()
        if column.filled > PART_FILLED
        and len(column.counts) > 1
        and not column.is_continuous
        and not column.is_boolean
        and EACH not in column.location
    ]


PART_FILLED: Final = 0.98


def affixes(left: Stream, right: Stream) -> list[Affix]:
    """Find fields whose contents would match but for a prefix, a suffix, case, dashes, zeros or spaces."""
    found: list[Affix] = []
    rights = id_columns(right)
    for a in id_columns(left):
        for b in rights:
            affix = affix_of(a, b)
            if affix is not None:
                found.append(affix)
    return sorted(found, key=lambda affix: -affix.shared)


def affix_of(a: Column, b: Column) -> Affix | None:
    """Find the reason why ids of two columns do not match; None if none is known, or a column is empty."""
    if not a.counts or not b.counts:
        return None
    least = max(MIN_SHARED, 0.2 * min(len(a.counts), len(b.counts)))
    for note, forms in _FORMS:
        left, right = ({forms(text) for text in column.counts} for column in (a, b))
        if len(left & right) >= least and min(len(left), len(right)) >= MIN_DISTINCT:
            return Affix(a.location, b.location, note, len(left & right))
    cut_a, cut_b = _trimmed(a.counts), _trimmed(b.counts)
    for core_a in (cut_a, ("", "", frozenset(a.counts))):
        for core_b in (cut_b, ("", "", frozenset(b.counts))):
            shared = len(core_a[2] & core_b[2])
            if shared >= least and core_a[:2] != core_b[:2]:
                return Affix(
                    a.location,
                    b.location,
                    _describe(a.location, core_a, b.location, core_b),
                    shared,
                    Affixes(*core_a[:2]),
                    Affixes(*core_b[:2]),
                )
    for one, other, swapped in ((a, b, False), (b, a, True)):
        for sign in ("|", ":", "/", "-", "_", "#", "."):
            parts = Counter(part for text in one.counts for part in text.split(sign) if sign in text)
            shared = len(parts.keys() & other.counts.keys())
            if shared >= least:
                note = (
                    f"ids at {one.location} have several parts with {sign!r}, "
                    f"one of which is the id at {other.location}"
                )
                locations = (b.location, a.location) if swapped else (a.location, b.location)
                return Affix(locations[swapped], locations[not swapped], note, shared)
    return None


def _trimmed(counts: Counter[str]) -> tuple[str, str, frozenset[str]]:
    """Return the common prefix and suffix of all contents, and the contents without them."""
    texts = list(counts)
    prefix = _common_start(texts)
    # Common digits belong to numbers that happen to begin alike.
    prefix = prefix.rstrip("0123456789")
    rest = [text.removeprefix(prefix) for text in texts]
    suffix = _common_start([text[::-1] for text in rest])[::-1].lstrip("0123456789")
    return prefix, suffix, frozenset(text.removesuffix(suffix) for text in rest)


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    length = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]


def _describe(
    a: str, left: tuple[str, str, frozenset[str]], b: str, right: tuple[str, str, frozenset[str]]
) -> str:
    note: list[str] = []
    for location, (prefix, suffix, _), other in ((a, left, b), (b, right, a)):
        if prefix:
            note.append(f"ids at {location} start with {prefix!r}, those at {other} do not")
        if suffix:
            note.append(f"ids at {location} end with {suffix!r}, those at {other} do not")
    return "; ".join(note)


def _without_dashes(text: str) -> str:
    return text.replace("-", "").casefold()


def _without_zeros(text: str) -> str:
    return text.lstrip("0")


_FORMS: Final = (
    ("ids differ in spaces at their ends", str.strip),
    ("ids differ in upper and lower case", str.casefold),
    ("ids differ in leading zeros", _without_zeros),
    ("ids differ in dashes and case", _without_dashes),
)


IDS_TRIED: Final = 3
NAMED: Final = 0.3
"""Weight of names from which a field counts as named like a prediction or a label."""
ONE_OF_SEVERAL: Final = 0.3
"""Deduction from the rank for a class in only one of several elements of an array."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """A stream of predictions and one of labels with matching ids: candidates, the likeliest first."""

    predictions: Stream
    labels: Stream
    ids: Sequence[IdPair]
    classes: Sequence[ClassPair]
    rank: float
    scored: ScorePair | None = None

    @property
    def is_usable(self) -> bool:
        """Return whether there are classes, or a score to make classes of."""
        return self.is_sound or self.scored is not None

    @property
    def is_sound(self) -> bool:
        """Return whether the best pair of class fields is convincing by its contents or by its names."""
        if not self.classes:
            return False
        best = self.classes[0]
        named = weight(best.prediction, PREDICTION) > NAMED and weight(best.label, LABEL) > NAMED
        return best.association > INFORMATIVE or named


def paired(left: Stream, right: Stream) -> Pairing | None:
    """Pair a stream of predictions (left) with one of labels (right); None if no ids match."""
    ids = id_pairs(left, right)
    best: Pairing | None = None
    for at, pair in enumerate(ids[:IDS_TRIED]):
        joined = joined_rows(left, right, pair)
        locations = [pair.left, pair.right, *([left.kind[0]] if left.kind else [])]
        classes = class_pairs(left, right, joined, locations)
        rank = (
            1.5 * pair.rank + (classes[0].rank if classes else -1.0) + _direction(left, right, pair, joined)
        )
        if classes and max(left.longest(classes[0].prediction), right.longest(classes[0].label)) > 1:
            rank -= ONE_OF_SEVERAL
        if best is None or rank > best.rank:
            ordered = [pair, *ids[:at], *ids[at + 1 :]]
            best = Pairing(left, right, ordered, classes, rank, score_pair(left, right, joined, locations))
    return best


def best_pairing(streams: Mapping[str, Sequence[Stream]]) -> Pairing | None:
    """Find the best pairing of two topics, or of two kinds of one topic; None if no ids match."""
    found: list[Pairing] = []
    for topic, of_topic in streams.items():
        for left in of_topic:
            found += _with(left, [right for right in of_topic if _are_kinds(left, right)])
        others = [view for name, other in streams.items() if name != topic for view in views(other)]
        for left in views(of_topic):
            found += _with(left, others)
    return max(found, key=lambda pairing: pairing.rank, default=None)


def views(of_topic: Sequence[Stream]) -> Sequence[Stream]:
    """Return the streams that have all records of a topic: whole, and by elements of arrays."""
    return [stream for stream in of_topic if stream.kind is None]


def _with(left: Stream, rights: Sequence[Stream]) -> list[Pairing]:
    return [pairing for right in rights if (pairing := paired(left, right)) is not None]


def _are_kinds(left: Stream, right: Stream) -> bool:
    return (
        left is not right
        and left.kind is not None
        and right.kind is not None
        and left.kind[0] == right.kind[0]
    )


def _direction(left: Stream, right: Stream, pair: IdPair, joined: Sequence[tuple[int, int]]) -> float:
    """Score how well left fits predictions and right fits labels, by times, names, models and scores."""
    stamps = [(left.records[i].record_ms, right.records[j].record_ms) for i, j in joined]
    later = [1.0 if b > a else 0.0 for a, b in stamps if a > 0 and b > 0 and a != b]
    rank = 1.5 * (mean(later) - 0.5) if later else 0.0
    for stream, sign in ((left, 1), (right, -1)):
        named = set(words(stream.topic if stream.kind is None else stream.kind[1]))
        rank += sign * 0.4 * (bool(named & PREDICTION_TOPIC) - bool(named & LABEL_TOPIC))
        location = pair.left if stream is left else pair.right
        rank += sign * 0.4 * bool(model_locations(stream, location))
        rank += sign * 0.3 * bool(scores(stream))
    return rank


SURE: Final = 0.3
"""Least weight of the names of both class fields, as equal contents of one record prove little."""


def within(stream: Stream) -> Pairing | None:
    """Pair a stream with itself, if its records have both predictions and labels by names; else None."""
    ids = [
        IdPair(c.location, c.location, len(c.counts), 1.0, 1.0, c.uniqueness + 0.5 * weight(c.location, ID))
        for c in id_columns(stream)
    ]
    ids.sort(key=lambda pair: -pair.rank)
    joined = [(row, row) for row in range(len(stream.records))]
    if not ids or len(joined) < MIN_PAIRS:
        return None
    location = ids[0].left
    classes = [
        pair
        for pair in class_pairs(stream, stream, joined, [location])
        if pair.prediction != pair.label
        and (pair.largest is not None or weight(pair.prediction, PREDICTION) > SURE)
        and weight(pair.label, LABEL) > SURE
    ]
    scored = score_pair(
        stream, stream, joined, [location, *(each.location for each in model_locations(stream, location))]
    )
    pairing = Pairing(stream, stream, ids, classes, 0.0, scored)
    return pairing if pairing.is_usable else None
