"""What a person is shown during a demo."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streamwatch.core.metrics.series import Family, Report
from streamwatch.demo.narrator import WINDOW, NarratedTelemetry, Narrator, summaries
from streamwatch.telemetry import (
    AlarmRaised,
    KafkaLost,
    RecordRejected,
    StartedServing,
    TopicsAssigned,
    VerdictChanged,
)


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def reported():
    """A narrator, its clock, and a function that gives what it has printed."""
    out, clock = io.StringIO(), Clock()
    narrator = Narrator(Console(file=out, width=200), clock)
    return narrator, clock, out.getvalue


def report(accuracy, persistent, verdict=0.0):
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
            gauge("verdict", ("model", "opponent"), "m", "persistent", verdict),
            gauge("verdict", ("model", "opponent"), "m", "majority", -verdict),
            gauge("verdict_since_outcome", ("model", "opponent"), "m", "persistent", 1_204.0),
            gauge("pending_predictions", ("model",), "m", 9.0),
        ],
        0,
        {},
    )


def test_an_alarm_is_reported_with_model_detector_outcome_and_the_error_before_and_after(reported):
    narrator, clock, shown = reported
    clock.now += 22.5
    narrator.hear(AlarmRaised("drifting-v2", "adwin", 1, 1_532, 5, before=0.11, after=0.31))
    assert "ALARM drifting-v2: adwin at outcome 1,532: error 11 % → 31 %" in shown()
    assert (narrator.alarms, narrator.first_alarm_seconds) == (1, 22.5)
    clock.now += 5
    narrator.hear(AlarmRaised("drifting-v2", "adwin", 2, 1_600, 5, before=0.3, after=0.5))
    assert (narrator.alarms, narrator.first_alarm_seconds) == (2, 22.5)


def test_a_verdict_is_reported_when_the_daemon_says_it_and_since_when(reported):
    narrator, _, shown = reported
    narrator.hear(VerdictChanged("m", "persistent", "worse", 1_204, 7, 1_530, 9))
    narrator.hear(VerdictChanged("m", "persistent", "better", 4_010, 8, 4_600, 9))
    narrator.hear(VerdictChanged("m", "persistent", "open", 9_000, 8, 9_000, 9))
    assert "m is now worse than no change, the previous label: since outcome 1,204, decided at 1,530" in (
        shown()
    )
    assert "m is now better than no change, the previous label: since outcome 4,010" in shown()
    assert "m is no longer shown to be better or worse than no change: since outcome 9,000" in shown()
    assert narrator.alarms == 0


def test_numbers_that_cross_are_no_story(reported):
    narrator, _, shown = reported
    for accuracy in (0.9, 0.6, 0.9):
        narrator.publish(report(accuracy, 0.76))
    assert "worse" not in shown()


def test_without_a_terminal_a_line_of_accuracies_comes_every_ten_seconds(reported):
    narrator, clock, shown = reported
    for _ in range(25):
        narrator.publish(report(0.9, 0.76))
        clock.now += 1.0
    assert shown().count("m 90 % · no change 76 %") == 3


def test_undefined_numbers_are_dashes(reported):
    narrator, _, shown = reported
    narrator.publish(report(float("nan"), float("nan")))
    assert "m –" in shown()


def test_summaries_take_the_adwin_window_and_say_a_verdict():
    (good,) = summaries(report(0.5, 0.76, verdict=1.0))
    assert (good.model, good.outcomes, good.accuracy, good.persistent) == ("m", 700.0, 0.5, 0.76)
    assert (good.pending, good.judged) == (9.0, 1.0)
    assert good.verdict == "better than no change since outcome 1,204"
    assert summaries(report(0.9, 0.76, verdict=-1.0))[0].verdict == "worse than no change since outcome 1,204"
    assert summaries(report(0.9, 0.76))[0].verdict == "open: not shown to be better or worse than no change"


@pytest.mark.parametrize(
    ("headline", "words"),
    [
        (1.0, "better than no change and the majority"),
        (-1.0, "worse than no change or the majority"),
        (0.0, "open: not shown to be better or worse than no change"),
    ],
)
def test_a_verdict_by_cohorts_comes_before_that_in_the_order_of_labels(headline, words):
    given = report(0.5, 0.76, verdict=1.0)
    by_cohorts = Family("cohort_headline", "gauge", "", ("model",), [(("m",), headline)])
    (found,) = summaries(Report([*given.families, by_cohorts], 0, {}))
    assert (found.judged, found.verdict) == (headline, words)


def test_telemetry_is_counted_and_reported_in_words(reported, capsys):
    narrator, _, shown = reported
    telemetry = NarratedTelemetry(narrator)
    telemetry.emit(StartedServing("http://127.0.0.1:9877"))
    telemetry.emit(TopicsAssigned(("predictions", "labels"), 4))
    telemetry.emit(KafkaLost("gone"))
    telemetry.emit(RecordRejected("t", 0, 0, "invalid_json"))
    assert "look at http://127.0.0.1:9877/ · metrics at http://127.0.0.1:9877/metrics" in shown()
    assert "Kafka is gone (gone)" in shown()
    assert "invalid_json" not in shown()
    assert narrator.serving.is_set()
    assert telemetry.count(RecordRejected) == 1
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_last_table_stays():
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=150, force_terminal=True, color_system=None), Clock())
    narrator.start()
    narrator.publish(report(0.5, 0.76, verdict=-1.0))
    narrator.stop()
    last = out.getvalue().split("\n")[-2]
    assert last.split()[:5] == ["m", "700", "9", "50", "%"]
    assert "worse than no change since outcome 1,204" in last
