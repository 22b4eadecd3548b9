"""The dashboard *Models*: a row for each, and whether it is better than guessing."""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from deploy.grafana.chosen import (
    BARS,
    FORGETTING,
    INSTANCE,
    JOB,
    UNDER,
    VERDICTS,
    of,
    than_majority,
    than_no_change,
)
from deploy.grafana.panels import Column, Dashboard, Panel, Query, Row


def _by_model(expr: str) -> str:
    return f"max by (instance, model) ({expr})"


_ACCURACY = _by_model(of("accuracy_ratio", UNDER))
_LOWER = _by_model(of("accuracy_bound_ratio", 'bound="hoeffding"', UNDER))
_UPPER = _by_model(of("accuracy_bound_ratio", 'bound="hoeffding_upper"', UNDER))
_PERSISTENT = _by_model(of("baseline_accuracy_ratio", 'baseline="persistent"', UNDER))
_MAJORITY = _by_model(of("baseline_accuracy_ratio", 'baseline="majority"', UNDER))
_ON_NO_CHANGE = _by_model(than_no_change(of))
_ON_MAJORITY = _by_model(than_majority(of))

_COLOURED = {**VERDICTS, "custom.cellOptions": {"type": "color-text"}}


def _steps(below: str, from_one: str) -> dict[str, object]:
    steps = [{"color": below, "value": None}, {"color": from_one, "value": 1}]
    return {"thresholds": {"mode": "absolute", "steps": steps}}


_ALARMED = _steps("green", "red")
_WANTED = _steps("red", "green")

MODELS = Dashboard(
    uid="streamwatch-models",
    title="streamwatch / Models",
    description="Every model at a glance: is it still better than guessing?",
    variables=(JOB, INSTANCE, FORGETTING),
    alarms=f"{of('last_alarm_timestamp_seconds')} * 1000",
    links={"Model": "/d/streamwatch-model?${__url_time_range}&${datasource:queryparam}"},
    rows=(
        Row(
            "Are they better than guessing?",
            (
                Panel(
                    "Models",
                    "Models with at least one outcome that have not retired.",
                    (Query(f"count({_by_model(of('effective_sample_size'))})"),),
                    "short",
                    kind="stat",
                    width=4,
                    height=4,
                ),
                Panel(
                    "Worse than no change",
                    "Models that are currently of less use than the last label known at the prediction, or, "
                    "until there is a verdict by prediction time, than the previous label.",
                    (Query(f"count({_ON_NO_CHANGE} == -1) or vector(0)"),),
                    "short",
                    kind="stat",
                    width=5,
                    height=4,
                    defaults=_ALARMED,
                ),
                Panel(
                    "Worse than the majority class",
                    "Models that are currently of less use than predicting the most frequent class.",
                    (Query(f"count({_ON_MAJORITY} == -1) or vector(0)"),),
                    "short",
                    kind="stat",
                    width=5,
                    height=4,
                    defaults=_ALARMED,
                ),
                Panel(
                    "Caught up",
                    "1 while the brokers answer and every partition has been read to its end. While it is 0, "
                    "numbers are of the past.",
                    (Query(f"min({of('caught_up')})"),),
                    "short",
                    kind="stat",
                    width=5,
                    height=4,
                    defaults=_WANTED,
                ),
                Panel(
                    "State survives a restart",
                    "1 when state is on disk; 0 when it is in memory only (state.kind: memory), or the disk "
                    "has failed.",
                    (Query(f"min({of('state_durable')})"),),
                    "short",
                    kind="stat",
                    width=5,
                    height=4,
                    defaults=_WANTED,
                ),
                Panel(
                    "Models",
                    "Better, WORSE: currently, by the utility that monitors.utility sets; look as often as "
                    "you like. Open: neither is shown. Limits of the accuracy are "
                    "Hoeffding's at monitors.confidence_delta, for independent losses.",
                    (
                        Query(_ACCURACY, column="accuracy"),
                        Query(_LOWER, column="at least"),
                        Query(_UPPER, column="at most"),
                        Query(_PERSISTENT, column="previous label"),
                        Query(_ON_NO_CHANGE, column="than no change"),
                        Query(_MAJORITY, column="majority class"),
                        Query(_ON_MAJORITY, column="than majority"),
                        Query(_by_model(of("kappa_plus", UNDER)), column="κ⁺"),
                        Query(_by_model(of("effective_sample_size", UNDER)), column="n_eff"),
                        Query(f"{_by_model(of('last_alarm_timestamp_seconds'))} * 1000", column="last alarm"),
                        Query(f"{_by_model(of('last_label_timestamp_seconds'))} * 1000", column="last label"),
                        Query(_by_model(of("pending_predictions")), column="pending"),
                    ),
                    "percentunit",
                    kind="table",
                    width=24,
                    height=10,
                    columns={
                        "than no change": Column("none", _COLOURED),
                        "than majority": Column("none", _COLOURED),
                        "κ⁺": Column("none", {"decimals": 3}),
                        "n_eff": Column("short"),
                        "last alarm": Column("dateTimeFromNow"),
                        "last label": Column("dateTimeFromNow"),
                        "pending": Column("short"),
                        "model": Column(
                            "string",
                            {
                                "links": [
                                    {
                                        "title": "Everything of this model",
                                        "url": "/d/streamwatch-model?var-model=${__value.raw:percentencode}"
                                        "&${__url_time_range}",
                                    }
                                ]
                            },
                        ),
                    },
                ),
                Panel(
                    "Accuracy",
                    "Under the forgetting chosen above; decay is per outcome, not per second.",
                    (Query(_ACCURACY, "{{model}}"),),
                    "percentunit",
                ),
                Panel(
                    "Lead over the previous label",
                    "Accuracy minus what repeating the previous label gets: below 0, the model is worse "
                    "than none.",
                    (Query(f"{_ACCURACY} - {_PERSISTENT}", "{{model}}"),),
                    "percentunit",
                ),
            ),
        ),
        Row(
            "Drifts and labels",
            (
                Panel(
                    "Drift alarms",
                    "Alarms of each model and detector. A cluster of them is one change seen by several.",
                    (
                        Query(
                            f"sum by (model, detector) (increase({of('alarms_total')}[$__rate_interval]))",
                            "{{model}} {{detector}}",
                        ),
                    ),
                    "short",
                    custom=BARS,
                ),
                Panel(
                    "Outcomes",
                    "Predictions a second whose label became known.",
                    (Query(f"sum by (model) (rate({of('outcomes_total')}[$__rate_interval]))", "{{model}}"),),
                    "cps",
                ),
                Panel(
                    "Label delay, 90th percentile",
                    "Nine of ten labels that came took no longer than this after their prediction.",
                    (
                        Query(
                            "histogram_quantile(0.9, sum by (model, le) (rate("
                            f"{of('label_delay_seconds_bucket')}[$__rate_interval])))",
                            "{{model}}",
                        ),
                    ),
                    "s",
                ),
                Panel(
                    "Pending predictions",
                    "Predictions that wait for their label. Steady growth: labels have stopped, or ids do "
                    "not match.",
                    (Query(f"sum by (model) ({of('pending_predictions')})", "{{model}}"),),
                    "short",
                ),
            ),
        ),
        Row(
            "Spark, where a daemon shows its results",
            (
                Panel(
                    "Records the job has yet to read",
                    "By topic, when the newest batch was cut; those younger than time.settle are among them.",
                    (Query(f"sum by (topic) ({of('results_waiting_records')})", "{{topic}}"),),
                    "short",
                    width=8,
                ),
                Panel(
                    "Age of the newest batch",
                    "Time since the job wrote it. It grows while there is nothing to be read, too.",
                    (
                        Query(
                            f"time() - max by (instance) ({of('results_batch_timestamp_seconds')})",
                            "{{instance}}",
                        ),
                    ),
                    "s",
                    width=8,
                ),
                Panel(
                    "Batches a minute",
                    "Batches taken in from the results topic.",
                    (
                        Query(
                            f"60 * deriv({of('results_batch')}[$__rate_interval])",
                            "{{instance}}",
                        ),
                    ),
                    "none",
                    width=8,
                ),
            ),
        ),
        Row(
            "The daemon",
            (
                Panel(
                    "Consumer lag",
                    "Records of each topic that have not been read yet.",
                    (Query(f"sum by (topic) ({of('consumer_lag_records')})", "{{topic}}"),),
                    "short",
                    width=8,
                ),
                Panel(
                    "Memory",
                    "Memory the process holds; it is bounded by configuration, not by the length of the "
                    "stream.",
                    (Query(of("process_resident_memory_bytes"), "{{instance}}"),),
                    "bytes",
                    width=8,
                ),
                Panel(
                    "Processor",
                    "Cores the process uses; it can use one.",
                    (Query(f"rate({of('process_cpu_seconds_total')}[$__rate_interval])", "{{instance}}"),),
                    "none",
                    width=8,
                ),
            ),
        ),
    ),
)
