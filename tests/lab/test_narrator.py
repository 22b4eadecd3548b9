"""What a person is told during a demo."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streamwatch.core.series import Family, Report
from streamwatch.lab.narrator import WINDOW, NarratedTelemetry, Narrator, standings
from streamwatch.telemetry import AlarmRaised, KafkaLost, RecordRejected, StartedServing, TopicsAssigned


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def told():
    """A narrator, its clock, and a function that gives what it has said."""
    out, clock = io.StringIO(), Clock()
    narrator = Narrator(Console(file=out, width=200), clock)
    return narrator, clock, out.getvalue


def report(accuracy, persistent, window=500.0):
    def gauge(name, labels, *values):
        return Family(name, "gauge", "", labels, [(values[:-1], values[-1])])

    return Report(
        [
            Family("outcomes_total", "counter", "", ("model",), [(("m",), 700.0)]),
            gauge("accuracy_ratio", ("forgetting", "model"), WINDOW, "m", accuracy),
            gauge("accuracy_ratio", ("forgetting", "model"), "landmark", "m", 0.123),
            gauge(
                "baseline_accuracy_ratio",
                ("baseline", "forgetting", "model"),
                "persistent",
                WINDOW,
                "m",
                persistent,
            ),
            gauge("adwin_window_outcomes", ("forgetting", "model"), WINDOW, "m", window),
            gauge("pending_predictions", ("model",), "m", 9.0),
        ],
        0,
        {},
    )


def test_an_alarm_is_told_with_model_detector_outcome_and_the_error_before_and_after(told):
    narrator, clock, said = told
    clock.now += 22.5
    narrator.hear(AlarmRaised("drifting-v2", "adwin", 1, 1_532, 5, before=0.11, after=0.31))
    assert "ALARM drifting-v2: adwin at outcome 1,532: error 11 % → 31 %" in said()
    assert (narrator.alarms, narrator.first_alarm_seconds) == (1, 22.5)
    clock.now += 5
    narrator.hear(AlarmRaised("drifting-v2", "adwin", 2, 1_600, 5, before=0.3, after=0.5))
    assert (narrator.alarms, narrator.first_alarm_seconds) == (2, 22.5)


def test_becoming_worse_than_guessing_is_told_once_and_so_is_the_recovery(told):
    narrator, _, said = told
    for accuracy in (0.9, 0.6, 0.55, 0.77, 0.9, 0.95):
        narrator.publish(report(accuracy, 0.76))
    assert said().count("is now worse than guessing what came last: right 60 % of the time") == 1
    assert "over its last 500 outcomes, against 76 %" in said()
    assert said().count("is better than guessing what came last again: right 90 %") == 1


def test_a_hair_s_breadth_or_a_handful_of_outcomes_is_no_story(told):
    narrator, _, said = told
    narrator.publish(report(0.75, 0.76))
    narrator.publish(report(0.1, 0.76, window=49.0))
    assert "worse" not in said()


def test_without_a_terminal_a_line_of_accuracies_comes_every_ten_seconds(told):
    narrator, clock, said = told
    for _ in range(25):
        narrator.publish(report(0.9, 0.76))
        clock.now += 1.0
    assert said().count("m 90 % · guessing what came last 76 %") == 3


def test_undefined_numbers_are_dashes(told):
    narrator, _, said = told
    narrator.publish(report(float("nan"), float("nan"), window=0.0))
    assert "m –" in said()


def test_standings_take_the_adwin_window_and_say_a_verdict():
    (good,) = standings(report(0.9, 0.76))
    assert (good.model, good.outcomes, good.accuracy, good.persistent) == ("m", 700.0, 0.9, 0.76)
    assert (good.window, good.pending) == (500.0, 9.0)
    assert good.verdict == "better than guessing what came last"
    assert standings(report(0.5, 0.76))[0].verdict == "worse than guessing what came last"
    assert standings(report(0.75, 0.76))[0].verdict == "no better than guessing what came last"
    assert standings(report(0.75, 0.76, window=3.0))[0].verdict == "too few outcomes to tell"


def test_telemetry_is_counted_and_told_in_words(told, capsys):
    narrator, _, said = told
    telemetry = NarratedTelemetry(narrator)
    telemetry.emit(StartedServing("http://127.0.0.1:9877"))
    telemetry.emit(TopicsAssigned(("predictions", "labels"), 4))
    telemetry.emit(KafkaLost("gone"))
    telemetry.emit(RecordRejected("t", 0, 0, "invalid_json"))
    assert "look at http://127.0.0.1:9877/ · metrics at http://127.0.0.1:9877/metrics" in said()
    assert "Kafka is gone (gone)" in said()
    assert "invalid_json" not in said()
    assert narrator.reading.is_set()
    assert telemetry.count(RecordRejected) == 1
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_last_table_stays():
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=150, force_terminal=True, color_system=None), Clock())
    narrator.start()
    narrator.publish(report(0.5, 0.76))
    narrator.stop()
    last = out.getvalue().split("\n")[-2]
    assert last.split()[:5] == ["m", "700", "9", "50", "%"]
    assert "worse than guessing what came last" in last
