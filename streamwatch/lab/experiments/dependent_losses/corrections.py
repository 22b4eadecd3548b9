"""Losses without the dependence that they came with, as detectors assume (Žliobaitė et al. 2015, §5.1).

The paper says that detectors made for independent losses are given dependent ones, names charts for time
series (Knoth, Schmid 2004; Wieringa 1999) as where to begin, and leaves the correction to others. These two
turn a stream of losses into another one, so that every detector can be asked as it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.lab.experiments.detection.streams import Losses

FADING: Final = 0.999
"""α of the transitions that `redrawn` estimates, as of the daemon's temporal correction."""
LEARNED: Final = 1_000
"""Outcomes at the beginning from which `spacing` is estimated."""
LONGEST: Final = 50
"""Longest spacing: of losses that go together for longer one in so many is kept."""


def spacing(losses: Losses) -> int:
    """Outcomes between two losses that hardly tell of each other.

    The first lag at which the autocorrelation of the first `LEARNED` losses is below 2/√n, two standard
    errors under independence; 1 where losses never change, at most `LONGEST`.
    """
    some = losses[:LEARNED].astype(np.float64)
    away = some - some.mean()
    power = float(away @ away)
    if power == 0.0:
        return 1
    level = 2.0 / np.sqrt(len(some))
    for lag in range(1, min(LONGEST, len(some) - 1)):
        if float(away[lag:] @ away[:-lag]) / power < level:
            return lag
    return min(LONGEST, len(some))


def thinned(losses: Losses, every: int) -> Losses:
    """Every so-many-th loss, (n // every,); the k-th of them (1-based) is that of outcome k · every.

    Raises
    ------
    ValueError
        If `every` is less than 1.
    """
    if every < 1:
        raise ValueError(f"losses are kept one in a whole number, got {every}")
    return losses[every - 1 :: every]


def redrawn(losses: Losses, rng: np.random.Generator, alpha: float = FADING) -> Losses:
    """Losses as they would be without the last one: of the same error, and independent.

    Each loss is taken to its probability integral transform given the one before, u = F(l_t − 1 | l_{t−1}) +
    v · P(l_t | l_{t−1}) with v uniform (Rosenblatt 1952; randomised for what is discrete), and back through
    the marginal: 1 where u > 1 − P(l = 1). Where losses are a Markov chain with these probabilities, the
    result is independent with the same error. Probabilities are counts with add-one smoothing that fade by
    α, taken before they learn the loss; an error that rises is followed, since P(l = 1) is.

    Parameters
    ----------
    losses
        (n,).
    rng
        Source of v: another one gives another stream, of the same kind.
    alpha
        Fading factor in (0, 1].

    Raises
    ------
    ValueError
        If α is not in (0, 1].
    """
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"a fading factor must be in (0, 1], got {alpha}")
    found = np.empty(len(losses), np.bool_)
    after = [[1.0, 1.0], [1.0, 1.0]]
    """Faded counts by the loss before, then by the loss."""
    before = 0
    for t, (loss, v) in enumerate(zip(losses.tolist(), rng.random(len(losses)).tolist(), strict=True)):
        row = after[before]
        given = row[1] / (row[0] + row[1])
        right, wrong = after[0][0] + after[1][0], after[0][1] + after[1][1]
        marginal = (wrong - 1.0) / (right + wrong - 2.0)
        u = (1.0 - given) + v * given if loss else v * (1.0 - given)
        found[t] = u > 1.0 - marginal
        for counts in after:  # add-one smoothing does not fade
            counts[0] = 1.0 + alpha * (counts[0] - 1.0)
            counts[1] = 1.0 + alpha * (counts[1] - 1.0)
        row[int(loss)] += 1.0
        before = int(loss)
    return found
