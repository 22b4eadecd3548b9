"""Rows of the dashboard *Model*: its drifts, and its labels."""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from deploy.grafana.chosen import BARS, DASHED, DOTTED, UNDER, mine, most, of
from deploy.grafana.panels import Panel, Query, Row

_MAJORITY = most(mine("baseline_accuracy_ratio", 'baseline="majority"', UNDER))
_AT_PREDICTION = most(mine("baseline_accuracy_ratio", 'baseline="persistent_at_prediction"', UNDER))
_SHOWN = 'detector=~"$detector"'
_ON_THE_RIGHT = {"custom.axisPlacement": "right", "unit": "short"}

DRIFT = Row(
    "Has it drifted?",
    (
        Panel(
            "$detector",
            "What the detector compares with its threshold (dashed): above it, it declares a drift. Alarms "
            "are marked at the event time of the outcome that raised them.",
            (
                Query(
                    most(mine("detector_statistic", _SHOWN), by="detector"),
                    "{{detector}}: statistic",
                ),
                Query(
                    most(mine("detector_threshold", _SHOWN), by="detector"),
                    "{{detector}}: threshold",
                ),
            ),
            "none",
            styles={"threshold$": DASHED},
            repeat="detector",
        ),
        Panel(
            "Drift-weighted accuracy",
            "Outcomes right after a drift weigh more: what users of the model felt. n_eff falls as the "
            "weight of a few outcomes grows.",
            (
                Query(most(mine("drift_weighted_accuracy_ratio")), "drift-weighted"),
                Query(most(mine("accuracy_ratio", 'forgetting="landmark"')), "landmark"),
                Query(most(mine("drift_weighted_effective_sample_size")), "n_eff"),
            ),
            "percentunit",
            styles={"^n_eff$": {**DOTTED, **_ON_THE_RIGHT}},
        ),
        Panel(
            "ADWIN's window",
            "Outcomes it still remembers: it is cut where the loss changed.",
            (Query(most(mine("adwin_window_outcomes"), by="forgetting"), "{{forgetting}}"),),
            "short",
        ),
        Panel(
            "Alarms",
            "Drifts declared, by detector.",
            (
                Query(
                    f"sum by (detector) (increase({mine('alarms_total')}[$__rate_interval]))",
                    "{{detector}}",
                ),
            ),
            "short",
            custom=BARS,
        ),
        Panel(
            "How much to trust the limits",
            "Limits assume independent losses. The more the loss of one outcome tells of the next, the fewer "
            "outcomes the estimate is worth.",
            (
                Query(most(mine("effective_sample_size", UNDER)), "n_eff"),
                Query(most(mine("effective_sample_size_autocorrelated", UNDER)), "n_eff, losses correlated"),
                Query(most(mine("loss_autocorrelation", UNDER)), "correlation with the loss before"),
            ),
            "short",
            styles={"^correlation": {**DOTTED, **_ON_THE_RIGHT, "unit": "none"}},
        ),
        Panel(
            "Do labels come in runs?",
            "What the previous label tells beyond the majority class, and what the label known when the "
            "prediction was made tells. Runs that only the first one sees are made by the order in which "
            "labels arrive.",
            (
                Query(most(mine("temporal_dependence", UNDER)), "previous label"),
                Query(
                    f"{_AT_PREDICTION} - {_MAJORITY}",
                    "label known in time",
                ),
            ),
            "percentunit",
        ),
    ),
)

LABELS = Row(
    "Do its labels come?",
    (
        Panel(
            "Label delay",
            "How many labels came after how long. Delays to four weeks; empty columns: none came.",
            (
                Query(
                    f"sum by (le) (increase({mine('label_delay_seconds_bucket')}[$__rate_interval]))",
                    "{{le}}",
                ),
            ),
            "s",
            kind="heatmap",
        ),
        Panel(
            "Pending predictions",
            "Predictions of this model that wait for their label.",
            (Query(f"sum({mine('pending_predictions')})", "pending"),),
            "short",
        ),
        Panel(
            "Join rate",
            "Of the labels of all models that are no repetition, the share that met a prediction.",
            (
                Query(
                    f"sum(rate({of('labels_joined_total')}[$__rate_interval])) / (sum(rate("
                    f"{of('labels_accepted_total')}[$__rate_interval])) - sum(rate("
                    f"{of('labels_duplicate_total')}[$__rate_interval])) > 0)",
                    "joined",
                ),
            ),
            "percentunit",
        ),
        Panel(
            "Outcomes and errors",
            "Outcomes a second, and those that were wrong. From the raw counters: this is per second.",
            (
                Query(f"sum(rate({mine('outcomes_total')}[$__rate_interval]))", "outcomes"),
                Query(f"sum(rate({mine('errors_total')}[$__rate_interval]))", "errors"),
            ),
            "cps",
        ),
    ),
)
