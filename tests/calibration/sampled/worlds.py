"""Streams of predictions of which some have their label asked for, with what is true of each prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.predictions.kind import PREDICTED
from streamwatch.core.predictions.sampled_labels.observe import WIDTHS
from streamwatch.core.records.events import SAMPLING, as_float32, sampling_of
from streamwatch.core.records.outcomes import OUTCOME

HORIZON_MS: Final = 1_600_000
WIDTH_MS: Final = HORIZON_MS // WIDTHS
LABELS_PER_BUCKET: Final = 100
BUCKETS: Final = 117
"""100 of them settle: 10,000 labels."""
CLASSES: Final = ("a", "b", "c")


@dataclass(frozen=True)
class World:
    """What is asked for, how labels come, and how good the model is.

    Attributes
    ----------
    share
        Mean probability π.
    by
        What π depends on.
    delays
        Mean delay of labels of hits and of errors, in buckets; cut at the horizon.
    error
        Mean error of the model.
    informative
        Whether scores say how likely an error is; else every prediction is as likely to be wrong.
    lost
        Share of the labels asked for that never come.
    told
        Whether predictions say that their label is asked for.
    burst
        Number of neighbouring predictions that are all right or all wrong.
    """

    name: str
    share: float = 0.05
    by: Literal["constant", "score", "segment", "neglect"] = "constant"
    delays: tuple[float, float] = (0.0, 0.0)
    error: float = 0.1
    informative: bool = True
    lost: float = 0.0
    told: bool = False
    burst: int = 1


@dataclass(frozen=True)
class Stream:
    """One run.

    Attributes
    ----------
    predictions, outcomes
        Records `PREDICTED` and `OUTCOME`, in the order of the clock.
    scores
        Score of the predicted class of every prediction.
    of_outcome
        Number of the prediction of each outcome.
    loss, no_change, majority
        What is to be expected of every prediction, given all that is known when it is made: the loss, and
        the lead over the last label known and over class a.
    """

    predictions: NDArray[np.void]
    outcomes: NDArray[np.void]
    scores: NDArray[np.float64]
    of_outcome: NDArray[np.int64]
    loss: NDArray[np.float64]
    no_change: NDArray[np.float64]
    majority: NDArray[np.float64]


def _neglected(
    world: World, chance: np.random.Generator, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw errors and π; a twentieth is asked for a fiftieth as often, and wrong thirty times as often."""
    seldom = chance.random(n) < 0.05
    return np.where(seldom, 0.3, 0.01), np.where(seldom, world.share / 50.0, world.share)


def stream_of(world: World, seed: int) -> Stream:  # noqa: PLR0915 - one draw after the other
    """Draw a run."""
    chance = np.random.default_rng(seed)
    n = int(BUCKETS * LABELS_PER_BUCKET / world.share)
    made_ms = np.arange(n, dtype=np.int64) * BUCKETS * WIDTH_MS // n
    error = np.full(n, world.error)
    if world.informative:
        error = chance.choice([0.2, 1.0, 4.0], n, p=[0.6, 0.3, 0.1]) * world.error / 0.82
    flagged = chance.random(n) < 0.4 * world.share
    if world.by == "segment":
        error[flagged] = np.minimum(0.9, 3.0 * error[flagged])
    answer = chance.choice(3, n, p=[0.6, 0.25, 0.15])
    drawn = np.repeat(chance.random(-(-n // world.burst)), world.burst)[:n]
    if world.burst > 1:
        error = np.full(n, world.error)
    wrong = drawn < error
    truth = np.where(wrong, (answer + chance.integers(1, 3, n)) % 3, answer)
    scores = 1.0 - error
    probability = np.full(n, world.share)
    if world.by == "score":
        probability = np.clip(world.share * error / error.mean(), world.share / 5.0, 1.0)
    if world.by == "neglect":
        error, probability = _neglected(world, chance, n)
        wrong = drawn < error
        truth = np.where(wrong, (answer + chance.integers(1, 3, n)) % 3, answer)
        scores = np.full(n, 1.0 - error.mean())
    if world.by == "segment":
        probability = np.where(flagged, 1.0, 0.6 * world.share)
    asked = chance.random(n) < probability
    codes = np.zeros(n, np.int32)
    for each in np.unique(probability).tolist():
        for said in (False, True):
            chosen = (probability == each) & (asked == said)
            codes[chosen] = sampling_of(as_float32(each), said if world.told else None)
    predictions = np.zeros(n, PREDICTED)
    predictions["record_ms"] = predictions["event_ms"] = made_ms
    predictions["score"], predictions["class"] = scores, answer
    predictions["carried"][:, SAMPLING] = codes
    labelled = np.flatnonzero(asked & (chance.random(n) >= world.lost))
    means = np.where(wrong, world.delays[1], world.delays[0])[labelled] * WIDTH_MS
    waited = np.minimum(chance.exponential(1.0, len(labelled)) * means, HORIZON_MS).astype(np.int64)
    resolved = made_ms[labelled] + waited
    order = np.argsort(resolved, kind="stable")
    labelled, waited, resolved = labelled[order], waited[order], resolved[order]
    before = np.searchsorted(resolved, made_ms, side="left") - 1  # last label known strictly before
    last = np.where(before >= 0, truth[labelled][before], -1)
    if world.burst > 1:  # an earlier label of the same burst says what the others of it are
        number = np.arange(n) // world.burst
        error = np.where((before >= 0) & (number[labelled][before] == number), wrong, error)
    outcomes = np.zeros(len(labelled), OUTCOME)
    outcomes["true_class"], outcomes["predicted_class"] = truth[labelled], answer[labelled]
    outcomes["label_at_prediction"], outcomes["carried"][:, SAMPLING] = last[labelled], codes[labelled]
    outcomes["resolved_ms"], outcomes["waited_ms"] = resolved, waited
    outcomes["scores"] = np.arange(len(labelled))
    right = 1.0 - error
    return Stream(
        predictions,
        outcomes,
        scores,
        labelled,
        error,
        right - np.where(last < 0, right, np.where(last == answer, right, error / 2.0)),
        right - np.where(answer == 0, right, error / 2.0),
    )


ONES: Final = (
    World("5 %, all alike"),
    World("1 %, all alike", 0.01),
    World("5 %, more where scores are low", by="score"),
    World("1 %, more where scores are low", 0.01, by="score"),
    World("5 %, all of a segment and 3 % of the rest", by="segment"),
    World("1 %, all of a segment and 0.6 % of the rest", 0.01, by="segment"),
    World("50 %, 1 % of a twentieth that has most of the errors", 0.5, by="neglect"),
    World("5 %, errors labelled sooner", delays=(4.0, 0.8), by="score"),
    World("1 %, errors labelled sooner", 0.01, delays=(4.0, 0.8), by="score"),
    World("5 %, all alike, errors labelled sooner", delays=(4.0, 0.8)),
    World("5 %, all of a segment, errors labelled sooner", delays=(4.0, 0.8), by="segment"),
    World("5 %, scores say nothing", informative=False),
    World("1 %, scores say nothing", 0.01, informative=False),
    World("1 %, one error in a hundred", 0.01, error=0.01, informative=False),
    World("5 %, 50 neighbours alike", burst=50, informative=False),
    World("5 %, a third of the labels lost", lost=1.0 / 3.0, by="score"),
    World("1 %, a third of the labels lost, told", 0.01, lost=1.0 / 3.0, by="score", told=True),
)
