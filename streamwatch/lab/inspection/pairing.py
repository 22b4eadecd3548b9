"""Which stream carries predictions and which their labels, and by which fields they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final

from streamwatch.lab.inspection.classes import TELLING, ClassPair, class_pairs, scores
from streamwatch.lab.inspection.ids import IdPair, id_pairs, joined_rows
from streamwatch.lab.inspection.models import model_places
from streamwatch.lab.inspection.scored import ScorePair, score_pair
from streamwatch.lab.inspection.streams import Stream
from streamwatch.lab.inspection.words import LABEL, LABEL_TOPIC, PREDICTION, PREDICTION_TOPIC, weight, words

IDS_TRIED: Final = 3
NAMED: Final = 0.3
ONE_OF_SEVERAL: Final = 0.3
"""What it costs to take the first element of arrays with more, where others may see them all."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Predictions and labels that meet: candidates for their ids and classes, the likeliest first."""

    predictions: Stream
    labels: Stream
    ids: Sequence[IdPair]
    classes: Sequence[ClassPair]
    rank: float
    scored: ScorePair | None = None

    @property
    def is_usable(self) -> bool:
        """Tell whether there are classes, or a score to make them of."""
        return self.is_sound or self.scored is not None

    @property
    def is_sound(self) -> bool:
        """Tell whether the best pair of class fields speaks for itself, by its contents or by its names."""
        if not self.classes:
            return False
        best = self.classes[0]
        named = weight(best.prediction, PREDICTION) > NAMED and weight(best.label, LABEL) > NAMED
        return best.association > TELLING or named


def paired(left: Stream, right: Stream) -> Pairing | None:
    """Take one stream for predictions and one for labels; None where no ids meet."""
    ids = id_pairs(left, right)
    best: Pairing | None = None
    for at, pair in enumerate(ids[:IDS_TRIED]):
        joined = joined_rows(left, right, pair)
        places = [pair.left, pair.right, *([left.kind[0]] if left.kind else [])]
        classes = class_pairs(left, right, joined, places)
        rank = (
            1.5 * pair.rank + (classes[0].rank if classes else -1.0) + _direction(left, right, pair, joined)
        )
        if classes and max(left.longest(classes[0].prediction), right.longest(classes[0].label)) > 1:
            rank -= ONE_OF_SEVERAL
        if best is None or rank > best.rank:
            ordered = [pair, *ids[:at], *ids[at + 1 :]]
            best = Pairing(left, right, ordered, classes, rank, score_pair(left, right, joined, places))
    return best


def best_pairing(streams: Mapping[str, Sequence[Stream]]) -> Pairing | None:
    """Find the best pairing of two topics, or of two kinds in one; None where no ids meet anywhere."""
    found: list[Pairing] = []
    for topic, of_topic in streams.items():
        for left in of_topic:
            found += _with(left, [right for right in of_topic if _are_kinds(left, right)])
        others = [view for name, other in streams.items() if name != topic for view in views(other)]
        for left in views(of_topic):
            found += _with(left, others)
    return max(found, key=lambda pairing: pairing.rank, default=None)


def views(of_topic: Sequence[Stream]) -> Sequence[Stream]:
    """Ways to see all records of a topic: whole, and by the elements of their arrays."""
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
    """Weigh what speaks for predictions on the left and labels on the right: times, names, models, scores."""
    stamps = [(left.records[i].record_ms, right.records[j].record_ms) for i, j in joined]
    later = [1.0 if b > a else 0.0 for a, b in stamps if a > 0 and b > 0 and a != b]
    rank = 1.5 * (mean(later) - 0.5) if later else 0.0
    for stream, sign in ((left, 1), (right, -1)):
        named = set(words(stream.topic if stream.kind is None else stream.kind[1]))
        rank += sign * 0.4 * (bool(named & PREDICTION_TOPIC) - bool(named & LABEL_TOPIC))
        place = pair.left if stream is left else pair.right
        rank += sign * 0.4 * bool(model_places(stream, place))
        rank += sign * 0.3 * bool(scores(stream))
    return rank
