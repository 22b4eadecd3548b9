"""What scores made expect of stretches of time, and what labels gave, equal sums over lists."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.early_hints.register import decode, encode
from streamwatch.core.predictions.early_hints.view import (
    ExpectationErrors,
    Stretch,
    expectation_errors,
)
from streamwatch.core.predictions.kind import batch_of
from streamwatch.core.records.events import Outcome, Prediction

WIDTH = 1_000


@dataclass
class Predicted:
    """A prediction, its score, whether it was right, and how long its label took (None: never)."""

    at: int
    score: float
    right: bool
    delay: int | None


def a_stream(seed: int, length: int, *, shifted: bool = False) -> list[Predicted]:
    """Predictions 10 ms apart that are right as often as their score says; after two thirds, low scores."""
    rng = np.random.default_rng(seed)
    made: list[Predicted] = []
    for i in range(length):
        high = 0.75 if shifted and i > 2 * length // 3 else 1.0
        score = float(rng.uniform(0.5, high))
        delay = None if rng.random() < 0.1 else int(rng.exponential(3_000))
        made.append(Predicted(10 * i, score, bool(rng.random() < score), delay))
    return made


def scores(score: float) -> dict[str, float]:
    return {"a": score, "b": 1 - score}


def watched(made: list[Predicted], until: int) -> EarlyHints:
    """Everything that came up to a time, in its order."""
    watch = EarlyHints(EarlyHintsSpec(bucket_ms=WIDTH))
    for start in range(0, len(made), 37):
        part = made[start : start + 37]
        watch.observe(batch_of([Prediction(str(s.at), "m", "a", s.at, scores=scores(s.score)) for s in part]))
    came = sorted((s.at + s.delay, s.at, s) for s in made if s.delay is not None and s.at + s.delay <= until)
    watch.learn(
        [
            Outcome("m", "ba"[s.right], "a", at, s.delay or 0, scores=scores(s.score), resolved_ms=at)
            for at, _, s in came
        ]
    )
    return watch


def share(values: list[bool]) -> float:
    return sum(values) / len(values) if len(values) >= 30 else math.nan


def plain(made: list[Predicted], until: int) -> list[Stretch]:
    """The same from lists: for every prediction the share of right ones in its bin, of earlier stretches."""
    found: list[Stretch] = []
    labelled = [s for s in made if s.delay is not None and s.at + s.delay <= until]
    newest = made[-1].at // WIDTH
    for number in range(max(0, newest - 63), newest + 1):
        here = [s for s in made if s.at // WIDTH == number]
        past = [s for s in labelled if max(0, newest - 63) <= s.at // WIDTH < number]
        expected = unchanged = math.nan
        by_bin = {b: [p.right for p in past if min(9, int(p.score * 10)) == b] for b in range(10)}
        known = [s for s in here if by_bin[min(9, int(s.score * 10))]]
        if len(past) >= 30:
            unchanged = share([p.right for p in past])
            if len(known) >= 0.95 * len(here):
                rates = {b: sum(rights) / len(rights) for b, rights in by_bin.items() if rights}
                expected = sum(rates[min(9, int(s.score * 10))] for s in known) / len(known)
        came = [s.right for s in labelled if s.at // WIDTH == number]
        start = number * WIDTH
        found.append(Stretch(start, start + WIDTH, len(here), len(came), expected, unchanged, share(came)))
    return found


@pytest.mark.parametrize("length", [50, 950, 3_000, pytest.param(9_000, marks=pytest.mark.slow)])
def test_stretches_equal_sums_over_lists(length: int) -> None:
    made = a_stream(length, length)
    until = made[-1].at
    ours, theirs = watched(made, until).views()["m"].stretches, plain(made, until)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.start_ms, one.end_ms, one.predictions, one.labelled) == (
            other.start_ms,
            other.end_ms,
            other.predictions,
            other.labelled,
        )
        for name in ("expected", "unchanged", "accuracy"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, nan_ok=True), name


def test_counts_of_a_stretch_end_at_their_limit_by_being_halved_and_shares_stay() -> None:
    watch = watched(a_stream(5, 900), 10**9)
    (kept,) = decode(watch.snapshot())
    many = (2**31 - 1) // max(kept.counts)
    counts = [many * each for each in kept.counts]
    counts[counts.index(max(counts))] = 2**31 - 1
    full = EarlyHints(EarlyHintsSpec(bucket_ms=WIDTH))
    full.restore(encode([msgspec.structs.replace(kept, counts=counts)]))
    before = full.views()["m"].stretches
    made = [Prediction(str(s.at), "m", "a", s.at, scores=scores(s.score)) for s in a_stream(5, 900)]
    full.observe(batch_of(made))  # one of these finds a count at its limit
    (after,) = decode(full.snapshot())
    assert min(after.counts) >= 0
    halved = 0
    for one, other in zip(before, full.views()["m"].stretches, strict=True):
        halved += other.predictions < 0.6 * one.predictions
        assert other.labelled / other.predictions == pytest.approx(one.labelled / one.predictions, rel=1e-5)
        assert other.accuracy == pytest.approx(one.accuracy, rel=1e-5, nan_ok=True)
    assert halved == 1


def test_scores_are_worth_it_where_they_move_and_cost_little_where_they_do_not() -> None:
    moved = watched(a_stream(3, 6_000, shifted=True), 10**9).views()["m"].expectation_errors
    assert moved.expected < 0.7 * moved.unchanged
    calm = watched(a_stream(4, 6_000), 10**9).views()["m"].expectation_errors
    assert calm.expected == pytest.approx(calm.unchanged, abs=0.01)


def test_only_stretches_half_of_whose_labels_have_come_are_judged() -> None:
    judged = Stretch(0, 1, 100, 50, 0.8, 0.9, 0.7)
    young = Stretch(1, 2, 101, 50, 0.1, 0.1, 0.7)
    unknown = Stretch(2, 3, 100, 100, math.nan, 0.9, 0.7)
    assert expectation_errors([judged, young, unknown]) == ExpectationErrors(
        pytest.approx(0.1), pytest.approx(0.2)
    )
    assert math.isnan(expectation_errors([young]).expected)


def test_a_prediction_dated_later_than_it_came_takes_no_stretch() -> None:
    watch = EarlyHints(EarlyHintsSpec(bucket_ms=WIDTH))
    events = [
        Prediction("a", "m", "a", 5_000, 5_000, scores(0.9)),
        Prediction("b", "m", "a", 5_001, 5_000_000, scores(0.9)),
        Prediction("c", "m", "a", 5_002, -4_000, scores(0.9)),
    ]
    watch.observe(batch_of(events))
    assert [each.predictions for each in watch.views()["m"].stretches] == [1]
    assert watch.views()["m"].predictions == 3


def test_what_was_assumed_and_what_was_predicted_before_the_first_seen_says_nothing() -> None:
    watch = EarlyHints(EarlyHintsSpec(bucket_ms=WIDTH))
    watch.observe(batch_of([Prediction("a", "m", "a", 5_000, scores=scores(0.9))]))
    outcome = Outcome("m", "a", "a", 6_000, 1_000, scores=scores(0.9), resolved_ms=6_000)
    watch.learn([msgspec.structs.replace(outcome, assumed=True)])
    watch.learn([msgspec.structs.replace(outcome, delay_ms=1_001), outcome])
    (stretch,) = watch.views()["m"].stretches
    assert stretch.labelled == 1
