"""Classes: pairs of fields with predicted and true class, found in records joined by their ids.

Texts that cannot name a class, such as `__other__`, are left out: records with them would be invalid.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

from streamwatch.edge.decoders.fields import is_name
from streamwatch.inspection.columns import MAX_CLASSES, MIN_EACH, Column, Vector
from streamwatch.inspection.streams import Stream, unit_of
from streamwatch.inspection.words import LABEL, PREDICTION, area_under_roc, describes, polarity, weight

MIN_PAIRS: Final = 5
CLEAR: Final = 0.3
"""Least association with which differently written classes of both sides are matched by frequency."""
INFORMATIVE: Final = 0.1
"""Least association of fields that are taken for classes regardless of their names."""
FEW: Final = 20
"""Most values of fields that may be classes without association."""
COPIED_AFTER: Final = 20
"""Least number of joined records from which two fields that always agree are taken for copies."""


@dataclass(frozen=True, slots=True)
class ClassPair:
    """A field of predictions and one of labels that may be predicted and true class."""

    prediction: str
    """Location in predictions."""
    label: str
    """Location in labels."""
    rank: float
    """Score by which candidates are ordered."""
    agreement: float
    """Share of joined records in which both are equal."""
    association: float
    """Cramér's V of both in joined records, in [0, 1]."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Class as labels write it → as predictions write it, for differently written classes."""
    unmatched: str = ""
    """Reason why classes of both sides cannot be matched; empty if they can."""
    largest: tuple[str, ...] | None = None
    """Classes in the order of an array whose largest number is the prediction; empty for an object with a
    number for each class; None for a plain field."""


def class_pairs(
    left: Stream, right: Stream, joined: Sequence[tuple[int, int]], without: Collection[str]
) -> list[ClassPair]:
    """Find candidates, except at the locations `without`, the likeliest first."""
    lefts = [column for column in _candidates(left, without) if len(column.counts) > 1]
    rights = _candidates(right, without)
    found = [pair for a in lefts for b in rights if (pair := _judged(a, b, joined)) is not None]
    for vector in left.vectors.values():
        if vector.is_likely_scores:
            found += [pair for b in rights if (pair := _of_largest(vector, b, joined)) is not None]
    return sorted(found, key=lambda pair: -pair.rank)


def scores(stream: Stream) -> list[str]:
    """Return the locations of fields with continuous numbers from 0 to 1."""
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
"""Addition to the rank for classes matched by aliases; equally written ones add their share in common."""


def _in_common(both: Counter[tuple[str, str]]) -> float:
    """Return the share of joined records whose class also occurs on the other side; the smaller of both."""
    predicted, true = {x for x, _ in both}, {y for _, y in both}
    known = [
        sum(n for (x, _), n in both.items() if x in true),
        sum(n for (_, y), n in both.items() if y in predicted),
    ]
    return min(known) / both.total()


def _of_largest(vector: Vector, b: Column, joined: Sequence[tuple[int, int]]) -> ClassPair | None:
    """Rank the class of the largest number as a prediction, below a field with the class; None if unfit."""
    texts = [(i, text) for i, j in joined if (text := b.texts[j]) is not None and is_name(text)]
    if len(texts) < MIN_PAIRS:
        return None
    classes = vector.names or vector.order(texts)
    if classes is None:
        return None
    aliases = matched(classes, b.counts) if vector.names else {}
    meant = [(i, aliases.get(text, text)) for i, text in texts]
    known = sum(text in classes for _, text in meant) / len(meant)
    speaks = max(vector.separation(classes, meant), _association(vector.column(classes), meant))
    if known < KNOWN or speaks < CLEAR:
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
"""Least share of labels whose class is among those of the numbers."""
OF_NUMBERS: Final = 0.5
"""Addition to the rank for numbers of classes; the name `prediction` of a field adds 1."""


def _judged(a: Column, b: Column, joined: Sequence[tuple[int, int]]) -> ClassPair | None:
    left, right = a.texts, b.texts
    both = Counter(
        (x, y)
        for i, j in joined
        if (x := left[i]) is not None and (y := right[j]) is not None and is_name(x) and is_name(y)
    )
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
    if agreement == 1.0 and count >= COPIED_AFTER:  # one is a copy, or both repeat the request
        rank -= 1.0 if names >= NAMED else 1.5
    if len(b.counts) == 1:
        rank -= 0.7
    if association < INFORMATIVE and max(len(a.counts), len(b.counts)) > FEW:  # unrelated numbers
        rank -= 1.0
    return ClassPair(a.location, b.location, rank, agreement, association, aliases, unmatched)


NAMED: Final = 1.0
"""Least sum of the weights of two names with which fields count as named like classes."""


def _aliases(both: Counter[tuple[str, str]], association: float) -> tuple[Mapping[str, str], str]:
    """Match differently written classes of labels to those of predictions.

    Returns aliases, empty if classes are written alike, and the reason if they cannot be matched.
    """
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
    """Match true classes to predicted ones by similar writing, or as positive and negative; else empty."""
    odd = sorted(set(true) - set(predicted))
    alike = _written_alike(odd, predicted)
    if len(alike) == len(odd):
        return alike
    signs = {polarity(x): x for x in predicted}
    if len(predicted) == 2 and set(signs) == {1, -1} and _are_opposite(true):
        return {y: signs[polarity(y)] for y in sorted(true)}
    return {}


def _are_opposite(names: Collection[str]) -> bool:
    """Return whether names are positive or negative words, at most one of each."""
    signs = {polarity(name) for name in names}
    return 0 not in signs and len(signs) == len(names)


def _written_alike(odd: Sequence[str], predicted: Collection[str]) -> dict[str, str]:
    forms = {_form(x): x for x in predicted}
    return {y: forms[_form(y)] for y in odd if _form(y) in forms}


def _form(text: str) -> str:
    """Normalise a class: without case, outer spaces, hyphens, underscores and a fraction of zero."""
    word = text.strip().casefold().replace("_", " ").replace("-", " ") if not text.startswith("-") else text
    whole, dot, rest = word.partition(".")
    return whole if dot and whole.isdigit() and not rest.strip("0") else word


def cramers_v(both: Counter[tuple[str, str]]) -> float:
    """Cramér's V of counts by (x, y), corrected for bias (Bergsma 2013); 0 if x or y has only one value."""
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


INFORMATIVE_SCORE: Final = 0.6
"""Least area under the ROC curve of a score for a class."""


@dataclass(frozen=True, slots=True)
class ScorePair:
    """A score of predictions, and a field of labels with two classes that it separates."""

    score: str
    """Location of the score."""
    label: str
    """Location of the true class."""
    above: str
    """Class with higher scores."""
    below: str
    """Class with lower scores."""
    area: float
    """Area under the ROC curve, at least `INFORMATIVE_SCORE`."""


def score_pair(
    left: Stream, right: Stream, joined: Sequence[tuple[int, int]], without: Collection[str]
) -> ScorePair | None:
    """Find the pair with the largest area under the curve; None if no score separates two classes."""
    record_ms = [record.record_ms for record in right.records]
    labels = [
        column
        for column in right.columns.values()
        if len(column.counts) == 2
        and all(map(is_name, column.counts))
        and column.location not in without
        and unit_of(column, record_ms) is None
    ]
    found: list[tuple[float, ScorePair]] = []
    for location in scores(left):
        for label in labels:
            pair = _judged_score(left.columns[location], label, joined)
            if pair is not None:
                named = weight(label.location, LABEL) - describes(label.location)
                found.append((pair.area + 0.2 * named, pair))
    return max(found, key=lambda each: each[0])[1] if found else None


def scores_by_class(
    score: Column, label: Column, joined: Sequence[tuple[int, int]]
) -> dict[str, list[float]]:
    """Return the scores of joined records by their true class, each of which the label may have."""
    of: dict[str, list[float]] = {text: [] for text in label.counts}
    for i, j in joined:
        number, text = score.raw[i], label.texts[j]
        if isinstance(number, int | float) and text is not None:
            of[text].append(float(number))
    return of


def _judged_score(score: Column, label: Column, joined: Sequence[tuple[int, int]]) -> ScorePair | None:
    one, other = sorted(label.counts)
    of = scores_by_class(score, label, joined)
    if min(map(len, of.values())) < MIN_EACH:
        return None
    area = area_under_roc(of[other], of[one])
    above, below = (other, one) if area >= 0.5 else (one, other)
    area = max(area, 1 - area)
    return (
        ScorePair(score.location, label.location, above, below, area) if area >= INFORMATIVE_SCORE else None
    )
