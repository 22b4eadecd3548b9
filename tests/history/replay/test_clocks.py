"""Columns of detectors in prediction time, in a trace of a recording."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from pathlib import Path

import pytest

from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.specs import JoinSpec, PageHinkleySpec
from streamwatch.history.replay.replay import ReplaySpec, replay
from tests.layouts import DEFAULT

HORIZON_MS, SLACK_MS = 60_000, 2_000
BY_PREDICTION = PageHinkleySpec(name="by_prediction", threshold=4.0, dependence="ignored")
SPEC = replace(DEFAULT, registers=(PredictionClockSpec(HORIZON_MS, (BY_PREDICTION,)),))


def reported(seed: int, count: int = 400) -> tuple[str, list[tuple[int, int, int]]]:
    """Lines of a recording, and (prediction time, label time, loss) in the order of the labels, in ms."""
    chance = random.Random(seed)
    outcomes: list[tuple[int, int, int]] = []
    for number in range(count):
        loss = int(chance.random() < (0.7 if number >= count // 2 else 0.1))
        predicted_ms = 1_000_000_000_000 + 2_000 * number
        outcomes.append((predicted_ms, predicted_ms + chance.randrange(1, HORIZON_MS // 2) * 2 + 1, loss))
    lines = [(p, f"{p},{p},m,{'b' if loss else 'a'},") for p, _, loss in outcomes]
    lines += [(known, f"{known},{p},,,a") for p, known, _ in outcomes]
    text = "".join(f"{line}\n" for _, line in sorted(lines))
    return f"timestamp,id,model,prediction,label\n{text}", sorted(outcomes, key=lambda each: each[1])


def textbook(losses: list[int]) -> tuple[list[float], list[bool]]:
    """Page-Hinkley's statistic after each loss, and whether it alarmed (then it begins anew)."""
    statistics, alarms = [0.0], [False]
    statistic, total, count = 0.0, 0.0, 0
    for loss in losses:
        if alarms[-1]:
            statistic, total, count = 0.0, 0.0, 0
        total, count = total + loss, count + 1
        statistic = max(0.0, BY_PREDICTION.alpha * statistic + loss - total / count - BY_PREDICTION.tolerance)
        statistics.append(statistic)
        alarms.append(statistic > BY_PREDICTION.threshold and count >= BY_PREDICTION.min_outcomes)
    return statistics, alarms


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_each_row_has_the_recursion_over_what_was_settled_in_the_order_of_predictions(
    tmp_path: Path, seed: int
) -> None:
    text, outcomes = reported(seed)
    path, target = tmp_path / "events.csv", tmp_path / "trace.csv"
    path.write_text(text)
    result = replay(ReplaySpec([path], trace=target, monitors=SPEC, join=JoinSpec(horizon_ms=HORIZON_MS)))
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(outcomes)
    by_prediction = sorted(outcomes)
    statistics, alarms = textbook([loss for _, _, loss in by_prediction])
    seen = 0
    for number, row in enumerate(rows):
        # A clock is where three outcomes in a row agree that it is; their label times come in order here.
        clock_ms = outcomes[number - 2][1] if number >= 2 else 0
        now = sum(predicted + HORIZON_MS + SLACK_MS <= clock_ms for predicted, _, _ in by_prediction)
        assert int(row["alarm:by_prediction"]) == sum(alarms[seen + 1 : now + 1])
        if now:
            assert float(row["detector_statistic:by_prediction"]) == pytest.approx(statistics[now], abs=1e-9)
            settled = row["prediction_clock_settled_until_timestamp_seconds"]
            assert float(settled) == by_prediction[now - 1][0] / 1_000
        seen = now
    assert seen > 300
    late = [alarm for alarm in result.alarms if alarm.detector == "by_prediction"]
    assert len(late) == sum(alarms[: seen + 1]) > 0
