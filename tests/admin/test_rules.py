"""Each rule of `streamwatch doctor`: what it says where it should, and its silence where it should not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import pytest

from streamwatch.admin.doctor import rules
from streamwatch.admin.doctor.facts import Configured, Facts, MetricSamples, SampledTopic, Weight, read
from streamwatch.admin.doctor.rules import RULES, examine, grouped
from streamwatch.admin.doctor.rules.records import OF_LOG
from streamwatch.core.join.caveats import Repeats
from streamwatch.core.records.events import Prediction
from streamwatch.daemon.publisher import MOST_BYTES
from streamwatch.settings.monitors import MonitorsSection

MODULES: list[ModuleType] = [
    importlib.import_module(f"{rules.__name__}.{found.name}")
    for found in pkgutil.iter_modules(rules.__path__)
]
MODEL = """
model_predictions_total{model="m"} 1000
outcomes_total{model="m"} 900
accuracy_ratio{model="m",forgetting="fading:0.999"} 0.95
accuracy_ratio{model="m",forgetting="landmark"} 0.5
"""


def reading(text: str) -> MetricSamples:
    """Samples as the daemon writes them, without the prefix."""
    return read("\n".join(f"streamwatch_{line}" for line in text.splitlines() if line) + "\n")


def shown(text: str = "", **rest: Any) -> list[str]:
    """What is found, in words: subject, figure, cause and change in one line."""
    found = examine(Facts(reading(text) if text else MetricSamples({}), **rest))
    return [f"{one.rule}: {one.subject} {one.observation} | {one.cause} | {one.change}" for one in found]


def baselines(persistent: float, majority: float) -> str:
    return MODEL + "".join(
        f'baseline_accuracy_ratio{{model="m",forgetting="fading:0.999",baseline="{name}"}} {value}\n'
        for name, value in (("persistent", persistent), ("majority", majority))
    )


Case = tuple[Mapping[str, Any], str]
CONFIGURED = Configured(horizon_ms=3_600_000, min_outcomes=100)
WRONG: Mapping[str, Case] = {
    "not_ready": (
        {"text": "kafka_up 0", "reasons": ("Kafka cannot be reached",)},
        "daemon is not ready: Kafka cannot be reached | the brokers do not answer",
    ),
    "diverged": (
        {
            "text": "standby_diverged 1\npublishing_waiting_bytes 41943040",
            "reasons": ("it cannot be a standby: its outcomes differ",),
        },
        "replica it cannot be a standby: its outcomes differ (40 MB of results wait in it)",
    ),
    "held_back": (
        {"text": 'merge_held_records 400\nmerge_hold_seconds{topic="p",partition="3"} 95'},
        "partition 3 of p has held 400 records back for 95 s",
    ),
    "clock_behind": ({"text": "host_clock_behind 1"}, "this host's clock is behind"),
    "nothing_joins": (
        {
            "text": 'nothing_joins{model="m"} 1\nlabels_accepted_total 650\n'
            'model_predictions_total{model="m"} 700',
            "topics": {
                "p": SampledTopic({"m": [f"pre-{number}" for number in range(50)]}),
                "l": SampledTopic({"": [str(number) for number in range(50)]}),
            },
        },
        "model m has no label for any of 700 predictions | ids at predictions start with 'pre-'",
    ),
    "classes_disjoint": (
        {"details": {"m": {"classes_disjoint": {"predicted_class": ["0", "1"], "true": ["no", "yes"]}}}},
        "model m is right in no outcome: it predicts '0', '1', but labels say 'no', 'yes'",
    ),
    "undecodable": (
        {
            "text": 'records_evaluated_total{topic="l"} 1000\n'
            'records_invalid_total{topic="l",reason="missing_label"} 390\n'
            'records_invalid_total{topic="l",reason="invalid_json"} 10',
            "topics": {"l": SampledTopic(invalid={"missing_label": "partition 0 offset 17"})},
        },
        "topic l has 40.0% invalid records (400), mostly missing_label, such as partition 0 offset",
    ),
    "horizon_short": (
        {"text": "labels_late_total 120\nlabels_joined_total 880", "configured": CONFIGURED},
        "join.horizon is too short for 12.0% of the labels: 120 arrived after expiry",
    ),
    "labels_orphaned": (
        {
            "text": "labels_orphaned_total 310\nlabels_accepted_total 2000\nlabels_joined_total 1690\n"
            'topic_labels_total{topic="truths"} 1000\ntopic_labels_total{topic="reviews"} 1000\n'
            'topic_label_results_total{topic="truths",result="orphaned"} 300\n'
            'topic_label_results_total{topic="reviews",result="orphaned"} 10'
        },
        "labels of truths match no prediction in 30.0% of cases (300 of 1,000)",
    ),
    "predictions_repeated": (
        {
            "text": "predictions_accepted_total 700\npredictions_duplicate_total 572\n"
            "predictions_conflict_total 128"
        },
        "predictions repeat an id and a model in 50.0% of cases (700 of 1,400; 128 with another class)",
    ),
    "not_durable": ({"text": "state_durable 0"}, "state is not durable"),
    "disk_low": (
        {"text": 'state_disk_low 1\nstate_bytes{part="join"} 3000000'},
        "disk is nearly full, so reading is paused (the state takes 3 MB)",
    ),
    "lag_grows": (
        {
            "text": 'consumer_lag_records{topic="p",partition="0"} 9000\n'
            'records_evaluated_total{topic="p"} 500',
            "before": reading(
                'consumer_lag_records{topic="p",partition="0"} 5000\nrecords_evaluated_total{topic="p"} 200'
            ),
            "seconds": 3.0,
        },
        "lag grew by 4,000 records in 3 s and is 9,000, mostly on p (100 records evaluated per second)",
    ),
    "limits_reached": (
        {"text": 'records_over_limit_total{limit="models"} 55'},
        "monitors.max_models is reached: 55 records are beyond it",
    ),
    "early_hint_stands": (
        {
            "text": 'early_hint{model="m"} 1',
            "details": {"m": {"early_hints": {"hint": {"class": "fraud", "more": True}}}},
        },
        "model m has an early hint: 'fraud' is predicted more often than before; the labels are not in",
    ),
    "labels_cut_off": (
        {"details": {"m": {"label_delays": {"labelled": [*(0.02 * k for k in range(1, 23)), 0.5]}}}},
        "model m has labels for 50.0% of its predictions when these expire, 12.0% of them from",
    ),
    "labels_stopped": (
        {
            "text": 'model_predictions_total{model="m"} 900\ncaught_up 1\n'
            'pending_predictions{model="m"} 350\n'
            'last_prediction_timestamp_seconds{model="m"} 20800\n'
            'last_label_timestamp_seconds{model="m"} 10000\n'
            'label_delay_seconds_bucket{model="m",le="60"} 540\n'
            'label_delay_seconds_bucket{model="m",le="300"} 545\n'
            'label_delay_seconds_bucket{model="m",le="+Inf"} 550'
        },
        "model m has had no label for 3 h and goes on predicting (350 predictions wait); 99 % of its labels",
    ),
    "labels_before_predictions": (
        {"text": "labels_negative_delay_total 30\nlabels_joined_total 400"},
        "labels are older than their prediction in 7.5% of cases (30 of 400), and these delays count as 0",
    ),
    "predictions_stopped": (
        {
            "text": "caught_up 1\nclock_timestamp_seconds 20800\n"
            'last_prediction_timestamp_seconds{model="m"} 10000\n'
            'last_prediction_timestamp_seconds{model="n"} 20700'
        },
        "model m has not predicted for 3 h",
    ),
    "times_misread": (
        {
            "text": "caught_up 1\nclock_timestamp_seconds 1796049000\n"
            'last_prediction_timestamp_seconds{model="m"} 1796049\n'
            'last_prediction_timestamp_seconds{model="n"} 1796048990'
        },
        "model m predicts in January 1970, by the timestamps of its records",
    ),
    "labels_missing": (
        {
            "details": {
                "m": {
                    "sampled_labels": {
                        "settled": {"labels_asked": 3_000.0, "labels_arrived": 2_010},
                        "labels_missing": True,
                        "probabilities_differ": False,
                    }
                }
            }
        },
        "labels of m are missing: of 3,000 that were asked for, 2,010 have come",
    ),
    "delays_moved": (
        {
            "details": {
                "m": {
                    "late_labels": {
                        "delays_moved": {"hits": {"before_seconds": 864_000.0, "after_seconds": 1_296_000.0}}
                    }
                }
            }
        },
        "model m has labels with other delays than before, typically 15 d for hits (before: 10 d)",
    ),
    "segments_full": (
        {
            "text": 'segment_outcomes_total{model="m",segment="country",value="de"} 800\n'
            'segment_outcomes_total{model="m",segment="country",value="__other__"} 200\n'
            'segment_outcomes_total{model="m",segment="channel",value="web"} 990\n'
            'segment_outcomes_total{model="m",segment="channel",value="__other__"} 10'
        },
        "segment country of model m has 20.0% of its outcomes in __other__",
    ),
    "evicted": (
        {"text": "predictions_evicted_total 8"},
        "join.max_pending is reached: 8 of the oldest were evicted",
    ),
    "persistent_wins": (
        {"text": baselines(0.98, 0.99)},
        "model m is right in 95.0%, the previous label in 98.0%, but classes are 99 : 1",
    ),
    "labels_sorted": (
        {"text": baselines(0.99, 0.55)},
        "model m has labels that repeat the previous one in 99.0% of its outcomes, although",
    ),
    "out_of_order": (
        {
            "text": 'records_evaluated_total{topic="l"} 1000\nrecords_out_of_order_total{topic="l"} 50\n'
            'records_lateness_seconds_total{topic="l"} 100'
        },
        "topic l has 5.0% of its records out of order, 2.0 s late on average",
    ),
    "records_misdated": (
        {
            "text": 'watermark_timestamp_seconds{topic="p",partition="0"} 1796101.009\n'
            'watermark_timestamp_seconds{topic="p",partition="1"} 1796101.009\n'
            'watermark_timestamp_seconds{topic="l",partition="0"} 1796101009.332'
        },
        "topic p is of January 1970, by Kafka's timestamps of its records",
    ),
    "detectors_silent": (
        {
            "text": 'model_predictions_total{model="m"} 90\noutcomes_total{model="m"} 40',
            "configured": CONFIGURED,
        },
        "model m has 40 outcomes: its alarms are not announced before 100",
    ),
    "undelivered": (
        {
            "text": 'notifications_dropped_total{receiver="oncall",reason="gave_up"} 2\n'
            'notifications_failed_total{receiver="oncall",reason="http_500"} 9\n'
            'notifications_pending{receiver="oncall"} 1'
        },
        "receiver oncall 2 notifications given up, 1 wait; most attempts fail with http_500",
    ),
    "verdicts_left_out": (
        {"text": MODEL, "details": {"m": {"cohorts": {"left_out": 3}}}},
        "model m has more than 4.2 billion outcomes in a 16th of the horizon, or predictions in a cohort: 3",
    ),
    "verdicts_far": (
        {
            "text": MODEL,
            "details": {
                "m": {
                    "cohorts": {
                        "opponents": {
                            "persistent_at_prediction": {"five_points_shown_after_seconds": 8e7},
                            "majority": {"five_points_shown_after_seconds": 2e7},
                        }
                    }
                }
            },
        },
        "model m has so few predictions that a lead of 5 points would be a verdict after about 231 d",
    ),
    "log_lost": (
        {
            "text": 'kafka_data_loss_total{cause="retention"} 1\n'
            'kafka_records_lost_total{cause="retention"} 900'
        },
        "Kafka lost records before they were read: retention once; 900 are known to be lost",
    ),
}
"""For each rule a daemon on which it has something to say, and what it then says."""

HEALTHY = (
    MODEL
    + """
kafka_up 1
ready 1
state_durable 1
state_disk_low 0
host_clock_behind 0
labels_accepted_total 920
labels_joined_total 900
labels_late_total 2
labels_orphaned_total 3
nothing_joins{model="m"} 0
records_evaluated_total{topic="p"} 1000
records_evaluated_total{topic="l"} 920
records_out_of_order_total{topic="p"} 1
consumer_lag_records{topic="p",partition="0"} 2000
merge_hold_seconds{topic="p",partition="0"} 1.2
predictions_evicted_total 0
records_over_limit_total{limit="models"} 0
kafka_data_loss_total{cause="retention"} 0
notifications_failed_total{receiver="oncall",reason="http_500"} 1
notifications_dropped_total{receiver="oncall",reason="gave_up"} 0
notifications_pending{receiver="oncall"} 0
early_hint{model="m"} 0
caught_up 1
clock_timestamp_seconds 20800
last_prediction_timestamp_seconds{model="m"} 20000
last_label_timestamp_seconds{model="m"} 10000
label_delay_seconds_bucket{model="m",le="3600"} 500
label_delay_seconds_bucket{model="m",le="21600"} 900
label_delay_seconds_bucket{model="m",le="+Inf"} 900
segment_outcomes_total{model="m",segment="country",value="de"} 900
segment_outcomes_total{model="m",segment="country",value="__other__"} 9
"""
)


def test_every_rule_of_every_file_is_applied() -> None:
    """A rule is a function of a file of rules, and no other function there is public."""
    found = [
        name
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__ and name[0] != "_"
    ]
    assert sorted(found) == [rule.__name__ for rule in RULES]


def test_every_rule_has_a_test() -> None:
    assert set(WRONG) == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_says_what_is_wrong_with_its_figure_and_nothing_else_is_found(name: str) -> None:
    given, expected = WRONG[name]
    [found] = shown(**given)
    assert found.startswith(f"{name}: {expected}")


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_is_silent_on_a_healthy_daemon_and_on_one_that_reports_nothing(name: str) -> None:
    find: Callable[[Facts], Any] = next(rule for rule in RULES if rule.__name__ == name)
    assert list(find(Facts(reading(HEALTHY), reading(HEALTHY), 3.0, configured=CONFIGURED))) == []
    assert list(find(Facts(MetricSamples({})))) == []


class Counted(dict[Any, float]):
    """Samples that count how often all of them are looked through."""

    looks = 0

    def items(self) -> Any:
        self.looks += 1
        return super().items()


def test_a_replica_that_differs_is_told_when_it_stops_reading_and_what_to_do() -> None:
    (found,) = shown("standby_diverged 1\npublishing_waiting_bytes 0", reasons=("it differs",))
    assert "copy the holder's state to it (docs/how-to/standby.md" in found
    assert f"stops reading once {MOST_BYTES >> 20} MB wait" in found
    assert "is starting" not in found


def test_samples_are_not_looked_through_once_for_each_model() -> None:
    looks: list[int] = []
    for models in (1, 20):
        text = "".join(HEALTHY.replace('model="m"', f'model="m{each}"') for each in range(models))
        samples = Counted(reading(text).samples)
        assert examine(Facts(MetricSamples(samples), seconds=3.0, configured=CONFIGURED)) == []
        looks.append(samples.looks)
    assert looks[0] == looks[1]


def test_probabilities_that_are_not_those_used_are_reported_and_labels_that_come_are_not() -> None:
    settled = {"labels_asked": 3_000.0, "labels_arrived": 3_600}
    document = {"settled": settled, "labels_missing": False, "probabilities_differ": True}
    [found] = shown(details={"m": {"sampled_labels": document}})
    assert found.startswith("labels_missing: label_probability of m is not how often labels are asked for")
    assert shown(details={"m": {"sampled_labels": {**document, "probabilities_differ": False}}}) == []


def test_a_longer_wait_is_no_advice_where_timestamps_are_not_believed() -> None:
    text = str(WRONG["out_of_order"][0]["text"])
    [found] = shown(text)
    assert "| time: {settle: 4s}" in found
    [found] = shown(text.replace('seconds_total{topic="l"} 100', 'seconds_total{topic="l"} 360000'))
    assert "7,200.0 s late" in found
    assert "| the producer's clock, or message.timestamp.type=LogAppendTime" in found
    corrected = 'timestamps_corrected_total{reason="future"} 50\n'
    assert any("time.settle does not help" in found for found in shown(f"{text}\n{corrected}"))
    assert not any("settle: 4s" in found for found in shown(f"{text}\n{corrected}"))


def test_losses_of_the_log_without_a_number_are_not_reported_as_zero() -> None:
    text = 'kafka_data_loss_total{cause="recreated"} 1\nkafka_records_lost_total{cause="recreated"} 0\n'
    [log] = shown(text)
    assert "recreated once; their number is not known" in log
    text += 'kafka_data_loss_total{cause="retention"} 2\nkafka_records_lost_total{cause="retention"} 900\n'
    [log] = shown(text)
    assert "retention 2 times; 900 are known to be lost, without those of recreated" in log


def test_a_shared_consumer_group_is_reported_apart_from_losses_of_the_log() -> None:
    text = 'kafka_data_loss_total{cause="group_shared"} 1\nkafka_data_loss_total{cause="retention"} 2\n'
    text += 'kafka_records_lost_total{cause="retention"} 900\n'
    log, group = shown(text)
    assert "retention 2 times; 900 are known to be lost |" in log
    assert group.startswith("log_lost: kafka.group_id is used by somebody else at the same time")
    assert "group_shared, once" in group
    assert "kafka.group_id of its own" in group


@pytest.mark.parametrize("cause", OF_LOG)
def test_a_loss_of_the_log_is_explained_by_its_own_cause(cause: str) -> None:
    [found] = shown(f'kafka_data_loss_total{{cause="{cause}"}} 1\n')
    explained = [other for other, (why, _) in OF_LOG.items() if f"| {why} |" in found]
    assert explained == [cause]


def test_the_most_important_comes_first() -> None:
    facts = Facts(
        reading('state_durable 0\nstate_disk_low 1\nnothing_joins{model="m"} 1\nlabels_late_total 9')
    )
    weights = [found.weight for found in examine(facts)]
    assert weights == sorted(weights)
    assert weights[0] is Weight.NOTHING_WORKS


def test_records_that_wait_for_a_schema_are_no_start_that_passes() -> None:
    waits = "records wait for their schemas: schema 2 of the registry at r: answers 500"
    (found,) = shown(text="kafka_up 1\nschema_registry_up 0", reasons=(waits,))
    assert found.startswith(
        f"not_ready: daemon is not ready: {waits} | the schema registry cannot be reached"
    )
    assert "deleted there" in found


def test_of_a_daemon_that_has_not_come_to_reading_brokers_are_not_reported() -> None:
    compiling = "the estimators are being compiled, once on this machine: 10 s so far"
    (found,) = shown(text="kafka_up 0", reasons=(compiling,))
    assert found == (
        f"not_ready: daemon is not ready: {compiling} | it is starting, recovering or waiting | "
        "wait; if it lasts, the log gives the reason"
    )


def test_classes_that_only_differ_in_writing_are_matched_in_what_to_change() -> None:
    disjoint = {"classes_disjoint": {"predicted_class": ["0", "1"], "true": ["no", "yes"]}}
    [found] = shown(details={"m": disjoint})
    assert found.endswith("in the mapping of the label topic: classes: {'no': '0', 'yes': '1'}")


def test_a_model_whose_predicted_classes_are_scores_is_reported() -> None:
    disjoint = {"classes_disjoint": {"predicted_class": ["0.93", "0.5"], "true": ["fraud"]}}
    [found] = shown(details={"m": disjoint})
    assert "the mapped field holds a score instead of a class" in found


def test_a_rare_class_is_no_finding_where_the_utility_is_balanced_already() -> None:
    for pattern in ("m", "m*"):
        balanced = Configured(3_600_000, 100, {pattern: "balanced", "*": "accuracy"})
        assert shown(baselines(0.98, 0.99), configured=balanced) == []
    of_others = Configured(3_600_000, 100, {"n*": "balanced", "*": "accuracy"})
    assert len(shown(baselines(0.98, 0.99), configured=of_others)) == 1


def test_nothing_joins_because_there_are_no_labels_at_all() -> None:
    [found] = shown('nothing_joins{model="m"} 1\nlabels_accepted_total 3')
    assert "only 3 labels were read at all" in found


def test_a_hint_about_scores_says_so_and_one_without_details_says_what_is_known() -> None:
    scores = {"early_hints": {"hint": {"class": None, "more": False}}}
    [found] = shown('early_hint{model="m"} 1', details={"m": scores})
    assert "scores of predicted classes are lower than before" in found
    [found] = shown('early_hint{model="m"} 1')
    assert "its predictions differ from earlier ones" in found


def curve(last_but_one: float, last: float, known: int = 23) -> Mapping[str, Any]:
    """Details of a model whose share labelled by age ends like this."""
    shares = [*([last_but_one] * 22), last]
    return {"m": {"label_delays": {"labelled": shares[:known]}}}


@pytest.mark.parametrize("details", [curve(0.5, 0.51), curve(0.7, 0.995), curve(0.4, 0.5, 22), curve(0, 0)])
def test_labels_that_have_come_before_the_horizon_ends_or_are_all_in_by_then_are_no_finding(details) -> None:
    assert shown(details=details) == []


def test_outcomes_of_segments_for_which_there_was_no_room_are_reported() -> None:
    [found] = shown('segment_outcomes_left_out_total{model="m",segment="user"} 1200')
    assert found.startswith("segments_full: segment user of model m lacks 1,200 outcomes")


def test_each_limit_is_named_as_its_setting_and_that_of_segments_as_what_it_is() -> None:
    for limit in ("models", "classes", "comparisons"):
        [found] = shown(f'records_over_limit_total{{limit="{limit}"}} 3')
        assert found.startswith(f"limits_reached: monitors.max_{limit} is reached: 3 records")
        assert limit == "comparisons" or f"more {limit}" in found
        assert f"max_{limit}" in MonitorsSection.model_fields
    [found] = shown('records_over_limit_total{limit="segments"} 3')
    assert found.startswith("limits_reached: segments of 3 predictions are not distinguished")


def test_series_that_are_left_out_are_reported_by_part() -> None:
    parts = {"class": 3_000, "forgetting": 40, "needed": 0}
    [found] = shown("\n".join(f'series_dropped{{part="{part}"}} {count}' for part, count in parts.items()))
    assert found.startswith(
        "limits_reached: monitors.max_series is reached: 3,040 series are not in /metrics "
        "(3,000 class, 40 forgetting)"
    )


def test_repeated_predictions_are_reported_above_one_in_a_hundred_and_revised_ones_where_not_meant() -> None:
    text = "predictions_accepted_total {}\npredictions_duplicate_total {}\npredictions_conflict_total {}"
    assert shown(text.format(990, 5, 5)) == []
    assert shown() == []
    [found] = shown(text.format(980, 20, 0))
    assert "producers that deliver at least once" in found
    assert shown(text.format(500, 0, 500), configured=replace(CONFIGURED, conflicts="last")) == []
    repeats = Repeats()
    for number in range(20):
        repeats.add(Prediction(str(number // 2), "fraud", "ab"[number % 2], 0))
    [found] = shown(text.format(980, 20, 0), topics={"p": SampledTopic(repeats=repeats)})
    assert found.startswith(
        "predictions_repeated: model fraud repeats ids in 50.0% of its predictions (10 of 20"
    )


SILENT = WRONG["labels_stopped"][0]["text"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("caught_up 1", "caught_up 0"), "labels may be among what is not read yet"),
        (('le="300"} 545', 'le="300"} 60'), "labels used to take longer than the last bound"),
        (('le="+Inf"} 550', 'le="+Inf"} 99'), "too few labels to know how long they take"),
        (('predictions{model="m"} 350', 'predictions{model="m"} 0'), "each prediction has its label"),
        (('seconds{model="m"} 10000', 'seconds{model="m"} 17300'), "an hour is not over yet"),
    ],
)
def test_silence_is_none_where(change: tuple[str, str], why: str) -> None:
    assert any("labels_stopped" in line for line in shown(SILENT))
    changed = SILENT.replace(*change)
    assert changed != SILENT
    assert not any("labels_stopped" in line for line in shown(changed)), why


def test_seconds_among_milliseconds_are_found_by_impossible_delays() -> None:
    text = (
        'last_prediction_timestamp_seconds{model="m"} 1796100000\n'
        'label_delay_seconds_bucket{model="m",le="86400.0"} 10\n'
        'label_delay_seconds_bucket{model="m",le="2419200.0"} 390\n'
        'label_delay_seconds_bucket{model="m",le="+Inf"} 400\n'
        'label_delay_seconds_count{model="m"} 400\n'
    )
    most = 10 * 86_400 + 380 * 2_419_200
    [found] = shown(f'{text}label_delay_seconds_sum{{model="m"}} {most + 10 * 1_794_000_000}\n')
    assert found.startswith(
        "times_misread: model m has labels that come decades after their prediction (10 of 400)"
    )
    assert shown(f'{text}label_delay_seconds_sum{{model="m"}} {most + 10 * 300 * 86_400}\n') == []


def silent_models(count: int) -> str:
    return "caught_up 1\nclock_timestamp_seconds 20800\n" + "".join(
        f'last_prediction_timestamp_seconds{{model="m{model:03}"}} {10_000 + model}\n'
        for model in range(count)
    )


def test_what_is_found_of_many_models_is_stated_once_with_the_first_one_s_figure() -> None:
    findings = examine(Facts(reading(silent_models(500))))
    assert len(findings) == 500
    (one,) = grouped(findings)
    assert one.subject == "model m000"
    assert one.observation == (
        "has not predicted for 3 h; the same of 499 others: "
        "m001, m002, m003, m004, m005, m006, m007, m008 and 491 more"
    )


def test_three_models_are_reported_one_by_one_and_other_subjects_always() -> None:
    findings = examine(Facts(reading(silent_models(3) + "host_clock_behind 1\n")))
    assert list(grouped(findings)) == list(findings)
    assert len(findings) == 4
