"""A score in place of a class: which field it is, and which of two true classes it speaks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from streamwatch.lab.inspection.area import area_under_roc
from streamwatch.lab.inspection.classes import scores
from streamwatch.lab.inspection.columns import Column
from streamwatch.lab.inspection.streams import Stream
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
