"""Which field holds the predicted class and which the true one, looked at in records joined by their ids."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

from streamwatch.inspection.columns import Column
from streamwatch.inspection.streams import Stream
from streamwatch.inspection.times import unit_of
from streamwatch.inspection.vectors import Vector
from streamwatch.inspection.words import LABEL, PREDICTION, area_under_roc, describes, polarity, weight

MAX_CLASSES: Final = 200
MIN_PAIRS: Final = 5
CLEAR: Final = 0.3
"""Association from which classes that are written otherwise on both sides are matched by it."""
INFORMATIVE: Final = 0.1
"""Association from which fields are taken for classes whatever they are called."""
FEW: Final = 20
"""Values beyond which fields without association are no classes, whatever they have in common."""
COPIED_AFTER: Final = 20
"""Joined records from which equality of two fields in all of them is that of a copy."""


@dataclass(frozen=True, slots=True)
class ClassPair:
    """A field of predictions and one of labels that may hold the classes.

    `agreement` is the share of joined records in which they say the same, `association` how far one predicts
    the other, from 0 to 1 (Cramér's V). `aliases` are classes as labels write them → as predictions do;
    `unmatched` says why classes cannot be matched. `largest`: the prediction is the largest of an array of
    numbers, one for each of these classes, or of an object that names them (empty); None for a plain field.
    """

    prediction: str
    label: str
    rank: float
    agreement: float
    association: float
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    unmatched: str = ""
    largest: tuple[str, ...] | None = None


def class_pairs(
    left: Stream, right: Stream, joined: Sequence[tuple[int, int]], without: Collection[str]
) -> list[ClassPair]:
    """Candidates by rank, the likeliest first; `without` are locations with other parts already."""
    lefts = [column for column in _candidates(left, without) if len(column.counts) > 1]
    rights = _candidates(right, without)
    found = [pair for a in lefts for b in rights if (pair := _judged(a, b, joined)) is not None]
    for vector in left.vectors.values():
        if vector.speaks:
            found += [pair for b in rights if (pair := _of_largest(vector, b, joined)) is not None]
    return sorted(found, key=lambda pair: -pair.rank)


def scores(stream: Stream) -> list[str]:
    """Fields with continuous numbers from 0 to 1."""
    return [column.location for column in stream.columns.values() if column.is_score]


def _candidates(stream: Stream, without: Collection[str]) -> list[Column]:
    record_ms = [record.record_ms for record in stream.records]
    return [
        column
        for column in stream.columns.values()
        if column.location not in without
        and column.location != "key"
        and column.filled >= FILLED
        and not column.is_continuous
        and len(column.counts) <= min(MAX_CLASSES, max(2, len(column.raw) // 3))
        and unit_of(column, record_ms) is None
    ]


FILLED: Final = 0.1
ALIASED: Final = 0.7
"""What classes count that are written otherwise on both sides; those written alike count up to 1."""


def _in_common(both: Counter[tuple[str, str]]) -> float:
    """Share of the joined records whose class the other side knows, on the side where it is smaller."""
    predicted, true = {x for x, _ in both}, {y for _, y in both}
    known = [
        sum(n for (x, _), n in both.items() if x in true),
        sum(n for (_, y), n in both.items() if y in predicted),
    ]
    return min(known) / both.total()


def _of_largest(vector: Vector, b: Column, joined: Sequence[tuple[int, int]]) -> ClassPair | None:
    """Judge the class of the largest number as one that a field holds; a field that holds it is preferred."""
    texts = [(i, text) for i, j in joined if (text := b.texts[j]) is not None]
    classes = vector.names or vector.order(texts)
    if classes is None:
        return None
    aliases = matched(classes, b.counts) if vector.names else {}
    meant = [(i, aliases.get(text, text)) for i, text in texts]
    known = sum(text in classes for _, text in meant) / len(meant)
    speaks = max(vector.separation(classes, meant), _association(vector.column(classes), meant))
    if len(meant) < MIN_PAIRS or known < KNOWN or speaks < CLEAR:
        return None
    named = weight(b.location, LABEL) - 0.8 * describes(b.location) - 0.5 * (1 - b.filled)
    agreed = vector.column(classes).texts
    agreement = sum(agreed[i] == text for i, text in meant) / len(meant)
    rank = OF_NUMBERS + 0.1 * bool(vector.names) + named + speaks + (ALIASED if aliases else known)
    order = () if vector.names else tuple(classes)
    return ClassPair(vector.location, b.location, rank, agreement, speaks, aliases, largest=order)


def _association(column: Column, meant: Sequence[tuple[int, str]]) -> float:
    texts = column.texts
    return cramers_v(Counter((x, y) for i, y in meant if (x := texts[i]) is not None))


KNOWN: Final = 0.9
"""Share of the true classes that must be among those of the numbers."""
OF_NUMBERS: Final = 0.5
"""What the name of numbers for each class counts; that of a field called `prediction` counts 1."""


def _judged(a: Column, b: Column, joined: Sequence[tuple[int, int]]) -> ClassPair | None:
    left, right = a.texts, b.texts
    both = Counter((x, y) for i, j in joined if (x := left[i]) is not None and (y := right[j]) is not None)
    count = both.total()
    if count < MIN_PAIRS:
        return None
    agreement = sum(n for (x, y), n in both.items() if x == y) / count
    association = cramers_v(both)
    names = weight(a.location, PREDICTION) + weight(b.location, LABEL)
    rank = names - 0.8 * (describes(a.location) + describes(b.location)) * (names < NAMED)
    aliases, unmatched = _aliases(both, association)
    rank += 0.0 if unmatched else ALIASED if aliases else _in_common(both)
    rank += association - 0.5 * (1 - b.filled)
    rank += 0.3 * (a.location.startswith("value") + b.location.startswith("value"))
    if agreement == 1.0 and count >= COPIED_AFTER:  # labels repeat what was decided, or both what was asked
        rank -= 1.0 if names >= NAMED else 1.5
    if len(b.counts) == 1:
        rank -= 0.7
    if association < INFORMATIVE and max(len(a.counts), len(b.counts)) > FEW:  # counts of this and of that
        rank -= 1.0
    return ClassPair(a.location, b.location, rank, agreement, association, aliases, unmatched)


NAMED: Final = 1.0
"""Weight of both names from which they count as those of classes."""


def _aliases(both: Counter[tuple[str, str]], association: float) -> tuple[Mapping[str, str], str]:
    """Match classes of labels to those of predictions; nothing to match where they are written alike."""
    predicted = {x for x, _ in both}
    true = {y for _, y in both}
    odd = sorted(true - predicted)
    if not odd or (predicted & true and not _written_alike(odd, predicted)):
        return {}, ""
    alike = _written_alike(odd, predicted)
    if predicted & true and alike:
        return alike, ""
    if aliases := matched(predicted, true):
        return aliases, ""
    by_true: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (x, y), count in both.items():
        by_true[y][x] += count
    likeliest = {y: counts.most_common(1)[0][0] for y, counts in sorted(by_true.items())}
    if association >= CLEAR and len(set(likeliest.values())) == len(likeliest):
        return likeliest, ""
    shown = ", ".join(sorted(predicted)[:5]), ", ".join(sorted(true)[:5])
    return {}, f"predicted classes ({shown[0]}) and true classes ({shown[1]}) have nothing in common"


def matched(predicted: Collection[str], true: Collection[str]) -> Mapping[str, str]:
    """Match true classes to predicted ones by how they are written, or as yes and no; else empty."""
    odd = sorted(set(true) - set(predicted))
    alike = _written_alike(odd, predicted)
    if len(alike) == len(odd):
        return alike
    signs = {polarity(x): x for x in predicted}
    if len(predicted) == 2 and set(signs) == {1, -1} and _are_opposite(true):
        return {y: signs[polarity(y)] for y in sorted(true)}
    return {}


def _are_opposite(names: Collection[str]) -> bool:
    """Tell whether each is a word of a side, and no two of the same."""
    signs = {polarity(name) for name in names}
    return 0 not in signs and len(signs) == len(names)


def _written_alike(odd: Sequence[str], predicted: Collection[str]) -> dict[str, str]:
    forms = {_form(x): x for x in predicted}
    return {y: forms[_form(y)] for y in odd if _form(y) in forms}


def _form(text: str) -> str:
    """A class without what is easily written otherwise: case, spaces, hyphens, a fraction of zero."""
    word = text.strip().casefold().replace("_", " ").replace("-", " ") if not text.startswith("-") else text
    whole, dot, rest = word.partition(".")
    return whole if dot and whole.isdigit() and not rest.strip("0") else word


def cramers_v(both: Counter[tuple[str, str]]) -> float:
    """Cramér's V of a table of counts, corrected for bias (Bergsma 2013); 0 where one side has one class."""
    count = both.total()
    rows: Counter[str] = Counter()
    columns: Counter[str] = Counter()
    for (x, y), n in both.items():
        rows[x] += n
        columns[y] += n
    if min(len(rows), len(columns)) < 2 or count < 2:
        return 0.0
    total = sum(n * n / (rows[x] * columns[y]) for (x, y), n in both.items())
    phi = max(0.0, total - 1.0 - (len(rows) - 1) * (len(columns) - 1) / (count - 1))
    sides = [len(side) - (len(side) - 1) ** 2 / (count - 1) for side in (rows, columns)]
    least = min(sides) - 1
    return min(1.0, sqrt(phi / least)) if least > 0 else 0.0


# A score instead of a class: which field it is, and which of two true classes it speaks for.


MIN_EACH: Final = 5
INFORMATIVE_SCORE: Final = 0.6
"""Area under the ROC curve from which a score speaks for a class."""


@dataclass(frozen=True, slots=True)
class ScorePair:
    """A score of predictions and a field of labels with two classes; `area` is that under the ROC curve."""

    score: str
    label: str
    above: str
    below: str
    area: float


def score_pair(
    left: Stream, right: Stream, joined: Sequence[tuple[int, int]], without: Collection[str]
) -> ScorePair | None:
    """Find the pair with the largest area under the curve; None where no score separates two classes."""
    record_ms = [record.record_ms for record in right.records]
    labels = [
        column
        for column in right.columns.values()
        if len(column.counts) == 2 and column.location not in without and unit_of(column, record_ms) is None
    ]
    found: list[tuple[float, ScorePair]] = []
    for location in scores(left):
        for label in labels:
            pair = _judged_score(left.columns[location], label, joined)
            if pair is not None:
                named = weight(label.location, LABEL) - describes(label.location)
                found.append((pair.area + 0.2 * named, pair))
    return max(found, key=lambda each: each[0])[1] if found else None


def _judged_score(score: Column, label: Column, joined: Sequence[tuple[int, int]]) -> ScorePair | None:
    one, other = sorted(label.counts)
    of: dict[str, list[float]] = {one: [], other: []}
    for i, j in joined:
        number, text = score.raw[i], label.texts[j]
        if isinstance(number, int | float) and text is not None:
            of[text].append(float(number))
    if min(map(len, of.values())) < MIN_EACH:
        return None
    area = area_under_roc(of[other], of[one])
    above, below = (other, one) if area >= 0.5 else (one, other)
    area = max(area, 1 - area)
    return (
        ScorePair(score.location, label.location, above, below, area) if area >= INFORMATIVE_SCORE else None
    )
