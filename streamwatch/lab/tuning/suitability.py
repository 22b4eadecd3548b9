"""Whether a history supports a promise."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy import stats

from streamwatch.lab.tuning.resampling import Losses, lasting_block, mean_block

LONGER: Final = 5.0
"""Times the block that estimates the variance of a mean best. An alarm takes a stretch of many errors, which
shorter blocks cut in two."""
TOGETHER: Final = 1.5
"""Blocks longer than this are of losses that depend on each other."""
MOST_OUTCOMES: Final = 2_000_000_000
"""Outcomes beyond which nothing is simulated: some minutes."""


class CannotPromise(ValueError):  # noqa: N818  (it says why)
    """The history does not support the promise; the message says why."""


def check_history(losses: Losses, outcomes_per_alarm: float) -> float:
    """Mean length of blocks that a history is resampled in.

    Raises
    ------
    CannotPromise
        If the history is too short, one-sided or changing for a false alarm every so many outcomes.
    """
    n, errors = len(losses), int(losses.sum())
    if n < 1_000:
        raise CannotPromise(f"the history has {n:,} outcomes; at least 1,000 are needed")
    if min(errors, n - errors) < 50:
        which = "errors" if errors < n - errors else "hits"
        raise CannotPromise(f"the history has {min(errors, n - errors)} {which}; at least 50 are needed")
    _refuse_long(n, mean_block(losses))
    _refuse_change(losses, mean_block(losses))  # before slow swings, as a change is one, too
    alone, lasting = mean_block(losses), lasting_block(losses)
    _refuse_long(n, lasting)
    block = max(LONGER * alone if alone > TOGETHER else alone, lasting)
    if n < 100 * block:
        raise CannotPromise(
            f"losses go together, so that streams are drawn in blocks of {block:,.0f} outcomes, lest they "
            f"cut stretches of errors that alarm; {n:,} outcomes have {n / block:,.0f} of them, at least 100 "
            f"are needed"
        )
    if outcomes_per_alarm > 100 * n:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes is promised from {n:,}; "
            f"at most {100 * n:,} can be, as rarer things cannot be known from it"
        )
    if outcomes_per_alarm < 1_000:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes is more than detectors are made for; "
            f"promise at most one in 1,000"
        )
    if 30 * outcomes_per_alarm > MOST_OUTCOMES:
        raise CannotPromise(
            f"one alarm in {outcomes_per_alarm:,.0f} outcomes takes too long to be simulated; "
            f"promise more, or at less traffic"
        )
    return block


def _refuse_long(n: int, block: float) -> None:
    if n < 100 * block:
        raise CannotPromise(
            f"losses go together over some {block:,.0f} outcomes, so that {n:,} are worth {n / block:,.0f} "
            f"independent stretches; at least 100 are needed"
        )


def _refuse_change(losses: Losses, block: float) -> None:
    """Compare tenths of the history: the largest difference of one from the rest, corrected for all ten."""
    parts = np.array_split(losses.astype(np.float64), 10)
    length = len(losses) / 10
    mean = losses.mean()
    # the variance of a mean of losses that go together is seen in means over several blocks
    scale = max(1, min(round(5 * block), int(length // 10)))
    whole = losses[: len(losses) // scale * scale].reshape(-1, scale).mean(axis=1)
    spread = math.sqrt(float(whole.var(ddof=1)) * scale / length * 0.9)
    z = [(float(part.mean()) - mean) / spread for part in parts]
    worst = int(np.argmax(np.abs(z)))
    if 2 * 10 * stats.norm.sf(abs(z[worst])) < 0.001:
        raise CannotPromise(
            f"the history changes: its {worst + 1}. tenth has an error of {parts[worst].mean():.3f}, "
            f"all of it {mean:.3f}; give a part in which the model did not change"
        )
