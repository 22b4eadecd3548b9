"""Predictions and labels in the same records: a topic of which each record holds, or will hold, both."""

from __future__ import annotations

from typing import Final

from streamwatch.lab.inspection.classes import MIN_PAIRS, class_pairs
from streamwatch.lab.inspection.ids import IdPair, id_columns
from streamwatch.lab.inspection.models import model_places
from streamwatch.lab.inspection.pairing import Pairing
from streamwatch.lab.inspection.scored import score_pair
from streamwatch.lab.inspection.streams import Stream
from streamwatch.lab.inspection.words import ID, LABEL, PREDICTION, weight

SURE: Final = 0.3
"""Weight that names of both class fields must have: equal contents of one record prove little."""


def within(stream: Stream) -> Pairing | None:
    """Take a stream for predictions and labels at once; None where no two fields are called like that."""
    ids = [
        IdPair(c.place, c.place, len(c.counts), 1.0, 1.0, c.uniqueness + 0.5 * weight(c.place, ID))
        for c in id_columns(stream)
    ]
    ids.sort(key=lambda pair: -pair.rank)
    joined = [(row, row) for row in range(len(stream.records))]
    if not ids or len(joined) < MIN_PAIRS:
        return None
    place = ids[0].left
    classes = [
        pair
        for pair in class_pairs(stream, stream, joined, [place])
        if pair.prediction != pair.label
        and (pair.largest is not None or weight(pair.prediction, PREDICTION) > SURE)
        and weight(pair.label, LABEL) > SURE
    ]
    scored = score_pair(
        stream, stream, joined, [place, *(each.place for each in model_places(stream, place))]
    )
    pairing = Pairing(stream, stream, ids, classes, 0.0, scored)
    return pairing if pairing.is_usable else None
