"""Hints from a list of predictions, block by block, in plain Python."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

BLOCK, LAG, CLASSES = 32, 64, 8
Predicted = tuple[str, float | None]
"""Predicted class, and its score."""


class Found(NamedTuple):
    """A hint: after how many predictions, of which class (None: of scores), and whether of more."""

    seen: int
    predicted_class: str | None
    more: bool


def counts(block: Sequence[Predicted], classes: Sequence[str]) -> dict[str | None, int | None]:
    """Counts of each class, others as `__other__`, and the sum of scores in parts of 255 under None."""
    found: dict[str | None, int | None] = dict.fromkeys((*classes, "__other__"), 0)
    for name, _ in block:
        known = name if name in classes else "__other__"
        found[known] = (found[known] or 0) + 1
    scores = [score for _, score in block]
    found[None] = None if None in scores else sum(int(s * 255 + 0.5) for s in scores if s is not None)
    return found


def hints(predictions: Sequence[Predicted], threshold: float) -> tuple[list[Found], float]:
    """All hints, and the mean capital after the last prediction."""
    classes = list(dict.fromkeys(name for name, _ in predictions))[:CLASSES]
    features: list[str | None] = [*classes, "__other__", None]
    bets = [(f, side, share) for f in features for side in (1, -1) for share in (0.3, 0.9)]
    capital = dict.fromkeys(bets, 0.0)
    unused = 2 * 2 * (CLASSES - len(classes))  # bets on classes that never came stay even
    rounds = 0
    waiting: deque[Sequence[Predicted]] = deque()
    found: list[Found] = []
    gap = gaps = 0.0
    for number in range(len(predictions) // BLOCK):
        block = predictions[number * BLOCK : (number + 1) * BLOCK]
        if number % 2 == 0:
            waiting.append(block)
            continue
        if len(waiting) < LAG:
            continue
        x, y = counts(waiting.popleft(), classes), counts(block, classes)
        for f, side, share in bets:
            then, now = x[f], y[f]
            u = 0.0
            if f is None:
                if then is not None and now is not None and gaps >= 4 and gap > 0:
                    u = (now - then) / (2 * gap / gaps)
            elif then is not None and now is not None and then + now:
                u = (now - then) / (1.5 * math.sqrt(then + now))
            won = share * side * max(-1, min(1, u))
            capital[f, side, share] = (capital[f, side, share] + 1) * (1 + won)
        if x[None] is not None and y[None] is not None:
            gap, gaps = 0.9 * gap + abs(y[None] - x[None]), 0.9 * gaps + 1
        rounds += 1
        if math.fsum(capital.values()) + unused * rounds >= 40 * threshold:
            f, side, _ = max(capital, key=lambda bet: capital[bet])
            found.append(Found((number + 1) * BLOCK, f, side > 0))
            capital = dict.fromkeys(bets, 0.0)
            rounds = 0
    return found, (math.fsum(capital.values()) + unused * rounds) / 40
