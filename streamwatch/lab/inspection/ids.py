"""Which field of one stream and which of another hold the ids that both share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamwatch.lab.inspection.columns import Column
from streamwatch.lab.inspection.streams import EACH, Stream
from streamwatch.lab.inspection.times import unit_of
from streamwatch.lab.inspection.words import ID, weight

MIN_DISTINCT: Final = 8
MIN_SHARED: Final = 3
MAX_PAIRS: Final = 20_000
LOOKED_AT: Final = 8
"""Best pairs of fields of which the joined records are looked at, too."""
NOISE: Final = 0.01
"""Share of the smaller side that ids by chance may have in common."""


@dataclass(frozen=True, slots=True)
class IdPair:
    """A field of predictions and one of labels with contents in common.

    `cover` is the share of the smaller side's contents that the other has; `fan_out` the pairs of records per
    record that joining would make, 1 where nothing repeats on both sides; `rank` orders candidates.
    """

    left: str
    right: str
    shared: int
    cover: float
    fan_out: float
    rank: float


def id_columns(stream: Stream) -> list[Column]:
    """Columns that could be ids: neither measurements nor times, with enough distinct contents."""
    record_ms = [record.record_ms for record in stream.records]
    found: list[Column] = []
    for column in stream.id_columns.values():
        if column.is_continuous or column.is_boolean or len(column.counts) < MIN_DISTINCT:
            continue
        unit = unit_of(column, record_ms)
        if unit == "iso8601" or (unit is not None and weight(column.place, ID) <= 0):
            continue
        found.append(column)
    return found


def id_pairs(left: Stream, right: Stream) -> list[IdPair]:
    """Pairs of fields with contents in common, the likeliest first; empty where nothing is shared."""
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
        weight(a.place, ID) + weight(b.place, ID) + (0.3 if a.leaf.casefold() == b.leaf.casefold() else 0.0)
    )
    rank = (
        (a.uniqueness * b.uniqueness) ** 0.5 / fan_out
        + 0.5 * cover**0.5
        + 0.2 * names
        + (0.1 if "[" not in (a.place + b.place).replace(EACH, "") else 0.0)
        - DEPTH * (a.place.count(".") + b.place.count("."))
    )
    return IdPair(a.place, b.place, len(common), cover, fan_out, rank)


DEPTH: Final = 0.02
"""What a step of a place costs: of contents that lie at two places the outer one is taken."""


def _corroborated(pair: IdPair, others: Sequence[IdPair], left: Stream, right: Stream) -> IdPair:
    """Raise a pair by which other shared fields agree as well, and lower one by which they do not.

    Joined by the id of a request, records agree on the user; joined by the user, not on the request.
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
    """Pairs of row numbers whose ids are equal, by right row; at most `MAX_PAIRS`."""
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


@dataclass(frozen=True, slots=True)
class Affix:
    """Reason why the ids of two fields do not meet, such as what one side has before its own."""

    left: str
    right: str
    said: str
    shared: int


def affixes(left: Stream, right: Stream) -> list[Affix]:
    """Fields whose contents would meet but for a prefix, a suffix, case, dashes, zeros or spaces."""
    found: list[Affix] = []
    rights = id_columns(right)
    for a in id_columns(left):
        for b in rights:
            affix = affix_of(a, b)
            if affix is not None:
                found.append(affix)
    return sorted(found, key=lambda affix: -affix.shared)


def affix_of(a: Column, b: Column) -> Affix | None:
    """Reason why ids of two columns do not meet; None where they would not whatever is cut off."""
    least = max(MIN_SHARED, 0.2 * min(len(a.counts), len(b.counts)))
    for said, forms in _FORMS:
        left, right = ({forms(text) for text in column.counts} for column in (a, b))
        if len(left & right) >= least and min(len(left), len(right)) >= MIN_DISTINCT:
            return Affix(a.place, b.place, said, len(left & right))
    cut_a, cut_b = _trimmed(a.counts), _trimmed(b.counts)
    for core_a in (cut_a, ("", "", frozenset(a.counts))):
        for core_b in (cut_b, ("", "", frozenset(b.counts))):
            shared = len(core_a[2] & core_b[2])
            if shared >= least and core_a[:2] != core_b[:2]:
                return Affix(a.place, b.place, _told(a.place, core_a, b.place, core_b), shared)
    for one, other, swapped in ((a, b, False), (b, a, True)):
        for sign in ("|", ":", "/", "-", "_", "#", "."):
            parts = Counter(part for text in one.counts for part in text.split(sign) if sign in text)
            shared = len(parts.keys() & other.counts.keys())
            if shared >= least:
                said = (
                    f"ids at {one.place} have several parts with {sign!r}, "
                    f"one of which is the id at {other.place}"
                )
                places = (b.place, a.place) if swapped else (a.place, b.place)
                return Affix(places[swapped], places[not swapped], said, shared)
    return None


def _trimmed(counts: Counter[str]) -> tuple[str, str, frozenset[str]]:
    """Common prefix and suffix of all contents, and the contents without them."""
    texts = list(counts)
    prefix = _common_start(texts)
    # digits in common belong to numbers that happen to begin alike
    prefix = prefix.rstrip("0123456789")
    rest = [text.removeprefix(prefix) for text in texts]
    suffix = _common_start([text[::-1] for text in rest])[::-1].lstrip("0123456789")
    return prefix, suffix, frozenset(text.removesuffix(suffix) for text in rest)


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    length = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]


def _told(
    a: str, left: tuple[str, str, frozenset[str]], b: str, right: tuple[str, str, frozenset[str]]
) -> str:
    said: list[str] = []
    for place, (prefix, suffix, _), other in ((a, left, b), (b, right, a)):
        if prefix:
            said.append(f"ids at {place} start with {prefix!r}, those at {other} do not")
        if suffix:
            said.append(f"ids at {place} end with {suffix!r}, those at {other} do not")
    return "; ".join(said)


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
