"""Outcomes that a compiled join hands over, with scores and segments of their predictions."""

from __future__ import annotations

from streamwatch.core.join.compiled.layout import Arrays
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.join.compiled.pairing import PairOrder
from streamwatch.core.outcomes import SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.words import copied


def take_outcomes(arrays: Arrays, names: JoinNames, order: PairOrder) -> OutcomeBatch:
    """Hand over the outcomes and pairs since the last call, and drop scores that are not needed any more."""
    totals = arrays.totals
    records = copied(arrays.outcomes[: int(totals["outcomes"][0])])
    discarded = int(totals["discarded"][0])
    paired = int(totals["pairs"][0])
    pairs = order.ordered(arrays.pairs[:paired], names.models) if paired else None
    totals["outcomes"] = totals["discarded"] = totals["pairs"] = 0
    scores: dict[int, dict[str, float]] = {}
    segments: dict[int, int] = {}
    held = names.scores
    if held:
        carried = records["scores"]
        numbers: list[int] = carried[(carried >= 0) & (carried < SEGMENTS_FROM)].tolist()
        if held.segments:
            segments = {number: held.segments.get(number, -1) for number in numbers}
        scores = held.take(numbers)
        held.take(arrays.discarded[:discarded].tolist())
    named = names.models.names, names.classes.names
    return OutcomeBatch(records, *named, scores, names.segments.names, segments, pairs)
