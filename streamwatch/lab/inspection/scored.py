"""A score in place of a class: which field it is, and which of two true classes it speaks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from streamwatch.lab.inspection.classes import scores
from streamwatch.lab.inspection.columns import Column, Stream
from streamwatch.lab.inspection.times import unit_of
from streamwatch.lab.inspection.words import LABEL, describes, weight

MIN_EACH: Final = 5
TELLING: Final = 0.6
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
    """Find the pair that tells most; None where no score tells two classes apart."""
    record_ms = [record.record_ms for record in right.records]
    labels = [
        column
        for column in right.columns.values()
        if len(column.counts) == 2 and column.place not in without and unit_of(column, record_ms) is None
    ]
    found: list[tuple[float, ScorePair]] = []
    for place in scores(left):
        for label in labels:
            pair = _judged(left.columns[place], label, joined)
            if pair is not None:
                named = weight(label.place, LABEL) - describes(label.place)
                found.append((pair.area + 0.2 * named, pair))
    return max(found, key=lambda each: each[0])[1] if found else None


def _judged(score: Column, label: Column, joined: Sequence[tuple[int, int]]) -> ScorePair | None:
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
    return ScorePair(score.place, label.place, above, below, area) if area >= TELLING else None


def area_under_roc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Share of pairs in which the positive one is higher, equal ones half (Mann and Whitney 1947)."""
    ordered = sorted([(number, 0) for number in negative] + [(number, 1) for number in positive])
    wins = 0.0
    below = at = 0
    while at < len(ordered):
        stop = at
        while stop < len(ordered) and ordered[stop][0] == ordered[at][0]:
            stop += 1
        ups = sum(side for _, side in ordered[at:stop])
        downs = stop - at - ups
        wins += ups * (below + downs / 2)
        below += downs
        at = stop
    return wins / (len(positive) * len(negative))
