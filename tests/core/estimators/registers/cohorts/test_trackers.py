"""Trackers alone, run by Python on records made up here: the leader, stretches of time, and fast ages."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT
from streamwatch.core.estimators.registers.cohorts import trackers
from streamwatch.core.estimators.registers.cohorts.state import BOUNDS, MODEL, PARAMETERS, WHOLE
from tests.mutants.interpreted import call

SUMS = ("outcomes", "leads", "lead_squares", "weights", "weight_squares")
OF_COHORTS = ("totals", "squares")


def test_the_stretch_of_a_time_is_the_last_that_begins_by_then() -> None:
    rng = np.random.default_rng(1)
    for number in range(BOUNDS + 1):
        bounds_ms = np.full(BOUNDS, trackers.NEVER)
        bounds_ms[:number] = np.cumsum(rng.integers(1, 4, number))
        starts = bounds_ms[:number].tolist()
        times = [0, *rng.integers(0, 3 * BOUNDS, 5).tolist(), *starts[-2:]]
        found = [call(trackers.stretch_of, bounds_ms, time) for time in times]
        assert found == [bisect_right(starts, time) - 1 for time in times]


def test_the_older_half_of_the_stretches_is_merged_in_pairs_when_there_is_room_for_no_more() -> None:
    rng, model = np.random.default_rng(1), np.zeros(1, MODEL)[0]
    model["bounds_ms"] = trackers.NEVER
    plain: list[tuple[int, dict[str, np.ndarray]]] = []
    for time_ms in range(1_000, 98_000, 1_000):
        if len(plain) == BOUNDS:
            pairs = [plain[k : k + 2] for k in range(0, BOUNDS // 2, 2)]
            merged = [(a[0], {name: a[1][name] + b[1][name] for name in a[1]}) for a, b in pairs]
            plain = merged + plain[BOUNDS // 2 :]
        call(trackers.begin_stretch, model, time_ms)
        values = {name: rng.integers(1, 100, 2) for name in (*SUMS, *OF_COHORTS)}
        plain.append((time_ms, values | {"predictions": rng.integers(1, 100)}))
        at = len(plain) - 1
        for name, value in plain[-1][1].items():
            model["stretches" if name in SUMS else "leads"][at][name] += value
        assert model["bounds"] == len(plain)
        assert model["bounds_ms"].tolist() == [
            *(start_ms for start_ms, _ in plain),
            *[trackers.NEVER] * (BOUNDS - len(plain)),
        ]
        for name in values:
            own = model["stretches" if name in SUMS else "leads"][name]
            assert own[: len(plain)].tolist() == [sums[name].tolist() for _, sums in plain]
            assert not own[len(plain) :].any()
        assert model["leads"]["predictions"][: len(plain)].tolist() == [s["predictions"] for _, s in plain]


def test_the_leader_is_that_of_the_labels_known_when_the_prediction_was_made() -> None:
    """From the hundredth label on, and noted at most once in a 32nd of the horizon, which is 320 here.

    The unit in which labels are counted soon reaches its limit.
    """
    rng, model = np.random.default_rng(2), np.zeros(1, MODEL)[0]
    parameters, labels = np.zeros(1, PARAMETERS)[0], np.zeros((1, 4))
    parameters["note_ms"], model["unit"] = 10, 0.9 * LIMIT
    counts, notes, seen = dict.fromkeys(range(3), 0.0), list[tuple[int, int]](), set[int]()
    leader, clock_ms = -1, 1_000
    drawn = np.concatenate([rng.permutation(3) for _ in range(110)]).tolist()
    for number, label in enumerate(drawn):
        clock_ms += int(rng.integers(0, 7))
        model["observed"], model["clock_ms"] = number + 1, clock_ms
        call(trackers.note_leader, model, parameters)
        is_other = not notes or notes[-1][1] != leader
        if number >= 100 and is_other and (not notes or clock_ms >= notes[-1][0] + 10):
            notes.append((clock_ms, leader))
        for age_ms in (0, *rng.integers(0, 321, 2).tolist()):
            known = [noted for noted_ms, noted in notes if noted_ms <= clock_ms - age_ms]
            expected = known[-1] if known else -1
            assert call(trackers.leader_at, model, clock_ms - age_ms) == expected
            seen.add(expected)
        call(trackers.count_for_leader, model, labels, 0, label)
        counts = {each: 0.999 * count + (each == label) for each, count in counts.items()}
        leader = label if leader < 0 or counts[label] > counts[leader] else leader
    assert seen == {-1, 0, 1, 2}
    assert len(notes) > 33
    assert any(b[0] - a[0] == 10 for a, b in pairwise(notes))
    assert 1.0 < model["unit"] < 2.0


@pytest.mark.parametrize(
    ("totals", "labelled", "expected"),
    [
        ({4: 1_000.0}, {4: 990.0}, 5),
        ({4: 999.0}, {4: 999.0}, 0),
        ({4: 1_000.0}, {4: 989.9}, 0),
        ({0: 5_000.0, 9: 2_000.0, 11: 2_000.0}, {0: 4_000.0, 9: 1_999.0, 11: 2_000.0}, 10),
        ({WHOLE - 1: 1_200.0}, {WHOLE - 1: 1_200.0}, WHOLE),
    ],
)
def test_the_fast_age_is_the_first_by_which_99_percent_of_a_thousand_predictions_are_labelled(
    totals: dict[int, float], labelled: dict[int, float], expected: int
) -> None:
    model = np.zeros(1, MODEL)[0]
    model["fast_age"] = 7
    for k, total in totals.items():
        model["tracker_total"][k], model["tracker_share"][k] = total, labelled[k]
    call(trackers.choose_fast_age, model)
    assert model["fast_age"] == expected


@pytest.mark.parametrize("missing", [0, 1, 9, 16])
def test_more_predictions_may_be_missing_than_were_found(missing: int) -> None:
    model = np.zeros(1, MODEL)[0]
    model["tracker_total"][3], model["tracker_share"][3] = 1_600.0, 1_600.0 - missing
    assert call(trackers.missing_at, model, 3) == (missing + 2.5 * sqrt(missing) + 3) / 1_600
